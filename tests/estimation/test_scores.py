"""Score estimators: known vectors, exact scores, Stein's identities, settings."""

import numpy as np
import pytest
import torch
from estimation_cases import TOLERANCE, error, points, tensor, vectors

from autotransfer.errors import SettingError, ShapeError
from autotransfer.estimation import (
    SCORES,
    calibrate,
    lookup_score,
    rbf,
    score,
    square_distances,
    tsne_beta,
)
from autotransfer.estimation.filters import nu, positive_part, steps, tikhonov

KNOWN = vectors("scores")
IN_SAMPLE = {
    "ssge_ratio_0.95": {"estimator": "ssge"},
    "ssge_J3": {"estimator": "mige", "ratio": 0.96},
    "stein_gamma_1e-3": {"estimator": "stein"},
    "tikhonov_diag_gamma_1e-2": {},
    "nu_diag_gamma_1e-2_iters11": {"estimator": "nu"},
    "landweber_diag_gamma_1e-2_iters101_step1": {"estimator": "landweber"},
    "spectral_cutoff_gamma_1e-2": {"estimator": "spectral"},
    "stein_gamma_1e-3_sigma1": {"estimator": "stein", "length_scale": 1.0},
    "tikhonov_curlfree_gamma_1e-2": {"estimator": "tikhonov_curlfree"},
    "nu_curlfree_gamma_1e-2": {"estimator": "nu_curlfree"},
}
each_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


@each_dtype
@pytest.mark.parametrize("name", list(KNOWN["insample"]))
def test_vectors(name, dtype):
    found = score(tensor(KNOWN["X"], dtype), **IN_SAMPLE[name])
    assert found.dtype == dtype
    assert error(found, KNOWN["insample"][name]) < TOLERANCE[dtype]


@each_dtype
def test_vector_with_tsne_scales(dtype):
    known = vectors("tsne")
    x = tensor(known["X"], dtype)
    found = score(x, length_scale="tsne", perplexity=known["perplexity"])
    assert error(found, known["tikhonov_gamma_1e_2"]) < 1e-4


@pytest.mark.parametrize("name", ["marginal", "marginal_calibrated"])
def test_the_gradient_of_mige_is_made_of_scores(name):
    known = vectors("mige")
    z, s = tensor(known["Z"]), torch.tensor(known["s"])

    def fitted(rows):
        found = score(rows)
        return calibrate(found, rows) if name == "marginal_calibrated" else found

    gradient = -fitted(z)
    for m in s.unique():
        gradient[s == m] += fitted(z[s == m])
    assert error(gradient / len(z), known[name]["grad_Z"]) < 1e-8


def stepwise(k, h, t):
    """Landweber's iteration as it is written down."""
    s = torch.zeros_like(h)
    for _ in range(t):
        s = s - (k @ s + h) / len(k)
    return s


def test_landweber_is_its_iteration():
    x = points(12, 3)
    sigma = square_distances(x)[*np.triu_indices(12, 1)].sqrt().median().item()
    k = torch.exp(-square_distances(x) / (2 * sigma**2))
    h = (k.sum(1, keepdim=True) * x - k @ x) / sigma**2
    found = score(x, "landweber", 1 / 37, sigma)
    torch.testing.assert_close(found, stepwise(k, h, 38), rtol=1e-9, atol=1e-11)


def test_steps_of_round_numbers():
    assert [steps(g**0.5) for g in (1e-2, 1e-3, 1e-4, 1 / 9)] == [11, 32, 101, 4]
    assert [steps(g) for g in (1e-2, 1 / 3, 2.0)] == [101, 4, 1]


def test_nu_reaches_the_solution_of_well_posed_equations():
    k = torch.eye(4, dtype=torch.float64) * 3 + 0.25
    h = points(4, 2)
    torch.testing.assert_close(nu(k, h, 4, 1e-6), torch.linalg.solve(k, h), rtol=1e-4, atol=1e-6)


def test_filters_return_their_input_untouched():
    k = torch.full((3, 3), 0.5, dtype=torch.float64).fill_diagonal_(1)
    kept = k.clone()
    tikhonov(k, points(3, 2), 3, 1e-2)
    assert torch.equal(k, kept)


@pytest.mark.parametrize("estimator", list(SCORES))
def test_direction_of_the_exact_score(estimator):
    # 256 samples of a Gaussian with standard deviations 0.5 and 2: the score is -x / variance.
    x = points(256, 2)
    found = score(x, estimator)
    right = -x / torch.tensor([0.25, 4.0], dtype=torch.float64)
    cosine = (found * right).sum() / (found.norm() * right.norm())
    assert cosine > 0.8


@pytest.mark.parametrize("estimator", ["tikhonov", "stein"])
def test_regularisation_too_small_for_float32_stays_finite(estimator):
    x = points(64, 2, dtype=torch.float32)
    for gamma in (1e-6, 1e-9, 1e-12):
        assert score(x, estimator, gamma).isfinite().all()
    assert score(torch.ones(9, 2), estimator, 1e-12).isfinite().all()


def test_a_kernel_matrix_that_rounding_made_indefinite_is_solved_all_the_same():
    k = torch.tensor([[1.0, 1.001], [1.001, 1.0]], dtype=torch.float64)
    h = points(2, 3)
    right = torch.linalg.solve(k + 2e-4 * torch.eye(2, dtype=k.dtype), h)
    torch.testing.assert_close(tikhonov(k, h, 2, 1e-4), right)


