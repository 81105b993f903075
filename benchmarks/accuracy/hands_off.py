"""What a newcomer gets: AutoTransfer on real recordings with a budget and nothing else.

Each case is a run of its own, `AutoTransfer(budget, n_jobs=2).fit(data)`, in a folder of its own;
the figure is the nested score that the run itself tells first: each person by the answer that was
given without that person. "busy" has two other processes beside it that compute all the time. The
runs with 2 to 60 minutes are the anytime curve; those with 30 are one command on every data set.
Finished cases are kept in --keep FILE: the same command goes on with the others, and a killed run
goes on where it was.
"""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import autotransfer as at
from autotransfer.search.budget import parse_budget
from autotransfer.search.driver import scores_of
from autotransfer.search.options import shared_of
from autotransfer.search.procedures.answer import Member, Tried, nested_answer
from autotransfer.search.procedures.held_out import mean_probabilities
from autotransfer.search.run_folder import RunFolder
from autotransfer.search.settings.recipe import Dimension, RecipeSpace
from autotransfer.search.settings.selection import lookup_rule
from autotransfer.search.settings.trial import Trial
from autotransfer.search.status import OF_TRIALS, open_run
from autotransfer.search.tasks import scores
from benchmarks.common import pool, report
from benchmarks.common.recordings import (
    RECORDINGS,
    SETS,
    SHOWN,
    arguments,
    load_set,
    temporary_folder,
)

BUDGETS = ("2m", "5m", "10m", "20m")
CASES = [
    *((name, budget, False) for budget in BUDGETS for name in RECORDINGS),
    ("ssvep", "60m", False),
    ("erp", "60m", False),
    ("emg", "60m", False),
    ("ssvep", "10m", True),
    ("emg", "90m", False),
    *((name, "30m", False) for name in SETS),
]
"""Data set, budget, and whether two other processes are busy."""

GOALS = {
    ("ssvep", "10m", False): 0.77,
    ("ssvep", "60m", False): 0.80,
    ("ssvep", "10m", True): 0.72,
    ("erp", "10m", False): 0.645,
    ("erp", "60m", False): 0.66,
    ("emg", "30m", False): 0.78,
    ("emg", "90m", False): 0.795,
}
OVERRUN = 1.1
"""Most wall time of a run, in budgets."""


def key_of(case: Sequence[Any]) -> str:
    name, budget, busy = case
    return f"{name} {budget}" + (" busy" if busy else "")


def spin() -> None:
    """Compute until the end of days."""
    while True:
        sum(i * i for i in range(10**5))


@contextmanager
def beside(n: int) -> Iterator[None]:
    """Have some processes compute all the time."""
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=spin, daemon=True) for _ in range(n)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()


def run(case: Sequence[Any], folder: Path, workers: int, **more: Any) -> dict[str, Any]:
    """Make a run, or go on with it, and take the figures that it tells."""
    name, budget, busy = case
    data = load_set(name)
    started = folder.exists()
    start = time.monotonic()
    with beside(2 if busy else 0):
        auto = at.AutoTransfer(budget, out=folder, n_jobs=max(workers, 1), **more).fit(data)
    seconds = None if started else time.monotonic() - start
    results = json.loads((folder / "results.json").read_text())
    return {
        "case": key_of(case),
        "nested": results["nested"]["mean"],
        "quartile": results["nested"]["lower_quartile"],
        "first answer": results["first"]["test"]["mean"],
        "one network": results["chosen"]["test"]["mean"],
        "together": results["together"]["mean"],
        "classical": results["reference"]["mean"],
        "groups": results["plan"]["n_folds"],
        "trainings": len(auto.trials_),
        "networks": len(results["members"]),
        "chosen": results["chosen"]["name"],
        "not tried": len(results["not_tried"]),
        "seconds": seconds,
        "one training": training_seconds(folder),
        **levels(results),
        "commit": report.commit(),
        "people": results["nested_subjects"],
        "beside": everybody(folder),
        "tried": tried(folder),
        "mixed": mixed(auto, data),
    }


OF_LEVELS = "first network of the answer"
"""How the table of scores begins the name of the network that levels are scored with."""


def everybody(folder: Path) -> dict[str, dict[str, float]]:
    """Scores of everybody by the classical pipeline, and on other trials at each level."""
    table = pd.read_csv(folder / "scores.csv", dtype={"person": str})
    found = {"classical": table[table["method"] == "classical pipeline"]}
    first = table[table["method"].str.startswith(OF_LEVELS)]
    found |= {level: first[first["level"] == level] for level in ("nothing", *LEVELS)}
    return {
        name: dict(zip(mine["person"], mine["score"], strict=True))
        for name, mine in found.items()
        if len(mine)
    }


LEVELS = ("recording", "stream", "labels")
BY_PERSON = ("people", "beside", "tried")
"""What a kept row has of every person: by the answer, by others, by every setting."""

APART = (*BY_PERSON, "mixed")
"""What stands apart from the table of runs."""


def levels(results: dict[str, Any]) -> dict[str, float | None]:
    """Scores at levels, by the first network of the answer; None where the time was too short."""
    found = results["levels"]
    nothing = next((one["nothing"] for one in found.values()), None)
    means = {level: found[level]["mean"] if level in found else None for level in LEVELS}
    return {"nothing": nothing, **means}


def training_seconds(folder: Path) -> float:
    """Measure the machine: what a training of the first answer took, the median."""
    _, ledger = open_run(folder)
    with ledger:
        done = [entry for entry in ledger.entries("first") if entry.state == "done"]
    return float(np.median([entry.result["seconds"] for entry in done]))


