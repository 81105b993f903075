"""Whether one thing is better than another on people, and not by the luck of who was there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

CENSOR_LEVEL = 0.95
"""How sure one must be that people gain by a censor, which is one thing more (docs/evidence.md has
levels replayed on scores that are on record: below, censors that were chosen mostly harmed)."""

RECIPE_LEVEL = 0.5
"""The same for another recipe, which is as simple as the one before: it is enough if people gain in
the mean (docs/evidence.md: any higher level lost more good recipes than it kept out bad ones)."""

RESAMPLES = 1000


@lru_cache(maxsize=8)
def _weights(n: int) -> Floats:
    """Share of each person in resamples of people, of shape (RESAMPLES, n)."""
    drawn = np.random.default_rng(n).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    return drawn / n


def credible_gain(gains: Sequence[float] | Floats, level: float) -> float:
    """Lower bound of the mean gain over people: it is above that with so much credibility.

    The one-sided percentile bootstrap (Efron and Tibshirani, An Introduction to the Bootstrap,
    1993, chapter 13): people are drawn with replacement, always in the same way.

    Parameters
    ----------
    gains : sequence of float
        Score of each person, the new way less the old way.
    level : float
        Credibility, from 0.5 (the median) to 1.

    Returns
    -------
    float
        The bound; minus infinity for a single person, who tells nothing of others.

    Examples
    --------
    >>> steady, luck = [0.05, 0.03, 0.04, 0.06], [0.3, -0.2, -0.1, 0.01]
    >>> credible_gain(steady, 0.8) > 0, credible_gain(luck, 0.8) > 0
    (True, False)
    """
    gains = np.asarray(gains, float)
    if len(gains) < 2:
        return -np.inf
    return float(np.quantile(_weights(len(gains)) @ gains, 1 - level))


def differences(
    new: Mapping[str, float], old: Mapping[str, float], among: Sequence[str] | None = None
) -> Floats:
    """Score of each person who has both, new less old: of everybody by name, or of those given."""
    people = sorted(set(new) & set(old)) if among is None else among
    return np.array([new[person] - old[person] for person in people])
