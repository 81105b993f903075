"""MIGE: the gradient of mutual information, through estimates of the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from autotransfer.censoring.measure import Measure, by_mode, choose, number, switch
from autotransfer.data.validate import as_count
from autotransfer.errors import SettingError
from autotransfer.estimation.cells import Cells, Floats, Ints
from autotransfer.estimation.length_scale import LengthScale, check_length_scale
from autotransfer.estimation.scores import calibrate, lookup_score, score


@dataclass(frozen=True)
class Groups:
    """Sets of rows to which scores are fitted: a table of rows, its mask, a weight for each row."""

    rows: Ints
    mask: np.ndarray
    weight: Floats


class MIGE(Measure):
    r"""Surrogate whose gradient estimates that of the mutual information I(z; s).

    The entropy of a set A of T latents has the gradient of

        Hs(A) = -(1/T) Σ_{i in A} <sg(ŝ_A(z_i)), z_i>

    with ŝ_A an estimate of the score ∇ log q_A. The penalty is

        P = Σ_m w_m [ Hs(R_m) - Hs(S_m) ],   w_m = n_m / Σ n_m

    with S_m the rows of subject m and R_m a random group of as many rows. Only the gradient of P
    means anything; its value does not estimate I.

    Parameters
    ----------
    n_latent, n_subjects, n_given : int
        As for `Measure`.
    estimator : str
        Score estimator, a name in `autotransfer.estimation.SCORES`.
    gamma : float, optional
        Regularisation of the estimator; its own default if None. "ssge" has none.
    ratio : float, optional
        Share of the kernel's trace that the eigenvectors of "ssge" make up; 0.95 if None.
    length_scale : {"median", "tsne"} or float
        Length scale of the kernel, for each fitted set.
    matched : bool
        Compare each subject with a random group of its own size, as above. False is the textbook
        form, all rows at once: kernel estimates are biased by an amount that depends on the size
        of the set, and what does not cancel compresses z whatever the subject labels are.
    calibrate : bool
        Scale and centre every estimate so that Stein's identities hold.
    n_perm : int
        Random groupings to average.
    weights : {"count", "uniform"}
        w_m by trials, or equal.
    n_min : int
        Trials that a subject must have in the batch to count.

    Notes
    -----
    Corrections to the paper: docs/corrections.md (E2, E6, E7, and the matched form).

    References
    ----------
    Wen et al., Mutual information gradient estimation for representation learning, ICLR 2020.
    """

    strength: ClassVar[dict[str, float]] = by_mode(0.3, 0.05, 0.03)
    good_cell: ClassVar[int] = 6

    def __init__(
        self,
        n_latent: int,
        n_subjects: int,
        n_given: int = 0,
        *,
        estimator: str = "tikhonov",
        gamma: float | None = None,
        ratio: float | None = None,
        length_scale: LengthScale = "median",
        matched: bool = True,
        calibrate: bool = False,
        n_perm: int = 1,
        weights: str = "count",
        n_min: int = 4,
    ) -> None:
        super().__init__(n_latent, n_subjects, n_given)
        self.estimator, self.length_scale = estimator, check_length_scale(length_scale)
        self.gamma = None if gamma is None else number("gamma", gamma, 1e-12)
        self.ratio = 0.95 if ratio is None else number("ratio", ratio, 1e-12, 1)
        # Of no samples: the estimator says here, and not at the first batch, what does not fit.
        score(torch.zeros(0, 1), estimator, self.gamma, self.length_scale, ratio=self.ratio)
        has_ratio = lookup_score(estimator) is lookup_score("ssge")
        if (gamma if has_ratio else ratio) is not None:
            name, other = ("gamma", "ratio") if has_ratio else ("ratio", "gamma")
            raise SettingError(
                f"The estimator {estimator!r} does not use {name}. Leave it out; {other} is its "
                "option."
            )
        self.matched = switch("matched", matched)
        self.calibrate = switch("calibrate", calibrate)
        self.n_perm = as_count(n_perm, "n_perm")
        self.weights = choose("weights", weights, ("count", "uniform"))
        self.smallest_cell = as_count(n_min, "n_min", least=2)

    def draw(self, cells: Cells, generator: torch.Generator | None = None) -> Any:
        """Choose who replaces each row in the random groups: arrays of int (N,), or None."""
        if not self.matched:
            return None
        return [_shuffle_within(cells, self.smallest_cell, generator) for _ in range(self.n_perm)]

    def censor(self, z: Tensor, cells: Cells, draw: Any) -> Tensor:
        """Surrogate of the mutual information (see `Measure.censor`)."""
        usable = cells.count >= self.smallest_cell
        if not usable.any():
            return 0 * z.sum()
        subjects = self._groups(cells, usable)
        if draw is None:
            parts = [(self._whole(cells, usable, subjects), -1.0), (subjects, 1.0)]
        else:
            random = [
                Groups(replacement[subjects.rows], subjects.mask, subjects.weight)
                for replacement in draw
            ]
            parts = [(_stack([*random, subjects], [-1.0 / len(random)] * len(random) + [1.0]), 1.0)]
        direction = torch.zeros_like(z)
        for groups, sign in parts:
            self._add_scores(direction, z.detach(), groups, sign)
        return (direction * z).sum()

    def _groups(self, cells: Cells, usable: np.ndarray) -> Groups:
        """Take the usable cells, each row with its share of the penalty, w_m / n_m."""
        rows, mask = cells.padded(usable)
        by_cell = cells.count * usable if self.weights == "count" else usable
        weight = (cells.averaged(by_cell.astype(np.float64)) / cells.count)[usable]
        return Groups(rows, mask, mask * weight[:, None])

    def _whole(self, cells: Cells, usable: np.ndarray, subjects: Groups) -> Groups:
        """All usable rows of a stratum as one set, each row with its weight in `subjects`."""
        key = cells.stratum[cells.cell] * 2 + usable[cells.cell]
        rows, mask = Cells.of(key).padded(np.unique(key) % 2 == 1)
        weight = np.zeros(len(cells.cell))
        weight[subjects.rows[subjects.mask]] = subjects.weight[subjects.mask]
        return Groups(rows, mask, weight[rows] * mask)

    def _add_scores(self, direction: Tensor, z: Tensor, groups: Groups, sign: float) -> None:
        """Add sign * weight * score of every grouped row to its line of `direction`."""
        rows = torch.from_numpy(groups.rows).to(z.device, non_blocking=True)
        mask = torch.from_numpy(groups.mask).to(z.device, non_blocking=True)
        weight = torch.from_numpy(sign * groups.weight).to(z, non_blocking=True)
        x = z[rows]
        scores = score(x, self.estimator, self.gamma, self.length_scale, mask, ratio=self.ratio)
        if self.calibrate:
            scores = calibrate(scores, x, mask)
        scores = (scores * weight[..., None]).flatten(0, 1)
        direction.index_add_(0, rows.flatten(), scores)


def _shuffle_within(cells: Cells, least: int, generator: torch.Generator | None) -> Ints:
    """Row that replaces each row: a random permutation of the usable rows of every stratum."""
    n = len(cells.cell)
    keys = torch.rand(n, generator=generator, dtype=torch.float64).numpy()
    stratum, usable = cells.stratum[cells.cell], cells.count[cells.cell] >= least
    rows = np.flatnonzero(usable)
    by_stratum = rows[np.argsort(stratum[rows], kind="stable")]
    shuffled = rows[np.lexsort((keys[rows], stratum[rows]))]
    replacement = np.arange(n)
    replacement[by_stratum] = shuffled
    return replacement


def _stack(groups: list[Groups], signs: list[float]) -> Groups:
    """Put tables of one shape below each other, so that all scores are one batched call."""
    return Groups(
        np.concatenate([g.rows for g in groups]),
        np.concatenate([g.mask for g in groups]),
        np.concatenate([sign * g.weight for g, sign in zip(groups, signs, strict=True)]),
    )
