"""A problem: labelled trials of many people, checked, as a training or a run works on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.data import atomic
from autotransfer.data.dataset import fingerprint
from autotransfer.data.mapped import FileTrials, stored
from autotransfer.data.splits import Fold, SubjectFolds
from autotransfer.data.trials import TrialArray
from autotransfer.data.validate import as_labels, as_trials
from autotransfer.errors import LabelError, MissingSubjectError


@dataclass(frozen=True)
class Problem:
    """Labelled trials of many people.

    Parameters
    ----------
    X : TrialArray of shape (n_trials, C, T)
        Signals.
    codes : array of int of shape (n_trials,)
        Class numbers: positions in `classes`.
    subject : array of shape (n_trials,)
        Subject of each trial.
    classes : array of shape (n_classes,)
        Labels, sorted.
    fingerprint : str
        Hash of signals, labels and subjects.
    """

    X: TrialArray
    codes: npt.NDArray[np.intp]
    subject: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    fingerprint: str

    @classmethod
    def of(cls, X: Any, y: Any, subject: Any) -> Problem:
        """Check what `fit` was handed; reads every signal and refuses what is not finite."""
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
            raise LabelError(
                f"y holds one class only ({classes[0]!r}). Give trials of at least two."
            )
        return cls(trials, codes, subject, classes, fingerprint(trials, y, subject, finite=True))

    @cached_property
    def _folds(self) -> dict[int, list[Fold]]:
        return {}

    def folds(self, n_folds: int) -> list[Fold]:
        """Make the folds; as many as subjects is one subject at a time."""
        if n_folds not in self._folds:
            self._folds[n_folds] = list(SubjectFolds(n_folds).folds(self.subject))
        return self._folds[n_folds]

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def on_disk(self, folder: Path) -> Problem:
        """Give the same problem with its signals in a file, which is written if need be."""
        place = stored(self.X.base)
        if place is None:
            path = folder / f"signals-{self.fingerprint}.npy"
            if not path.exists():
                with atomic.file(path) as handle:
                    np.save(handle, np.ascontiguousarray(self.X.base))
            place = stored(np.load(path, mmap_mode="r"))
        if place is None:
            return self
        return replace(self, X=FileTrials(place, self.X.index, self.X.scale))

    def in_memory(self) -> Problem:
        """Give the same problem with its signals as an array, for workers without our files."""
        return self if stored(self.X.base) is None else replace(self, X=TrialArray(self.X[:]))
