"""What a method may learn from, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import autotransfer as at
from autotransfer.data.splits import Fold

Array = npt.NDArray[Any]

Model = Callable[[Array], Array]
"""Signals (n, C, T) of one person -> predicted labels (n,)."""


@dataclass(frozen=True)
class Known:
    """Labelled trials of the training and the validation subjects: never of the new person.

    Parameters
    ----------
    name : str
        Name of the data set, which says what suits its signals.
    data : SubjectDataset
        Trials of training and validation subjects.
    validation : list
        Ids of the validation subjects.
    options : mapping
        Options of `CensoredClassifier` that every network of this data set is trained with.
    seed : int
        Of everything random.
    """

    name: str
    data: at.SubjectDataset
    validation: list[Any]
    options: Mapping[str, Any]
    seed: int

    @classmethod
    def of(
        cls, name: str, data: at.SubjectDataset, fold: Fold, options: Mapping[str, Any], seed: int
    ) -> Known:
        """Take from all data what a fold allows."""
        allowed = data.select(trials=np.union1d(fold.train, fold.validation))
        return cls(name, allowed, fold.subjects("validation"), options, seed)

    @property
    def train(self) -> at.SubjectDataset:
        """Trials of the training subjects."""
        held = np.isin(self.data.subject, self.validation)
        return self.data.select(trials=np.flatnonzero(~held))

    def classifier(self, measure: Any = None, **options: Any) -> at.CensoredClassifier:
        """Make an unfitted classifier with the options of this data set, and others on top."""
        return at.CensoredClassifier(
            measure,
            **{
                "sfreq": self.data.sfreq,
                "validation": self.validation,
                "random_state": self.seed,
                "device": "cpu",
                "verbose": False,
                **self.options,
                **options,
            },
        )
