"""Estimates of the score at points that are not samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from autotransfer.errors import SettingError, ShapeError, join_some
from autotransfer.estimation.filters import nu_weights, solve_shifted, ssge_eigenvectors, steps
from autotransfer.estimation.kernels import lookup_kernel, square_distances, weighted_differences
from autotransfer.estimation.length_scale import LengthScale, beta
from autotransfer.estimation.scores import lookup_score, parameter_of


class Fit(NamedTuple):
    """What an extension needs to know of samples and queries.

    Parameters
    ----------
    k : Tensor of shape (..., n, n)
        Kernel matrix of the samples.
    h : Tensor of shape (..., n, d)
        H_i = Σ_j ∇_{x_j} k(x_i, x_j).
    k_q : Tensor of shape (..., m, n)
        Kernel between queries and samples.
    zeta : Tensor of shape (..., m, d)
        Σ_j ∇_{x_j} k(q, x_j).
    pull : callable
        Factors a, (..., m, n), to Σ_j a_j ∇_{x_j} k(q, x_j), (..., m, d).
    """

    k: Tensor
    h: Tensor
    k_q: Tensor
    zeta: Tensor
    pull: Callable[[Tensor], Tensor]


def tikhonov_at(fit: Fit, gamma: float) -> Tensor:
    """ŝ(q) = k_q c - ζ(q)/(nγ), with (K + nγ I) c = H/(nγ)."""
    eta = fit.k.shape[-1] * gamma
    return (fit.k_q @ solve_shifted(fit.k, fit.h, eta) - fit.zeta) / eta


def stein_at(fit: Fit, gamma: float) -> Tensor:
    """Last row of Stein's in-sample estimate for the samples and q, with n²γ for n samples.

    With B = (K + n²γ I)⁻¹, S = -B H and a = k_q B,

        ŝ(q) = -[k_q S + Σ_j (1 + a_j) ∇_{x_j} k(q, x_j)] / (1 + n²γ - a·k_q).

    At a sample it is not the in-sample estimate: the sample then counts twice.
    """
    eta = fit.k.shape[-1] ** 2 * gamma
    a = solve_shifted(fit.k, fit.k_q.mT, eta).mT
    divisor = 1 + eta - (a * fit.k_q).sum(-1, keepdim=True)
    return (a @ fit.h - fit.pull(1 + a)) / divisor


def ssge_at(fit: Fit, ratio: float) -> Tensor:
    """ŝ(q) = -k_q U_J λ_J⁻² U_J' H: eigenfunctions extended by Nyström's formula."""
    inverse, vectors = ssge_eigenvectors(fit.k, ratio)
    return -fit.k_q @ ((vectors * inverse.square().unsqueeze(-2)) @ (vectors.mT @ fit.h))


def nu_at(fit: Fit, gamma: float) -> Tensor:
    """ŝ(q) = k_q c + a ζ(q)/n, with c and a from the steps of the ν-method."""
    n = fit.k.shape[-1]
    share, zeta = fit.k / n, fit.h / n
    c_before, c = torch.zeros_like(zeta), torch.zeros_like(zeta)
    a_before, a = 0.0, -nu_weights(1)[1]
    for t in range(2, steps(math.sqrt(gamma)) + 1):
        u, w = nu_weights(t)
        residual = (a / n) * zeta + share @ c
        c_before, c = c, torch.lerp(c_before, c, 1 + u).sub_(residual, alpha=w)
        a_before, a = a, (1 + u) * a - u * a_before - w
    return fit.k_q @ c + (a / n) * fit.zeta


EXTENSIONS: dict[str, Callable[[Fit, float], Tensor]] = {
    "tikhonov": tikhonov_at,
    "nu": nu_at,
    "stein": stein_at,
    "ssge": ssge_at,
    "mige": ssge_at,
}
"""The estimators, by their names in `autotransfer.estimation.SCORES`, that know other points."""


@torch.no_grad()
def score_at(
    query: Tensor,
    x: Tensor,
    estimator: str = "tikhonov",
    gamma: float | None = None,
    length_scale: LengthScale = "median",
    *,
    ratio: float = 0.95,
    kernel: str = "rbf",
) -> Tensor:
    """Estimate the score at any points from samples of the density.

    Parameters
    ----------
    query : Tensor of shape (..., m, d)
        Points at which the score is wanted.
    x : Tensor of shape (..., n, d)
        Samples.
    estimator : {"tikhonov", "nu", "stein", "ssge", "mige"}
        Score estimator; at the samples all but ``"stein"`` give what
        `autotransfer.estimation.score` gives.
    gamma, ratio : float, optional
        Its parameter, as for `autotransfer.estimation.score`.
    length_scale : "median" or float
        The median distance of the samples, or σ.
    kernel : {"rbf", "imq"}
        Kernel.

    Returns
    -------
    Tensor like `query`

    Examples
    --------
    >>> x = torch.special.ndtri(torch.linspace(0.01, 0.99, 99))[:, None]
    >>> score_at(torch.tensor([[-1.0], [0.5]]), x).T
    tensor([[ 0.9771, -0.4872]])
    """
    rule = lookup_score(estimator)
    if estimator not in EXTENSIONS:
        raise SettingError(
            f"{estimator!r} knows the score at the samples alone. Estimators for other points: "
            f"{join_some(list(EXTENSIONS))}."
        )
    if length_scale == "tsne":
        raise SettingError(
            "The length scales of 'tsne' belong to pairs of samples; other points need 'median' "
            "or a number."
        )
    if query.shape[-1] != x.shape[-1]:
        raise ShapeError(
            f"The samples have {x.shape[-1]} dimensions and the query points {query.shape[-1]}."
        )
    k_of = lookup_kernel(kernel)
    x = x.detach()
    d2 = square_distances(x)
    scale = beta(d2, length_scale)
    k, k_q = (k_of.value(d, scale) for d in (d2, square_distances(x, query.detach()).mT))
    weights = k_of.weights(k_q, scale)
    mean = x.mean(-2, keepdim=True)
    x, query = x - mean, query.detach() - mean

    def pull(factors: Tensor) -> Tensor:
        weighted = factors * weights
        return weighted.sum(-1, keepdim=True) * query - weighted @ x

    h = weighted_differences(k_of.weights(k, scale), x)
    fit = Fit(k, h, k_q, pull(torch.ones_like(k_q)), pull)
    return EXTENSIONS[estimator](fit, parameter_of(rule, gamma, ratio))
