"""The paper's algorithms, written with loops over classes, subjects, pairs and rows.

Slow and plain: what the package computes from weights and padded tables must agree with this.
The corrections of docs/corrections.md are in it; nothing of the package is, but the score
estimators (they have their own judges) and the critics' networks (they are handed over).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

Array = np.ndarray


def strata(s: Array, y: Array | None) -> list[Array]:
    """Rows of each class, or all rows."""
    if y is None:
        return [np.arange(len(s))]
    return [np.flatnonzero(y == c) for c in np.unique(y)]


def by_subject(rows: Array, s: Array, least: int) -> list[Array]:
    """Rows of each subject that has enough of them."""
    groups = [rows[s[rows] == m] for m in np.unique(s[rows])]
    return [group for group in groups if len(group) >= least]


def sigma(z: Array) -> float:
    """Median distance between different rows."""
    found = [math.dist(z[i], z[j]) for i in range(len(z)) for j in range(i)]
    middle = float(np.median(found)) if found else 0.0
    return middle if middle > 0 else 1.0


def kernel(a: Array, b: Array, scales: list[float]) -> float:
    """Mean of Gaussians of several lengths."""
    square = sum((p - q) ** 2 for p, q in zip(a, b, strict=True))
    return sum(math.exp(-square / (2 * scale**2)) for scale in scales) / len(scales)


def mean_kernel(z: Array, first: Array, second: Array, scale: list[float], same: bool) -> float:
    """Mean of the kernel over pairs of rows; `same` leaves out pairs of a row with itself."""
    values = [kernel(z[i], z[j], scale) for i in first for j in second if not (same and i == j)]
    return sum(values) / len(values)


def average(per_class: list[list[float]]) -> float:
    """Mean over values, then over classes that have any."""
    means = [sum(values) / len(values) for values in per_class if values]
    return sum(means) / len(means) if means else 0.0


def mmd(
    z: Array,
    s: Array,
    y: Array | None,
    multiples: tuple[float, ...],
    literal: bool = False,
    held: float | None = None,
) -> float:
    scale = [c * (held or sigma(z)) for c in multiples]
    return average(
        [
            [
                mean_kernel(z, rows, rows, scale, True)
                + mean_kernel(z, group, group, scale, True)
                - 2 * mean_kernel(z, rows, group, scale, not literal)
                for group in by_subject(rows, s, 2)
            ]
            for rows in strata(s, y)
        ]
    )


def pairmmd(
    z: Array,
    s: Array,
    y: Array | None,
    multiples: tuple[float, ...],
    held: float | None = None,
) -> float:
    scale = [c * (held or sigma(z)) for c in multiples]
    found = []
    for rows in strata(s, y):
        groups = by_subject(rows, s, 2)
        found.append(
            [
                mean_kernel(z, a, a, scale, True)
                + mean_kernel(z, b, b, scale, True)
                - 2 * mean_kernel(z, a, b, scale, False)
                for i, a in enumerate(groups)
                for b in groups[:i]
            ]
        )
    return average(found)


def mige_direction(
    z: Array,
    s: Array,
    y: Array | None,
    score: Callable[[Array], Array],
    least: int,
    other: Array | None,
) -> Array:
    """Gradient of the surrogate with respect to z, subject by subject.

    `other` says which row replaces each row in the random groups; None is the textbook form.
    """
    out = np.zeros_like(z)
    usable = [(rows, by_subject(rows, s, least)) for rows in strata(s, y)]
    usable = [(rows, groups) for rows, groups in usable if groups]
    for _, groups in usable:
        n = sum(len(group) for group in groups)
        share = 1 / (len(usable) * n)
        for group in groups:
            out[group] += share * score(z[group])
            if other is not None:
                for i, line in zip(other[group], score(z[other[group]]), strict=True):
                    out[i] -= share * line
        if other is None:
            together = np.concatenate(groups)
            out[together] -= share * score(z[together])
    return out


def adversary(logits: Array, s: Array, y: Array | None) -> float:
    """Minus the cross entropy, averaged over rows, then over classes."""
    return average(
        [
            [logits[i][s[i]] - math.log(sum(math.exp(v) for v in logits[i])) for i in rows]
            for rows in strata(s, y)
        ]
    )


def began(error: Callable[[int, int], float], s: Array, y: Array | None) -> float:
    """log(Lzs / Lz); `error(i, m)` is the autoencoder's error of row i when told subject m."""
    own, real = [], []
    for rows in strata(s, y):
        people = np.unique(s[rows])
        if len(people) < 2:
            continue
        own.append([np.mean([error(i, m) for i in rows if s[i] == m]) for m in people])
        real.append([np.mean([error(i, m) for i in rows if s[i] != m]) for m in people])
    return math.log(average(own) / average(real)) if own else 0.0
