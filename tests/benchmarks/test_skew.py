"""People who differ in what they do: what is kept of whom, and what is compared with what."""

from __future__ import annotations

import numpy as np
import pytest

import autotransfer as at
from benchmarks.censors import skew

N_PEOPLE, N_CLASSES, N_EACH = 6, 3, 10
Y = np.tile(np.repeat(np.arange(N_CLASSES), N_EACH), N_PEOPLE)
SUBJECT = np.repeat(np.arange(N_PEOPLE), N_CLASSES * N_EACH)


def counts(trials, recording=None):
    """Trials of each person (row) in each class (column) that are kept."""
    X = np.zeros((len(Y), 1, 8))
    kept = skew.thinned(at.SubjectDataset(X, Y, SUBJECT, recording=recording), trials)
    assert len(kept) == len(set(kept))
    table = np.zeros((N_PEOPLE, N_CLASSES), int)
    np.add.at(table, (SUBJECT[kept], Y[kept]), 1)
    return table


def test_everybody_keeps_one_class_and_a_fifth_of_the_others():
    found = counts(skew.SKEWED)
    assert all(sorted(row) == [2, 2, 10] for row in found.tolist())
    assert found.sum(0).tolist() == [28, 28, 28]  # over all people, classes stay even


def test_evenly_as_many():
    assert (counts(skew.EVEN) == 5).all()  # 14 trials in 3 classes, rounded


def test_recordings_stay_whole():
    found = counts(skew.SKEWED, recording=np.arange(len(Y)) // 5)
    assert all(sorted(row) == [5, 5, 10] for row in found.tolist())


def test_differences_are_from_the_skewed_baseline():
    """Three trainings of it at 0.4, 0.5 and 0.6, or 0.2 less with the batches of conditional
    censors; one of each censor at 0.6; without skew 0.8."""
    results = {}
    for (trials, measure, mode, strength), seed in skew.cells():
        plain = 0.4 + 0.1 * seed - 0.2 * (mode == "conditional")
        score = 0.6 if measure else plain if trials == skew.SKEWED else 0.8
        job = skew.Job("erp", trials, measure, mode, strength, 1, 0, seed, "{}")
        results[job] = {"test": {"a": score, "b": score + 0.01}, "n_train": 1}
    rows = skew.rows_of("erp", results)
    even, plain, by_class, *censors = rows
    assert even["difference"] == pytest.approx(0.3)
    assert (plain["mean"], plain["difference"]) == (pytest.approx(0.505), 0)
    assert by_class["difference"] == pytest.approx(-0.2)
    assert len(censors) == 10
    *_, marginal, conditional = skew.together(rows)
    for mode, one in (("marginal", marginal), ("conditional", conditional)):
        assert (one["censors"], one["number"]) == (mode, 5)
        gain = 0.2 if mode == "marginal" else 0.4  # from the training with their own seed
        assert (one["difference"], one["sd"]) == (pytest.approx(gain), pytest.approx(0))
