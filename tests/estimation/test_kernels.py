"""Distances, kernels and their derivatives, judged by vectors, scipy and autograd."""

import numpy as np
import pytest
import torch
from estimation_cases import TOLERANCE, error, points, tensor, vectors
from scipy.spatial.distance import cdist

from autotransfer.errors import SettingError
from autotransfer.estimation.kernels import (
    KERNELS,
    curl_free_divergence,
    curl_free_matrix,
    curl_free_product,
    lookup_kernel,
    square_distances,
    weighted_differences,
)

KNOWN = vectors("kernels")
each_kernel = pytest.mark.parametrize("name", list(KERNELS))
each_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


@each_dtype
@each_kernel
def test_vectors(name, dtype):
    x = tensor(KNOWN["X"], dtype)
    d2 = square_distances(x)
    k = KERNELS[name].value(d2, 0.5)
    h = weighted_differences(KERNELS[name].weights(k, 0.5), x)
    assert error(d2, KNOWN["sqdist"]) < TOLERANCE[dtype]
    assert error(k, KNOWN[f"{name}_K"]) < TOLERANCE[dtype]
    assert error(h, KNOWN[f"{name}_H"]) < TOLERANCE[dtype]


@each_dtype
def test_curl_free_vectors(dtype):
    x = tensor(KNOWN["X"], dtype)
    d2 = square_distances(x)
    first, second, third = KERNELS["rbf"].derivatives(d2, 0.5)
    h = weighted_differences(curl_free_divergence(d2, second, third, 2), x)
    found = curl_free_matrix(x, first, second)
    assert error(found, KNOWN["curlfree_rbf_matrix_12x12"]) < TOLERANCE[dtype]
    assert error(h, KNOWN["curlfree_rbf_H"]) < TOLERANCE[dtype]


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("shape", [(9, 4), (3, 9, 4), (2, 3, 5, 1), (2, 1, 7)])
def test_distances_are_scipys(shape, offset):
    x, y = points(*shape, offset=offset), points(*shape[:-2], 3, shape[-1], seed=1, offset=offset)
    flat = lambda t: t.reshape(-1, *t.shape[-2:]).numpy()  # noqa: E731
    for other, found in ((x, square_distances(x)), (y, square_distances(x, y))):
        right = [cdist(a, b, "sqeuclidean") for a, b in zip(flat(x), flat(other), strict=True)]
        np.testing.assert_allclose(flat(found), right, rtol=1e-10, atol=1e-12)
    assert not square_distances(x).diagonal(dim1=-2, dim2=-1).any()


def test_an_offset_costs_float32_no_digits():
    x = points(40, 6, dtype=torch.float32, offset=100.0)
    assert error(square_distances(x), square_distances(x.double())) < 1e-5


def test_distances_are_never_negative_and_equal_rows_have_none():
    x = points(5, 7, dtype=torch.float32, offset=3.0).repeat(6, 1)
    d2 = square_distances(x)
    assert (d2 >= 0).all()
    same = torch.arange(30) % 5
    assert not d2[same[:, None] == same].any()


@each_kernel
def test_derivatives_are_autograds(name):
    kernel = KERNELS[name]
    u = torch.linspace(0.1, 5, 7, dtype=torch.float64).requires_grad_()
    wanted = [kernel.value(u, 0.7)]
    for _ in range(3):
        wanted.append(torch.autograd.grad(wanted[-1].sum(), u, create_graph=True)[0])
    for found, right in zip(kernel.derivatives(u, 0.7), wanted[1:], strict=True):
        torch.testing.assert_close(found, right, rtol=1e-13, atol=1e-15)


@each_kernel
def test_weights_give_the_gradient_in_the_second_point(name):
    kernel = KERNELS[name]
    x, y = points(1, 3), points(1, 3, seed=1).requires_grad_()
    k = kernel.value((x - y).square().sum(-1), 0.3)
    (wanted,) = torch.autograd.grad(k, y)
    torch.testing.assert_close(kernel.weights(k, 0.3) * (x - y), wanted, rtol=1e-12, atol=1e-14)


@each_kernel
def test_curl_free_kernel_is_minus_the_hessian(name):
    kernel = KERNELS[name]
    x = points(4, 3)
    first, second, third = kernel.derivatives(square_distances(x), 0.3)
    full = curl_free_matrix(x, first, second).reshape(4, 3, 4, 3)

    def phi(r):
        return kernel.value(r.square().sum(), 0.3)

    def field(a, b):
        return -torch.autograd.functional.hessian(phi, a - b, create_graph=True)

    for i in range(4):
        for j in range(4):
            torch.testing.assert_close(full[i, :, j], field(x[i], x[j]), rtol=1e-12, atol=1e-14)
    # Divergence in y, entry by entry of the Jacobian of y -> Kc(x, y).
    jacobian = torch.autograd.functional.jacobian(lambda y: field(x[0], y), x[1])
    weights = curl_free_divergence(square_distances(x), second, third, 3)
    wanted = torch.einsum("abb->a", jacobian)
    torch.testing.assert_close(weights[0, 1] * (x[0] - x[1]), wanted, rtol=1e-11, atol=1e-13)


@each_kernel
@pytest.mark.parametrize("shape", [(6, 2), (3, 5, 4), (2, 2, 4, 7)])
def test_product_without_the_matrix(name, shape):
    x, v = points(*shape), points(*shape, seed=1)
    first, second, _ = KERNELS[name].derivatives(square_distances(x), 0.3)
    wanted = curl_free_matrix(x, first, second) @ v.flatten(-2).unsqueeze(-1)
    found = curl_free_product(x, v, first, second)
    torch.testing.assert_close(found, wanted.reshape(shape), rtol=1e-12, atol=1e-13)


@each_kernel
def test_scales_by_matrix_and_by_pair(name):
    d2 = square_distances(points(3, 5, 2))
    by_matrix = torch.tensor([0.2, 0.5, 1.0], dtype=torch.float64)[:, None, None]
    for function in (KERNELS[name].value, KERNELS[name].weights):
        found = function(d2, by_matrix)
        torch.testing.assert_close(found, function(d2, by_matrix.expand(3, 5, 5)))
        torch.testing.assert_close(found[1], function(d2[1], 0.5))


@each_kernel
def test_infinite_distance_is_zero_everywhere(name):
    d2 = torch.full((2, 2), torch.inf, dtype=torch.float64)
    k = KERNELS[name].value(d2, 0.5)
    _, second, third = derivatives = KERNELS[name].derivatives(d2, 0.5)
    divergence = curl_free_divergence(d2, second, third, 3)
    for value in (k, KERNELS[name].weights(k, 0.5), *derivatives, divergence):
        assert torch.equal(value, torch.zeros(2, 2, dtype=torch.float64))


@pytest.mark.parametrize("name", ["gauss", "RBF", 3, None])
def test_unknown_kernel(name):
    with pytest.raises(SettingError, match="rbf, imq"):
        lookup_kernel(name)
