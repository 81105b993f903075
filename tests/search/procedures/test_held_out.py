"""Predictions of people held out, against scikit-learn."""

from __future__ import annotations

import json

import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix

import autotransfer as at
from autotransfer.data.problem import Problem
from autotransfer.documents import parse
from autotransfer.search.procedures.held_out import PARTS, HeldOut, reliability


def predicted(n_trials: int = 60) -> tuple[Problem, np.ndarray]:
    data = at.make_subjects(n_subjects=4, n_trials=n_trials, n_classes=3, n_times=32)
    problem = Problem.of(data)
    rng = np.random.default_rng(0)
    return problem, rng.dirichlet([0.6] * 3, len(problem.codes))


def test_confusions_are_scikit_learns():
    problem, probabilities = predicted()
    found = HeldOut.of(problem, probabilities).confusion
    assert sorted(found) == sorted(map(str, np.unique(problem.subject)))
    for person in np.unique(problem.subject):
        mine = problem.subject == person
        wanted = confusion_matrix(
            problem.codes[mine], probabilities[mine].argmax(1), labels=[0, 1, 2]
        )
        np.testing.assert_array_equal(found[str(person)], wanted)


def test_reliability_is_scikit_learns_by_quantiles():
    problem, probabilities = predicted()
    right = probabilities.argmax(1) == problem.codes
    # No two are alike, and parts are of equal size: the two cut at the same places.
    accuracy, confidence = calibration_curve(
        right, probabilities.max(1), n_bins=PARTS, strategy="quantile"
    )
    found = HeldOut.of(problem, probabilities)
    np.testing.assert_allclose(found.confidence, confidence)
    np.testing.assert_allclose(found.accuracy, accuracy)


def test_few_trials_make_few_parts():
    confidence, accuracy = reliability(np.array([0.9, 0.6, 0.7]), np.array([True, False, True]))
    np.testing.assert_allclose(confidence, [0.6, 0.7, 0.9])
    np.testing.assert_allclose(accuracy, [0, 1, 1])


def test_json_holds_all_of_it():
    held_out = HeldOut.of(*predicted(12))
    back = parse(json.dumps(held_out.to_json()))
    np.testing.assert_array_equal(back["confidence"], held_out.confidence)
    np.testing.assert_array_equal(back["accuracy"], held_out.accuracy)
    assert set(back["confusion"]) == set(held_out.confusion)
