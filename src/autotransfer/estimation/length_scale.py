"""Length scales of kernels, as β = 1 / (2σ²), from the squared distances of the points.

``"median"`` gives every set of points one σ, the median of its distances; ``"tsne"`` gives every
pair of points its own, from perplexities. Both follow the scale of the points, so a kernel of β d²
does not change when all points are multiplied by a number; and since both can be differentiated in
d², neither does its gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from autotransfer.data.trials import Array
from autotransfer.errors import SettingError, join_some
from autotransfer.estimation.perplexity import precisions

LengthScale = str | float
"""A name in `LENGTH_SCALES`, or the length itself."""


def median_beta(d2: Tensor, mask: Tensor | None = None) -> Tensor:
    """β with σ the median distance between different points.

    Parameters
    ----------
    d2 : Tensor of shape (..., n, n)
        Squared distances, symmetric and with zeros on the diagonal. May require a gradient.
    mask : bool Tensor of shape (..., n), optional
        Which points are there; all by default.

    Returns
    -------
    Tensor of shape (..., 1, 1)
        1 / (2σ²). Of an even number of distances the median is the mean of the two middle ones.
        σ = 1 where the median is 0 (more than half of the pairs coincide) and where there are
        fewer than two points.

    Notes
    -----
    The gradient goes to the one or two distances that are the median; a distance of 0 gets none,
    so that points that coincide do no harm. It cannot be differentiated again. The middle is found
    by numpy, on the CPU whatever the device: 0.2 ms for n = 256, where torch on a CPU takes 2
    (kthvalue) to 4 (sort).

    Examples
    --------
    >>> x = torch.tensor([[0.0], [1.0], [3.0]])
    >>> median_beta((x - x.mT) ** 2)  # distances 1, 2, 3: σ = 2
    tensor([[0.1250]])
    """
    if d2.requires_grad and torch.is_grad_enabled():
        result: Tensor = _MedianBeta.apply(d2, mask)  # type: ignore[no-untyped-call]
        return result
    square, _ = _median(*_entries(d2, mask))
    return torch.from_numpy(0.5 / square).to(d2.device).reshape(*d2.shape[:-2], 1, 1)


def median_slope(entries: Array, count: Array | int) -> tuple[Array, Array, Array]:
    """β of `median_beta`, and its derivative in the two distances that are the median.

    With a and b the middle squared distances, σ = (√a + √b) / 2 and ∂β/∂a = -1 / (4 σ³ √a).

    Parameters
    ----------
    entries : array of shape (G, n²)
        Squared distances of G sets, inf where a point is not there.
    count : int or array of shape (G,)
        Points of each set.

    Returns
    -------
    beta : array of shape (G,)
    place : array of int of shape (G, 2)
        Entries that are the median; with ties, any is as good.
    slope : array of shape (G, 2)
        Derivatives in them.
    """
    square, middle = _median(entries, count)
    place = np.stack([(entries == m[:, None]).argmax(-1) for m in middle], -1)
    # Dividing by inf: no gradient through √0, nor where a set has no pair.
    root = np.stack([np.sqrt(np.where(_usable(m), m, np.inf)) for m in middle], -1)
    return 0.5 / square, place, -0.25 / (square**1.5)[:, None] / root


class _MedianBeta(torch.autograd.Function):
    """`median_beta` with its gradient."""

    @staticmethod
    def forward(ctx: Any, d2: Tensor, mask: Tensor | None) -> Tensor:
        beta, ctx.place, ctx.slope = median_slope(*_entries(d2, mask))
        ctx.shape = d2.shape
        return torch.from_numpy(beta).to(d2.device).reshape(*d2.shape[:-2], 1, 1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        place, slope = (torch.from_numpy(a).to(grad.device) for a in (ctx.place, ctx.slope))
        out = grad.new_zeros(ctx.shape)
        out.view(-1, ctx.shape[-1] ** 2).scatter_add_(-1, place, grad.reshape(-1, 1) * slope)
        return out, None


def _entries(d2: Tensor, mask: Tensor | None) -> tuple[Array, Array | int]:
    """Entries of every matrix, (G, n²), inf where a point is not there, and points, (G,) or one."""
    n = d2.shape[-1]
    if mask is None:
        return d2.detach().cpu().numpy().reshape(-1, n * n), n
    pairs = mask.unsqueeze(-1) & mask.unsqueeze(-2)
    entries = d2.detach().masked_fill(~pairs, torch.inf).cpu().numpy().reshape(-1, n * n)
    return entries, mask.sum(-1).cpu().numpy().reshape(-1)


def _median(entries: Array, count: Array | int) -> tuple[Array, tuple[Array, Array]]:
    """σ² and the two middle squared distances, (G,) each."""
    if isinstance(count, int):
        low, high = _middle_of_all(entries, count)
    else:
        # In ascending order the zeros of the diagonal come first, then every pair twice.
        pairs = count * (count - 1) // 2
        first = np.clip(count + 2 * ((pairs - 1) // 2), 0, None)
        second = np.clip(count + 2 * (pairs // 2), 0, entries.shape[-1] - 1)
        ordered = np.sort(entries, -1)
        row = np.arange(len(entries))
        low, high = ordered[row, first], ordered[row, second]
    square = 0.25 * (np.sqrt(low) + np.sqrt(high)) ** 2
    square[~_usable(square)] = 1.0
    return square, (low, high)


def _middle_of_all(entries: Array, n: int) -> tuple[Array, Array]:
    """Return the two middle squared distances, (G,), of matrices of n points, all there."""
    if n < 2:
        none = np.zeros(len(entries), entries.dtype)
        return none, none
    pairs = n * (n - 1) // 2
    # As above, but one partition instead of a sort: the later of the two places of a middle pair
    # has only larger ones behind it, and the least of these is the next.
    place = n + 2 * ((pairs - 1) // 2) + 1
    parted = np.partition(entries, place, -1)
    first = parted[:, place]
    return first, first if pairs % 2 else parted[:, place + 1 :].min(-1)


def _usable(square: Array) -> Array:
    """Whether a square is a number that can be divided by."""
    usable: Array = (square >= np.finfo(square.dtype).tiny) & (square < np.inf)
    return usable


def tsne_beta(d2: Tensor, perplexity: float | None = None, mask: Tensor | None = None) -> Tensor:
    """β of every pair from the perplexities of its two points, as in t-SNE.

    β_i is such that p_j ∝ exp(-β_i d²_ij) over the other points j has the entropy
    log(perplexity); then β_ij = (β_i + β_j) / 2.

    Parameters
    ----------
    d2 : Tensor of shape (..., n, n)
        Squared distances, with zeros on the diagonal. May require a gradient.
    perplexity : float, optional
        Effective number of neighbours, above 1; 0.7 (T - 1) for a set of T points by default. In
        both cases it is kept in [2, 0.95 (T - 1)].
    mask : bool Tensor of shape (..., n), optional
        Which points are there; all by default.

    Returns
    -------
    Tensor of shape (..., n, n)
        A row without a solution (see `autotransfer.estimation.perplexity.precisions`) has
        1 / (mean of its d²) for its β_i.

    Notes
    -----
    With b_i the solution for d² over its row mean, β_i = b_i / mean_i. The gradient treats b_i as
    a constant and goes through the mean: what matters is that β d² is free of scale.

    exp(-β_ij d²_ij) is symmetric but, contrary to the paper, *not* positive semidefinite; a solve
    with little regularisation can fail. `autotransfer.estimation.score` takes its positive part.
    See docs/corrections.md (E16).

    Examples
    --------
    >>> x = torch.tensor([[0.0], [1.0], [3.0], [7.0]])
    >>> tsne_beta((x - x.mT) ** 2, perplexity=2.5).diagonal()
    tensor([0.0377, 0.0515, 0.1385, 0.0456])
    """
    if perplexity is not None and not perplexity > 1:
        raise SettingError(f"A perplexity must be above 1, not {perplexity}.")
    n = d2.shape[-1]
    pairs = ~torch.eye(n, dtype=torch.bool, device=d2.device)
    if mask is not None:
        pairs = pairs & mask.unsqueeze(-1) & mask.unsqueeze(-2)
    n_others = pairs.sum(-1)
    mean = d2.masked_fill(~pairs, 0).sum(-1) / n_others.clamp(min=1)
    mean = torch.where(mean >= torch.finfo(d2.dtype).tiny, mean, 1)
    relative = (d2 / mean.unsqueeze(-1)).detach().masked_fill_(~pairs, torch.inf)
    count = np.broadcast_to(n_others.cpu().numpy(), mean.shape).reshape(-1)
    target = np.maximum(0.7 * count if perplexity is None else perplexity, 2.0)
    b = precisions(relative.double().cpu().numpy().reshape(-1, n), np.minimum(target, 0.95 * count))
    of_point = torch.from_numpy(b).to(mean).reshape(mean.shape) / mean
    return (of_point.unsqueeze(-1) + of_point.unsqueeze(-2)) / 2


LENGTH_SCALES: dict[str, Callable[..., Tensor]] = {"median": median_beta, "tsne": tsne_beta}
"""Length scales by name: called with squared distances and ``mask``."""


def check_length_scale(length_scale: LengthScale) -> LengthScale:
    """Return `length_scale` if it is a known name or a positive number; else raise an error."""
    if isinstance(length_scale, str):
        if length_scale in LENGTH_SCALES:
            return length_scale
    elif (
        isinstance(length_scale, int | float | np.integer | np.floating)
        and not isinstance(length_scale, bool)
        and 0 < length_scale < float("inf")
    ):
        return float(length_scale)
    raise SettingError(
        f"No length scale {length_scale!r}. Choose one of: {join_some(list(LENGTH_SCALES))}; or a "
        "positive number, the length itself."
    )


def beta(
    d2: Tensor,
    length_scale: LengthScale = "median",
    mask: Tensor | None = None,
    perplexity: float | None = None,
) -> Tensor:
    """β = 1 / (2σ²) for a length scale given by name or as a number.

    Parameters
    ----------
    d2 : Tensor of shape (..., n, n)
        Squared distances.
    length_scale : {"median", "tsne"} or float
        A name in `LENGTH_SCALES`, or σ.
    mask : bool Tensor of shape (..., n), optional
        Which points are there.
    perplexity : float, optional
        For ``"tsne"`` alone.

    Returns
    -------
    Tensor of shape (..., 1, 1), or (..., n, n) for ``"tsne"``

    Examples
    --------
    >>> beta(torch.zeros(3, 3), 2.0)
    tensor([[0.1250]])
    """
    length_scale = check_length_scale(length_scale)
    if perplexity is not None and length_scale != "tsne":
        raise SettingError("A perplexity has a meaning for the length scale 'tsne' only.")
    if length_scale == "tsne":
        return tsne_beta(d2, perplexity, mask)
    if isinstance(length_scale, str):
        return LENGTH_SCALES[length_scale](d2, mask=mask)
    return d2.new_full((*d2.shape[:-2], 1, 1), 0.5 / length_scale**2)
