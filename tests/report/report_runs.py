"""Runs to report on: a real one with names that would break a careless page, and parts of it."""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import autotransfer as at
from autotransfer.search import Space
from autotransfer.search.run_folder import RunFolder

for room in ("search", "fixtures"):
    sys.path.insert(0, str(Path(__file__).parents[1] / room))
import drive  # noqa: E402
from make_run import RECIPES, TINY  # noqa: E402

PEOPLE = np.array(["<img src=x onerror=alert(1)>", "B&B", "c'c\"c", "$d_1$", "日本 5"])
CLASSES = np.array(["<b>left</b>", "right & up"])


def data():
    """Give a study whose people and classes are numbers with names."""
    made = at.make_subjects(n_subjects=5, n_trials=24, n_times=64, random_state=0)
    names = {"classes": CLASSES, "subjects": dict(enumerate(PEOPLE))}
    return at.SubjectDataset(made.X, made.y, made.subject, **names)


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory):
    """Give the folder of a run that came to its end; not to be written to."""
    out = tmp_path_factory.mktemp("report") / "whole"
    drive.quick(out, portraits=True).fit(data())
    return out


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """Give a hands-off run that came to its end, with everything that a report shows."""
    with ThreadPoolExecutor(1) as pool:
        return at.AutoTransfer(
            out=tmp_path_factory.mktemp("plots") / "run",
            recipes=RECIPES,
            space=Space(["mmd"], ["marginal"], {"mmd": [1.0]}),
            classifier=at.CensoredClassifier(encoder_options=TINY, device="cpu"),
            n_folds=3,
            engine=pool,
            verbose=False,
        ).fit(data())


def trials_of(run: Path, *stages: str) -> list[dict]:
    """Give the lines of trials in the ledger; of all stages if none is named."""
    lines = [json.loads(line) for line in RunFolder(run).ledger.read_text().splitlines()]
    return [one for one in lines if "entry" in one and (not stages or one["stage"] in stages)]


def cut(run: Path, out: Path, stage: str, trials: int) -> Path:
    """Copy a run as a kill after so many trials of a stage would have left it."""
    out.mkdir()
    shutil.copy(RunFolder(run).run, out)
    kept, seen = [], 0
    for line in RunFolder(run).ledger.read_text().splitlines(keepends=True):
        one = json.loads(line)
        mine = one["stage"] == stage and "entry" in one
        if mine and seen == trials:
            break
        seen += mine
        kept.append(line)
    (out / "ledger.jsonl").write_text("".join(kept))
    if stage == "portrait":  # the refit was over
        shutil.copytree(RunFolder(run).model, out / "model")
    return out


def pictures(page: str) -> list[str]:
    """Give the SVG texts in a page."""
    found = re.findall(r'"data:image/svg\+xml;base64,([^"]+)"', page)
    return [base64.b64decode(one).decode() for one in found]


def words(page: str) -> str:
    """Give the text of a page as a person reads it."""
    body = re.sub(r"<(script|style)>.*?</\1>", "", page[page.index("<body") :], flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())
