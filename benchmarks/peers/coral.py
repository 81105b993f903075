"""CORAL between all pairs of subjects, as a measure that `CensoredClassifier` can be handed."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from autotransfer.censoring import Measure
from autotransfer.estimation.cells import Cells


class CORAL(Measure):
    """Distance of means and covariances of the latents of two subjects, averaged over pairs.

        mean over pairs (r, s) of  |m_r - m_s|² / d + |C_r - C_s|² / d²

    with C the covariance (divisor n - 1), as in DomainBed. Sun and Saenko have the second term
    only, over 4.

    References
    ----------
    Sun and Saenko (2016), Deep CORAL: correlation alignment for deep domain adaptation. ECCV.
    """

    strength: ClassVar[dict[str, float]] = {"marginal": 1.0}
    smallest_cell = 2

    def censor(self, z: Tensor, cells: Cells, draw: Any) -> Tensor:
        """Give the penalty; subjects with one trial in the batch do not count."""
        usable = np.flatnonzero(cells.count >= self.smallest_cell)
        if len(usable) < 2:
            return 0 * z.sum()
        rows = functional.one_hot(torch.from_numpy(cells.cell), len(cells.count)).T.to(z)
        count = torch.from_numpy(cells.count).to(z)
        means = rows @ z / count[:, None]
        centred = z - means[torch.from_numpy(cells.cell)]
        outer = torch.einsum("gb,bi,bj->gij", rows, centred, centred)
        covariances = outer / (count - 1).clamp_min(1)[:, None, None]
        kept = torch.from_numpy(usable)
        return mean_pair_distance(means[kept]) + mean_pair_distance(covariances[kept].flatten(1))


def mean_pair_distance(points: Tensor) -> Tensor:
    """Mean over pairs of rows (G, n) of their squared distance over n, without a loop over pairs.

    The squares of all pairs sum to G times those around the mean.
    """
    spread = (points - points.mean(0)).square().mean(1).sum()
    return 2 * spread / (len(points) - 1)
