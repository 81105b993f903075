"""A run that is called again: the time that is gone, and decisions that stay as they were."""

from __future__ import annotations

import inspect
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import drive
import work

import autotransfer as at
from autotransfer.data.problem import Problem
from autotransfer.search import BASELINE, Ledger, Space
from autotransfer.search.ledger import Entry
from autotransfer.search.options import run_definition, run_options_of, shared_of
from autotransfer.search.procedures import auto as procedure
from autotransfer.search.settings.recipe import Dimension, RecipeSpace
from autotransfer.search.settings.trial import Trial
from autotransfer.search.status import open_run

DATA = at.make_subjects(n_subjects=5, n_trials=24, n_channels=4, n_times=64, random_state=0)
STEPS = RecipeSpace([Dimension("steps", ({"n_steps": 8},), 0.01)])
pytestmark = pytest.mark.filterwarnings("ignore::autotransfer.errors.AutoTransferWarning")


def auto(out, **options):
    tiny = {"F1": 2, "kernel_length": 16, "depthwise_kernel_length": 4}
    given = {
        "classifier": at.CensoredClassifier(encoder_options=tiny, device="cpu"),
        **{"recipes": STEPS, "n_folds": 3, "portraits": False, "levels": False},
        **{"engine": drive.THREAD, "verbose": False},
    }
    return at.AutoTransfer(out=out, **given | options)


def test_time_on_record_is_that_of_the_workers_who_took_it(tmp_path, monkeypatch):
    told = []

    class Watched(procedure.Clock):
        def __init__(self, budget, spent=0.0):
            told.append(spent)
            super().__init__(budget, spent)

    monkeypatch.setattr(procedure, "Clock", Watched)
    folder = tmp_path / "run"
    with ThreadPoolExecutor(3) as three:
        auto(folder, budget="10m", n_folds=None, engine=three, n_jobs=1).fit(DATA)
    _, ledger = open_run(folder)
    with ledger:
        entries = [entry for stage in ledger.stages() for entry in ledger.entries(stage)]
        plan = ledger.plan("auto")
    assert plan["workers"] == 3
    assert plan["spent"] > 0
    # Whoever goes on with it may have other workers.
    auto(folder, budget="10m", n_folds=None).fit(DATA)
    seconds = sum(entry.result.get("seconds", 0.0) for entry in entries)
    assert told == [0.0, pytest.approx(seconds / 3 + plan["spent"])]


def test_what_is_longer_first_hangs_on_the_steps_before_alone(tmp_path):
    """Seeds that an earlier call trained after this decision have no part in it."""
    before = [Trial(BASELINE, fold, 2, 0, 10, grouped=True) for fold in range(2)]
    after = [Trial(BASELINE, fold, 2, 1, 10, grouped=True) for fold in range(2)]
    with Ledger(tmp_path / "ledger", "run") as ledger:
        run = procedure.AutoProcedure.__new__(procedure.AutoProcedure)
        run.ledger, run._known = ledger, {}
        for trial, falling in [
            *zip(before, (True, False), strict=True),
            *((t, True) for t in after),
        ]:
            result = work.result(trial) | {"still_falling": falling}
            ledger.record(Entry(trial.id("data"), "first", "done", trial.to_json(), result))
            if trial in before:
                run._known[trial] = None
        assert not run._still_falling(BASELINE)
        run._known |= dict.fromkeys(after)
        assert run._still_falling(BASELINE)


def test_groups_that_are_asked_for_are_another_run():
    """Without `n_folds` there are as many as the budget carries, whatever that number is."""

    def definition(n_folds):
        asked = auto("none", n_folds=n_folds)
        shared = shared_of(asked, DATA, None, None)
        return run_definition(shared, run_options_of(asked, Problem.of(DATA, None, None)))

    assert definition(None) != definition(5)
    assert definition(5) != definition(4)
    assert definition(5) == definition(5)


def test_portraits_can_be_asked_for_afterwards(tmp_path):
    folder = tmp_path / "run"
    space = Space(["mmd"], ["marginal"], {"mmd": [1.0]})
    found = []
    for portraits in (False, True, False):
        auto(folder, space=space, portraits=portraits).fit(DATA)
        _, ledger = open_run(folder)
        with ledger:
            found.append(len(ledger.entries("portrait")))
    assert found[0] == 0 < found[1] == found[2]


@pytest.mark.parametrize("name", ["adapt", "live"])
def test_a_run_adapts_as_its_model_does(name):
    theirs = inspect.signature(getattr(at.CensoredClassifier, name)).parameters
    ours = inspect.signature(getattr(at.AutoTransfer, name)).parameters
    assert {k: (p.kind, p.default) for k, p in ours.items()} == {
        k: (p.kind, p.default) for k, p in theirs.items()
    }
