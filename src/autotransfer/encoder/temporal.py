"""Depthwise temporal convolution as dense matrix products.

On a CPU a grouped convolution runs at a small fraction of the speed of a matrix product. A filter
of length K applied along time is a product with a banded matrix. Up to a few hundred time points
one product per filter is fastest although most of the matrix is zero; longer windows are cut into
blocks of time, and only the part of the matrix near the band is multiplied.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from numpy.lib.stride_tricks import as_strided
from torch import Tensor

Array = npt.NDArray[Any]

BLOCK = 256
"""Least number of outputs in a block. Measured for K = 64: blocks of 50 to 130 outputs halve the
multiplications of a window of 200 or 260 but gain no time, because the products become small."""


class TemporalConv:
    """Correlate signals with their filter along time, with zero padding K // 2 on both sides.

    ``out[f, n, t] = sum_k filters[f, k] v[f, n, t + k - K // 2]``

    Plain functions, without autograd: `forward` and the two halves of its backward. The banded
    matrices are kept between calls, because clearing a new one in every step costs as much as the
    product; an instance must not be used by two threads at once.

    Parameters
    ----------
    n_filters, n_times, kernel_length : int
        Number of filters F, input length T and filter length K.
    """

    def __init__(self, n_filters: int, n_times: int, kernel_length: int) -> None:
        self.n_filters, self.n_times, self.kernel_length = n_filters, n_times, kernel_length
        self.padding = kernel_length // 2
        self.n_out = n_times + 2 * self.padding - kernel_length + 1
        self.blocks = self._blocks()
        self._matrices: dict[tuple[str, torch.dtype], tuple[Tensor, Array]] = {}

    def _blocks(self) -> list[tuple[slice, slice]]:
        """Find outputs (rows) and inputs (columns) of the parts of the matrix to multiply."""
        n = max(1, self.n_out // BLOCK)
        edges = [self.n_out * i // n for i in range(n + 1)]
        found = []
        for start, stop in pairwise(edges):
            first = max(0, start - self.padding)
            last = min(self.n_times, stop - self.padding + self.kernel_length - 1)
            found.append((slice(start, stop), slice(first, last)))
        return found

    def _matrix(self, role: str, dtype: torch.dtype) -> tuple[Tensor, Array]:
        """Zero matrix (F, n_out, T), and its band (F, n_out, K): entry t, t + k - K // 2."""
        kept = self._matrices.get((role, dtype))
        if kept is None:
            width = self.n_times + 2 * self.padding
            # Memory made under torch.inference_mode could not be written to in a later step.
            with torch.inference_mode(False):
                padded = torch.zeros(self.n_filters, self.n_out, width, dtype=dtype)
            array = padded.numpy()
            one = array.itemsize
            band = as_strided(
                array,
                (self.n_filters, self.n_out, self.kernel_length),
                (self.n_out * width * one, (width + 1) * one, one),
            )
            kept = (padded[..., self.padding : self.padding + self.n_times], band)
            self._matrices[role, dtype] = kept
        return kept

    def forward(self, v: Tensor, filters: Array, out: Tensor) -> None:
        """Apply filters (F, K) to signals (F, n, T), into `out` (F, n, n_out)."""
        matrix, band = self._matrix("filter", v.dtype)
        np.copyto(band, filters[:, None])
        if len(self.blocks) == 1:
            torch.bmm(v, matrix.mT, out=out)
            return
        for rows, columns in self.blocks:
            torch.bmm(v[..., columns], matrix[:, rows, columns].mT, out=out[..., rows])

    def signal_gradient(self, grad: Tensor, filters: Array, out: Tensor) -> None:
        """Gradient of the signals, into `out` (F, n, T), from that of the output."""
        matrix, band = self._matrix("filter", grad.dtype)
        np.copyto(band, filters[:, None])
        if len(self.blocks) == 1:
            torch.bmm(grad, matrix, out=out)
            return
        out.zero_()
        for rows, columns in self.blocks:
            out[..., columns].baddbmm_(grad[..., rows], matrix[:, rows, columns])

    def filter_gradient(self, grad: Tensor, v: Tensor) -> Array:
        """Gradient (F, K) of the filters from that of the output and the signals."""
        product, band = self._matrix("product", v.dtype)
        for rows, columns in self.blocks:
            torch.bmm(grad[..., rows].mT, v[..., columns], out=product[:, rows, columns])
        summed: Array = band.sum(1)
        return summed
