"""Somebody held out at every level: against the same done by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

import autotransfer as at
from autotransfer.adaptation.guard import Seen
from autotransfer.data.problem import Problem
from autotransfer.data.trials import TrialArray
from autotransfer.search.engines.base import Carried
from autotransfer.search.levels.cases import OTHER, SAME, Case, halves, mean_recall, standard_cases
from autotransfer.search.levels.person import Known, seen_of
from autotransfer.search.levels.worth import Levels, best_way
from autotransfer.search.settings.recipe import Recipe
from autotransfer.search.settings.setting import Setting
from autotransfer.search.settings.trial import Trial
from autotransfer.search.shared import Shared
from autotransfer.search.tasks import run_trial, score_levels

DATA = at.make_subjects(
    n_subjects=4, n_trials=80, n_channels=4, n_times=64, n_classes=3, random_state=0
)
KNOWN, NEW = DATA.select(subjects=[0, 1, 2]), DATA.select(subjects=[3])
X, CODES, UNIT = np.asarray(NEW.X), NEW.y_code, np.arange(80) // 2
WITHOUT_LABELS = pytest.mark.parametrize("level", ["recording", "stream"])


@pytest.fixture(scope="module")
def clf():
    options = {"max_epochs": 20, "device": "cpu", "verbose": False, "validation": None}
    options["encoder_options"] = {"F1": 4, "kernel_length": 16}  # small, for speed
    return at.CensoredClassifier(**options, random_state=0).fit(KNOWN)


def score(clf, *cases, codes=CODES, unit=None, seed=0):
    unit = np.arange(len(codes)) if unit is None else unit
    known = Known.of(clf, TrialArray(X[: len(codes)]), codes, unit, seed)
    return [known.score(case) for case in cases]


@pytest.mark.parametrize("seed", range(5))
def test_halves_tear_no_recording_apart_and_share_out_the_classes(seed):
    rng = np.random.default_rng(seed)
    of_unit = rng.integers(0, 3, 30)
    unit = rng.integers(0, 30, 200)
    codes = of_unit[unit]
    given, other = halves(codes, unit)
    assert np.array_equal(np.sort(np.concatenate([given, other])), np.arange(200))
    assert not set(unit[given]) & set(unit[other])
    for code in np.unique(codes):
        units = [len(set(unit[half][codes[half] == code])) for half in (given, other)]
        assert 0 <= units[0] - units[1] <= 1


def test_every_case_is_what_it_says(clf):
    given, other = halves(CODES, np.arange(80))
    order = np.random.default_rng(3).permutation(given)

    def by_hand(model, trials=other):
        return balanced_accuracy_score(NEW.y[trials], model.predict(X[trials]))

    few = np.concatenate([order[CODES[order] == code][:2] for code in range(3)])
    rest = order[~np.isin(order, few)]
    labelled = clf.adapt(X[few], NEW.y[few], unlabelled=X[rest], method="head")
    both = clf.adapt(X[order], method="statistics").adapt(X[few], NEW.y[few], method="head")
    expected = {
        Case("nothing"): by_hand(clf),
        Case("nothing", tested=SAME): by_hand(clf, np.arange(80)),
        Case("recording", 16, "statistics"): by_hand(clf.adapt(X[order[:16]], method="statistics")),
        Case("recording", None, "statistics"): by_hand(clf.adapt(X[order], method="statistics")),
        Case("recording", None, "statistics", SAME): by_hand(
            clf.adapt(X, method="statistics"), np.arange(80)
        ),
        Case("labels", 2, "head"): by_hand(labelled),
        Case("labels", 2, "statistics+head"): by_hand(both),
    }
    assert score(clf, *expected, seed=3) == pytest.approx(list(expected.values()))


def test_what_there_is_too_little_of_has_no_score(clf):
    cases = Case("recording", 64, "statistics"), Case("labels", 10, "head"), Case("nothing")
    found = score(clf, *cases, codes=CODES[:40])
    assert found[:2] == [None, None]
    assert found[2] is not None


def test_all_standard_cases_are_scored(clf):
    cases = standard_cases()
    found = score(clf, *cases)
    missing = [case for case, value in zip(cases, found, strict=True) if value is None]
    assert {case.amount for case in missing} == {64}
    assert {case.level for case in cases} == {"nothing", "recording", "stream", "labels"}
    assert len(set(cases)) == len(cases)
    # Where time is short there is an answer at each of these.
    assert [case.level for case in cases[:3]] == ["nothing", "recording", "labels"]
    assert {case.level for case in standard_cases(statistics=False)} == {"nothing", "labels"}
    turned = set(standard_cases(ring=True)) - set(cases)
    assert {case.method for case in turned if case.level == "recording"} == {
        "ring+statistics+information",
        "ring+statistics",
    }
    labelled = {case.method.rpartition("+")[2] for case in turned if case.level == "labels"}
    assert labelled == {"covariances"}


@pytest.mark.parametrize(
    ("codes", "way"),
    [
        pytest.param(CODES, "statistics", id="too few trials for more"),
        pytest.param(np.arange(80) % 2, "statistics+information", id="enough"),
    ],
)
def test_recordings_of_few_classes_teach_by_what_adapt_would_do(clf, codes, way):
    known = Known.of(clf, TrialArray(X), codes, np.arange(80))
    first, second, *_ = known.seen("statistics", tried=1)["one"]
    classes = np.random.default_rng(0).permutation(np.unique(codes))

    def gain(code, method):
        mine = X[codes == code]
        models = clf.adapt(mine, method=method), clf
        after, before = (np.mean(model.predict_codes(TrialArray(mine)) == code) for model in models)
        return after - before

    assert first.gain == pytest.approx(gain(classes[0], way))
    assert first.otherwise == pytest.approx(gain(classes[0], "certainty"))
    assert second.gain == pytest.approx(gain(classes[1], "statistics"))
    assert second.otherwise is None


@pytest.mark.parametrize("seed", range(3))
def test_mean_recall_is_balanced_accuracy(seed):
    rng = np.random.default_rng(seed)
    true, predicted = rng.integers(0, 4, (2, 50))
    assert mean_recall(true, predicted) == pytest.approx(balanced_accuracy_score(true, predicted))


def known_of(clf, codes=CODES):
    return Known.of(clf, TrialArray(X), codes, np.arange(80), 3)


def test_each_half_is_predicted_with_what_there_is_of_the_other(clf):
    known = known_of(clf)
    found = known.probabilities("recording")
    for some, tested in ((known.given, known.other), (known.other, known.given)):
        expected = clf.adapt(X[some]).predict_proba(X[tested])
        np.testing.assert_array_equal(found[tested], expected)
    np.testing.assert_array_equal(known.probabilities("nothing"), clf.predict_proba(X))
    labelled = known.probabilities("labels", 2)
    few = np.concatenate([known.given[CODES[known.given] == code][:2] for code in range(3)])
    rest = known.given[~np.isin(known.given, few)]
    personal = clf.adapt(X[few], NEW.y[few], unlabelled=X[rest])
    np.testing.assert_array_equal(labelled[known.other], personal.predict_proba(X[known.other]))


@WITHOUT_LABELS
def test_below_level_labels_other_labels_change_no_bit(clf, level):
    """With labels that give the same halves."""
    found = [known_of(clf, codes).probabilities(level) for codes in (CODES, (CODES + 1) % 3)]
    np.testing.assert_array_equal(*found)


def levels_of(nothing, statistics, seen=None, level="recording"):
    cases = {Case("nothing"): nothing, Case(level, None, "statistics"): statistics}
    return Levels(cases, seen or {})


@WITHOUT_LABELS
def test_the_method_is_chosen_by_others_and_never_by_oneself(level):
    """Somebody's own score decides nothing about that person: changed, it changes only itself."""
    rng = np.random.default_rng(0)
    people = [str(number) for number in range(8)]
    nothing = dict.fromkeys(people, 0.5)
    adapted = {p: 0.5 + rng.normal(0, 0.1) for p in people}
    first = levels_of(nothing, adapted, level=level).chosen(level, None)
    # Whoever would now choose otherwise: the share of draws that adapt "3" stays what it was.
    share = (first["3"] - 0.5) / (adapted["3"] - 0.5)
    changed = adapted | {"3": 0.9}
    again = levels_of(nothing, changed, level=level).chosen(level, None)
    assert (again["3"] - 0.5) / 0.4 == pytest.approx(share)
    assert any(again[p] != first[p] for p in people if p != "3")


