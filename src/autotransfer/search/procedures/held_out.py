"""How the answer predicted those who were held out: by person, by class, and how sure it was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.data.problem import Problem
from autotransfer.search.run_folder import RunFolder
from autotransfer.search.settings.trial import Trial
from autotransfer.search.shared import Shared

PARTS = 10
"""Parts of equal size into which trials are put by how sure the model was."""


@dataclass(frozen=True)
class HeldOut:
    """Predictions of people held out, put together.

    Parameters
    ----------
    confusion : dict of str to ndarray of int of shape (n_classes, n_classes)
        Of each person: rows are true classes, columns predicted ones.
    confidence, accuracy : ndarray of float of shape (n_parts,)
        Trials sorted by the probability of the class that was predicted, and cut into parts of
        equal size: the mean of that probability, and the share of trials that were right.
    """

    confusion: dict[str, npt.NDArray[np.int64]]
    confidence: npt.NDArray[np.float64]
    accuracy: npt.NDArray[np.float64]

    @classmethod
    def of(cls, problem: Problem, probabilities: npt.NDArray[np.float64]) -> HeldOut:
        """Put together the predictions of every trial.

        Parameters
        ----------
        problem : Problem
            Trials with their people and classes.
        probabilities : ndarray of shape (n_trials, n_classes)
            Of the classes of each trial, by a network that had not seen its person.
        """
        n = len(problem.classes)
        predicted, true = probabilities.argmax(1), problem.codes
        confusion = {
            str(person): np.bincount(true[mine] * n + predicted[mine], minlength=n * n).reshape(
                n, n
            )
            for person in np.unique(problem.subject)
            for mine in [problem.subject == person]
        }
        return cls(confusion, *reliability(probabilities.max(1), predicted == true))

    def to_json(self) -> dict[str, Any]:
        """Give it as JSON can hold it."""
        return {
            "confusion": {person: counts.tolist() for person, counts in self.confusion.items()},
            "confidence": self.confidence.tolist(),
            "accuracy": self.accuracy.tolist(),
        }


def mean_probabilities(
    trials: Iterable[Trial], shared: Shared, folder: RunFolder
) -> npt.NDArray[np.float64] | None:
    """Average what some trials, which hold out everybody equally often, predicted.

    Returns
    -------
    ndarray of shape (n_trials, n_classes) or None
        Class probabilities of every trial of the data; None if a file is missing.
    """
    problem = shared.problem
    total = np.zeros((len(problem.codes), len(problem.classes)))
    for trial in trials:
        held_out = trial.fold_of(problem).validation
        shape = len(held_out), len(problem.classes)
        found = folder.read_predictions(trial.id(shared.hash), shape)
        if found is None:
            return None
        total[held_out] += found
    return np.asarray(total / total.sum(axis=1, keepdims=True), np.float64)


def reliability(
    confidence: npt.NDArray[np.float64], right: npt.NDArray[np.bool_], n_parts: int = PARTS
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Compare how sure a model was with how often it was right.

    Trials are sorted by confidence and cut into parts of equal size, as in scikit-learn's
    ``calibration_curve(strategy="quantile")``; that one puts equal confidences into one part, of
    which a network that is sure of most trials has many, and gives parts of unknown size.

    Parameters
    ----------
    confidence : ndarray of float of shape (n_trials,)
        Probability of the class that was predicted.
    right : ndarray of bool of shape (n_trials,)
        Whether it was the true one.
    n_parts : int
        Parts; fewer where there are fewer trials.

    Returns
    -------
    confidence, accuracy : ndarray of float of shape (n_parts,)
        Means over the trials of each part.

    Examples
    --------
    >>> sure = np.array([0.9, 0.5, 0.6, 1.0])
    >>> [part.tolist() for part in reliability(sure, np.array([True, False, True, True]), 2)]
    [[0.55, 0.95], [0.5, 1.0]]
    """
    order = np.argsort(confidence, kind="stable")
    parts = np.array_split(order, min(n_parts, len(order)))
    means = [(confidence[part].mean(), right[part].mean()) for part in parts]
    found = np.array(means, np.float64).reshape(-1, 2)
    return found[:, 0], found[:, 1]
