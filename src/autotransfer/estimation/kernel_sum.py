"""A weighted sum of Gaussian kernels over all pairs of rows, with its gradient in one pass.

Written by hand where torch could differentiate it, because a batch of latents is small: of 64 rows
autograd's thirty-odd operations take several times as long as the arithmetic
(``benchmarks/speed/penalty_cost.py`` compares; the law tests hold both to the same numbers).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autotransfer.data.trials import Array
from autotransfer.estimation.length_scale import median_slope


def gaussian_sum(
    z: Tensor, pairs: Array, sigma: float | None, constant: bool, scales: Sequence[float]
) -> Tensor:
    """Sum ``Σ_ij V_ij mean_c exp(-d²_ij / 2(cσ)²)`` on the CPU.

    Parameters
    ----------
    z : Tensor of shape (N, K)
        Rows, on the CPU.
    pairs : array of shape (N, N)
        Symmetric weights V with zeros on the diagonal.
    sigma : float, optional
        σ; the median distance between rows if None.
    constant : bool
        Take σ for a constant in the gradient.
    scales : sequence of float
        The multiples c.

    Returns
    -------
    Tensor of shape ()
        With a gradient in `z` that cannot be differentiated again.
    """
    total: Tensor = _GaussianSum.apply(z, pairs, sigma, constant, scales)  # type: ignore[no-untyped-call]
    return total


class _GaussianSum(torch.autograd.Function):
    """`gaussian_sum`; the gradient is computed with the value."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        pairs: Array,
        sigma: float | None,
        constant: bool,
        scales: Sequence[float],
    ) -> Tensor:
        x = z.detach().numpy()
        x = x - x.mean(0)  # distances by products need it: see `square_distances`
        v = pairs.astype(x.dtype, copy=False)
        products = x @ x.T
        squares = products.diagonal()
        d2 = squares[:, None] + squares
        d2 -= 2 * products
        np.maximum(d2, 0, out=d2)
        n = len(x)
        if sigma is None:
            (beta,), place, slope = median_slope(d2.reshape(1, n * n), n)
        else:
            beta, constant = x.dtype.type(0.5 / sigma**2), True
        value, by_d2 = 0.0, np.zeros_like(d2)
        for c in scales:
            rate = -beta / c**2
            term = np.exp(rate * d2)
            term *= v
            value += float(term.sum(dtype=np.float64))
            term *= rate
            by_d2 += term
        # by_d2 is the derivative in d² at fixed β, times the number of scales; as β multiplies d²
        # everywhere, the derivative in β is the sum of d² times it, over β.
        if not constant:
            by_beta = float((by_d2 * d2).sum(dtype=np.float64)) / float(beta)
            np.add.at(by_d2.reshape(-1), place[0], (by_beta * slope[0]).astype(x.dtype))
            # The median is one of two equal entries, (i, j) and (j, i): half for each.
            by_d2 = (by_d2 + by_d2.T) / 2
        gradient = by_d2.sum(1)[:, None] * x - by_d2 @ x
        gradient *= 4 / len(scales)
        ctx.gradient = torch.from_numpy(gradient)
        return z.new_tensor(value / len(scales))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        return ctx.gradient * grad, None, None, None, None
