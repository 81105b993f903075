"""Length scales, judged by numpy's median, scipy's entropy and scikit-learn's t-SNE."""

import itertools

import numpy as np
import pytest
import torch
from estimation_cases import TOLERANCE, error, points, tensor, vectors
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.stats import entropy

from autotransfer.errors import SettingError
from autotransfer.estimation import (
    LENGTH_SCALES,
    beta,
    check_length_scale,
    median_beta,
    rbf,
    square_distances,
    tsne_beta,
)

each_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def by_numpy(x):
    """β from numpy's median of scipy's distances."""
    sigma = np.median(pdist(x)) if len(x) > 1 else 0
    return 0.5 / (sigma or 1.0) ** 2


@each_dtype
def test_vector_median(dtype):
    known = vectors("kernels")
    found = median_beta(square_distances(tensor(known["X"], dtype)))
    assert error(found, 0.5 / known["median_sigma_offdiagonal"] ** 2) < TOLERANCE[dtype]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6, 7, 8, 9, 30, 31, 32, 33])
def test_median_is_numpys(n):
    x = points(3, n, 2)
    wanted = [by_numpy(rows) for rows in x]
    found = median_beta(square_distances(x))
    assert found.shape == (3, 1, 1)
    np.testing.assert_allclose(found.flatten(), wanted, rtol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(-2, 2), min_size=6, max_size=6), min_size=1, max_size=4),
    st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=4, max_size=4),
)
def test_median_of_the_rows_that_are_there(values, masks):
    # Small whole numbers: ties and coinciding points are the rule.
    x = torch.tensor(values, dtype=torch.float64)[..., None]
    mask = torch.tensor(masks[: len(values)])
    wanted = [by_numpy(rows[m]) for rows, m in zip(x, mask, strict=True)]
    found = median_beta(square_distances(x), mask)
    np.testing.assert_allclose(found.flatten(), wanted, rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_points_have_length_one(n):
    d2 = square_distances(points(2, 5, 3)).requires_grad_()
    found = median_beta(d2, torch.arange(5) < torch.tensor([[n], [5]]))
    assert found[0].item() == 0.5
    found.sum().backward()
    assert not d2.grad[0].any()
    assert d2.grad[1].any()


def test_what_is_in_padding_does_not_matter():
    d2 = square_distances(points(2, 6, 3))
    mask = torch.tensor([[True] * 4 + [False] * 2, [False, True] * 3])
    spoilt = d2.masked_fill(~(mask[:, None] & mask[:, :, None]), torch.nan)
    assert torch.equal(median_beta(spoilt, mask), median_beta(d2, mask))
    assert torch.equal(
        tsne_beta(spoilt, None, mask)[0, :4, :4], tsne_beta(d2, None, mask)[0, :4, :4]
    )


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 9])
@pytest.mark.parametrize("masked", [False, True])
def test_gradient_of_the_median_by_finite_differences(n, masked):
    mask = torch.rand(2, n, generator=torch.Generator().manual_seed(n)) < 0.7 if masked else None

    def function(x):
        return median_beta(square_distances(x), mask)

    assert torch.autograd.gradcheck(function, (points(2, n, 3).requires_grad_(),))


