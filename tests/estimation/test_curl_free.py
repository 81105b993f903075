"""Curl-free estimators: fewer coordinates, no matrix, and the same answer."""

import pytest
import torch
from estimation_cases import error, points

from autotransfer.estimation import curl_free as module
from autotransfer.estimation import score, square_distances
from autotransfer.estimation.filters import nu_iterates
from autotransfer.estimation.kernels import (
    KERNELS,
    curl_free_divergence,
    curl_free_matrix,
    weighted_differences,
)

each_kernel = pytest.mark.parametrize("kernel", list(KERNELS))


def by_matrix(x, estimator, gamma, kernel, sigma):
    """Solve for all n d unknowns, in units of σ."""
    n, d = x.shape
    u = x / sigma
    first, second, third = KERNELS[kernel].derivatives(square_distances(u), 0.5)
    matrix = curl_free_matrix(u, first, second)
    divergence = curl_free_divergence(square_distances(u), second, third, d)
    h = weighted_differences(divergence, u).reshape(-1, 1)
    if estimator == "nu_curlfree":
        found = nu_iterates(lambda v: matrix @ v / n, h / n, gamma)
    else:
        found = torch.linalg.solve(matrix + n * gamma * torch.eye(n * d, dtype=x.dtype), h)
    return -found.reshape(n, d) / sigma


@each_kernel
@pytest.mark.parametrize("estimator", ["tikhonov_curlfree", "nu_curlfree"])
@pytest.mark.parametrize("shape", [(6, 2), (5, 12), (3, 40), (8, 8), (30, 9)])
def test_any_way_is_the_full_solve(shape, estimator, kernel):
    # 5 x 12 and 3 x 40 are solved in fewer coordinates, 30 x 9 without the matrix.
    x = points(*shape)
    found = score(x, estimator, 1e-2, 3.0, kernel=kernel)
    assert error(found, by_matrix(x, estimator, 1e-2, kernel, 3.0)) < 1e-9


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-3), (torch.float64, 1e-9)])
@pytest.mark.parametrize("gamma", [1e-2, 1e-3, 1e-4])
def test_conjugate_gradients_are_the_dense_solve(monkeypatch, gamma, dtype, tolerance):
    x = points(3, 20, 8, dtype=dtype)
    mask = torch.arange(20) < torch.tensor([20, 11, 0])[:, None]
    found = []
    for largest in (0, 10**6):
        monkeypatch.setattr(module, "LARGEST_DENSE", largest)
        found.append(score(x, "tikhonov_curlfree", gamma, mask=mask))
    assert error(*found) < tolerance
    assert not found[0][~mask].any()


def test_each_set_stops_on_its_own(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_DENSE", 0)
    # Wide apart, the first set is done after a step or two.
    x = torch.stack([100 * torch.eye(12, 4, dtype=torch.float64), points(12, 4)])
    together = score(x, "tikhonov_curlfree", 1e-3, 1.0)
    for g in range(2):
        assert error(together[g], score(x[g], "tikhonov_curlfree", 1e-3, 1.0)) < 1e-12


def test_the_estimate_is_a_gradient():
    # In two dimensions: of samples on a fine grid, differences along and across agree.
    side = torch.linspace(-1, 1, 7, dtype=torch.float64)
    x = torch.cartesian_prod(side, side)
    found = score(x, "tikhonov_curlfree", 1e-3, 1.0).reshape(7, 7, 2)
    step = 2 * (side[1] - side[0])
    curl = (found[2:, 1:-1, 1] - found[:-2, 1:-1, 1]) - (found[1:-1, 2:, 0] - found[1:-1, :-2, 0])
    assert (curl / step).abs().max() < 0.02 * found.abs().max()


@pytest.mark.parametrize("size", [0.1, 10.0])
def test_nu_does_not_diverge_at_any_scale(size):
    x = points(40, 3)
    assert error(score(size * x, "nu_curlfree", 1e-4) * size, score(x, "nu_curlfree", 1e-4)) < 1e-7
