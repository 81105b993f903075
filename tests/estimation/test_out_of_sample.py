"""Scores at points that are not samples."""

import pytest
import torch
from estimation_cases import TOLERANCE, error, points, tensor, vectors

from autotransfer.errors import SettingError, ShapeError
from autotransfer.estimation import score, score_at
from autotransfer.estimation.out_of_sample import EXTENSIONS

KNOWN = vectors("scores")["outsample"]
X = vectors("scores")["X"]
NAMES = {
    "tikhonov_0.01": ("tikhonov", 0.01),
    "stein_0.001": ("stein", 0.001),
    "ssge_None": ("ssge", None),
    "nu_0.01": ("nu", 0.01),
}
each_extension = pytest.mark.parametrize("name", list(EXTENSIONS))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", list(NAMES))
def test_vectors(name, dtype):
    found = score_at(tensor(KNOWN["Q"], dtype), tensor(X, dtype), *NAMES[name], KNOWN["sigma"])
    assert error(found, KNOWN[name]) < TOLERANCE[dtype]


# Not Stein's: there a sample that is also a query counts twice.
@pytest.mark.parametrize("name", [name for name in EXTENSIONS if name != "stein"])
@pytest.mark.parametrize("scale", ["median", 1.3])
@pytest.mark.parametrize("kernel", ["rbf", "imq"])
def test_at_the_samples_it_is_the_in_sample_estimate(name, scale, kernel):
    x = points(2, 9, 3)
    right = score(x, name, None, scale, kernel=kernel)
    assert error(score_at(x, x, name, None, scale, kernel=kernel), right) < 1e-9


@pytest.mark.parametrize("kernel", ["rbf", "imq"])
def test_stein_is_the_last_row_with_the_query_among_the_samples(kernel):
    x, q = points(8, 3), points(2, 3, seed=1)
    found = score_at(q, x, "stein", 1e-3, 1.2, kernel=kernel)
    for point, value in zip(q, found, strict=True):
        more = torch.cat([x, point[None]])
        # The same n²γ for one sample more.
        right = score(more, "stein", 1e-3 * 64 / 81, 1.2, kernel=kernel)[-1]
        assert error(value, right) < 1e-10


@each_extension
def test_shift_scale_and_leading_shapes(name):
    x, q = points(2, 3, 9, 4), points(2, 3, 5, 4, seed=1)
    found = score_at(q, x, name)
    assert found.shape == q.shape
    assert error(score_at(q + 7, x + 7, name), found) < 1e-8
    assert error(score_at(20 * q, 20 * x, name) * 20, found) < 1e-8
    assert error(score_at(q[1, 2], x[1, 2], name), found[1, 2]) < 1e-10


@each_extension
def test_float32_far_from_the_origin_is_float64(name):
    x, q = (points(2, n, 3, seed=n, dtype=torch.float32, offset=100.0) for n in (20, 4))
    assert error(score_at(q, x, name), score_at(q.double(), x.double(), name)) < 1e-3


@each_extension
def test_direction_between_the_samples(name):
    found = score_at(points(100, 2, seed=1), points(256, 2), name)
    right = -points(100, 2, seed=1) / torch.tensor([0.25, 4.0], dtype=torch.float64)
    assert (found * right).sum() > 0.8 * found.norm() * right.norm()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"estimator": "spectral"}, "tikhonov, nu, stein, ssge, mige"),
        ({"estimator": "Stein"}, "No score estimator 'Stein'"),
        ({"length_scale": "tsne"}, "belong to pairs of samples"),
        ({"gamma": 0.0}, "gamma must be a positive number"),
    ],
)
def test_wrong_settings(given, words):
    with pytest.raises(SettingError, match=words):
        score_at(points(2, 3), points(4, 3), **given)


def test_wrong_dimension():
    with pytest.raises(ShapeError, match="3 dimensions and the query points 2"):
        score_at(points(2, 2), points(4, 3))
