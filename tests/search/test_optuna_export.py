"""The trials of a run as studies of Optuna, opened by Optuna itself."""

from __future__ import annotations

import math

import optuna
import pytest

from autotransfer.errors import LedgerError, SourceError
from autotransfer.search import BASELINE, Entry, Ledger, Setting, Space, export_optuna
from autotransfer.search.run_folder import RunFolder
from autotransfer.search.settings.trial import Trial, digest

pytest_plugins = ["postgres"]

IDENTITY = {"data": "a", "classifier": "b"}
NAME = digest(IDENTITY)
SPACE = Space(["mmd", "mige"], ["marginal", "conditional"])
SETTINGS = [BASELINE, *SPACE.grid()]
SCORES = {
    "validation": {"balanced_accuracy": 0.5, "subjects": {"a": 0.5}},
    "test": {"balanced_accuracy": 0.25, "subjects": {"b": 0.25}},
    **{
        "adapted": {},
        "epochs": 10,
        "best_epoch": 10,
        "still_falling": False,
        "seconds": 1.0,
        "epoch_seconds": 0.1,
    },
}
COMPLETE, FAIL = optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.FAIL


@pytest.fixture
def folder(tmp_path):
    """The folder of a run of which nothing is on record."""
    files = RunFolder(tmp_path / "run")
    files.claim(IDENTITY, {"storage": None, "params": SPACE.params()})
    return files


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path / 'optuna.db'}"


def entry(setting: Setting, stage: str = "search", **changes) -> Entry:
    trial = Trial(setting, 1, 3, 2, 10)
    given = {"value": len(str(setting)) / 50, "params": setting.params()} | changes
    return Entry(trial.id("problem"), stage, "done", trial.to_json(), SCORES, **given)


def failure(setting: Setting) -> Entry:
    trial = Trial(setting, 0, 3, 0, 10)
    given = {"error": "Traceback \0 'é'", "params": setting.params()}
    return Entry(trial.id("problem"), "search", "failed", trial.to_json(), {}, **given)


def study(url: str, stage: str = "search") -> optuna.Study:
    return optuna.load_study(study_name=f"{NAME}/{stage}", storage=url)


def test_a_stage_is_a_study(folder, url):
    with Ledger(folder.ledger, NAME) as ledger:
        ledger.write_plan("search", {"n": 3})
        ledger.record(entry(BASELINE))
        ledger.record(entry(SETTINGS[-1]))
        ledger.record(failure(SETTINGS[1]))
        ledger.record(entry(BASELINE, "refit", value=None))
        assert export_optuna(folder.path, url) == 4  # also while the run goes on
    assert optuna.get_all_study_names(url) == [f"{NAME}/search", f"{NAME}/refit"]
    baseline, censored, failed = study(url).trials
    assert [t.state for t in (baseline, censored, failed)] == [COMPLETE, COMPLETE, FAIL]
    assert baseline.params == {"measure": "uncensored"}
    assert baseline.user_attrs == {
        "id": entry(BASELINE).id,
        "fold": 1,
        "seed": 2,
        "test_balanced_accuracy": 0.25,
    }
    assert censored.params == SETTINGS[-1].params()
    assert censored.value == entry(SETTINGS[-1]).value
    assert failed.user_attrs["error"] == failure(SETTINGS[1]).error
    assert (failed.value, failed.user_attrs["fold"]) == (None, 0)
    assert study(url).best_trial.number == 1
    assert [trial.value for trial in study(url, "refit").trials] == [-math.inf]