@WITHOUT_LABELS
def test_the_policy_is_what_people_gain_by(level):
    nothing, better = dict.fromkeys("abc", 0.5), {"a": 0.9, "b": 0.4, "c": 0.5}
    assert best_way({"statistics": better, "none": nothing}) == "statistics"
    assert best_way({"statistics": better, "none": nothing}, ["b", "b", "c"]) == "none"
    gained = levels_of(nothing, better, level=level).policy()
    lost = levels_of(better, nothing, level=level).policy()
    assert (getattr(gained, level), getattr(lost, level)) == ("statistics", "none")


@WITHOUT_LABELS
def test_who_is_refused_has_what_the_model_has(level):
    people = "abcdef"
    nothing, adapted = dict.fromkeys(people, 0.5), dict.fromkeys(people, 0.8)
    whole = {p: [Seen(0.9, 0.9, 0.3)] for p in people} | {"d": [Seen(0.2, 0.2, 0.3)]}
    one = {p: [Seen(0.3, 0.3, -0.4)] for p in people}
    levels = levels_of(nothing, adapted, {"all": whole, "one": one}, level)
    assert whole["a"][0].passes(levels.lessons.guard())
    assert not one["a"][0].passes(levels.lessons.guard())
    assert levels.ways(level, None, guard=levels.lessons.guard()) == {
        "statistics": adapted | {"d": 0.5},
        "none": nothing,
    }
    chosen = levels.chosen(level, None)
    assert chosen == pytest.approx(adapted | {"d": 0.5})
    assert levels.chosen(level, None, all_classes=True) == pytest.approx(adapted)
    assert set(levels.curve(level)) == {None}


