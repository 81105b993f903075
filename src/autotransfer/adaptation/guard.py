"""The guard: whether unlabelled trials are of enough classes to adapt to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from autotransfer.adaptation.shares import class_shares, effective_classes
from autotransfer.data.trials import Array
from autotransfer.documents import misfit
from autotransfer.errors import SettingError

# Chosen by hand on recordings of five data sets, whole and cut to half of the classes and to one.
# A run learns its own (`learned_guard`): whoever needs adaptation most stands nearest to these, a
# person of whose gestures the model takes many for few.
SPREAD, SHARES = 0.64, 0.3

MOST_LOSS = 0.005
"""Mean loss on recordings of few classes that learned bounds may allow."""


@dataclass(frozen=True)
class Guard:
    """Bounds below which trials seem to be of too few classes.

    Statistics of one gesture are not those of the person: adapted to them, a model sees all other
    classes in it.

    Parameters
    ----------
    spread : float
        Least `variety` of the mean prediction, which is small when classes are missing that the
        model knows well.
    shares : float
        Least `variety` of the estimated shares of the classes (`class_shares`), which is small
        when predictions do not differ.

    Examples
    --------
    >>> import torch
    >>> four = torch.eye(4).repeat(5, 1)
    >>> Guard().passes(four), Guard().passes(four[four[:, 0] + four[:, 1] > 0])
    (True, False)
    """

    spread: float = SPREAD
    shares: float = SHARES

    def passes(self, probabilities: Tensor) -> bool:
        """Whether predictions look like those of a recording of all classes.

        Parameters
        ----------
        probabilities : Tensor of shape (n_trials, n_classes)
            Of the network before it was adapted.
        """
        # The shares take longer to estimate.
        enough = variety(probabilities.mean(0)) >= self.spread
        return enough and _variety_of_shares(probabilities) >= self.shares

    def to_json(self) -> dict[str, float]:
        """Give what JSON can hold."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, given: Any) -> Guard:
        """Read what `to_json` gave."""
        wrong = misfit(given, BOUNDS, "guard")
        if wrong:
            raise SettingError(f"The bounds of a guard are not as they are written: {wrong}.")
        return cls(float(given["spread"]), float(given["shares"]))


BOUNDS = {"spread": slice(0, 2), "shares": slice(0, 2)}

NEVER = Guard(2.0, 2.0)
"""Lets nothing pass: variety is 1 at most."""


@dataclass(frozen=True)
class Seen:
    """What a recording looked like, and what somebody gained by adapting to it.

    Parameters
    ----------
    spread, shares : float
        As for `Guard`: variety of the mean prediction, and of the estimated shares.
    gain : float
        Score after less score before.
    """

    spread: float
    shares: float
    gain: float

    @classmethod
    def of(cls, probabilities: Tensor, gain: float) -> Seen:
        """Look at the predictions of a recording."""
        return cls(variety(probabilities.mean(0)), _variety_of_shares(probabilities), gain)

    def passes(self, guard: Guard) -> bool:
        """Whether a guard would have let it pass."""
        return self.spread >= guard.spread and self.shares >= guard.shares


def variety(shares: Tensor) -> float:
    """Tell how many classes shares are of, between one (0) and all of them equally (1).

    Examples
    --------
    >>> import torch
    >>> variety(torch.tensor([1.0, 0.0, 0.0])), variety(torch.tensor([0.5, 0.5, 0.0]))
    (0.0, 0.5)
    """
    return (effective_classes(shares) - 1) / max(len(shares) - 1, 1)


def _variety_of_shares(probabilities: Tensor) -> float:
    # Nearly no prior: few trials of one class must not look like all.
    return variety(class_shares(probabilities, prior=0.01, steps=200))


def learned_guard(seen: Mapping[str, Sequence[Seen]], most_loss: float = MOST_LOSS) -> Guard:
    """Find the bounds under which people gain most by whole recordings and lose little by others.

    Parameters
    ----------
    seen : mapping of str to sequence of Seen
        What people held out were seen to gain, by what their recordings were cut to: "all", which
        is not cut, and others, such as "half" of the classes and "one".
    most_loss : float
        Mean loss over people that is allowed in each of the others.

    Returns
    -------
    Guard
        Of equally good ones that with the highest bounds, which is the most careful. Without any
        recording, the bounds that were chosen by hand.

    Examples
    --------
    >>> whole = [Seen(0.5, 0.4, 0.1), Seen(0.7, 0.5, 0.05)]
    >>> one = [Seen(0.3, 0.1, -0.4), Seen(0.45, 0.2, -0.2)]
    >>> learned_guard({"all": whole, "one": one})
    Guard(spread=0.5, shares=0.4)
    """
    whole = seen.get("all", ())
    if not whole:
        return Guard()
    # Only at what was seen do bounds make a difference.
    spreads, shares = (
        np.unique([getattr(one, name) for one in whole]) for name in ("spread", "shares")
    )
    gains = {cut: _mean_gains(people, spreads, shares) for cut, people in seen.items() if people}
    allowed = np.all([gain >= -most_loss for cut, gain in gains.items() if cut != "all"], axis=0)
    worth = np.where(allowed, gains["all"], 0.0)
    if worth.max() <= 0:
        return NEVER
    row, column = np.argwhere(worth >= worth.max() - 1e-12)[-1]
    return Guard(float(spreads[row]), float(shares[column]))


def _mean_gains(people: Sequence[Seen], spreads: Array, shares: Array) -> Array:
    """Mean gain of people under every pair of bounds: shape (len(spreads), len(shares))."""
    spread, share, gain = np.array([[one.spread, one.shares, one.gain] for one in people]).T
    passes = (spread >= spreads[:, None])[:, None] & (share >= shares[:, None])[None]
    means: Array = np.mean(passes * gain, axis=-1)
    return means