@pytest.mark.parametrize("scale", ["median", "tsne"])
def test_value_and_gradient_of_a_kernel_are_free_of_scale(scale):
    x = points(9, 3)
    value, slope = [], []
    for factor in (1.0, 100.0):
        z = (factor * x).requires_grad_()
        d2 = square_distances(z)
        k = rbf(d2, beta(d2, scale))
        (gradient,) = torch.autograd.grad(k.square().sum(), z)
        value.append(k.detach())
        slope.append(gradient * factor)
        # Moving along z changes the scale alone, so nothing at all.
        assert abs((gradient * z).sum()) < 1e-10 * gradient.norm() * z.norm()
    torch.testing.assert_close(*value, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(*slope, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("scale", ["median", "tsne"])
@pytest.mark.parametrize("copies", [1, 4, 8])
def test_gradient_with_coinciding_points_is_finite(scale, copies):
    x = points(8, 3)
    x[:copies] = x[0]
    x.requires_grad_()
    d2 = square_distances(x)
    rbf(d2, beta(d2, scale)).sum().backward()
    assert x.grad.isfinite().all()


def test_half_of_the_pairs_coincide_and_the_middle_has_one_zero():
    # Distances 0, 0, 0, 5, 5, 5: the middle ones are 0 and 5, σ = 2.5.
    x = torch.tensor([[0.0], [0.0], [0.0], [5.0]], requires_grad=True)
    found = median_beta(square_distances(x))
    assert found.item() == pytest.approx(0.08)
    found.sum().backward()
    assert x.grad.isfinite().all()
    assert x.grad.any()


@pytest.mark.parametrize("size", [1e-25, 1e-18, 1e15])
def test_extreme_sizes_stay_finite(size):
    d2 = square_distances(points(6, 2, dtype=torch.float32) * size)
    for scale in LENGTH_SCALES:
        k = rbf(d2, beta(d2, scale))
        assert k.isfinite().all()


@pytest.mark.parametrize(("n", "dim"), [(4, 1), (8, 64), (30, 2), (50, 10)])
@pytest.mark.parametrize("perplexity", [None, 2.5, 10.0])
def test_entropy_is_that_of_the_perplexity(n, dim, perplexity):
    d2 = square_distances(points(2, n, dim))
    of_row = tsne_beta(d2, perplexity).diagonal(dim1=-2, dim2=-1)
    wanted = np.clip(0.7 * (n - 1) if perplexity is None else perplexity, 2, 0.95 * (n - 1))
    for g, i in itertools.product(range(2), range(n)):
        others = np.delete(d2[g, i].numpy(), i)
        found = entropy(np.exp(-of_row[g, i].item() * (others - others.min())))
        assert found == pytest.approx(np.log(wanted), abs=1e-8)


def test_rows_are_those_of_scikit_learn():
    from sklearn.manifold._utils import _binary_search_perplexity

    d2 = square_distances(points(20, 3))
    b = tsne_beta(d2, 6.0).diagonal()
    p = torch.softmax((-b[:, None] * d2).fill_diagonal_(-torch.inf), -1)
    right = _binary_search_perplexity(d2.float().numpy(), 6.0, 0)
    np.testing.assert_allclose(p, right, atol=1e-4)


def test_padded_sets_are_those_of_each_alone():
    d2 = square_distances(points(4, 9, 3))
    mask = torch.arange(9) < torch.tensor([9, 5, 3, 2])[:, None]
    found = tsne_beta(d2, None, mask)
    for g, n in enumerate([9, 5, 3, 2]):
        alone = tsne_beta(d2[g, :n, :n])
        torch.testing.assert_close(found[g, :n, :n], alone, rtol=1e-12, atol=0)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_sets_too_small_for_a_perplexity(n):
    d2 = square_distances(points(2, 5, 3))
    found = tsne_beta(d2, 4.0, torch.arange(5) < torch.tensor([[n], [5]]))
    assert found.isfinite().all()
    assert (found > 0).all()


@pytest.mark.parametrize("copies", [2, 5, 8])
def test_perplexity_with_coinciding_points(copies):
    x = points(8, 2)
    x[:copies] = x[0]
    found = tsne_beta(square_distances(x), 3.0)
    assert found.isfinite().all()
    assert (found > 0).all()


@each_dtype
def test_vector_tsne(dtype):
    known = vectors("tsne")
    d2 = square_distances(tensor(known["X"], dtype))
    b = tsne_beta(d2, known["perplexity"])
    assert error(b.diagonal(), known["betas"]) < 1e-4
    assert error(rbf(d2, b), known["K"]) < 1e-4
    least = torch.linalg.eigvalsh(rbf(d2, b))[0].item()
    assert least == pytest.approx(known["min_eigenvalue"], rel=1e-4)


def test_the_kernel_of_tsne_scales_is_indefinite():
    known = vectors("tsne")["indefinite_example"]
    d2 = square_distances(tensor(known["X"]))
    b = tsne_beta(d2, known["perplexity"])
    assert error(b.diagonal(), known["betas"]) < 1e-4
    least = torch.linalg.eigvalsh(rbf(d2, b))[0].item()
    assert least == pytest.approx(known["min_eigenvalue"], rel=1e-2)
    assert least < 0


@pytest.mark.parametrize("shape", [(6, 6), (2, 6, 6), (2, 1, 3, 6, 6)])
def test_leading_shapes(shape):
    d2 = square_distances(points(*shape[:-1], 2))
    flat = d2.reshape(-1, 6, 6)
    assert torch.equal(median_beta(d2), median_beta(flat).reshape(*shape[:-2], 1, 1))
    assert torch.equal(tsne_beta(d2), tsne_beta(flat).reshape(shape))
    assert beta(d2, 3.0).shape == (*shape[:-2], 1, 1)


def test_a_number_is_the_length_itself():
    d2 = square_distances(points(5, 2))
    assert beta(d2, 2).item() == 0.125
    assert check_length_scale("median") == "median"
    assert check_length_scale(2) == 2.0


@pytest.mark.parametrize("scale", ["mean", 0, -1.0, float("nan"), float("inf"), None, True, [1.0]])
def test_wrong_length_scale(scale):
    with pytest.raises(SettingError, match="median, tsne"):
        check_length_scale(scale)


def test_wrong_perplexity():
    d2 = square_distances(points(5, 2))
    with pytest.raises(SettingError, match="above 1"):
        tsne_beta(d2, 1.0)
    with pytest.raises(SettingError, match="'tsne' only"):
        beta(d2, "median", perplexity=3.0)
