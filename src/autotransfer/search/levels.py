"""Somebody held out, treated as new at every level: nothing, a recording, a stream, labels.

A person's trials are cut into two halves, whole recordings on either side; what a model learns of
the person is in the first, and the second is predicted ("later"). Only for "same" are the trials
predicted that the model was adapted to.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autotransfer.adaptation.registry import AUTO
from autotransfer.data.trials import Array, Index, TrialArray
from autotransfer.errors import AdaptationWarning
from autotransfer.training.estimator import SignalModel, balanced_accuracy

LATER, SAME = "later", "same"
AMOUNTS = (4, 8, 16, 32, 64)
"""Unlabelled trials of the new person."""

LABELS = (1, 2, 5, 10)
"""Labelled trials of each class."""


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
    tested : {"later", "same"}
        Which trials are predicted.
    """

    level: str
    amount: int | None = None
    method: str = ""
    tested: str = LATER


def standard_cases() -> list[Case]:
    """List what a run scores: every level, by the method that the amount asks for."""
    return [
        Case("nothing"),
        Case("nothing", tested=SAME),
        *(Case("recording", amount, AUTO) for amount in (*AMOUNTS, None)),
        Case("recording", None, AUTO, SAME),
        Case("stream"),
        *(Case("labels", amount, AUTO) for amount in LABELS),
    ]


def halves(codes: Index, unit: Array) -> tuple[Index, Index]:
    """Cut a person's trials into two halves with all classes in both, units staying whole.

    Of each class, every other unit goes to the second half, in the order of the trials.

    Parameters
    ----------
    codes : array of int of shape (n_trials,)
        Class numbers.
    unit : array of shape (n_trials,)
        What must not be torn apart, such as the recording of each trial.

    Returns
    -------
    first, later : arrays of int
        Numbers of trials.

    Examples
    --------
    >>> first, later = halves(np.array([0, 0, 1, 1, 0, 1]), np.array([7, 7, 8, 8, 9, 6]))
    >>> first.tolist(), later.tolist()
    ([0, 1, 2, 3], [4, 5])
    """
    seen: dict[Any, bool] = {}
    counts: dict[int, int] = {}
    for code, name in zip(codes.tolist(), unit.tolist(), strict=True):
        if name not in seen:
            seen[name] = counts.get(code, 0) % 2 == 1
            counts[code] = counts.get(code, 0) + 1
    second = np.array([seen[name] for name in unit.tolist()], dtype=bool)
    return np.flatnonzero(~second), np.flatnonzero(second)


def score_person(
    model: SignalModel,
    X: TrialArray,
    codes: Index,
    unit: Array,
    cases: Sequence[Case],
    seed: int = 0,
) -> list[float | None]:
    """Score one person in several cases.

    Parameters
    ----------
    model : CensoredClassifier or Ensemble
        Trained on others.
    X : TrialArray of shape (n_trials, C, T)
        The person's trials.
    codes : array of int of shape (n_trials,)
        Class numbers. Below level labels they only judge, and say which trials go to which half.
    unit : array of shape (n_trials,)
        What must not be torn apart, such as the recording of each trial.
    cases : sequence of Case
        What to score.
    seed : int
        Decides which trials of the first half are taken, and the order of a stream.

    Returns
    -------
    list of float or None
        Balanced accuracy in each case; None where there are too few trials for it.
    """
    first, later = halves(codes, unit)
    order = np.random.default_rng(seed).permutation(first)
    known = _Known(model, X, codes, order, later)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)  # of hundreds of recordings
        return [known.score(case) for case in cases]


@dataclass(frozen=True)
class _Known:
    """A model and a person's trials: the first half in random order, and later ones."""

    model: SignalModel
    X: TrialArray
    codes: Index
    first: Index
    later: Index
    made: dict[tuple[str, int | None], SignalModel] = field(default_factory=dict)

    def score(self, case: Case) -> float | None:
        if case.level == "stream":
            return self._stream()
        tested = self.later if case.tested == LATER else np.arange(len(self.codes))
        model = self._adapted(case)
        if model is None or not len(tested):
            return None
        return balanced_accuracy(self.codes[tested], model.predict_codes(self.X.take(tested)))

    def _adapted(self, case: Case) -> SignalModel | None:
        if case.level == "nothing":
            return self.model
        if case.level == "labels":
            return self._labelled(case)
        if case.tested == SAME:
            return self.model.adapt(self.X, method=case.method)
        if not len(self.first) or (case.amount or 0) > len(self.first):
            return None
        return self._recorded(case.method, case.amount)

    def _recorded(self, method: str, amount: int | None) -> SignalModel:
        """Adapt to trials of the first half, without labels; each case once."""
        if (method, amount) not in self.made:
            few = self.X.take(self.first[:amount])
            self.made[method, amount] = self.model.adapt(few, method=method)
        return self.made[method, amount]

    def _labelled(self, case: Case) -> SignalModel | None:
        assert case.amount is not None
        mine = [
            self.first[self.codes[self.first] == code][: case.amount]
            for code in np.unique(self.codes)
        ]
        if min(map(len, mine)) < case.amount:
            return None
        few = np.concatenate(mine)
        rest = self.first[~np.isin(self.first, few)]
        unlabelled = self.X.take(rest) if len(rest) else None
        labels = self.model.classes_[self.codes[few]]
        before, _, last = case.method.rpartition("+")
        if before:
            # What is done without labels is the same whatever trials have labels.
            return self._recorded(before, None).adapt(self.X.take(few), labels, method=last)
        return self.model.adapt(self.X.take(few), labels, unlabelled=unlabelled, method=case.method)

    def _stream(self) -> float | None:
        """Score the second half, which comes after the first, trial by trial."""
        if not len(self.first) or not len(self.later):
            return None
        live = self.model.live()
        live.predict_proba(self.X.take(self.first))
        rest = np.random.default_rng(len(self.later)).permutation(self.later)
        predicted = live.predict_proba(self.X.take(rest)).argmax(1)
        return balanced_accuracy(self.codes[rest], predicted)
