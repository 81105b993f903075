"""A problem: labelled trials of many people, checked, as a training or a run works on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer import atomic
from autotransfer.data.dataset import SubjectDataset, fingerprint
from autotransfer.data.info import SignalInfo
from autotransfer.data.mapped import FileTrials, stored
from autotransfer.data.splits import Fold, SubjectFolds
from autotransfer.data.trials import TrialArray
from autotransfer.data.validate import as_labels, as_trials
from autotransfer.errors import DataError, LabelError, MissingSubjectError


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
    info : SignalInfo
        What is known of the signals.
    class_names : tuple of str
        What the classes are called, in the order of `classes`.
    subject_names : mapping of str to str
        What subjects are called: id as text -> name, where these differ.
    recording : array of shape (n_trials,), optional
        The recording that each trial was cut from.
    """

    X: TrialArray
    codes: npt.NDArray[np.intp]
    subject: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    fingerprint: str
    info: SignalInfo = field(default_factory=SignalInfo)
    class_names: tuple[str, ...] = ()
    subject_names: Mapping[str, str] = field(default_factory=dict)
    recording: npt.NDArray[Any] | None = None

    @classmethod
    def of(cls, X: Any, y: Any = None, subject: Any = None) -> Problem:
        """Check what `fit` was handed; reads every signal and refuses what is not finite.

        Parameters
        ----------
        X : SubjectDataset, array or TrialArray of shape (n_trials, n_channels, n_times)
            A data set, which has all the rest in it, or signals.
        y, subject : array of shape (n_trials,)
            Label and person of each trial.
        """
        if isinstance(X, SubjectDataset):
            return cls._of_dataset(X, y, subject)
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
        data = fingerprint(trials, y, subject, finite=True)
        names = tuple(str(label) for label in classes.tolist())
        return cls(trials, codes, subject, classes, data, class_names=names)

    @classmethod
    def _of_dataset(cls, data: SubjectDataset, y: Any, subject: Any) -> Problem:
        if y is not None or subject is not None:
            raise DataError(
                "A SubjectDataset has its labels and subjects in it. Give fit(data) alone, or "
                "fit(data.X, y, subject=subject) for others."
            )
        ids = [str(subject) for subject in data.subject_ids.tolist()]
        names = zip(ids, data.subject_names, strict=True)
        return replace(
            cls.of(data.trials, data.y, data.subject),
            info=data.info,
            class_names=tuple(data.class_names),
            subject_names={person: name for person, name in names if person != name},
            recording=data.recording,
        )

    @cached_property
    def _folds(self) -> dict[tuple[str, int], list[Fold]]:
        return {}

    def folds(self, n_folds: int) -> list[Fold]:
        """Make the folds; as many as subjects is one subject at a time."""
        key = "folds", n_folds
        if key not in self._folds:
            self._folds[key] = list(SubjectFolds(n_folds).folds(self.subject))
        return self._folds[key]

    def groups(self, n_groups: int) -> list[Fold]:
        """Make folds that hold out one group of people each, to validate; nobody tests."""
        key = "groups", n_groups
        if key not in self._folds:
            self._folds[key] = list(SubjectFolds(n_groups).held_out(self.subject))
        return self._folds[key]

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
        return replace(self, X=FileTrials(place, self.X.index, self.X.scale, self.X.channels))

    def in_memory(self) -> Problem:
        """Give the same problem with its signals as an array, for workers without our files."""
        return self if stored(self.X.base) is None else replace(self, X=TrialArray(self.X[:]))
