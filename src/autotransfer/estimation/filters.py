r"""Score estimators with a diagonal kernel, all as filters of one eigenvalue problem.

In the regression view of score estimation (Zhou, Shi & Zhu 2020, "Nonparametric score estimators",
arXiv:2005.10099) an estimate at the samples themselves is

    ŝ = -f(K) H,    H_i = Σ_j ∇_{x_j} k(x_i, x_j),

with K the kernel matrix of the n samples, and f the inverse of its eigenvalues λ, tamed:

| estimator | f(λ) | parameter |
|---|---|---|
| Tikhonov | 1 / (λ + nγ) | γ |
| Stein | 1 / (λ + n²γ) | γ |
| SSGE | 1/λ for the largest that make up a share of the trace, else 0 | share |
| spectral cut-off | 1/λ where λ > nγ, else 0 | γ |
| Landweber | (1 - (1 - λ/n)^t) / λ, t = ⌊1/γ⌋ + 1 | γ |
| ν-method | a polynomial of degree t - 1, t = ⌊1/√γ⌋ + 1 | γ |

Every function here takes K, the right-hand side h, the number of samples n and the parameter, and
returns f(K) h. Rows of absent samples are zero in K and h, and stay zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Count = Tensor | float
"""Number of samples: one for all sets, or (..., 1, 1)."""

NU = 1.0


def tikhonov(k: Tensor, h: Tensor, n: Count, gamma: float) -> Tensor:
    """Tikhonov regularisation, f(λ) = 1 / (λ + nγ).

    Parameters
    ----------
    k : Tensor of shape (..., n, n)
        Kernel matrix K, positive semidefinite.
    h : Tensor of shape (..., n, m)
        What f(K) is to be multiplied with.
    n : Tensor of shape (..., 1, 1), or float
        Number of samples.
    gamma : float
        Regularisation γ.

    Returns
    -------
    Tensor of shape (..., n, m)
    """
    return solve_shifted(k, h, n * gamma)


def stein(k: Tensor, h: Tensor, n: Count, gamma: float) -> Tensor:
    """Stein gradient estimator, f(λ) = 1 / (λ + n²γ); parameters as for `tikhonov`.

    In-sample it is Tikhonov regularisation with nγ for γ (Li & Turner 2018, arXiv:1705.07107).
    """
    return solve_shifted(k, h, n * n * gamma)


def ssge(k: Tensor, h: Tensor, n: Count, ratio: float) -> Tensor:
    """Spectral Stein gradient estimator: 1/λ for the J largest eigenvalues, else 0.

    J = max(1, number of j with λ_1 + ... + λ_j <= ratio · trace). Parameters as for `tikhonov`,
    with `ratio` for γ (Shi, Sun & Zhu 2018, arXiv:1806.02925).
    """
    inverse, vectors = ssge_eigenvectors(k, ratio)
    return (vectors * inverse.unsqueeze(-2)) @ (vectors.mT @ h)


def ssge_eigenvectors(k: Tensor, ratio: float) -> tuple[Tensor, Tensor]:
    """f(λ) of `ssge`, (..., n), and the eigenvectors in columns."""
    values, vectors = eigen(k)
    # In ascending order, the sum of the smaller ones is what is left of the trace after this one.
    remainder = values.cumsum(-1) - values
    keep = remainder >= (1 - ratio) * values.sum(-1, keepdim=True)
    return _inverse(values, keep), vectors


def spectral(k: Tensor, h: Tensor, n: Count, gamma: float) -> Tensor:
    """Spectral cut-off: 1/λ where λ > nγ and for the largest, else 0; parameters as for `tikhonov`.

    It differs from `ssge` in how many eigenvalues it keeps.
    """
    values, vectors = eigen(k)
    inverse = _inverse(values, values > gamma * _beside_values(n))
    return (vectors * inverse.unsqueeze(-2)) @ (vectors.mT @ h)


def landweber(k: Tensor, h: Tensor, n: Count, gamma: float) -> Tensor:
    """Landweber iteration, t = ⌊1/γ⌋ + 1 steps of ŝ <- ŝ - (K ŝ + H) / n from 0, in closed form.

    f(λ) = (1 - (1 - λ/n)^t) / λ. Parameters as for `tikhonov`.
    """
    values, vectors = eigen(k)
    share = values / _beside_values(n)
    # λ <= n but for rounding; and 0 would be 0/0, where the limit is t/n.
    share = share.clamp(min=torch.finfo(k.dtype).eps, max=1)
    f = -torch.expm1(steps(gamma) * torch.log1p(-share)) / share
    return (vectors * f.unsqueeze(-2)) @ (vectors.mT @ h) / n


def nu(k: Tensor, h: Tensor, n: Count, gamma: float) -> Tensor:
    """ν-method with ν = 1 and t = ⌊1/√γ⌋ + 1 steps; parameters as for `tikhonov`."""
    share = k / n
    return nu_iterates(lambda v: share @ v, h / n, gamma)


def nu_iterates(product: Callable[[Tensor], Tensor], zeta: Tensor, gamma: float) -> Tensor:
    """Run the ν-method on the equation L v = ζ.

    v_1 = w_1 ζ and v_t = v_{t-1} + u_t (v_{t-1} - v_{t-2}) + w_t (ζ - L v_{t-1}), whose residual
    polynomials are those of Brakhage: as good as Landweber's after the square of the number of
    steps. It needs eigenvalues of L in [0, 1].

    Parameters
    ----------
    product : callable
        v to L v.
    zeta : Tensor
        Right-hand side ζ.
    gamma : float
        γ; the number of steps is ⌊1/√γ⌋ + 1.

    Returns
    -------
    Tensor like `zeta`
    """
    before, now = torch.zeros_like(zeta), zeta * nu_weights(1)[1]
    for t in range(2, steps(math.sqrt(gamma)) + 1):
        u, w = nu_weights(t)
        before, now = now, torch.lerp(before, now, 1 + u).add_(zeta - product(now), alpha=w)
    return now


def nu_weights(t: int) -> tuple[float, float]:
    """u_t and w_t of the ν-method (Engl, Hanke & Neubauer 1996, section 6.3)."""
    if t == 1:
        return 0.0, (4 * NU + 2) / (4 * NU + 1)
    shared = (t + 2 * NU - 1) * (2 * t + 4 * NU - 1)
    u = (t - 1) * (2 * t - 3) * (2 * t + 2 * NU - 1) / (shared * (2 * t + 2 * NU - 3))
    return u, 4 * (2 * t + 2 * NU - 1) * (t + NU - 1) / shared


def steps(gamma: float) -> int:
    """⌊1/γ⌋ + 1, for a γ that is the nearest float to a round number, such as 1/3."""
    return math.floor(1 / gamma + 1e-9) + 1


def solve_shifted(k: Tensor, h: Tensor, eta: Tensor | float) -> Tensor:
    """(K + η I)⁻¹ h, for η a number or (..., 1, 1)."""
    # An η that a sum with 1 would lose leaves the matrix singular.
    least = torch.finfo(k.dtype).eps * k.shape[-1]
    eta = eta.squeeze(-1).clamp(min=least) if isinstance(eta, Tensor) else max(eta, least)
    shifted = k.clone()
    shifted.diagonal(dim1=-2, dim2=-1).add_(eta)
    factor, info = torch.linalg.cholesky_ex(shifted)
    if not info.any():
        return torch.cholesky_solve(h, factor)
    # Rounding made a tiny eigenvalue negative, which Cholesky does not allow and LU does.
    solution: Tensor = torch.linalg.solve_ex(shifted, h)[0]
    return solution


def eigen(k: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues in ascending order, negative ones set to 0, and eigenvectors in columns."""
    try:
        values, vectors = torch.linalg.eigh(k)
    except RuntimeError:  # torch's LinAlgError is one
        if k.isfinite().all():
            raise
        # NaN in, NaN out, as from a solve: who trains finds a better place to name the cause.
        return torch.full_like(k[..., 0], torch.nan), torch.full_like(k, torch.nan)
    return values.clamp_(min=0), vectors


def positive_part(k: Tensor) -> Tensor:
    """Return the nearest positive semidefinite matrix: negative eigenvalues become 0."""
    values, vectors = eigen(k)
    return (vectors * values.unsqueeze(-2)) @ vectors.mT


def _beside_values(n: Count) -> Count:
    """Give n the shape that goes with eigenvalues, (..., n), where matrices have (..., n, n)."""
    return n.squeeze(-1) if isinstance(n, Tensor) else n


def _inverse(values: Tensor, keep: Tensor) -> Tensor:
    """1/λ where `keep` and for the largest λ, but never for a λ that is rounding; else 0."""
    keep[..., -1] = True
    least = 1e-6 if values.dtype == torch.float32 else 1e-10
    keep &= values > least * values[..., -1:]
    return torch.where(keep, values.reciprocal(), 0)