def test_importances_are_those_of_the_values(folder, url):
    """The strength alone decides the value, and Optuna finds that out."""
    with Ledger(folder.ledger, NAME) as ledger:
        for setting in SETTINGS[1:]:
            ledger.record(entry(setting, value=math.log(setting.strength)))
    export_optuna(folder.path, url)
    judge = optuna.importance.FanovaImportanceEvaluator(seed=0)
    shares = optuna.importance.get_param_importances(study(url), evaluator=judge)
    assert set(shares) == {"measure", "mode", "strength"}
    assert shares["strength"] > 0.9
    only = ["estimator", "length_scale", "strength"]
    shares = optuna.importance.get_param_importances(study(url), evaluator=judge, params=only)
    assert shares["strength"] > 0.9
    assert len(study(url).trials_dataframe()) == len(SETTINGS) - 1


def test_again_adds_what_is_new(folder, url):
    with Ledger(folder.ledger, NAME) as ledger:
        for n, setting in enumerate(SETTINGS):
            ledger.record(entry(setting))
            # The first export knows nothing of the other measure's options but from the space.
            if n in (0, 10, 40):
                export_optuna(folder.path, url)
                assert len(study(url).trials) == n + 1
    assert export_optuna(folder.path, url) == len(SETTINGS) - 41
    assert export_optuna(folder.path, url) == 0
    trials = study(url).trials
    assert [trial.params for trial in trials] == [setting.params() for setting in SETTINGS]
    assert [trial.user_attrs["id"] for trial in trials] == [entry(s).id for s in SETTINGS]
    ranges = [trial.distributions for trial in trials]
    for name in ranges[-1]:
        assert len({str(one[name]) for one in ranges if name in one}) == 1


def test_what_optuna_cannot_hold_is_an_attribute(tmp_path, url):
    folder = RunFolder(tmp_path / "run")
    folder.claim(IDENTITY, {"storage": None, "params": {"list": [[1, 2], [3]], "size": [3]}})
    first = {"flag": True, "size": 3, "list": [1, 2], "word": "a", "bad": math.nan, "none": None}
    later = {"flag": False, "size": 4, "word": "b", "mixed": "x"}
    with Ledger(folder.ledger, NAME) as ledger:
        ledger.record(entry(SETTINGS[0], params=first))
        export_optuna(folder.path, url)
        ledger.record(entry(SETTINGS[1], params=later))
        export_optuna(folder.path, url)
    one, two = study(url).trials
    assert one.params == {"flag": True, "size": 3, "word": "a", "none": None}
    assert one.user_attrs["param:list"] == [1, 2]
    assert math.isnan(one.user_attrs["param:bad"])
    # Optuna allows a name no other choices than it had first.
    assert two.params == {"mixed": "x"}
    kept = {k.removeprefix("param:"): v for k, v in two.user_attrs.items() if "param:" in k}
    assert kept == {"flag": False, "size": 4, "word": "b"}


def test_from_a_database_into_a_database(folder, database, postgres_server):
    with Ledger(database, NAME) as ledger:
        ledger.record(entry(SETTINGS[1]))
        ledger.record(failure(SETTINGS[2]))
    url = postgres_server.create_database()
    assert export_optuna(folder.path, url, storage=database) == 2
    assert export_optuna(folder.path, url, storage=database) == 0
    trials = study(url.replace("postgresql://", "postgresql+psycopg://")).trials
    assert trials[0].params == SETTINGS[1].params()
    assert trials[1].user_attrs["error"] == failure(SETTINGS[2]).error


@pytest.mark.parametrize(
    "url",
    [
        "run.db",
        "nosuch://server/database",
        "sqlite:////no/such/folder/run.db",
        "postgresql://me:secret@127.0.0.1:1/db",
        "postgresql://me:sec@ret@127.0.0.1:1/db",
    ],
)
def test_a_storage_that_optuna_cannot_use_is_told(folder, url):
    with Ledger(folder.ledger, NAME) as ledger:
        ledger.record(entry(BASELINE))
    with pytest.raises(LedgerError) as caught:
        export_optuna(folder.path, url)
    assert "sec" not in str(caught.value)
    assert "ret" not in str(caught.value)


def test_there_is_no_run(tmp_path, url):
    with pytest.raises(SourceError, match="There is no run"):
        export_optuna(tmp_path, url)
