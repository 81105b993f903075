"""Depthwise temporal convolution as dense matrix products.

On a CPU a grouped convolution runs at a small fraction of the speed of a matrix product. A filter
of length K applied along time is a product with a banded matrix. Windows are cut into blocks of
time, and only the part of the matrix near the band is multiplied.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.lib.stride_tricks import as_strided
from torch import Tensor
from torch.autograd.function import once_differentiable

from autotransfer.data.trials import Array

BLOCK = 40
"""Least number of outputs in a block.

Smaller blocks multiply fewer zeros, until the products become too small. Forward and backward, ms
with 256, 100, 66, 40, 25: 28.5, 21.6, 22.6, 15.7, 19.3 (16 filters of 16, 512 signals of 200 each);
3.4, 2.7, 2.4, 2.4, 2.8 (8 of 64, 128 of 200); 4.0, 4.1, 4.2, 2.7, 3.3 (16 of 64, 128 of 128);
31.4, 18.8, 17.7, 19.1, 22.7 (8 of 64, 128 of 1000).
"""


def output_length(n_times: int, kernel_length: int) -> int:
    """Length of a signal after a filter, with zero padding of half the filter on both sides."""
    return n_times + 2 * (kernel_length // 2) - kernel_length + 1


class Filtered(torch.autograd.Function):
    """`TemporalConv` with its gradient: ``apply(v, filters, conv)``, (F, n, T) to (F, n, n_out)."""

    @staticmethod
    def forward(ctx: Any, v: Tensor, filters: Tensor, conv: TemporalConv) -> Tensor:
        """Apply filters (F, K) to signals."""
        ctx.save_for_backward(v, filters)
        ctx.conv = conv
        out = v.new_empty(*v.shape[:2], conv.n_out)
        conv.forward(v, filters.numpy(), out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Gradients of the signals and of the filters."""
        v, filters = ctx.saved_tensors
        grad = grad.contiguous()
        grad_v = grad_filters = None
        if ctx.needs_input_grad[0]:
            grad_v = torch.empty_like(v)
            ctx.conv.signal_gradient(grad, filters.numpy(), grad_v)
        if ctx.needs_input_grad[1]:
            grad_filters = torch.from_numpy(ctx.conv.filter_gradient(grad, v))
        return grad_v, grad_filters, None


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
        self.n_out = output_length(n_times, kernel_length)
        self.blocks = self._blocks()
        self._rows = max(rows.stop - rows.start for rows, _, _ in self.blocks)
        self._matrices: dict[tuple[str, torch.dtype], tuple[Tensor, Array]] = {}

    def _blocks(self) -> list[tuple[slice, slice, slice]]:
        """Cut time into blocks: outputs, the inputs they see, and these inputs' columns.

        One matrix serves all blocks: its row r has the filter in columns r to r + K - 1, which
        see the inputs from K // 2 before the block on. Inputs outside the window are zero.
        """
        n = max(1, self.n_out // BLOCK)
        blocks = []
        for start, stop in pairwise(self.n_out * i // n for i in range(n + 1)):
            origin = start - self.padding
            first = max(0, origin)
            last = min(self.n_times, stop - self.padding + self.kernel_length - 1)
            columns = slice(first - origin, last - origin)
            blocks.append((slice(start, stop), slice(first, last), columns))
        return blocks

    def _matrix(self, role: str, dtype: torch.dtype) -> tuple[Tensor, Array]:
        """Zero matrix (F, rows, rows + K - 1), and its band (F, rows, K)."""
        entry = self._matrices.get((role, dtype))
        if entry is None:
            rows, width = self._rows, self._rows + self.kernel_length - 1
            # Memory made under torch.inference_mode could not be written to in a later step.
            with torch.inference_mode(False):
                matrix = torch.zeros(self.n_filters, rows, width, dtype=dtype)
            array = matrix.numpy()
            size = array.itemsize
            strides = (rows * width * size, (width + 1) * size, size)
            band = as_strided(array, (self.n_filters, rows, self.kernel_length), strides)
            entry = self._matrices[role, dtype] = (matrix, band)
        return entry

    def forward(self, v: Tensor, filters: Array, out: Tensor) -> None:
        """Apply filters (F, K) to signals (F, n, T), into `out` (F, n, n_out)."""
        matrix, band = self._matrix("filter", v.dtype)
        np.copyto(band, filters[:, None])
        for rows, inputs, columns in self.blocks:
            part = matrix[:, : rows.stop - rows.start, columns]
            torch.bmm(v[..., inputs], part.mT, out=out[..., rows])

    def signal_gradient(self, grad: Tensor, filters: Array, out: Tensor) -> None:
        """Gradient of the signals, into `out` (F, n, T), from that of the output."""
        matrix, band = self._matrix("filter", grad.dtype)
        np.copyto(band, filters[:, None])
        if len(self.blocks) == 1:
            torch.bmm(grad, matrix[..., self.blocks[0][2]], out=out)
            return
        out.zero_()
        for rows, inputs, columns in self.blocks:
            part = matrix[:, : rows.stop - rows.start, columns]
            out[..., inputs].baddbmm_(grad[..., rows], part)

    def filter_gradient(self, grad: Tensor, v: Tensor) -> Array:
        """Gradient (F, K) of the filters from that of the output and the signals."""
        product, band = self._matrix("product", v.dtype)
        if len(self.blocks) == 1:
            torch.bmm(grad.mT, v, out=product[..., self.blocks[0][2]])
        else:
            product.zero_()
            for rows, inputs, columns in self.blocks:
                part = product[:, : rows.stop - rows.start, columns]
                part.baddbmm_(grad[..., rows].mT, v[..., inputs])
        summed: Array = band.sum(1)
        return summed
