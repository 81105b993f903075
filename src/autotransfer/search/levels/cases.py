"""What is known of somebody new: levels, amounts, ways; and how a person's trials are cut.

A person's trials are cut into two halves, whole recordings on either side; what a model learns of
the person is in one, and the other one is predicted ("other"). Of each class every other recording
goes to either, so both halves are of the same sessions, and neither comes after the other in time
but for somebody who has one recording of everything. Only for "same" are the trials predicted that
the model was adapted to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from autotransfer.adaptation.registry import AUTO, COVARIANCES, FEW
from autotransfer.data.trials import Array, Index

OTHER, SAME = "other", "same"
AMOUNTS = (4, 8, 16, 32, 64)
"""Unlabelled trials of the new person."""

LABELS = (1, 2, 5, 10)
"""Labelled trials of each class."""

N_LABELS = 5
"""Those of which the methods are compared, and that a report tells."""

HALF, ONE = "half", "one"
"""Classes of a recording that the guard is judged by, beside all of them."""

RECORDING = ("statistics+information", "statistics")
"""Ways among which people held out choose, the one that is taken without them first."""

WITH_LABELS = (
    *(f"{way}+{COVARIANCES}" for way in ("statistics", "statistics+information")),
    *(COVARIANCES, "statistics+head", "head"),
)
"""The same, with labels."""

TUNED = ("tuning", "statistics+tuning")
"""Those with labels that train the whole network, which takes longer."""

Scores = dict[str, float]


@dataclass(frozen=True)
class Case:
    """What is known of somebody new, and what is made of it.

    Parameters
    ----------
    level : {"nothing", "recording", "stream", "labels"}
        See `autotransfer.adaptation.LEVELS`.
    amount : int, optional
        Unlabelled trials, or at level labels labelled trials of each class; None is all there are.
    method : str
        Of adaptation; "" where nothing is adapted.
    tested : {"other", "same"}
        Which trials are predicted.
    """

    level: str
    amount: int | None = None
    method: str = ""
    tested: str = OTHER

    def to_json(self) -> dict[str, Any]:
        """Give what JSON can hold."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave."""
        level, amount, method, tested = (
            given[name] for name in ("level", "amount", "method", "tested")
        )
        # As it was called at first, which sounded as if it were about time.
        return cls(level, amount, method, OTHER if tested == "later" else tested)


def standard_cases(
    n_labels: int = N_LABELS, statistics: bool = True, ring: bool = False
) -> list[Case]:
    """List what a run scores: a recording and labels first, by ways that take no time.

    So even a run of few minutes can say something of both. Then what matters most.

    Parameters
    ----------
    n_labels : int
        Labelled trials of each class, of which the methods are compared.
    statistics : bool
        Whether the network has any that can be adapted; without, only its head is.
    ring : bool
        Whether electrodes go around an arm, and may sit turned.
    """
    labels = [n for n in LABELS if n != n_labels]
    if not statistics:
        own = [Case("labels", n, COVARIANCES) for n in (n_labels, *labels)]
        others = [Case("labels", n_labels, way) for way in ("head", TUNED[0])]
        return [Case("nothing"), *own, *others]
    turned = [f"ring+{way}" for way in RECORDING if ring]
    with_labels = [*WITH_LABELS, *(f"{way}+{COVARIANCES}" for way in turned)]
    recordings = [Case("recording", None, way) for way in (*RECORDING, *turned)]
    labelled = [Case("labels", n_labels, way) for way in with_labels]
    streams = [Case("stream", None, way) for way in (*RECORDING, *turned)]
    first = [Case("recording", None, "statistics"), labelled[0], recordings[0]]
    return [
        Case("nothing"),
        *first,
        *(case for case in (*recordings, *labelled) if case not in first),
        Case("recording", None, FEW),
        streams[0],
        *(Case("recording", amount, AUTO) for amount in AMOUNTS),
        *(Case("labels", amount, WITH_LABELS[0]) for amount in labels),
        Case("nothing", tested=SAME),
        Case("recording", None, RECORDING[0], SAME),
        *(Case("labels", n_labels, way) for way in TUNED),
        *streams[1:],
    ]


def halves(codes: Index, unit: Array) -> tuple[Index, Index]:
    """Cut a person's trials into two halves with all classes in both, units staying whole.

    Of each class, every other unit goes to the second one, in the order of the trials. Where that
    leaves one of them empty (a person has one recording of everything, such as a file) what comes
    later of each class is the second.

    Parameters
    ----------
    codes : array of int of shape (n_trials,)
        Class numbers.
    unit : array of shape (n_trials,)
        What must not be torn apart, such as the recording of each trial.

    Returns
    -------
    given, other : arrays of int
        Numbers of trials.

    Examples
    --------
    >>> given, other = halves(np.array([0, 0, 1, 1, 0, 1]), np.array([7, 7, 8, 8, 9, 6]))
    >>> given.tolist(), other.tolist()
    ([0, 1, 2, 3], [4, 5])
    """
    seen: dict[Any, bool] = {}
    counts: dict[int, int] = {}
    for code, name in zip(codes.tolist(), unit.tolist(), strict=True):
        if name not in seen:
            seen[name] = counts.get(code, 0) % 2 == 1
            counts[code] = counts.get(code, 0) + 1
    second = np.array([seen[name] for name in unit.tolist()], dtype=bool)
    if not second.any() and len(np.unique(codes)) > 1:
        for code in np.unique(codes):
            mine = np.flatnonzero(codes == code)
            second[mine[(len(mine) + 1) // 2 :]] = True
    return np.flatnonzero(~second), np.flatnonzero(second)


def cut_in_two(codes: Index, unit: Array, seed: int) -> tuple[Index, Index]:
    """Cut a person's trials into `halves`; those of the one in an order that the seed draws."""
    given, other = halves(codes, unit)
    return np.random.default_rng(seed).permutation(given), other


def few_labels(codes: Index, some: Index, n_labels: int) -> tuple[Index, Index]:
    """Take so many trials of each class, or as many as there are; and the rest.

    Parameters
    ----------
    codes : array of int of shape (n_trials,)
        Class numbers of all trials.
    some : array of int
        Numbers of the trials to take from, in this order.
    n_labels : int
        Trials of each class.

    Returns
    -------
    few, rest : arrays of int
        Numbers of trials.
    """
    few = np.concatenate([some[codes[some] == code][:n_labels] for code in np.unique(codes)])
    return few, some[~np.isin(some, few)]


def mean_recall(true: Index, predicted: Index) -> float:
    """Balanced accuracy over the classes that there are: scikit-learn warns if there is but one.

    Examples
    --------
    >>> mean_recall(np.array([0, 0, 2, 2]), np.array([0, 1, 2, 2]))
    0.75
    """
    return float(np.mean([np.mean(predicted[true == code] == code) for code in np.unique(true)]))