def test_who_is_refused_has_with_labels_what_labels_alone_give():
    people = "abcdef"
    whole = {p: [Seen(0.9, 0.9, 0.3)] for p in people} | {"d": [Seen(0.2, 0.2, 0.3)]}
    one = {p: [Seen(0.3, 0.3, -0.4)] for p in people}
    ways = {"head": 0.6, "tuning": 0.7, "statistics+firm": 0.8, "statistics+tuning": 0.9}
    scores = {Case("labels", 5, way): dict.fromkeys(people, value) for way, value in ways.items()}
    nothing = {Case("nothing"): dict.fromkeys(people, 0.5)}
    levels = Levels(nothing | scores, {"all": whole, "one": one})
    found = levels.ways("labels", 5, guard=levels.lessons.guard())
    assert {way: found[way]["a"] for way in ways} == ways
    refused = {"head": 0.6, "tuning": 0.7, "statistics+firm": 0.6, "statistics+tuning": 0.7}
    assert {way: found[way]["d"] for way in ways} == refused
    assert levels.policy().labels == "statistics+tuning"


def test_only_cases_of_which_every_group_has_a_score_are_told():
    case = Case("recording", 4, "auto").to_json()
    first, second = ({"cases": [], "guard": {}} for _ in range(2))
    for number, result in enumerate((first, second)):
        result["cases"].append(Case("nothing").to_json() | {"subjects": {str(number): 0.5}})
    first["cases"].append(case | {"subjects": {"0": 0.7}})
    levels = Levels.of([first, second], 2)
    assert list(levels.scores) == [Case("nothing")]
    assert Levels.of([first], 2).scores == {}


RECIPE = Recipe.of(normalise="channel", n_steps=200)
TRIAL = Trial(Setting(None, recipe=RECIPE), 0, 3, 0, 20, grouped=True)
SMALL = {"device": "cpu", "encoder_options": {"F1": 4, "kernel_length": 16}}


