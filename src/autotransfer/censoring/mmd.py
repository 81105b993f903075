"""MMD: the distance of each subject's latents from those of the whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from autotransfer.censoring.measure import Measure, by_mode, switch
from autotransfer.estimation.cells import Cells, Floats
from autotransfer.estimation.length_scale import LengthScale, check_length_scale
from autotransfer.estimation.mmd import check_scales, kernel_average, mmd_weights

SCALES = (0.25, 0.5, 1.0)
"""Multiples of the length scale whose kernels are averaged."""


class KernelMeasure(Measure):
    """What MMD and PairMMD share: a weighted average of kernels of pairs of rows."""

    smallest_cell = 2
    good_cell: ClassVar[int] = 4

    def __init__(
        self,
        n_latent: int,
        n_subjects: int,
        n_given: int,
        length_scale: LengthScale,
        scales: Sequence[float],
        detach_length_scale: bool,
    ) -> None:
        super().__init__(n_latent, n_subjects, n_given)
        self.length_scale = check_length_scale(length_scale)
        self.scales = check_scales(scales)
        self.detach_length_scale = switch("detach_length_scale", detach_length_scale)

    def average(self, z: Tensor, cells: Cells, weights: Floats) -> Tensor:
        """Sum of kernels of pairs of rows, weighted by the cells (G, G) they are in."""
        return kernel_average(
            z, cells, weights, self.length_scale, self.detach_length_scale, self.scales
        )


class MMD(KernelMeasure):
    r"""Average squared maximum mean discrepancy between all latents and each subject's.

        ``P = mean_m MMD²(q(z), q(z | s = m)),   k(z, z') = exp(-|z - z'|² / 2σ²)``

    Parameters
    ----------
    n_latent, n_subjects, n_given : int
        As for `Measure`.
    length_scale : {"median", "tsne"} or float
        σ: median distance in the batch; one for each pair of rows, by perplexity; or a number.
    scales : sequence of float, optional
        The kernel is the mean of Gaussians of these multiples of σ, by default 1/4, 1/2 and 1. One
        alone, ``(1.0,)``, is the paper's: the median distance is that between classes, at which
        differences between the subjects within a class hardly show (docs/corrections.md).
    detach_length_scale : bool
        Take σ for a constant in the gradient (as the paper does): z then drifts in scale.
    literal : bool
        The estimate as printed in the paper, biased by -(2/N)(1 - E k), with one scale.

    Notes
    -----
    Subjects with fewer than two trials in the batch do not count. Values may be slightly below
    zero: the estimate is unbiased. Corrections to the paper: docs/corrections.md (E9, E10).

    References
    ----------
    Gretton et al., A kernel two-sample test, JMLR 13 (2012) 723-773.
    """

    strength: ClassVar[dict[str, float]] = by_mode(3, 3, 3)

    def __init__(
        self,
        n_latent: int,
        n_subjects: int,
        n_given: int = 0,
        *,
        length_scale: LengthScale = "median",
        scales: Sequence[float] | None = None,
        detach_length_scale: bool = False,
        literal: bool = False,
    ) -> None:
        self.literal = switch("literal", literal)
        if scales is None:
            scales = (1.0,) if literal else SCALES
        super().__init__(n_latent, n_subjects, n_given, length_scale, scales, detach_length_scale)

    def censor(self, z: Tensor, cells: Cells, draw: Any) -> Tensor:
        """Average MMD² of the usable cells (see `Measure.censor`)."""
        value = self.average(z, cells, mmd_weights(cells, literal=self.literal))
        return value - self._self_pairs(cells) if self.literal else value

    def _self_pairs(self, cells: Cells) -> float:
        """Compute what pairs of a point with itself add to the printed cross term."""
        size = np.bincount(cells.stratum, cells.count, cells.n_strata)[cells.stratum]
        return float((2 * cells.usable(2) / size).sum())
