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
# A run learns its own (`Lessons`): whoever needs adaptation most stands nearest to these, a
# person of whose gestures the model takes many for few.
SPREAD, SHARES = 0.64, 0.3

WHOLE = "all"
"""What a recording is called that is not cut."""

MOST_LOSS = 0.002
"""Mean loss on recordings of few classes that learned bounds may allow to those who teach them.
Others lose more: with 0.002 up to 0.008 (3DC EMG, one class; three seeds of nine data sets). With
0.005 they lost more, and whole recordings gained 0.119 instead of 0.112 there, 0.033 instead of
0.025 on mental arithmetic, and as much elsewhere (one seed)."""


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
    certainty : bool
        Whether trials that do not pass are used to make predictions certain (`certainty`); without,
        they are not used.

    Examples
    --------
    >>> import torch
    >>> four = torch.eye(4).repeat(5, 1)
    >>> Guard().passes(four), Guard().passes(four[four[:, 0] + four[:, 1] > 0])
    (True, False)
    """

    spread: float = SPREAD
    shares: float = SHARES
    certainty: bool = False

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

    def to_json(self) -> dict[str, Any]:
        """Give what JSON can hold."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, given: Any) -> Guard:
        """Read what `to_json` gave."""
        wrong = misfit(given, BOUNDS, "guard")
        if wrong:
            raise SettingError(f"The bounds of a guard are not as they are written: {wrong}.")
        bounds = float(given["spread"]), float(given["shares"])
        return cls(*bounds, given.get("certainty", False))


BOUNDS = {"spread": slice(0, 2), "shares": slice(0, 2), "certainty": (bool, ...)}

NEVER, ALWAYS = Guard(2.0, 2.0), Guard(0.0, 0.0)
"""Let nothing pass, and everything: variety is from 0 to 1."""


@dataclass(frozen=True)
class Seen:
    """What a recording looked like, and what somebody gained by adapting to it.

    Parameters
    ----------
    spread, shares : float
        As for `Guard`: variety of the mean prediction, and of the estimated shares.
    gain : float
        Score after less score before.
    otherwise : float, optional
        What was gained by making predictions certain instead (`certainty`), where that was tried.
    """

    spread: float
    shares: float
    gain: float
    otherwise: float | None = None

    @classmethod
    def of(cls, probabilities: Tensor, gain: float, otherwise: float | None = None) -> Seen:
        """Look at the predictions of a recording."""
        spread, shares = variety(probabilities.mean(0)), _variety_of_shares(probabilities)
        return cls(spread, shares, gain, otherwise)

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


class Lessons:
    """What recordings of several people teach a guard.

    Parameters
    ----------
    seen : mapping of str to mapping of str to sequence of Seen
        What people held out were seen to gain, by what their recordings were cut to: "all", which
        is not cut, and others, such as "half" of the classes and "one"; then by person.
    most_loss : float
        Mean loss over people that is allowed in each of the others.

    Examples
    --------
    >>> whole = {"ann": [Seen(0.5, 0.4, 0.1)], "bob": [Seen(0.7, 0.5, 0.05)]}
    >>> one = {"ann": [Seen(0.3, 0.1, -0.4)], "bob": [Seen(0.45, 0.2, -0.2)]}
    >>> Lessons({"all": whole, "one": one}).guard()
    Guard(spread=0.25, shares=0.4, certainty=False)
    """

    def __init__(
        self,
        seen: Mapping[str, Mapping[str, Sequence[Seen]]],
        most_loss: float = MOST_LOSS,
    ) -> None:
        self.most_loss = most_loss
        whole = [one for some in seen.get(WHOLE, {}).values() for one in some]
        self._spreads, self._shares = (
            _bounds([getattr(one, name) for one in whole]) for name in ("spread", "shares")
        )
        self._gains = {
            cut: {person: self._of_person(some) for person, some in people.items()}
            for cut, people in seen.items()
            if whole
        }

    def _of_person(self, some: Sequence[Seen]) -> tuple[Array, Array, Array]:
        """Find what a person's recordings give under every pair of bounds.

        Mean gain of those that pass and share of those that do not, (len(spreads), len(shares));
        mean of what certainty gains where it was tried, or nan.
        """
        spread, share, gain = np.array([[one.spread, one.shares, one.gain] for one in some]).T
        passes = (spread >= self._spreads[:, None])[:, None] & (share >= self._shares[:, None])
        tried = [one.otherwise for one in some if one.otherwise is not None]
        otherwise = np.array(np.mean(tried) if tried else np.nan)
        return np.mean(passes * gain, axis=-1), 1 - np.mean(passes, axis=-1), otherwise

    def guard(self, among: Sequence[str] | None = None) -> Guard:
        """Find the bounds under which people gain most by whole recordings and lose little else.

        Parameters
        ----------
        among : sequence of str, optional
            People who teach, some perhaps more than once; everybody by default.

        Returns
        -------
        Guard
            Of equally good ones that with the lowest bounds: who needs adaptation most has the
            least variety. With certainty for those that do not pass, where that is better. One that
            lets nothing pass, where nobody gains. Without any recording, the bounds that were
            chosen by hand.
        """
        best, guard = (0.0, 0.0), None
        for certainty in (False, True):
            gains = self._mean_gains(among, certainty)
            if WHOLE not in gains:
                return Guard()
            others = [gain for cut, gain in gains.items() if cut != WHOLE]
            allowed = np.all([gain >= -self.most_loss for gain in others], axis=0)
            worth = np.where(allowed, gains[WHOLE], 0.0)
            if worth.max() <= 0:
                continue
            equal = np.argwhere(worth >= worth.max() - 1e-12)
            row, column = equal[equal.sum(1).argmin()]
            # Equally good for whole recordings: what is better for the others.
            value = round(worth.max(), 9), float(np.sum([gain[row, column] for gain in others]))
            if guard is None or value > best:
                bounds = float(self._spreads[row]), float(self._shares[column])
                best, guard = value, Guard(*bounds, certainty)
        return NEVER if guard is None else guard

    def _mean_gains(self, among: Sequence[str] | None, certainty: bool) -> dict[str, Array]:
        """Mean gain over people under every pair of bounds, by what recordings were cut to.

        What certainty gains is the mean over those with whom it was tried: few are enough.
        """
        gains = {}
        for cut, people in self._gains.items():
            some = [people[who] for who in (people if among is None else among) if who in people]
            if some:
                passing, refused, otherwise = (np.array(part) for part in zip(*some, strict=True))
                tried = otherwise[~np.isnan(otherwise)]
                instead = tried.mean() if certainty and len(tried) else 0.0
                gains[cut] = passing.mean(0) + instead * refused.mean(0)
        return gains


def _bounds(values: Sequence[float]) -> Array:
    """Give bounds at what was seen, and half-way to the next lower: between, nothing differs."""
    seen = np.unique(values)
    lower = np.concatenate([[0.0], seen[:-1]]) if len(seen) else seen
    found: Array = np.unique(np.concatenate([seen, (seen + lower) / 2]))
    return found
