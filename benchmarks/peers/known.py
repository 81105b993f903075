"""What a method may learn from, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import autotransfer as at
from autotransfer.data.splits import Fold
from recordings import RECORDINGS

Array = npt.NDArray[Any]

Model = Callable[[Array], Array]
"""Signals (n, C, T) of one person -> predicted labels (n,)."""

OF_THE_ENCODER = ("kernel_seconds", "F1", "drop_prob")


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


def network_options(name: str, chosen: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Options of every network of a data set: the recording's own, or those that were chosen.

    Parameters
    ----------
    name : str
        Name of the data set.
    chosen : mapping, optional
        Its part of "chosen" in what ``benchmarks/baseline.py --json`` writes.

    Returns
    -------
    dict
        Of `CensoredClassifier`.
    """
    recording = RECORDINGS[name]
    options = {
        "normalise": recording.normalisers[0],
        "encoder_options": dict(recording.encoder_options),
        **recording.options,
    }
    if chosen is None:
        return options
    encoder = {option: chosen[option] for option in OF_THE_ENCODER if option in chosen}
    if "kernel_seconds" in encoder:
        # The recording's own length in samples would stand beside the one in seconds.
        encoder["kernel_length"] = None
    rest = {option: value for option, value in chosen.items() if option not in OF_THE_ENCODER}
    return {**options, **rest, "encoder_options": {**options["encoder_options"], **encoder}}
