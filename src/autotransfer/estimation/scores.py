"""Estimates of the score, ∇ log density, at the samples themselves, by name and for many sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from autotransfer.errors import SettingError, ShapeError, join_some
from autotransfer.estimation import filters
from autotransfer.estimation.curl_free import curl_free, nu_curlfree, tikhonov_curlfree
from autotransfer.estimation.filters import Count, positive_part
from autotransfer.estimation.kernels import centred_square_distances, lookup_kernel
from autotransfer.estimation.length_scale import LengthScale, beta


@dataclass(frozen=True)
class Estimator:
    """A score estimator.

    Parameters
    ----------
    solve : callable
        ``(k, h, n, parameter)`` to f(K) h for a diagonal kernel (see
        `autotransfer.estimation.filters`), ``(kernel, parameter)`` for a curl-free one.
    default : float
        Of its parameter: γ, or SSGE's ratio.
    curl_free : bool
        Whether its kernel is.
    least : float
        Least γ with the length scales of t-SNE, whose kernel has negative eigenvalues: even
        without these, less than that gave errors of many times the score.
    """

    solve: Callable[..., Tensor]
    default: float = 1e-2
    curl_free: bool = False
    least: float = 0.0


_SSGE = Estimator(filters.ssge, 0.95)

SCORES: dict[str, Estimator] = {
    "tikhonov": Estimator(filters.tikhonov, least=1e-2),
    "nu": Estimator(filters.nu, least=1e-2),
    "stein": Estimator(filters.stein, 1e-3),
    "ssge": _SSGE,
    "mige": _SSGE,
    "spectral": Estimator(filters.spectral),
    "landweber": Estimator(filters.landweber),
    "tikhonov_curlfree": Estimator(tikhonov_curlfree, curl_free=True),
    "nu_curlfree": Estimator(nu_curlfree, curl_free=True),
}
"""The score estimators by name. ``"mige"``, as the paper lists it, is another name of SSGE."""


def lookup_score(name: str) -> Estimator:
    """Return the score estimator of that name, or raise an error that lists the names."""
    if not isinstance(name, str) or name not in SCORES:
        raise SettingError(
            f"No score estimator {name!r}. Choose one of: {join_some(list(SCORES), limit=20)}."
        )
    return SCORES[name]


@torch.no_grad()
def score(
    x: Tensor,
    estimator: str = "tikhonov",
    gamma: float | None = None,
    length_scale: LengthScale = "median",
    mask: Tensor | None = None,
    *,
    ratio: float = 0.95,
    kernel: str = "rbf",
    perplexity: float | None = None,
) -> Tensor:
    r"""Estimate the score of the density that samples come from, at the samples.

    ŝ = -f(K) H with H_i = Σ_j W_ij (x_i - x_j), where W_ij (x_i - x_j) is the gradient of
    k(x_i, x_j) in x_j, and f belongs to the estimator.

    Parameters
    ----------
    x : Tensor of shape (..., n, d)
        Sets of samples, float32 or float64; each set is treated on its own.
    estimator : str
        A name in `SCORES`.
    gamma : float, optional
        Its regularisation γ; 1e-2 by default, 1e-3 for ``"stein"``. ``"ssge"`` has none.
    length_scale : {"median", "tsne"} or float
        Of the kernel, for each set; or σ.
    mask : bool Tensor of shape (..., n), optional
        Which rows are samples and not padding; all by default.
    ratio : float
        Share of the trace of K that the eigenvectors of ``"ssge"`` make up.
    kernel : {"rbf", "imq"}
        Kernel, or for a curl-free estimator the φ it is made of.
    perplexity : float, optional
        For the length scale ``"tsne"``.

    Returns
    -------
    Tensor like `x`
        Zero in padding, and where a set has fewer than two different samples. No gradient.

    Notes
    -----
    Multiplying the samples by a divides the estimate by a, and shifting them changes nothing
    (with a fixed σ, only the latter).

    An estimate needs some tens of samples, SSGE more. O(n³ + n² d) for each set, and all sets
    together; the curl-free ones cost ten to fifty times as much.

    Length scales from t-SNE make K indefinite. Its positive part is taken, and γ is at least 1e-2
    for ``"tikhonov"`` and ``"nu"``. They do not suit SSGE, and a curl-free kernel needs one σ.

    References
    ----------
    Zhou, Shi & Zhu 2020, Nonparametric score estimators, ICML, arXiv:2005.10099.

    Examples
    --------
    Samples of a normal distribution have the score -x:

    >>> x = torch.special.ndtri(torch.linspace(0.01, 0.99, 99))[:, None]
    >>> torch.cat([x, score(x)], 1)[[14, 24, 79]]
    tensor([[-1.0364,  1.0136],
            [-0.6745,  0.6567],
            [ 0.8416, -0.8201]])
    """
    rule = lookup_score(estimator)
    parameter = parameter_of(rule, gamma, ratio)
    k_of = lookup_kernel(kernel)
    if rule.curl_free and length_scale == "tsne":
        raise SettingError(
            f"{estimator!r} needs one length scale for a set: 'median' or a number, not 'tsne'."
        )
    if not x.numel():
        return torch.zeros_like(x)
    sets, present, n, rounding = _centred(x, mask)
    d2 = centred_square_distances(sets)
    # What rounding of the samples makes of equal ones is no distance.
    d2.masked_fill_(d2 <= rounding, 0)
    if present is not None:
        # An infinite distance makes every kernel and derivative 0.
        d2.masked_fill_(~(present.unsqueeze(-1) & present.unsqueeze(-2)), torch.inf)
    scale = beta(d2, length_scale, present, perplexity)
    if rule.curl_free:
        parts = curl_free(sets, d2, scale, n, k_of)
        scores = parts.full(rule.solve(parts, parameter)) * -(2 * scale).sqrt()
    else:
        k = k_of.value(d2, scale)
        laplacian = k_of.weights(k, scale)
        laplacian.diagonal(dim1=-2, dim2=-1).sub_(laplacian.sum(-1))  # -H = laplacian X
        if scale.shape[-1] > 1:
            k, parameter = positive_part(k), max(parameter, rule.least)
        # f(K) is applied to the smaller of the two.
        if sets.shape[-2] < sets.shape[-1]:
            scores = torch.bmm(rule.solve(k, laplacian, n, parameter), sets)
        else:
            scores = rule.solve(k, torch.bmm(laplacian, sets), n, parameter)
    if present is not None:
        scores.masked_fill_(~present.unsqueeze(-1), 0)
    return scores.reshape(x.shape)


@torch.no_grad()
def calibrate(scores: Tensor, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """Make estimated scores of a set obey Stein's identities.

    E[s] = 0 and E[<x, s>] = -d hold for the score of any density. The mean is subtracted, and the
    rest divided by t = -mean <x - x̄, s> / d (at least 0.05).

    Parameters
    ----------
    scores, x : Tensor of shape (..., n, d)
        Estimates, and the samples they belong to.
    mask : bool Tensor of shape (..., n), optional
        Which rows are samples; all by default.

    Returns
    -------
    Tensor like `scores`

    Examples
    --------
    >>> x = torch.special.ndtri(torch.linspace(0.01, 0.99, 99))[:, None]
    >>> scores = calibrate(score(x), x)
    >>> float((scores * x).mean().round(decimals=4))
    -1.0
    """
    sets, _, n, _ = _centred(x, mask)
    centred, _, _, _ = _centred(scores, mask)
    t = (sets * centred).sum((-2, -1), keepdim=True) / (n * -x.shape[-1])
    return (centred / t.clamp(min=0.05)).reshape(scores.shape)


def parameter_of(rule: Estimator, gamma: float | None, ratio: float) -> float:
    """Return γ, the estimator's default for None, or SSGE's ratio; checked."""
    if rule.solve is filters.ssge:
        if not 0 < ratio <= 1:
            raise SettingError(f"ratio must be above 0 and at most 1, not {ratio}.")
        return ratio
    if gamma is None:
        return rule.default
    if not 0 < gamma < float("inf"):
        raise SettingError(f"gamma must be a positive number, not {gamma}.")
    return gamma


def _centred(x: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None, Count, Tensor]:
    """Return sets (G, n, d) with mean 0, which rows are there, their number, and the rounding.

    Which rows are there is None if all are: then nothing has to be masked.
    """
    n, d = x.shape[-2:]
    sets = x.detach().reshape(-1, n, d)
    if mask is not None:
        if mask.shape != x.shape[:-1]:
            raise ShapeError(
                f"A mask of samples of shape {tuple(x.shape)} has shape {tuple(x.shape[:-1])}, "
                f"not {tuple(mask.shape)}."
            )
        if not mask.all():
            present = mask.reshape(-1, n)
            column = present.unsqueeze(-1)
            sets = sets.masked_fill(~column, 0)
            count = present.sum(-1, dtype=x.dtype).clamp_(min=1)[:, None, None]
            mean = sets.sum(-2, keepdim=True) / count
            return (sets - mean).mul_(column), present, count, _rounding(mean)
    mean = sets.mean(-2, keepdim=True)
    return sets - mean, None, float(n), _rounding(mean)


def _rounding(mean: Tensor) -> Tensor:
    """Squared distance, (G, 1, 1), that equal samples may have for their rounding alone."""
    square: Tensor = torch.linalg.vecdot(mean, mean)
    return square.unsqueeze(-1) * (2 * torch.finfo(mean.dtype).eps) ** 2
