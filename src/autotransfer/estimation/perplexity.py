"""Search for the precision at which a point has a wanted number of effective neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.estimation.cells import Floats

_TOLERANCE = 1e-9  # of the entropy, in nats; the last Newton step is usually far below it
_MOST_STEPS = 100
_FARTHEST = 30.0  # |log b|: beyond it a kernel is constant, or zero, to all digits


def precisions(d: npt.NDArray[Any], perplexity: npt.NDArray[Any]) -> Floats:
    r"""Precisions b with entropy log(perplexity), one for every row of distances.

    With p_j ∝ exp(-b d_j) over the row's entries, solves

        H(b) = log Σ_j exp(-b d_j) + b Σ_j p_j d_j = log(perplexity),    dH/d(log b) = -b² Var_p(d)

    by Newton's method on log b for all rows at once. H falls from the logarithm of the number of
    entries to that of the number of nearest ones; a step that leaves what is known to hold the
    root is replaced by a bisection.

    Parameters
    ----------
    d : array of shape (R, n)
        Distances, of mean about 1 in a row; an infinite entry is no neighbour.
    perplexity : array of shape (R,)
        Perplexities.

    Returns
    -------
    array of shape (R,)
        b, in float64. A row without a solution (fewer than two neighbours, as many equally near
        ones as are wanted, or more wanted than there are) has b = 1.

    Notes
    -----
    Five to seven steps, where the bisection of t-SNE takes about thirty. The condition is on the
    entropy as in scikit-learn, from which this choice of scales comes.

    References
    ----------
    van der Maaten & Hinton 2008, Visualizing data using t-SNE, JMLR 9.

    Examples
    --------
    >>> precisions(np.array([[0.5, 1.0, 1.5]]), np.array([2.5])).round(3)
    array([1.593])
    """
    present = np.isfinite(d)
    count = present.sum(-1)
    # Distances beyond the nearest: the largest exponent is 0, so no row sums to 0.
    nearest = np.min(d, axis=-1, keepdims=True, where=present, initial=np.inf)
    beyond = np.where(present, d - np.where(count > 0, nearest[:, 0], 0.0)[:, None], 0.0)
    ties = (present & (beyond == 0)).sum(-1)
    rows = np.flatnonzero((count >= 2) & (ties < perplexity) & (perplexity < count))
    b = np.ones(len(d))
    b[rows] = np.exp(_newton(beyond[rows], present[rows], np.log(perplexity[rows]), count[rows]))
    return b


def _newton(
    d: Floats, present: npt.NDArray[np.bool], target: Floats, count: npt.NDArray[np.intp]
) -> Floats:
    """Solve H(b) = target for log b in rows that have a solution; `d` is 0 where not `present`."""
    # To second order H = log(count) - b² Var(d) / 2.
    mean = d.sum(-1) / count
    variance = np.einsum("rj,rj->r", d, d) / count - mean**2
    log_b: Floats = 0.5 * np.log(2 * (np.log(count) - target) / np.maximum(variance, 1e-12))
    low, high = np.full_like(log_b, -_FARTHEST), np.full_like(log_b, _FARTHEST)
    for _ in range(_MOST_STEPS):
        b = np.exp(log_b)
        p = np.exp(-b[:, None] * d)
        p *= present
        total = p.sum(-1)
        p *= d
        mean = p.sum(-1) / total
        variance = np.einsum("rj,rj->r", p, d) / total - mean**2
        excess = np.log(total) + b * mean - target
        converged = np.abs(excess) <= _TOLERANCE
        if converged.all():
            break
        low = np.where(excess > 0, log_b, low)
        high = np.where(excess > 0, high, log_b)
        step = np.clip(excess / np.maximum(b * b * variance, 1e-300), -2.0, 2.0)
        inside = (log_b + step > low) & (log_b + step < high)
        # Rows that are done stay: a step of nothing is not inside, and a bisection leads away.
        log_b = np.where(converged, log_b, np.where(inside, log_b + step, (low + high) / 2))
    return log_b
