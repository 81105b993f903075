"""Weights of MMDs and block sums of kernels against loops over rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autotransfer.errors import SettingError
from autotransfer.estimation.cells import Cells
from autotransfer.estimation.kernel_sum import gaussian_sum
from autotransfer.estimation.kernels import rbf, square_distances
from autotransfer.estimation.length_scale import beta
from autotransfer.estimation.mmd import (
    block_sums,
    kernel_average,
    mmd_weights,
    pair_weights,
    usable_pairs,
)


@st.composite
def tables(draw) -> list[tuple[int, int]]:
    """Subject and class of every row, from a number of rows for each class and subject."""
    counts = draw(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), max_size=3))
    rows = [(s, c) for c, line in enumerate(counts) for s, n in enumerate(line) for _ in range(n)]
    return draw(st.permutations(rows or [(0, 0)]))


ROWS = tables()


def cut(rows, with_class: bool) -> Cells:
    subject, label = np.array(rows).T
    return Cells.of(subject, label if with_class else None)


def kernel_of(n: int) -> torch.Tensor:
    """Any symmetric matrix: weights must be right whatever the kernel is."""
    k = torch.randn(n, n, generator=torch.Generator().manual_seed(n), dtype=torch.float64)
    return k + k.mT


def looped_sums(kernel, cells: Cells) -> np.ndarray:
    out = np.zeros((len(cells.count),) * 2)
    for i, g in enumerate(cells.cell):
        for j, h in enumerate(cells.cell):
            if i != j:
                out[g, h] += float(kernel[i, j])
    return out


def mean_of(kernel, first, second) -> float:
    """Mean over pairs of different rows."""
    return float(np.mean([kernel[i, j] for i in first for j in second if i != j]))


def rows_of(cells: Cells) -> list[np.ndarray]:
    return [np.flatnonzero(cells.cell == g) for g in range(len(cells.count))]


@settings(deadline=None, max_examples=60)
@given(ROWS, st.booleans())
def test_block_sums_leave_out_a_row_with_itself(rows, with_class):
    cells = cut(rows, with_class)
    kernel = kernel_of(len(rows))
    found = block_sums(kernel, cells)
    np.testing.assert_allclose(found, looped_sums(kernel, cells), atol=1e-12)
    # The kernel is not changed, and leading dimensions are other kernels.
    assert torch.equal(kernel, kernel_of(len(rows)))
    many = torch.stack([kernel, 2 * kernel, -kernel]).reshape(3, 1, *kernel.shape)
    expected = torch.stack([found, 2 * found, -found]).reshape(3, 1, *found.shape)
    torch.testing.assert_close(block_sums(many, cells), expected)
    assert block_sums(kernel.float(), cells).dtype == torch.float32


@settings(deadline=None, max_examples=60)
@given(ROWS, st.booleans())
def test_mmd_weights_give_the_mmd_of_every_usable_cell(rows, with_class):
    cells, kernel = cut(rows, with_class), kernel_of(len(rows))
    sums, of_cell = looped_sums(kernel, cells), rows_of(cells)
    average = 0.0
    for g, mine in enumerate(of_cell):
        if len(mine) < 2:
            continue
        stratum = np.flatnonzero(cells.stratum[cells.cell] == cells.stratum[g])
        expected = mean_of(kernel, stratum, stratum) + mean_of(kernel, mine, mine)
        expected -= 2 * mean_of(kernel, stratum, mine)
        weights = mmd_weights(cells, np.eye(len(cells.count))[g])
        np.testing.assert_allclose(weights, weights.T)
        np.testing.assert_allclose((weights * sums).sum(), expected, atol=1e-12)
        average += cells.usable(2)[g] * expected
        # As printed, the cross term has n_g N pairs, of which n_g are a row with itself.
        cross = sum(float(kernel[i, j]) for i in stratum for j in mine if i != j)
        printed = (
            expected + 2 * mean_of(kernel, stratum, mine) - 2 * cross / (len(stratum) * len(mine))
        )
        weights = mmd_weights(cells, np.eye(len(cells.count))[g], literal=True)
        np.testing.assert_allclose((weights * sums).sum(), printed, atol=1e-12)
    np.testing.assert_allclose((mmd_weights(cells) * sums).sum(), average, atol=1e-12)


@settings(deadline=None, max_examples=60)
@given(ROWS, st.booleans(), st.randoms(use_true_random=False))
def test_pair_weights_give_the_mean_over_pairs_then_over_classes(rows, with_class, random):
    cells, kernel = cut(rows, with_class), kernel_of(len(rows))
    people = int(cells.person.max()) + 1
    chosen = np.array([[random.random() < 0.7 for _ in range(people)] for _ in range(people)])
    chosen |= chosen.T
    of_cell, by_class = rows_of(cells), {}
    for g, a in enumerate(of_cell):
        for h, b in enumerate(of_cell[:g]):
            together = cells.stratum[g] == cells.stratum[h]
            wanted = chosen[cells.person[g], cells.person[h]]
            if together and wanted and min(len(a), len(b)) >= 2:
                value = mean_of(kernel, a, a) + mean_of(kernel, b, b) - 2 * mean_of(kernel, a, b)
                by_class.setdefault(cells.stratum[g], []).append(value)
    expected = np.mean([np.mean(v) for v in by_class.values()]) if by_class else 0.0
    pairs = usable_pairs(cells, chosen)
    np.testing.assert_allclose(pairs, pairs.T)
    np.testing.assert_allclose(np.triu(pairs).sum(), 1.0 if by_class else 0.0, atol=1e-12)
    found = (pair_weights(cells, pairs) * looped_sums(kernel, cells)).sum()
    np.testing.assert_allclose(found, expected, atol=1e-12)
    everybody = np.ones((people, people), bool)
    np.testing.assert_array_equal(usable_pairs(cells, everybody), usable_pairs(cells))


@pytest.mark.parametrize("with_class", [False, True])
def test_the_average_is_weights_times_block_sums(with_class):
    rows = [(0, 0), (0, 0), (1, 0), (1, 0), (1, 1), (1, 1), (2, 1), (2, 1), (2, 0)]
    cells = cut(rows, with_class)
    z = torch.randn(9, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for weights in (mmd_weights(cells), pair_weights(cells, usable_pairs(cells))):
        sums = block_sums(rbf(square_distances(z), 0.5 / 1.5**2), cells).numpy()
        found = kernel_average(z, cells, weights, length_scale=1.5)
        np.testing.assert_allclose(found, (weights * sums).sum(), rtol=1e-12)


def test_no_weight_is_a_zero_that_can_be_differentiated():
    z = torch.randn(3, 2, requires_grad=True)
    cells = Cells.of([0, 1, 2])
    value = kernel_average(z, cells, mmd_weights(cells))
    value.backward()
    assert value == 0
    assert torch.equal(z.grad, torch.zeros(3, 2))


def test_one_subject_is_exactly_no_distance():
    """Its weights cancel to 0, and not to rounding, for any number of rows."""
    for n in range(2, 60):
        assert not mmd_weights(Cells.of([4] * n)).any()


@pytest.mark.parametrize("length_scale", ["mean", 0.0, -1.0, None])
def test_an_impossible_length_scale_is_refused(length_scale):
    cells = Cells.of([0, 0, 1, 1])
    with pytest.raises(SettingError, match="length scale"):
        kernel_average(torch.randn(4, 2), cells, mmd_weights(cells), length_scale)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("sigma", [None, 1.3])
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("rows", ["random", "even", "duplicates", "equal"])
def test_the_sum_by_hand_is_that_of_autograd(dtype, sigma, held, rows):
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(21 if rows == "random" else 20, 5, generator=generator, dtype=dtype) + 30
    if rows == "duplicates":
        z[5:12] = z[4]
    if rows == "equal":
        z[:] = z[0]
    v = torch.randn(len(z), len(z), generator=generator, dtype=dtype)
    v = (v + v.T).fill_diagonal_(0)
    scales = (0.5, 1.0)
    z.requires_grad_()
    d2 = square_distances(z)
    by_torch = beta(d2.detach() if held else d2, sigma or "median")
    expected = sum((v * rbf(d2, by_torch / c**2)).sum() for c in scales) / 2
    found = gaussian_sum(z, v.numpy(), sigma, held, scales)
    slopes = [torch.autograd.grad(value, z)[0] for value in (found, expected)]
    tolerance = (
        {"rtol": 1e-9, "atol": 1e-10} if dtype is torch.float64 else {"rtol": 1e-3, "atol": 1e-4}
    )
    torch.testing.assert_close(found, expected, **tolerance)
    torch.testing.assert_close(*slopes, **tolerance)
