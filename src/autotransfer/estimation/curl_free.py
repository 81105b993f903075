"""Score estimators with a curl-free kernel: every estimate is the gradient of some function.

The estimators are those of `autotransfer.estimation.filters` with Kc, the n d x n d matrix of the
curl-free kernel, in the place of K (Zhou, Shi & Zhu 2020, arXiv:2005.10099). They find better
directions in few dimensions and cost ten to fifty times as much.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from autotransfer.estimation.filters import Count, nu_iterates, solve_shifted
from autotransfer.estimation.kernels import (
    Kernel,
    curl_free_divergence,
    curl_free_matrix,
    curl_free_product,
    weighted_differences,
)

LARGEST_DENSE = 200
"""n d up to which the matrix is formed. For sixteen sets with n d = 256, forming and solving take
22 ms and conjugate gradients 8; for n d = 1024 and one set, 42 and 9."""

MOST_STEPS = 1000
"""Of conjugate gradients; enough for a gamma of 1e-3 and more in float64, 1e-4 in float32."""


class CurlFree(NamedTuple):
    """The curl-free kernel of a batch of sets of points, in units of their length scale.

    Parameters
    ----------
    x : Tensor of shape (G, n, r)
        Points; r coordinates, of which the estimate is made.
    first, second : Tensor of shape (G, n, n)
        φ' and φ''.
    h : Tensor of shape (G, n, r)
        Σ_j div_{x_j} Kc(x_i, x_j).
    n : Tensor of shape (G, 1, 1), or float
        Points in each set.
    basis : Tensor of shape (G, d, r), optional
        What the r coordinates stand for; None if they are those of the points.
    """

    x: Tensor
    first: Tensor
    second: Tensor
    h: Tensor
    n: Count
    basis: Tensor | None

    def full(self, v: Tensor) -> Tensor:
        """Return a field in the coordinates of the points, (G, n, d)."""
        return v if self.basis is None else v @ self.basis.mT

    def product(self, v: Tensor) -> Tensor:
        """Kc v."""
        return curl_free_product(self.x, v, self.first, self.second)


def tikhonov_curlfree(kernel: CurlFree, gamma: float) -> Tensor:
    """Solve (Kc + nγ I) v = h; its negative is the score.

    Parameters
    ----------
    kernel : CurlFree
        Of the points.
    gamma : float
        Regularisation γ.

    Returns
    -------
    Tensor of shape (G, n, r)
    """
    g, n, r = kernel.x.shape
    if n * r > LARGEST_DENSE:
        return conjugate_gradients(kernel, gamma)
    matrix = curl_free_matrix(kernel.x, kernel.first, kernel.second)
    return solve_shifted(matrix, kernel.h.reshape(g, n * r, 1), kernel.n * gamma).reshape(g, n, r)


def nu_curlfree(kernel: CurlFree, gamma: float) -> Tensor:
    """ν-method with L = Kc/n; parameters as for `tikhonov_curlfree`."""
    return nu_iterates(lambda v: kernel.product(v) / kernel.n, kernel.h / kernel.n, gamma)


def conjugate_gradients(kernel: CurlFree, gamma: float) -> Tensor:
    """Solve the equation of `tikhonov_curlfree` by products with Kc alone.

    The largest eigenvalue of Kc is at most n, so the condition number κ is at most 1 + 1/γ and the
    error falls by (√κ - 1)/(√κ + 1) in a step: their number is bounded, and an early stop after
    `MOST_STEPS` regularises no less than such a γ. Every set stops on its own, so its solution does
    not depend on which others are in the batch.
    """
    x = 0 * kernel.h  # and not zeros: NaN in, NaN out
    eta = kernel.n * gamma
    residual, direction = kernel.h, kernel.h
    size = start = _inner(residual, residual)
    tolerance = 1e-6 if x.dtype == torch.float32 else 1e-12
    root = math.sqrt(1 + 1 / gamma)
    n_steps = math.ceil(0.5 * root * math.log(2 * root / tolerance))
    for _ in range(min(n_steps, MOST_STEPS)):
        going = size > tolerance**2 * start
        if not going.any():
            break
        image = kernel.product(direction) + eta * direction
        length = torch.where(going, size / _inner(direction, image), 0)
        x = x + length * direction
        residual = residual - length * image
        size, last = torch.where(going, _inner(residual, residual), size), size
        direction = residual + torch.where(going, size / last, 0) * direction
    return x


def _inner(a: Tensor, b: Tensor) -> Tensor:
    """Inner products of fields, (G, 1, 1)."""
    return (a * b).sum((-2, -1), keepdim=True)


def curl_free(x: Tensor, d2: Tensor, beta: Tensor, n: Count, kernel: Kernel) -> CurlFree:
    """Curl-free kernel of points, in units of σ = (2β)^(-1/2).

    Kc(x, x) = I / σ², so in the units of x the meaning of γ would change with the scale of the
    points, and the ν-method would diverge for σ < 1.

    Parameters
    ----------
    x : Tensor of shape (G, n, d)
        Centred points.
    d2 : Tensor of shape (G, n, n)
        Squared distances, infinite where a point is absent.
    beta : Tensor of shape (G, 1, 1)
        1 / (2σ²).
    n : Tensor of shape (G, 1, 1), or float
        Points in each set.
    kernel : Kernel
        Its φ is differentiated.
    """
    scaled = 2 * beta * d2
    first, second, third = kernel.derivatives(scaled, 0.5)
    divergence = curl_free_divergence(scaled, second, third, x.shape[-1])
    x, basis = x * (2 * beta).sqrt(), None
    if x.shape[-2] < x.shape[-1]:
        # All terms are sums of differences of points: n coordinates are enough for n points.
        basis, triangle = torch.linalg.qr(x.mT)
        x = triangle.mT
    return CurlFree(x, first, second, weighted_differences(divergence, x), n, basis)
