"""What both estimators are handed: the checks of it, and what scikit-learn is told about it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

from autotransfer.data.dataset import fingerprint
from autotransfer.data.trials import TrialArray
from autotransfer.data.validate import as_labels, as_trials
from autotransfer.errors import LabelError, MissingSubjectError

Array = npt.NDArray[Any]


class Given(NamedTuple):
    """Trials of many people, checked but for their values.

    Parameters
    ----------
    X : TrialArray of shape (n_trials, C, T)
        Signals.
    y, subject : array of shape (n_trials,)
        Label and subject of each trial.
    classes : array of shape (n_classes,)
        Labels, sorted.
    codes : array of int of shape (n_trials,)
        Class numbers: positions in `classes`.
    """

    X: TrialArray
    y: Array
    subject: Array
    classes: Array
    codes: npt.NDArray[np.intp]

    def fingerprint(self) -> str:
        """Hash all of it; reads every signal, and refuses those that are not finite."""
        return fingerprint(self.X, self.y, self.subject, finite=True)


def check_given(X: Any, y: Any, subject: Any) -> Given:
    """Check what `fit` was handed."""
    trials = as_trials(X)
    y = as_labels(y, "y", len(trials))
    if subject is None:
        raise MissingSubjectError(
            "fit needs to know who each trial comes from: fit(X, y, subject=ids). In a "
            "pipeline or cross-validation, route it: set_fit_request(subject=True)."
        )
    subject = as_labels(subject, "subject", len(trials))
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise LabelError(f"y holds one class only ({classes[0]!r}). Give trials of at least two.")
    return Given(trials, y, subject, classes, codes)


class SignalEstimator(TransformerMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of trials x channels x times that also gives latents."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
