"""What is kept of a hands-off run is what its folder says."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import autotransfer as at
from autotransfer.search import Space
from autotransfer.search.settings.recipe import Dimension, RecipeSpace
from benchmarks.accuracy.hands_off import MIXED, mixed


def test_a_run_is_answered_again_from_its_folder(tmp_path):
    data = at.make_subjects(n_subjects=6, n_trials=24, n_times=64, random_state=0)
    with ThreadPoolExecutor(1) as pool:
        auto = at.AutoTransfer(
            out=tmp_path / "run",
            recipes=RecipeSpace([Dimension("steps", ({"n_steps": 4}, {"n_steps": 8}), 0.1)]),
            space=Space(["mmd"], ["marginal"], {"mmd": [1.0]}),
            classifier=at.CensoredClassifier(device="cpu"),
            n_folds=3,
            engine=pool,
            levels=False,
            portraits=False,
            verbose=False,
        ).fit(data)
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    found = mixed(auto, data)
    assert list(found) == [f"{level:g}" for level in MIXED]
    assert found["0.9"] == pytest.approx(results["nested"]["mean"])  # what the run itself does
