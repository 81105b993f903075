"""Rows of a batch by class and subject: what every penalty needs of the labels.

Everything here is made from labels alone, on the CPU and in numpy: sums over subjects, pairs and
classes become weights on rows or pairs of rows, and the tensors that depend on the latent never
meet a Python loop over subjects. Only subjects in the batch count, so no cost grows with the
number of subjects in the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.errors import ShapeError

Ints = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cells:
    """A batch cut into cells: the rows of one subject, within one class where a class is given.

    Parameters
    ----------
    subject : array of int of shape (N,)
        Subject of every row.
    given : array of int of shape (N,), optional
        Class of every row, where a class is given; None makes one stratum of all rows.
    cell : array of int of shape (N,)
        Cell of every row.
    count : array of int of shape (G,)
        Rows of every cell.
    stratum : array of int of shape (G,)
        Stratum (class present in the batch) of every cell.
    person : array of int of shape (G,)
        Subject of every cell, counted over the subjects present in the batch.

    Examples
    --------
    >>> cells = Cells.of([7, 7, 9, 9, 9], given=[0, 1, 1, 1, 0])
    >>> cells.cell, cells.count, cells.stratum
    (array([0, 2, 3, 3, 1]), array([1, 1, 1, 2]), array([0, 0, 1, 1]))
    """

    subject: Ints
    given: Ints | None
    cell: Ints
    count: Ints
    stratum: Ints
    person: Ints

    @classmethod
    def of(cls, subject: Any, given: Any = None) -> Cells:
        """Cut a batch into cells.

        Parameters
        ----------
        subject : array-like of int of shape (N,)
            Subject of every row. A tensor on a device is fetched: hand over a CPU tensor or an
            array where waiting matters.
        given : array-like of int of shape (N,), optional
            Class of every row.
        """
        s = _numbers(subject)
        if given is None:
            people, cell, count = _unique(s)
            zeros = np.zeros(len(people), np.intp)
            return cls(s, None, cell, count, zeros, np.arange(len(people)))
        c = _numbers(given)
        if len(c) != len(s):
            raise ShapeError(
                f"There are {len(s)} subject ids and {len(c)} labels. Give one of each a row."
            )
        people, person, _ = _unique(s)
        width = max(len(people), 1)
        key, cell, count = _unique(c * width + person)
        return cls(s, c, cell, count, _unique(key // width)[1], key % width)

    @property
    def n_strata(self) -> int:
        """Number of strata: classes present, or one."""
        return int(self.stratum[-1]) + 1 if len(self.stratum) else 0

    def usable(self, least: int) -> Floats:
        """Weight of every cell in a plain average over usable cells, then over strata.

        Parameters
        ----------
        least : int
            Rows that a cell must have to be usable.

        Returns
        -------
        array of shape (G,)
            Zero for cells that are not usable; sums to 1, or to 0 if none is.
        """
        return self.averaged((self.count >= least).astype(np.float64))

    def averaged(self, weight: Floats) -> Floats:
        """Scale weights (G,) to sum to 1 / (number of strata with any) in each of these."""
        total = np.bincount(self.stratum, weight, self.n_strata)
        n = np.count_nonzero(total)
        # The denominator is made safe first: an empty stratum has weights of zero anyway.
        return weight / np.where(total > 0, total * n, 1.0)[self.stratum]

    def padded(self, chosen: npt.NDArray[np.bool]) -> tuple[Ints, npt.NDArray[np.bool]]:
        """Rows of the chosen cells as a table with one line a cell.

        Parameters
        ----------
        chosen : array of bool of shape (G,)
            Cells wanted.

        Returns
        -------
        rows : array of int of shape (chosen, T)
            Row numbers, padded with 0 to the T rows of the largest chosen cell.
        mask : array of bool of shape (chosen, T)
            Which are rows and not padding.
        """
        count = self.count[chosen]
        mask = np.arange(int(count.max(initial=0))) < count[:, None]
        rows = np.zeros(mask.shape, np.intp)
        order = np.argsort(self.cell, kind="stable")
        rows[mask] = order[chosen[self.cell[order]]]
        return rows, mask


def _numbers(labels: Any) -> Ints:
    """Whole numbers (N,) from a tensor or array."""
    if hasattr(labels, "detach"):
        labels = labels.detach().cpu().numpy()
    numbers = np.asarray(labels)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iub":
        raise ShapeError(
            "Subjects and labels of a batch must be whole numbers, one a row; these are of shape "
            f"{numbers.shape} and type {numbers.dtype}."
        )
    return numbers.astype(np.intp, copy=False)


def _unique(values: Ints) -> tuple[Ints, Ints, Ints]:
    """Distinct values, position of each row's value among them, counts."""
    distinct, position, count = np.unique(values, return_inverse=True, return_counts=True)
    return distinct, position, count
