"""Right and wrong subject labels of a batch, and their weights in BEGAN's means."""

from __future__ import annotations

import numpy as np
import torch

from autotransfer.estimation.cells import Cells, Floats, Ints


class Rivals:
    """What the labels of a batch say of right and wrong ones: the same for all steps on it.

    Parameters
    ----------
    cells : Cells
        The batch.
    others : int or "all"
        Wrong labels tried for each row.
    """

    def __init__(self, cells: Cells, others: int | str) -> None:
        self.cells, self.others = cells, others
        company = np.bincount(cells.stratum, minlength=cells.n_strata)[cells.stratum]
        share = cells.averaged((company >= 2).astype(np.float64))
        # Of a mean over rows of a subject, over subjects, over classes with two.
        self.right: Floats = (share / cells.count)[cells.cell]
        self.name = np.empty(len(cells.count), np.intp)
        self.name[cells.cell] = cells.subject
        size = np.bincount(cells.stratum, cells.count, cells.n_strata)[cells.stratum]
        # Weight of row i under label m: share of cell (class, m), over the rows that are not m's.
        self.under = share / np.maximum(size - cells.count, 1)
        rows = np.flatnonzero(company[cells.cell] >= 2)
        times = company[cells.cell[rows]] - 1
        self.rows = np.repeat(rows, times if others == "all" else int(others))
        cell = cells.cell[self.rows]
        self.n_wrong, self.company = company[cell] - 1, company[cell]
        first = np.searchsorted(cells.stratum, cells.stratum)  # cells are in the order of strata
        self.first, self.place = first[cell], cell - first[cell]
        # Each of all wrong labels in turn; or as many as are drawn stand for all.
        self.turn: Ints | None = None
        self.scale: Floats | float = 1.0
        if others == "all":
            self.turn = np.arange(len(self.rows)) - np.repeat(np.cumsum(times) - times, times)
        else:
            self.scale = self.n_wrong / int(others)

    def draw(self, generator: torch.Generator | None) -> tuple[Ints, Ints, Floats]:
        """Rows, wrong labels and weights of an unbiased estimate of Lz."""
        turn = self.turn
        if turn is None:
            n = len(self.rows)
            uniform = torch.rand(n, generator=generator, dtype=torch.float64).numpy()
            turn = np.minimum((uniform * self.n_wrong).astype(np.intp), self.n_wrong - 1)
        wrong = self.first + (self.place + 1 + turn) % self.company
        return self.rows, self.name[wrong], self.under[wrong] * self.scale


def even_weights(cells: Cells, weight: Floats) -> Floats:
    """Weights (N,) of a mean over rows of a class, over classes with two subjects."""
    stratum = cells.stratum[cells.cell]
    classes = len(np.unique(stratum[weight > 0]))
    return (weight > 0) / (np.bincount(stratum)[stratum] * max(classes, 1))
