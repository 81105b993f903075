"""How sure one may be of a difference between two methods tried on the same people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from autotransfer.leakage.result import Estimate

RESAMPLES = 10_000
"""Bootstrap samples: the ends of a 95 % interval then vary by about 1 % of its width."""

# Resamples drawn at once hold about so many numbers: 10,000 people must fit in memory too.
_AT_ONCE = 2_000_000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Paired:
    """What two methods do for the same people.

    Parameters
    ----------
    n : int
        People that both were tested on.
    difference : Estimate
        Mean of (one minus other) over people, with its interval.
    p : float
        Of the two-sided Wilcoxon signed-rank test; 1 where nobody's score differs.
    gained, lost, same : int
        People whose score is higher, lower, equal with the one method.
    """

    n: int
    difference: Estimate
    p: float
    gained: int
    lost: int
    same: int

    @property
    def least_p(self) -> float:
        """Smallest p that so many differing people can give: each could have fallen either way."""
        return float(min(1.0, 2.0 ** (1 - self.gained - self.lost)))

    @property
    def verdict(self) -> str:
        """One of better, worse and unclear; unclear unless interval and test agree."""
        if self.p < 0.05 and self.difference.low > 0:
            return "better"
        if self.p < 0.05 and self.difference.high < 0:
            return "worse"
        return "unclear"


def bootstrap_mean(
    values: npt.ArrayLike, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """Mean with an expanded percentile bootstrap interval.

    Of n people a bootstrap draws means that vary too little, and about a normal's tails. The
    percentiles are therefore taken further out: at Φ(-√(n / (n - 1)) t) with Student's t of n - 1
    degrees of freedom, instead of at Φ(-z).

    Parameters
    ----------
    values : array of shape (n_people,)
        One number for each person: people, not trials, are what a new study draws again.
    level : float
        Level of the interval.
    resamples : int
        Bootstrap samples.
    seed : int
        Of the samples: the same numbers give the same interval.

    References
    ----------
    Hesterberg (2015), What teachers should know about the bootstrap. The American Statistician 69,
    371-386 (section 3.2).

    Examples
    --------
    >>> print(bootstrap_mean([0.5, 0.6, 0.7, 0.8]))
    0.650 [0.500, 0.800]
    """
    values = np.asarray(values, np.float64)
    rng = np.random.default_rng(seed)
    n = len(values)
    size = max(1, _AT_ONCE // n)
    means = [
        values[rng.integers(n, size=(min(size, resamples - start), n))].mean(axis=1)
        for start in range(0, resamples, size)
    ]
    tail = (1 - level) / 2
    if n > 1:
        tail = float(stats.norm.sf(np.sqrt(n / (n - 1)) * stats.t.isf(tail, n - 1)))
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
    return Estimate(float(values.mean()), float(low), float(high))


def student_interval(values: npt.ArrayLike, error: float, level: float = 0.95) -> Estimate:
    """Mean score of people whose standard error is known; interval by Student's t, within 0 and 1.

    Examples
    --------
    >>> print(student_interval([0.6, 0.7, 0.8], 0.05))
    0.700 [0.485, 0.915]
    """
    values = np.asarray(values, np.float64)
    mean = float(values.mean())
    half = float(stats.t.isf((1 - level) / 2, len(values) - 1)) * error
    return Estimate(mean, max(mean - half, 0.0), min(mean + half, 1.0))


def paired(one: Mapping[str, float], other: Mapping[str, float]) -> Paired | None:
    """Compare two methods on the people that both were tested on.

    Parameters
    ----------
    one, other : mapping of str to float
        Score of each person.

    Returns
    -------
    Paired or None
        None where they have nobody in common.

    Examples
    --------
    >>> result = paired({"a": 0.5, "b": 0.75}, {"a": 0.5, "b": 0.5})
    >>> result.gained, result.lost, result.same, result.difference.value
    (1, 0, 1, 0.125)
    """
    people = [person for person in one if person in other]
    if not people:
        return None
    # Scores are ratios of small numbers: differences that are equal may differ in the last bits,
    # and a test of ranks would take that for an order.
    gain = np.array([one[person] - other[person] for person in people]).round(9)
    p = 1.0 if not gain.any() else float(stats.wilcoxon(gain).pvalue)
    gained, lost = int((gain > 0).sum()), int((gain < 0).sum())
    return Paired(len(people), bootstrap_mean(gain), p, gained, lost, len(people) - gained - lost)