def tried(folder: Path) -> dict[str, dict[str, float]]:
    """Scores of everybody by every setting that was tried on all groups, the first answer first."""
    _, ledger = open_run(folder)
    people: dict[str, dict[str, float]] = {}
    with ledger:
        for stage in OF_TRIALS["auto"]:
            for entry in ledger.entries(stage):
                if entry.state == "done" and entry.trial.seed == 0:
                    mine = people.setdefault(str(entry.trial.setting), {})
                    mine |= entry.result["validation"]["subjects"]
    most = max(map(len, people.values()))
    return {name: scores for name, scores in people.items() if len(scores) == most}


MIXED = (0.5, 0.6, 0.7, 0.8, 0.9)


def mixed(auto: at.AutoTransfer, data: at.SubjectDataset) -> dict[str, float]:
    """Answer once more from what a run has tried, more or less careful with a mixture.

    Returns
    -------
    dict of str to float
        How credible it must be that people gain by networks of other settings -> nested score.
    """
    shared, folder = shared_of(auto, data, None, None), RunFolder(Path(str(auto.out)))
    _, ledger = open_run(folder.path)
    with ledger:
        done = [entry for stage in OF_TRIALS["auto"] for entry in ledger.entries(stage)]
    trials: dict[Member, list[Trial]] = {}
    for trial in (entry.trial for entry in done if entry.state == "done"):
        trials.setdefault(Member(trial.setting, trial.seed), []).append(trial)

    def score(members: tuple[Member, ...]) -> dict[str, float] | None:
        mine = [trial for member in members for trial in trials[member]]
        mean = mean_probabilities(mine, shared, folder)
        if mean is None:
            return None
        people: dict[str, float] = scores(shared.problem, np.arange(len(mean)), mean.argmax(1))[
            "subjects"
        ]
        return people

    results = json.loads(folder.results.read_text())
    candidates = Tried(map(scores_of, done), results["plan"]["n_folds"], score)
    rule = lookup_rule(results["rule"]["name"])
    found = {level: nested_answer(candidates, rule, mixed=level) for level in MIXED}
    return {f"{level:g}": mean_of(one.nested or one.scores) for level, one in found.items()}


def mean_of(scores: Mapping[str, float]) -> float:
    return float(np.mean(list(scores.values())))


SHORT = ("30m", "10m")
"""Budgets of the table in short: of each data set the first that was run."""


def in_short(done: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Give one row of each data set: what a reader wants to know first."""
    rows = []
    for name in SETS:
        found = [(b, done[key_of((name, b, False))]) for b in SHORT if f"{name} {b}" in done]
        if found:
            budget, row = found[0]
            rows.append(
                {
                    "data": name,
                    "recordings": SHOWN[name],
                    "classes": len(load_set(name).labels),
                    "people": len(row["people"]),
                    "minutes": round(parse_budget(budget) / 60),
                    "one command": row["nested"],
                    "lower quartile": row["quartile"],
                    "classical pipeline": row["classical"],
                    "nothing": row.get("nothing"),
                    "recording": row.get("recording"),
                    "5 labels": row.get("labels"),
                }
            )
    return rows


def main() -> None:
    parser = report.parser(__doc__)
    names = [key_of(case) for case in CASES]
    parser.add_argument("--case", nargs="*", choices=names, default=names, metavar="CASE")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep finished cases here")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="folder of the runs")
    parser.add_argument("--workers", type=int, default=2, help=pool.WORKERS)
    args = arguments(parser, case=names[:1])
    more: dict[str, Any] = {}
    if args.smoke:
        args.out = temporary_folder()
        more = {
            "recipes": RecipeSpace([Dimension("steps", ({"n_steps": 2}, {"n_steps": 3}), 0.1)]),
            "engine": pool.executor(0),
        }
    done: dict[str, dict[str, Any]] = {}
    if args.keep and args.keep.exists():
        done = {row["case"]: row for row in map(json.loads, args.keep.read_text().splitlines())}
    for case in CASES:
        key = key_of(case)
        if key in args.case and key not in done:
            done[key] = run(case, args.out / key.replace(" ", "-"), args.workers, **more)
            print({k: v for k, v in done[key].items() if k not in APART}, flush=True)
            if args.keep:
                with args.keep.open("a") as file:
                    file.write(json.dumps(done[key]) + "\n")
    rows = [done[key_of(case)] for case in CASES if key_of(case) in done]
    goals = [
        report.Goal(key_of(case), done[key_of(case)]["nested"], least)
        for case, least in GOALS.items()
        if key_of(case) in done
    ]
    for case in CASES:
        row = done.get(key_of(case))
        if row is not None and row["seconds"] is not None and not case[2]:
            share = row["seconds"] / parse_budget(case[1])
            goals.append(report.Goal(f"{row['case']}: wall time / budget", share, OVERRUN, False))
    more = {name: {row["case"]: row.get(name, {}) for row in rows} for name in BY_PERSON}
    # Of all that is kept: earlier runs, under names of their own, had a part in what was chosen.
    more["mixed"] = [{"case": k} | row["mixed"] for k, row in done.items() if row.get("mixed")]
    # Runs of before there were levels, or before this was written down.
    missing = dict.fromkeys(("one training", "nothing", *LEVELS))
    table = [
        {k: np.nan if v is None else v for k, v in (missing | row).items() if k not in APART}
        for row in rows
    ]
    title = "Hands off: a budget and nothing else"
    report.finish(args, title, table, goals, short=in_short(done), **more)


if __name__ == "__main__":
    main()
