"""Batch norm, ELU and average pooling in a few passes over the data, with their gradient."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from autotransfer.data.trials import Array

BLOCK = 128
"""Time points in a block of pooling: one product up to here. Longer blocks multiply more zeros: 512
took 5.0 ms for 8192 signals of 201, 128 takes 3.7, 64 takes 4.5."""


@dataclass
class NormState:
    """Vectors (F,) that the backward pass of `NormEluPool` needs."""

    gain: Array
    weight: Array
    inv: Array
    scale: Array


class NormEluPool:
    """Batch norm (by this batch) of gain * u + constant, ELU, average pooling.

    The constant does not appear: batch norm takes it away, leaving
    ``weight gain (u - mean) / sqrt(gain^2 var + eps) + bias``.

    ELU and its slope come from one exponential, q = exp(min(x, 0)): the slope is q and
    ELU(x) = max(x, 0) + q - 1. Pooling is a product with a matrix, several times faster than
    torch's ``avg_pool`` and its backward.

    Parameters
    ----------
    n_in, pool : int
        Length of the signals and pooling window.
    eps : float
        Batch norm's.
    """

    def __init__(self, n_in: int, pool: int, eps: float) -> None:
        self.n_in, self.n_out, self.eps = n_in, n_in // pool, eps
        # Long windows go in blocks, each a product with the same small matrix. What fills no whole
        # window belongs to the last block, and has rows of zeros.
        block = max(1, min(self.n_out, BLOCK // pool))
        self._blocks = []
        for start in range(0, self.n_out, block):
            stop = min(start + block, self.n_out)
            last = n_in if stop == self.n_out else stop * pool
            self._blocks.append((slice(start, stop), slice(start * pool, last)))
        matrix = torch.eye(block, dtype=torch.float64).repeat_interleave(pool, 0) / pool
        matrix = torch.cat([matrix, matrix.new_zeros(pool - 1, block)])
        self._matrix = {torch.float64: matrix, torch.float32: matrix.float()}

    def pool(self, e: Tensor, out: Tensor) -> None:
        """Average e (n, n_in) over pooling windows, into `out` (n, n_out)."""
        matrix = self._matrix[e.dtype]
        for pooled, times in self._blocks:
            part = matrix[: times.stop - times.start, : pooled.stop - pooled.start]
            torch.mm(e[:, times], part, out=out[:, pooled])

    def spread(self, grad: Tensor, out: Tensor) -> None:
        """Gradient of `pool`: from (n, n_out) into `out` (n, n_in)."""
        matrix = self._matrix[grad.dtype]
        for pooled, times in self._blocks:
            part = matrix[: times.stop - times.start, : pooled.stop - pooled.start]
            torch.mm(grad[:, pooled], part.mT, out=out[:, times])

    def forward(
        self, u: Array, q: Array, passing: Array, gain: Array, weight: Array, bias: Array
    ) -> tuple[Array, Array, NormState]:
        """Centre u in place, leave the slope of ELU in q and ELU + 1 in `passing`.

        Parameters
        ----------
        u, q, passing : array of shape (F, n)
            Signals; buffers. `u` and `q` must stay as they are until `backward`.
        gain, weight, bias : array of shape (F,)
            Factor on u; scale and shift of the batch norm.

        Returns
        -------
        mean, var : array of shape (F,)
            Mean and (biased) variance of u.
        state : NormState
            What `backward` needs besides.
        """
        n = u.shape[1]
        mean = np.add.reduce(u, 1) / u.dtype.type(n)
        u -= mean[:, None]
        var = np.vecdot(u, u) / n
        inv = 1 / np.sqrt(gain * gain * var + self.eps)
        scale = weight * gain * inv
        x = np.multiply(u, scale[:, None], out=passing)
        x += bias[:, None]
        np.minimum(x, 0, out=q)
        x -= q
        np.exp(q, out=q)
        x += q
        return mean, var, NormState(gain, weight, inv, scale)

    def backward(
        self, g: Array, u: Array, q: Array, passing: Array, state: NormState
    ) -> tuple[Array, Array, Array]:
        """Turn the gradient of ELU's output in g (F, n) into that of u, in place.

        Returns
        -------
        grad_gain, grad_weight, grad_bias : array of shape (F,)
        """
        n = u.shape[1]
        gain, weight, inv, scale = state.gain, state.weight, state.inv, state.scale
        g *= q
        g_sum = np.add.reduce(g, 1)
        g_dot = np.vecdot(g, u)
        # With scale = weight gain (gain^2 var + eps)^(-1/2):
        #   d scale / d var = -weight gain^3 inv^3 / 2,  d scale / d gain = weight eps inv^3.
        cube = weight * inv**3 * g_dot
        g *= scale[:, None]
        g -= (scale * g_sum / n)[:, None]
        g -= np.multiply(u, (gain**3 * cube / n)[:, None], out=passing)
        return cube * self.eps, gain * inv * g_dot, g_sum


class BatchNormEluPool:
    """`NormEluPool` of one batch: by the statistics of all trials, or of each person's.

    Parameters
    ----------
    norm : NormEluPool
        What it does to trials that belong together.
    people : sequence of int, optional
        How many trials in a row are of each person; without, all are of one.
    """

    def __init__(self, norm: NormEluPool, people: Sequence[int] | None) -> None:
        self._norm = norm
        ends = np.cumsum([0, *(people or ())]) * norm.n_in
        self._parts = [slice(None)]
        if people is not None:
            self._parts = [slice(a, b) for a, b in pairwise(ends.tolist())]
        self._states: list[NormState] = []

    def forward(
        self, work: Sequence[Array], gain: Array, weight: Array, bias: Array
    ) -> tuple[Array, Array]:
        """Do it to u, q and `passing` (F, n); gives mean and variance of u (F,), over people."""
        statistics = []
        for part in self._parts:
            u, q, passing = (array[:, part] for array in work)
            mean, var, state = self._norm.forward(u, q, passing, gain, weight, bias)
            statistics.append((mean, var))
            self._states.append(state)
        if len(statistics) == 1:
            return statistics[0]
        mean, var = np.mean(statistics, axis=0)
        return mean, var

    def backward(self, work: Sequence[Array]) -> tuple[Array, Array, Array]:
        """Turn the gradient in g of ``g, u, q, passing``, as `NormEluPool.backward` does."""
        grads = []
        for part, state in zip(self._parts, self._states, strict=True):
            g, u, q, passing = (array[:, part] for array in work)
            grads.append(self._norm.backward(g, u, q, passing, state))
        if len(grads) == 1:
            return grads[0]
        gain, weight, bias = (sum(some[1:], start=some[0]) for some in zip(*grads, strict=True))
        return gain, weight, bias
