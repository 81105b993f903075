"""Maximum mean discrepancies of subjects, all from one kernel matrix.

A squared MMD is a weighted sum of kernel values, and the weights depend on the labels alone. An
average of MMDs over subjects, pairs and classes is therefore ``sum_ij V_ij k(z_i, z_j)`` with one
N x N matrix V of weights, whatever the number of subjects: one kernel matrix, one product, no loop.
The weights are made by cells first, ``V_ij = W[cell_i, cell_j]``, because the block sums
``B_gh = sum_{i in g, j in h, i != j} k_ij`` are all that an MMD needs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from autotransfer.errors import SettingError
from autotransfer.estimation.cells import Cells, Floats
from autotransfer.estimation.kernel_sum import gaussian_sum
from autotransfer.estimation.kernels import rbf, square_distances
from autotransfer.estimation.length_scale import LengthScale, beta, check_length_scale


def mmd_weights(cells: Cells, weight: Floats | None = None, literal: bool = False) -> Floats:
    """Weights on block sums of the average MMD² of a stratum against its own subjects.

    For cell g with n rows in a stratum of N rows,

        MMD²_g = ΣB/(N(N-1)) + B_gg/(n(n-1)) - 2 r_g/(n(N-1)),   r_g = Σ_h B_gh.

    The cell is part of its stratum, so N n cross pairs contain n pairs of a point with itself.
    They are left out: with them (`literal`, as printed) the estimate is biased by
    ``-(2/N)(1 - E k)`` when z does not depend on s. See docs/corrections.md.

    Parameters
    ----------
    cells : Cells
        The batch.
    weight : array of shape (G,), optional
        Weight of each MMD²; by default the plain average over usable cells (two rows or more),
        then over strata.
    literal : bool
        Divide the cross term by n N, as printed. The caller adds the constant of the diagonal.

    Returns
    -------
    array of shape (G, G)
        Symmetric W; the average is ``Σ_gh W_gh B_gh``.
    """
    a = cells.usable(2) if weight is None else weight
    n = cells.count.astype(np.float64)
    size = np.bincount(cells.stratum, n, cells.n_strata)[cells.stratum]
    total = np.bincount(cells.stratum, a, cells.n_strata)[cells.stratum]
    cross = a / (n * np.maximum(size if literal else size - 1, 1))
    same = cells.stratum[:, None] == cells.stratum
    within = (total / np.maximum(size * (size - 1), 1))[:, None]
    w = np.where(same, within - cross[:, None] - cross, 0.0)
    w[np.diag_indices_from(w)] += a / np.maximum(n * (n - 1), 1)
    return w


def pair_weights(cells: Cells, weight: Floats) -> Floats:
    """Weights on block sums of an average MMD² between pairs of cells.

    For cells g, h with n, m rows,

        MMD²_gh = B_gg/(n(n-1)) + B_hh/(m(m-1)) - 2 B_gh/(n m).

    Parameters
    ----------
    cells : Cells
        The batch.
    weight : array of shape (G, G)
        Weight of each unordered pair, written at both places; zero on the diagonal and for cells
        of fewer than two rows.

    Returns
    -------
    array of shape (G, G)
        Symmetric W; the average is ``Σ_gh W_gh B_gh``.
    """
    n = cells.count.astype(np.float64)
    w = -weight / np.outer(n, n)
    w[np.diag_indices_from(w)] += weight.sum(1) / np.maximum(n * (n - 1), 1)
    return w


def usable_pairs(cells: Cells, chosen: np.ndarray | None = None) -> Floats:
    """Weights of the plain average over pairs of usable cells of a stratum, then over strata.

    Parameters
    ----------
    cells : Cells
        The batch.
    chosen : array of bool of shape (people, people), optional
        Pairs of subjects to keep, counted over the subjects present; all by default.

    Returns
    -------
    array of shape (G, G)
        Symmetric; the upper triangle sums to 1, or to 0 if there is no such pair.
    """
    usable = cells.count >= 2
    keep = (cells.stratum[:, None] == cells.stratum) & np.outer(usable, usable)
    keep[np.diag_indices_from(keep)] = False
    if chosen is not None:
        keep &= chosen[np.ix_(cells.person, cells.person)]
    total = np.bincount(cells.stratum, keep.sum(1).astype(np.float64), cells.n_strata)
    n = np.count_nonzero(total)
    # `total` counts every pair twice, and the two places share one weight.
    weight: Floats = keep * (2 / np.where(total > 0, total * n, 1.0))[cells.stratum][:, None]
    return weight


def kernel_average(
    z: Tensor,
    cells: Cells,
    weights: Floats,
    length_scale: LengthScale = "median",
    detach_length_scale: bool = False,
    scales: Sequence[float] = (1.0,),
) -> Tensor:
    """Weighted sum of an RBF kernel over pairs of rows, ``Σ_gh W_gh B_gh``.

    Parameters
    ----------
    z : Tensor of shape (N, K)
        Latents.
    cells : Cells
        Of the rows of `z`.
    weights : array of shape (G, G)
        W, from `mmd_weights` or `pair_weights`.
    length_scale : {"median", "tsne"} or float
        One scale for the whole batch, or one for each pair of rows.
    detach_length_scale : bool
        Take the scale for a constant. The value is then still invariant to the scale of z but its
        gradient is not: z drifts to nothing, or explodes where dependence is raised.
    scales : sequence of float
        The kernel is the mean of RBF kernels whose lengths are these multiples of the scale.

    Returns
    -------
    Tensor of shape ()
        Attached to `z`; zero where no weight is.
    """
    length_scale = check_length_scale(length_scale)
    if not weights.any():
        return 0 * z.sum()
    pairs = weights[np.ix_(cells.cell, cells.cell)]
    pairs[np.diag_indices_from(pairs)] = 0.0
    if z.device.type == "cpu" and length_scale != "tsne":
        sigma = None if isinstance(length_scale, str) else length_scale
        return gaussian_sum(z, pairs, sigma, detach_length_scale, scales)
    v = torch.from_numpy(pairs).to(z, non_blocking=True)
    d2 = square_distances(z)
    scale = beta(d2.detach() if detach_length_scale else d2, length_scale)
    kernels = [rbf(d2, scale / c**2) for c in scales]
    return (v * (kernels[0] if len(kernels) == 1 else sum(kernels) / len(kernels))).sum()


def check_scales(scales: Sequence[float]) -> tuple[float, ...]:
    """Check multiples of a length scale: positive numbers, one at least."""
    try:
        numbers = tuple(float(scale) for scale in scales)
    except (TypeError, ValueError):
        numbers = ()
    if not numbers or not all(0 < scale < float("inf") for scale in numbers):
        raise SettingError(f"scales must be positive numbers, one at least, not {scales!r}.")
    return numbers


def block_sums(kernel: Tensor, cells: Cells) -> Tensor:
    """Sum a kernel matrix over pairs of cells, without the pairs of a row with itself.

    Parameters
    ----------
    kernel : Tensor of shape (..., N, N)
        Kernel of the rows.
    cells : Cells
        Of the rows.

    Returns
    -------
    Tensor of shape (..., G, G)
        B.
    """
    one_hot = torch.zeros(len(cells.cell), len(cells.count), dtype=kernel.dtype)
    one_hot[torch.arange(len(cells.cell)), torch.from_numpy(cells.cell)] = 1.0
    one_hot = one_hot.to(kernel.device)
    off = kernel - torch.diag_embed(torch.diagonal(kernel, dim1=-2, dim2=-1))
    return one_hot.T @ off @ one_hot
