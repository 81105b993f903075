"""Whether one thing is better than another on people, and not by the luck of who was there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

CENSOR_LEVEL = 0.95
"""How sure one must be that people gain by a censor, which is one thing more (docs/protocol.md has
levels replayed on scores on record: the lower, the more often one is chosen that harms)."""

RECIPE_LEVEL = 0.5
"""The same for another recipe, which is as simple as the one before: it is enough if people gain in
the mean (docs/protocol.md: any higher level lost more good recipes than it kept out bad ones)."""

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


def out_of_bag(
    people: Sequence[str], scores_by: Callable[[Sequence[str]], Mapping[str, float]]
) -> tuple[dict[str, float], float]:
    """Score each person by choices that others make: the leave-one-out bootstrap.

    Everybody is drawn with replacement many times, each draw makes a choice, and a person's score
    is the mean over the choices of draws without that person. A single choice by all the others
    would not do: where two settings are nearly equal, the one that a person lost by is ahead among
    the others, so all scores of a study are too low together, or too high where one setting was
    lucky, and an interval over people knows nothing of it.

    With N_i how often person i was drawn, q the sum over people not drawn of their scores less
    their mean, divided by n, and E_i the person's score, the standard error of the mean is that of
    the delta method, the root of the sum over people of the squares of

        (2 + 1 / (n - 1)) (E_i - mean) / n  +  (1 - 1/n)^-n cov(N_i, q)

    Parameters
    ----------
    people : sequence of str
        At least three.
    scores_by : callable
        People, some of them more than once -> scores of everybody by the choice of these.

    Returns
    -------
    scores : dict of str to float
        Of each person.
    error : float
        Standard error of their mean, with what the choice adds to it.

    References
    ----------
    Efron and Tibshirani (1997), Improvements on cross-validation: the .632+ bootstrap method.
    Journal of the American Statistical Association 92, 548-560 (sections 2 and 5).
    """
    n = len(people)
    rng = np.random.default_rng(n)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=_draws(n))
    found = []
    for drawn in counts:
        scores = scores_by([people[i] for i in np.repeat(np.arange(n), drawn).tolist()])
        found.append([scores[person] for person in people])
    out, values = counts == 0, np.array(found)
    mine: Floats = (out * values).sum(0) / out.sum(0)
    mean = float(mine.mean())
    outside = (out * (values - mean)).sum(1) / n
    with_choice = ((counts - counts.mean(0)) * outside[:, None]).mean(0)
    parts = (2 + 1 / (n - 1)) * (mine - mean) / n + (1 - 1 / n) ** -n * with_choice
    return dict(zip(people, mine.tolist(), strict=True)), float(np.sqrt(np.sum(parts**2)))


def _draws(n: int) -> int:
    """Decide how many draws: with thousands of people each takes long, and fewer do."""
    return max(50, min(400, 40_000 // n))


def differences(
    new: Mapping[str, float], old: Mapping[str, float], among: Sequence[str] | None = None
) -> Floats:
    """Score of each person who has both, new less old: of everybody by name, or of those given."""
    people = sorted(set(new) & set(old)) if among is None else among
    return np.array([new[person] - old[person] for person in people])
