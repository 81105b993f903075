"""AutoTransfer as a whole: whole runs on small data, with the real ledger."""

from __future__ import annotations

import io
import json
import os
import pickle
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))

import drive

import autotransfer as at
from autotransfer.data.mapped import stored
from autotransfer.data.problem import Problem
from autotransfer.data.trials import TrialArray
from autotransfer.errors import (
    BudgetError,
    DataError,
    FoldError,
    MissingSubjectError,
    RunMismatchError,
    SettingError,
    SmallCellWarning,
)
from autotransfer.search import BASELINE, BASELINE_BY_CLASS, Setting, Space, tasks
from autotransfer.search.engines.base import Carried
from autotransfer.search.options import warn_small_batches
from autotransfer.search.settings.trial import Trial
from autotransfer.search.shared import Shared
from autotransfer.search.status import open_run
from autotransfer.search.tasks import run_trial

DATA = drive.data()
pytestmark = pytest.mark.filterwarnings("ignore::autotransfer.errors.AutoTransferWarning")


def files(folder):
    """Content of every file of a run, but the note of who has it open."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and not p.name.endswith(".in-use")
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Make an undisturbed run."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    return drive.quick(out, portraits=True).fit(DATA.X, DATA.y, subject=DATA.subject), out


@pytest.mark.slow
def test_a_run_leaves_ledger_model_and_tables(whole):
    auto, out = whole
    names = {p.name for p in out.iterdir()}
    assert {"ledger.jsonl", "model", "trials.csv", "candidates.csv", "results.json"} <= names
    assert not {"signals", "checkpoints"} & names
    # Search: baseline and 4 settings on one fold; then baseline and the best of 2 measures on the
    # 4 other folds.
    assert len(auto.trials_) == 5 + 3 * 4
    assert auto.trials_["id"].is_unique
    assert list(auto.candidates_["measure"]) == ["uncensored", "mmd", "adversary"]
    assert auto.candidates_["chosen"].sum() == 1
    assert auto.predict(DATA.X).shape == DATA.y.shape
    assert auto.transform(DATA.X[:3]).shape[0] == 3
    loaded = at.CensoredClassifier.load(out / "model")
    np.testing.assert_array_equal(loaded.predict_proba(DATA.X), auto.predict_proba(DATA.X))
    few = DATA.X[DATA.subject == DATA.subject[0]]
    personal = auto.adapt(few, method="statistics").predict_proba(DATA.X)
    own = loaded.adapt(few, method="statistics").predict_proba(DATA.X)
    np.testing.assert_array_equal(personal, own)
    np.testing.assert_array_equal(auto.live().predict(few), loaded.live().predict(few))
    assert sorted(loaded.training_subjects_) == sorted(map(str, np.unique(DATA.subject)))


@pytest.mark.slow
def test_the_same_call_again_changes_nothing(whole):
    auto, out = whole
    before = files(out)
    again = drive.quick(out, portraits=True).fit(DATA.X, DATA.y, subject=DATA.subject)
    assert files(out) == before
    pd.testing.assert_frame_equal(again.trials_, auto.trials_)
    assert again.choice_ == auto.choice_


@pytest.mark.slow
def test_portraits_are_of_the_baseline_the_choice_and_its_placebo(whole):
    auto, out = whole
    _, ledger = open_run(out)
    with ledger:
        found = ledger.entries("portrait")
    wanted = [(BASELINE, False)]
    if auto.choice_.censors:
        wanted += [(auto.choice_.setting, False), (auto.choice_.setting, True)]
    made = [(Setting.from_json(e.definition["setting"]), e.definition["placebo"]) for e in found]
    assert made == wanted
    # Of the people who train on the first fold, and of nobody else.
    fold = next(iter(at.SubjectFolds(5).folds(DATA.subject)))
    for entry in found:
        assert entry.state == "done"
        assert set(entry.result["map"]["subject"]) == {str(s) for s in fold.subjects("train")}
        assert entry.result["leakage"]["z"]["chance"] == pytest.approx(1 / 3)


@pytest.mark.slow
def test_another_rule_chooses_from_the_same_trials(whole):
    auto, out = whole
    ledger = (out / "ledger.jsonl").read_bytes()
    other = drive.quick(out, rule="mean").fit(DATA.X, DATA.y, subject=DATA.subject)
    assert other.choice_.rule == "mean"
    pd.testing.assert_frame_equal(other.trials_, auto.trials_)
    back = drive.quick(out).fit(DATA.X, DATA.y, subject=DATA.subject)
    assert back.choice_ == auto.choice_
    assert (out / "ledger.jsonl").read_bytes().startswith(ledger)


@pytest.mark.slow
def test_a_search_on_more_folds_keeps_what_suits_more_people(whole, tmp_path):
    auto, _ = whole
    more = drive.quick(tmp_path / "run", search_folds=3)
    assert "on 3 folds" in (words := more_words(more))
    assert "21 trials" in words
    more.fit(DATA.X, DATA.y, subject=DATA.subject)
    # Baseline and 4 settings on three folds, then three candidates on the two others: nothing that
    # the search has trained is trained again.
    assert len(more.trials_) == 5 * 3 + 3 * 2
    _, ledger = open_run(tmp_path / "run")
    with ledger:
        entries = ledger.entries("search")
    means = {}
    for entry in entries:
        scores = entry.result["validation"]["subjects"].values()
        means.setdefault(str(Setting.from_json(entry.definition["setting"])), []).extend(scores)
    assert all(len(scores) == 3 for scores in means.values())
    for measure in ("mmd", "adversary"):
        mine = {name: np.mean(s) for name, s in means.items() if name.startswith(measure)}
        kept = more.candidates_.set_index("measure").loc[measure, "setting"]
        assert kept == max(mine, key=mine.get)
    # The candidates that both have were trained alike.
    same = auto.trials_.merge(more.trials_, on="id")
    assert len(same) >= 5 + 4
    np.testing.assert_array_equal(same["validation_x"], same["validation_y"])


def more_words(auto):
    """What a dry run says."""
    with redirect_stdout(io.StringIO()) as said:
        auto.dry_run(DATA.X, DATA.y, subject=DATA.subject)
    return said.getvalue()


def nightly(*values):
    return pytest.param(*values, marks=pytest.mark.nightly)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["memory map", "ray", nightly("two workers"), nightly("one worker"), nightly("executor")],
)
def test_the_table_does_not_depend_on_how_it_was_computed(kind, whole, tmp_path):
    auto, _ = whole
    if kind == "ray" and os.environ.get("AUTOTRANSFER_NEED_RAY") != "1":
        pytest.importorskip("ray")
    X = DATA.X
    if kind == "memory map":
        np.save(tmp_path / "X.npy", np.asarray(DATA.X))
        X = np.load(tmp_path / "X.npy", mmap_mode="r")
    options = {"one worker": {"n_jobs": 1}, "ray": {"engine": "ray"}}.get(kind, {})
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        if kind == "executor":
            options["engine"] = pool
        other = drive.auto(tmp_path / "run", **options).fit(X, DATA.y, subject=DATA.subject)
    pd.testing.assert_frame_equal(other.trials_, auto.trials_, check_exact=True)
    pd.testing.assert_frame_equal(other.candidates_, auto.candidates_, check_exact=True)
    np.testing.assert_array_equal(other.predict_proba(DATA.X), auto.predict_proba(DATA.X))


@pytest.mark.nightly
def test_tpe_is_the_same_with_other_workers(tmp_path):
    options = {"strategy": "tpe", "n_settings": 9, "keep": 1, "n_folds": 3}
    one = drive.auto(tmp_path / "a", n_jobs=1, **options)
    two = drive.auto(tmp_path / "b", n_jobs=2, **options)
    for auto in (one, two):
        auto.fit(DATA.X, DATA.y, subject=DATA.subject)
    pd.testing.assert_frame_equal(one.trials_, two.trials_, check_exact=True)
    searched = one.trials_.query("stage == 'search'")
    assert searched["setting"].nunique() == 10
    assert searched["strength"].nunique() > 4  # not those of the grid


@pytest.mark.slow
def test_conditional_censors_are_compared_with_a_baseline_that_has_their_batches(tmp_path):
    space = Space(["mmd"], ["conditional"], {"mmd": [0.01, 0.02]})
    auto = drive.quick(tmp_path / "run", space=space, n_folds=3, rule="oracle")
    auto.fit(DATA.X, DATA.y, subject=DATA.subject)
    names = [str(BASELINE), str(BASELINE_BY_CLASS)]
    assert auto.candidates_["setting"].tolist()[:2] == names
    assert auto.plan_.searched == 4
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    alike = Setting.from_json(results["chosen"]["setting"]).baseline
    assert Setting.from_json(results["baseline"]["setting"]) == alike
    # By class or not, the first weights are the same and the batches are not.
    _, ledger = open_run(tmp_path / "run")
    with ledger:
        losses = {
            Setting.from_json(entry.definition["setting"]): entry.curves["task_loss"]
            for entry in ledger.entries("search", curves=True)
        }
    assert losses[BASELINE] != losses[BASELINE_BY_CLASS]


@pytest.mark.slow
def test_pruned_settings_have_the_scores_of_whole_trainings(tmp_path):
    classifier = at.CensoredClassifier(max_epochs=18, device="cpu")
    space = Space(["mmd"], ["marginal"], {"mmd": [1, 2, 3, 5, 8, 13]})
    made = {}
    for prune in (False, True):
        auto = drive.quick(
            tmp_path / str(prune), classifier=classifier, space=space, prune=prune, n_folds=3
        )
        made[prune] = auto.fit(DATA.X, DATA.y, subject=DATA.subject)
    full = made[False].trials_.query("fold == 0").set_index("setting")["validation"]
    pruned = made[True].trials_.query("fold == 0 and max_epochs == 18")
    pruned = pruned.set_index("setting")["validation"]
    assert len(full) == 7
    assert len(pruned) < len(full)
    assert (pruned == full[pruned.index]).all()
    assert set(made[True].trials_["max_epochs"]) == {6, 18}


def shared(codes=None, base=None):
    classes, y = np.unique(DATA.y, return_inverse=True)
    options = {"device": "cpu", "learning_rate": 1e-3}
    codes = y if codes is None else codes
    base = DATA.X if base is None else base
    problem = Problem(TrialArray(base), codes, DATA.subject, classes, "data")
    return Shared(problem, options, "problem")


@pytest.mark.parametrize("setting", [BASELINE, Setting.of("mmd", "conditional", 3)])
def test_test_subjects_reach_nothing_but_the_test_score(setting):
    trial = Trial(setting, 1, 5, 0, 3)
    first = shared()
    fold = first.problem.folds(5)[1]
    rng = np.random.default_rng(0)
    codes, base = first.problem.codes.copy(), DATA.X.copy()
    codes[fold.test] = rng.permutation(codes[fold.test])
    base[fold.test] = rng.normal(size=base[fold.test].shape) * 1e3
    found = [run_trial(Carried(p), trial) for p in (first, shared(codes, base))]
    for name in ("validation", "curves", "best_epoch", "epochs"):
        assert found[0][name] == found[1][name]
    assert found[0]["test"] != found[1]["test"]
    # And the same trial again is the same.
    assert run_trial(Carried(first), trial)["test"] == found[0]["test"]
    codes[fold.train] = codes[fold.train][::-1]
    touched = run_trial(Carried(shared(codes)), trial)
    assert touched["curves"] != found[0]["curves"]


def test_scores_are_those_of_scikit_learn():
    from sklearn.metrics import balanced_accuracy_score, recall_score

    from autotransfer.search.tasks import classifier, scores

    made, trial = shared(), Trial(BASELINE, 1, 3, 0, 2)
    problem = made.problem
    fold = problem.folds(3)[1]
    clf = classifier(made, trial, max_epochs=2)
    clf.fit_fold(problem, fold, 0)
    predicted, true = clf.predict_codes(problem.X.take(fold.test)), problem.codes[fold.test]
    found = scores(problem, fold.test, predicted)
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(true, predicted))
    recalls = recall_score(true, predicted, average=None)
    assert list(found["classes"].values()) == pytest.approx(recalls.tolist())
    for person, value in found["subjects"].items():
        mine = DATA.subject[fold.test].astype(str) == person
        assert value == pytest.approx(balanced_accuracy_score(true[mine], predicted[mine]))


def test_people_are_adapted_to_by_trials_that_are_not_scored(monkeypatch):
    from sklearn.metrics import balanced_accuracy_score

    made, trial = shared(), Trial(BASELINE, 1, 3, 0, 2)
    problem = made.problem
    fold = problem.folds(3)[1]
    clf = tasks.classifier(made, trial, max_epochs=2)
    clf.fit_fold(problem, fold, 0)
    monkeypatch.setattr(tasks, "ADAPTED_TO", 5)
    found = tasks.adapted(clf, problem, fold.test)
    assert sorted(found) == sorted(np.unique(DATA.subject[fold.test]).astype(str))
    for person, value in found.items():
        mine = np.flatnonzero(DATA.subject.astype(str) == person)
        first, second = mine[::2], mine[1::2]
        some = np.linspace(0, len(first) - 1, 5).round().astype(int)
        guesses = {}
        for half, rest in ((first, second), (second, first)):
            personal = clf.adapt(DATA.X[rest[some]], method="statistics")
            guesses |= dict(zip(half, personal.predict_codes(DATA.X[half]), strict=True))
        predicted = [guesses[trial] for trial in mine]
        assert value == pytest.approx(balanced_accuracy_score(problem.codes[mine], predicted))


def test_without_batch_norm_nobody_is_adapted_to():
    trial = Trial(BASELINE, 1, 5, 0, 2)
    plain = nn.Sequential(nn.Flatten(), nn.Linear(DATA.X[0].size, 8))
    made = shared()
    made = replace(made, options={**made.options, "encoder": plain})
    assert run_trial(Carried(made), trial)["adapted"] == {}


def test_a_part_of_a_memory_map_is_found_again_in_its_file(tmp_path):
    whole = np.arange(2000, dtype=np.float32).reshape(100, 4, 5)
    np.save(tmp_path / "x.npy", whole)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for part in (mapped, mapped[7:30], mapped[60:][5:9]):
        found = stored(part)
        np.testing.assert_array_equal(found.open(), part)
    assert stored(mapped[::2]) is None
    assert stored(whole) is None


@pytest.mark.parametrize("mode", ["c", "r+"])
def test_a_map_that_was_written_to_is_not_sent_by_the_name_of_its_file(mode, tmp_path):
    """Workers would train on what is in the file, and not on what the caller sees."""
    np.save(tmp_path / "x.npy", np.asarray(DATA.X))
    mapped = np.load(tmp_path / "x.npy", mmap_mode=mode)
    mapped *= 1e6
    problem = Problem.of(mapped, DATA.y, DATA.subject)
    sent = pickle.loads(pickle.dumps(problem.on_disk(tmp_path)))
    np.testing.assert_array_equal(sent.X[:], mapped)
    assert Problem.of(sent.X, DATA.y, DATA.subject).fingerprint == problem.fingerprint


def test_a_file_that_changes_under_a_run_is_noticed(tmp_path):
    np.save(tmp_path / "x.npy", np.asarray(DATA.X))
    problem = Problem.of(np.load(tmp_path / "x.npy", mmap_mode="r"), DATA.y, DATA.subject)
    sent = pickle.dumps(problem.on_disk(tmp_path))
    np.save(tmp_path / "x.npy", np.asarray(DATA.X) * 2)
    with pytest.raises(DataError, match="was written to after"):
        pickle.loads(sent)


@pytest.mark.slow
def test_a_dry_run_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    auto = drive.quick(None)
    plan = auto.dry_run(DATA.X, DATA.y, subject=DATA.subject)
    assert plan.seconds > 0
    said = capsys.readouterr().out
    assert "17 trials" in said
    assert "GB of memory" in said
    assert list(tmp_path.iterdir()) == []


def test_a_setting_that_would_do_little_is_told_beforehand():
    """Of 8 trials in 3 classes no cell has the 4 that MIGE needs; MMD needs 2."""
    space = Space(["mige", "mmd"])
    few = at.CensoredClassifier(trials_per_subject=8)
    with pytest.warns(SmallCellWarning) as told:
        warn_small_batches(few.options, space, 3)
    (one,) = told
    assert "mige conditional would censor little or nothing" in str(one.message)
    assert "has about 2 trials of each class of a person, and it needs 4" in str(one.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_small_batches(few.set_params(trials_per_subject=12).options, space, 3)
        # Left to itself it takes what is needed.
        warn_small_batches(at.CensoredClassifier().options, Space(), 20)


@pytest.mark.parametrize(("prune", "epochs"), [(False, 2), (True, 18), nightly(True, 30)])
def test_a_setting_that_did_nothing_is_no_candidate(tmp_path, capfd, prune, epochs):
    """With 4 trials of a person in 2 classes no cell has the 4 trials that MIGE needs."""
    space = Space(["mige", "mmd"], ["conditional"], {"mige": [1.0], "mmd": [1.0]})
    shape = {"subjects_per_batch": 3, "trials_per_subject": 4}
    few = at.CensoredClassifier(max_epochs=epochs, device="cpu", **shape)
    asked = {"classifier": few, "space": space, "n_settings": 2, "prune": prune}
    auto = drive.quick(tmp_path / "run", verbose=True, **asked)
    auto.fit(DATA.X, DATA.y, subject=DATA.subject)
    assert list(auto.candidates_["measure"]) == ["uncensored", "uncensored", "mmd"]
    said = capfd.readouterr().err
    assert ("rungs at" in said) == prune
    assert "too few trials to censor: mige conditional. Raise" in said


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"rule": "median"}, SettingError, "median"),
        ({"strategy": "random"}, SettingError, "random"),
        ({"space": ["mmd"]}, SettingError, "Space"),
        ({"keep": 0}, SettingError, "keep"),
        ({"n_seeds": 0}, SettingError, "n_seeds"),
        ({"search_folds": 0}, SettingError, "search_folds"),
        ({"search_folds": 6}, SettingError, "search_folds=6, but there are 5 folds"),
        ({"n_folds": 2}, FoldError, "n_folds"),
        ({"budget": "soon"}, BudgetError, "soon"),
        ({"engine": "locla"}, SettingError, "Did you mean 'local'"),
        ({"classifier": at.CensoredClassifier(normalise="z")}, SettingError, "z"),
        ({"classifier": at.CensoredClassifier("mmd")}, SettingError, "measure='mmd' .*Space"),
        ({"classifier": at.CensoredClassifier(strength=3)}, SettingError, "strength=3 .*ignored"),
        ({"classifier": at.CensoredClassifier(random_state=1)}, SettingError, "to AutoTransfer"),
        ({"classifier": at.CensoredClassifier(validation=[1])}, SettingError, "n_folds"),
        (
            {"classifier": at.CensoredClassifier(patience=3), "procedure": "auto"},
            SettingError,
            "patience=3 .*when to stop",
        ),
        (
            {"classifier": at.CensoredClassifier(schedule="cosine"), "prune": True},
            SettingError,
            "prune goes on .*schedule=.cosine.",
        ),
    ],
)
def test_wrong_options_are_named(options, error, words, tmp_path):
    with pytest.raises((error, ValueError), match=words):
        drive.quick(tmp_path / "run", **options).fit(DATA.X, DATA.y, subject=DATA.subject)


def test_missing_subjects(tmp_path):
    with pytest.raises(MissingSubjectError):
        drive.quick(tmp_path / "run").fit(DATA.X, DATA.y)


@pytest.mark.slow
def test_a_folder_of_another_run_is_refused(whole):
    _, out = whole
    before = files(out)
    with pytest.raises(RunMismatchError, match="keep"):
        drive.quick(out, keep=2).fit(DATA.X, DATA.y, subject=DATA.subject)
    with pytest.raises(RunMismatchError, match="data"):
        drive.quick(out).fit(DATA.X[:-1], DATA.y[:-1], subject=DATA.subject[:-1])
    assert files(out) == before


def test_it_is_an_estimator():
    auto = at.AutoTransfer("1h", n_jobs=2)
    assert clone(auto).get_params() == auto.get_params()