@pytest.mark.parametrize(
    ("estimator", "given"), [("ssge", {"ratio": 1e-9}), ("spectral", {"gamma": 5.0})]
)
def test_one_eigenvector_is_kept_when_none_is_asked_for(estimator, given):
    found = score(points(12, 3), estimator, **given)
    assert torch.linalg.matrix_rank(found) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_eigenvalues_of_rounding_are_never_inverted(dtype):
    x = points(64, 1, dtype=dtype)
    for estimator, given in (("ssge", {"ratio": 1.0}), ("spectral", {"gamma": 1e-30})):
        found = score(x, estimator, **given)
        assert found.isfinite().all()
        # Eigenvalues of 1e-16 would make it 1e6 and more.
        assert found.abs().max() < 1e4


def test_tsne_scales_solve_with_the_positive_part():
    x = points(40, 1)
    d2 = square_distances(x)
    b = tsne_beta(d2)
    k = rbf(d2, b)
    values, vectors = np.linalg.eigh(k.numpy())
    assert values[0] < -1e-3
    w = (2 * b * k).numpy()
    h = w.sum(1, keepdims=True) * x.numpy() - w @ x.numpy()
    right = -(vectors / (values.clip(0) + 0.4)) @ (vectors.T @ h)
    assert error(score(x, "tikhonov", 1e-2, "tsne"), right) < 1e-10


def test_tsne_scales_take_the_positive_part_and_a_least_gamma():
    known = vectors("tsne")["indefinite_example"]
    x = tensor(known["X"])
    given = {"length_scale": "tsne", "perplexity": known["perplexity"]}
    for estimator in ("tikhonov", "nu"):
        assert torch.equal(score(x, estimator, 1e-9, **given), score(x, estimator, 1e-2, **given))
    assert not torch.equal(score(x, "stein", 1e-4, **given), score(x, "stein", 1e-2, **given))
    indefinite = torch.tensor([[1.0, 2.0], [2.0, 1.0]])
    torch.testing.assert_close(positive_part(indefinite), torch.full((2, 2), 1.5))


@pytest.mark.parametrize("masked", [False, True])
def test_calibrated_scores_obey_steins_identities(masked):
    x = points(3, 20, 4, offset=5.0)
    mask = torch.arange(20) < torch.tensor([20, 15, 7])[:, None] if masked else None
    found = calibrate(score(x, mask=mask), x, mask)
    for g, n in enumerate([20, 15, 7] if masked else [20] * 3):
        assert found[g, :n].mean(0).abs().max() < 1e-12
        mean = (found[g, :n] * x[g, :n]).sum(-1).mean().item()
        assert mean == pytest.approx(-4, abs=1e-10)
        assert not found[g, n:].any()


def test_calibration_divides_by_no_less_than_a_twentieth():
    x = points(9, 3)
    torch.testing.assert_close(calibrate(1e-6 * (x.mean(0) - x), x), 2e-5 * (x.mean(0) - x))
    assert not calibrate(torch.zeros(4, 2), torch.ones(4, 2)).any()


def test_no_gradient_and_no_change_of_the_input():
    x = points(6, 3).requires_grad_()
    kept = x.detach().clone()
    found = score(x)
    assert not found.requires_grad
    assert torch.equal(x.detach(), kept)
    (found * x).sum().backward()
    assert torch.equal(x.grad, found)


@pytest.mark.parametrize("shape", [(5, 2), (16, 16)])
@pytest.mark.parametrize("estimator", list(SCORES))
def test_nan_comes_out_as_nan(estimator, shape):
    x = points(*shape)
    x[0, 0] = torch.nan
    assert score(x, estimator).isnan().any()


def test_aliases_and_defaults():
    assert SCORES["mige"] is SCORES["ssge"]
    assert [SCORES[n].default for n in ("tikhonov", "nu", "stein", "ssge")] == [
        0.01,
        0.01,
        1e-3,
        0.95,
    ]
    assert lookup_score("nu") is SCORES["nu"]


@pytest.mark.parametrize("name", ["Tikhonov", "", 3, None])
def test_unknown_estimator(name):
    with pytest.raises(SettingError, match=r"tikhonov, nu, stein, ssge, mige, .*nu_curlfree\."):
        score(points(4, 2), name)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"gamma": 0.0}, "gamma must be a positive number"),
        ({"gamma": -1e-3}, "gamma must be a positive number"),
        ({"gamma": float("nan")}, "gamma must be a positive number"),
        ({"estimator": "ssge", "ratio": 0.0}, "ratio must be above 0"),
        ({"estimator": "ssge", "ratio": 1.5}, "ratio must be above 0"),
        ({"length_scale": "mean"}, "No length scale 'mean'"),
        ({"kernel": "cosine"}, "No kernel 'cosine'"),
        ({"perplexity": 3.0}, "'tsne' only"),
        ({"estimator": "nu_curlfree", "length_scale": "tsne"}, "one length scale for a set"),
    ],
)
def test_wrong_settings(given, words):
    with pytest.raises(SettingError, match=words):
        score(points(4, 2), **given)


def test_wrong_mask():
    with pytest.raises(ShapeError, match=r"\(3, 5\), not \(5,\)"):
        score(points(3, 5, 2), mask=torch.ones(5, dtype=torch.bool))
