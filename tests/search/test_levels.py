"""Somebody held out at every level: against the same done by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

import autotransfer as at
from autotransfer.data.trials import TrialArray
from autotransfer.search.levels import SAME, Case, halves, score_person, standard_cases

DATA = at.make_subjects(
    n_subjects=4, n_trials=80, n_channels=4, n_times=64, n_classes=3, random_state=0
)
KNOWN, NEW = DATA.select(subjects=[0, 1, 2]), DATA.select(subjects=[3])
X, CODES, UNIT = np.asarray(NEW.X), NEW.y_code, np.arange(80) // 2


@pytest.fixture(scope="module")
def clf():
    options = {"max_epochs": 20, "device": "cpu", "verbose": False, "validation": None}
    options["encoder_options"] = {"F1": 4, "kernel_length": 16}  # small, for speed
    return at.CensoredClassifier(**options, random_state=0).fit(KNOWN)


def score(clf, *cases, codes=CODES, unit=None, seed=0):
    unit = np.arange(len(codes)) if unit is None else unit
    return score_person(clf, TrialArray(X[: len(codes)]), codes, unit, cases, seed)


@pytest.mark.parametrize("seed", range(5))
def test_halves_tear_no_recording_apart_and_share_out_the_classes(seed):
    rng = np.random.default_rng(seed)
    of_unit = rng.integers(0, 3, 30)
    unit = rng.integers(0, 30, 200)
    codes = of_unit[unit]
    first, later = halves(codes, unit)
    assert np.array_equal(np.sort(np.concatenate([first, later])), np.arange(200))
    assert not set(unit[first]) & set(unit[later])
    for code in np.unique(codes):
        units = [len(set(unit[half][codes[half] == code])) for half in (first, later)]
        assert 0 <= units[0] - units[1] <= 1


def test_every_case_is_what_it_says(clf):
    first, later = halves(CODES, np.arange(80))
    order = np.random.default_rng(3).permutation(first)

    def by_hand(model, trials=later):
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