def test_levels_are_those_of_the_trained_network_and_of_people_held_out():
    problem = Problem.of(DATA)
    handle = Carried(Shared(problem, SMALL, "x"))
    files = run_trial(handle, TRIAL)["network"]
    given, again = score_levels(handle, TRIAL, files), score_levels(handle, TRIAL)
    assert given["cases"] == again["cases"]
    assert given["guard"] == again["guard"]
    held_out = {str(s) for s in TRIAL.fold_of(problem).subjects("validation")}
    levels = Levels.of([given], 1)
    assert {person for scores in levels.scores.values() for person in scores} == held_out
    assert {person for people in levels.seen.values() for person in people} == held_out
    assert set(levels.answers()) == {"nothing", "recording", "stream", "labels"}
    assert {row["level"] for row in levels.rows()} == set(levels.answers())
    assert {case.tested for case in levels.scores} == {OTHER, SAME}
    assert not levels.not_tried()


def test_without_time_there_is_no_level_and_all_are_named():
    handle = Carried(Shared(Problem.of(DATA), SMALL, "x"))
    found = score_levels(handle, TRIAL, seconds=0.0)
    assert found["cases"] == []
    levels = Levels.of([found], 1)
    assert levels.left_out == tuple(standard_cases())
    named = levels.not_tried()
    assert len(set(named)) == len(named)
    assert {"level recording", "level stream", "level labels with 10 of each class"} <= set(named)


def test_an_amount_that_was_scored_in_another_way_is_not_named():
    left_out = Case("recording", None, "statistics"), Case("recording", 4, "auto")
    scores = {Case("recording", None, "statistics+information"): {"a": 1.0}}
    assert Levels(scores, left_out=left_out).not_tried() == ["level recording with 4 trials"]


def test_certainty_is_tried_while_there_is_time(clf):
    people = {"a": Known.of(clf, TrialArray(X), CODES, UNIT)}
    for seconds, tried in ((None, True), (0.0, False)):
        found = seen_of(people, 0, seconds)
        assert [found[cut]["a"][0]["otherwise"] is not None for cut in found] == [tried] * 2


@pytest.mark.parametrize("level", ["recording", "stream", "labels"])
def test_a_trial_is_scored_at_the_level_of_the_run(level):
    problem = Problem.of(DATA)
    shared = Shared(problem, SMALL, "x", new_person=level, n_labels=3)
    plain, known = (run_trial(Carried(s), TRIAL) for s in (Shared(problem, SMALL, "x"), shared))
    assert plain["curves"]["task_loss"] == known["curves"]["task_loss"]  # trained in the same way
    assert plain["probabilities"] != known["probabilities"]
    trials = TRIAL.fold_of(problem).validation
    shape = len(trials), len(problem.classes)
    found = np.frombuffer(known["probabilities"], np.float16).reshape(shape).argmax(1)
    expected = balanced_accuracy_score(problem.codes[trials], found)
    assert known["validation"]["balanced_accuracy"] == pytest.approx(expected)


def test_below_level_labels_no_label_reaches_the_model(clf, monkeypatch):
    """Whatever the labels are: with the same halves, the model sees the same trials."""
    seen = []
    adapt = at.CensoredClassifier.adapt

    def watched(self, X, y=None, **options):
        seen.append((np.asarray(X).tobytes(), y))
        return adapt(self, X, y, **options)

    monkeypatch.setattr(at.CensoredClassifier, "adapt", watched)
    case = Case("recording", 16, "statistics")
    score(clf, case)
    score(clf, case, codes=(CODES + 1) % 3)
    assert seen[0] == seen[1]
    assert seen[0][1] is None


def test_one_recording_of_everything_is_cut_in_time():
    codes = np.array([0, 1, 1, 0, 0, 1, 0])
    given, other = halves(codes, np.zeros(7, int))
    assert given.tolist() == [0, 1, 2, 3]
    assert other.tolist() == [4, 5, 6]
    # Two files that begin with different classes would both be given.
    given, other = halves(codes, np.array([0, 1, 1, 1, 0, 1, 0]))
    assert given.tolist() == [0, 1, 2, 3]
    # Windows of a contraction stay together.
    assert [half.tolist() for half in halves(np.zeros(4, int), np.zeros(4, int))] == [
        [0, 1, 2, 3],
        [],
    ]
