"""Laws that every score estimator obeys, over the registry, both kernels and both length scales."""

import pytest
import torch
from estimation_cases import error, points

from autotransfer.estimation import SCORES, score, square_distances

ESTIMATORS = [name for name in SCORES if name != "mige"]
FORMS = [
    (name, scale, kernel)
    for name in ESTIMATORS
    for scale in ("median", "tsne")
    for kernel in ("rbf", "imq")
    if scale == "median" or (not SCORES[name].curl_free and kernel == "rbf")
]
each_form = pytest.mark.parametrize(("name", "scale", "kernel"), FORMS)
each_estimator = pytest.mark.parametrize("name", ESTIMATORS)
# Fewer and more samples than dimensions: the two take different ways.
each_shape = pytest.mark.parametrize(("n", "dim"), [(9, 3), (6, 11)])


def of(x, form, mask=None):
    name, scale, kernel = form
    return score(x, name, None, scale, mask, kernel=kernel)


@each_shape
@each_form
def test_padded_is_looped(n, dim, name, scale, kernel):
    form = name, scale, kernel
    x = points(5, n, dim)
    count = torch.tensor([n, n - 1, 3, 1, 0])
    mask = torch.arange(n) < count[:, None]
    found = of(x, form, mask)
    for g, c in enumerate(count.tolist()):
        if c:
            assert error(found[g, :c], of(x[g, :c], form)) < 1e-12
        assert not found[g, c:].any()


@each_estimator
def test_padding_anywhere_and_of_anything(name):
    x = points(2, 7, 3)
    mask = torch.tensor([[True, False, True, True, False, True, True], [True] * 5 + [False] * 2])
    spoilt = x.masked_fill(~mask[..., None], torch.nan)
    found = score(spoilt, name, mask=mask)
    assert torch.equal(found, score(x, name, mask=mask))
    assert error(found[0][mask[0]], score(x[0][mask[0]], name)) < 1e-12


@each_estimator
def test_a_mask_of_all_is_no_mask(name):
    x = points(3, 6, 4)
    mask = torch.ones(3, 6, dtype=torch.bool)
    assert torch.equal(score(x, name, mask=mask), score(x, name))


@each_shape
@each_form
def test_shift_and_scale(n, dim, name, scale, kernel):
    form = name, scale, kernel
    x = points(n, dim)
    found = of(x, form)
    assert error(of(x + 10, form), found) < 1e-8
    for factor in (0.01, 300.0):
        assert error(of(factor * x, form) * factor, found) < 1e-8


@each_form
def test_order_of_samples_and_rotation(name, scale, kernel):
    form = name, scale, kernel
    x = points(8, 3)
    found = of(x, form)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(1))
    assert error(of(x[order], form), found[order]) < 1e-9
    rotation, _ = torch.linalg.qr(points(3, 3, seed=1))
    assert error(of(x @ rotation, form), found @ rotation) < 1e-9


@each_shape
@each_estimator
def test_float32_is_float64(n, dim, name):
    x = points(4, n, dim, dtype=torch.float32, offset=20.0)
    assert error(score(x, name), score(x.double(), name)) < 2e-3


@pytest.mark.parametrize("size", [1.0, 1e-4, 1e4])
@each_form
def test_degenerate_sets_are_finite(name, scale, kernel, size):
    form = name, scale, kernel
    x = points(5, 6, 3, dtype=torch.float32)
    x[2] = x[2, 0]  # identical
    x[3, 1:] = x[3, 1]  # all but one identical
    x[4, 4:] = x[4, :2]  # two pairs
    mask = torch.arange(6) < torch.tensor([1, 2, 6, 6, 6])[:, None]
    found = of(size * x, form, mask)
    assert found.isfinite().all()
    assert not found[0].any()
    assert (found[2] * size).abs().max() < 1e-3
    assert found[3].abs().max() < 1e3 * max(size, 1 / size)
    assert not of(x, form, torch.zeros(5, 6, dtype=torch.bool)).any()
    assert not of(x[:, :1], form).any()
    assert of(x[:, :2], form).isfinite().all()


@pytest.mark.parametrize("offset", [0.1, 1.0, 1000.0])
@each_form
def test_samples_that_differ_by_rounding_are_identical(name, scale, kernel, offset):
    x = torch.full((7, 5), offset)
    noise = torch.randint(-1, 2, x.shape, generator=torch.Generator().manual_seed(0))
    x = x * (1 + noise * torch.finfo(torch.float32).eps)
    assert of(x, (name, scale, kernel)).abs().max() < 1e-3 * max(offset, 1)


@each_estimator
@pytest.mark.parametrize("lead", [(), (1,), (2, 3), (2, 1, 2)])
def test_leading_shapes(name, lead):
    x = points(*lead, 5, 3)
    mask = torch.rand(*lead, 5, generator=torch.Generator().manual_seed(0)) < 0.8
    for given in (None, mask):
        found = score(x, name, mask=given)
        flat = score(x.reshape(-1, 5, 3), name, mask=None if given is None else mask.reshape(-1, 5))
        assert torch.equal(found, flat.reshape(x.shape))


@each_estimator
@pytest.mark.parametrize("shape", [(0, 5, 3), (2, 0, 3), (5, 0)])
def test_nothing_in_nothing_out(name, shape):
    assert score(torch.zeros(shape), name).shape == shape


@each_estimator
def test_layout_of_memory_does_not_matter(name):
    x = points(4, 6, 5)
    strided = x.mT.contiguous().mT
    assert error(score(strided, name), score(x, name)) < 1e-12


@pytest.mark.parametrize("scale", ["median", 0.8])
@each_shape
def test_stein_is_tikhonov_with_n_gamma(scale, n, dim):
    x = points(3, n, dim)
    mask = torch.arange(n) < torch.tensor([n, n - 2, 3])[:, None]
    found = score(x, "stein", 1e-3, scale, mask)
    for g, c in enumerate([n, n - 2, 3]):
        assert error(found[g, :c], score(x[g, :c], "tikhonov", c * 1e-3, scale)) < 1e-12


def test_imq_scores_are_those_of_the_formula():
    x = points(7, 3)
    d2 = square_distances(x)
    k = (1 + d2 / 4) ** -0.5
    w = k**3 / 4
    h = w.sum(1, keepdim=True) * x - w @ x
    right = -torch.linalg.solve(k + 0.07 * torch.eye(7, dtype=x.dtype), h)
    assert error(score(x, "tikhonov", 1e-2, 2.0, kernel="imq"), right) < 1e-12
