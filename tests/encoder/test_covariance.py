"""The covariance encoder: against pyRiemann, scipy, finite differences and other ways."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.spatial
import torch
from pyriemann.geometry.distance import pairwise_distance

import autotransfer as at
from autotransfer.encoder.covariance import CovarianceNet, _Log, log_by_products
from autotransfer.errors import SettingError, ShapeError

RNG = np.random.default_rng(0)


def matrices(n=20, c=6, spread=3.0):
    """Random symmetric positive definite matrices with known eigenvalues."""
    vectors = np.linalg.qr(RNG.normal(size=(n, c, c)))[0]
    values = 10 ** RNG.uniform(-spread, 0, size=(n, c))
    return (vectors * values[:, None]) @ vectors.swapaxes(1, 2)


def test_the_logarithm_is_scipys():
    S = matrices()
    expected = np.stack([scipy.linalg.logm(one) for one in S])
    assert np.allclose(_Log.apply(torch.from_numpy(S)), expected, atol=1e-9)


@pytest.mark.parametrize(("dtype", "error"), [(torch.float64, 1e-6), (torch.float32, 1e-3)])
def test_the_logarithm_by_products_is_that_of_eigenvalues(dtype, error):
    S = torch.from_numpy(matrices(200, 8, 3.5)).to(dtype)
    assert (log_by_products(S) - _Log.apply(S)).abs().max() < error


def test_its_gradient_is_that_of_finite_differences_also_for_equal_eigenvalues():
    for S in (matrices(3, 4, 1.0), np.eye(4)[None] * 0.5, np.diag([1.0, 1.0, 2.0, 2.0])[None]):

        def symmetric(A):
            return _Log.apply((A + A.mT) / 2)

        assert torch.autograd.gradcheck(symmetric, torch.from_numpy(S).requires_grad_())


def test_without_bands_distances_are_pyriemanns_log_euclidean_ones():
    X = RNG.normal(size=(12, 5, 200)) * RNG.uniform(0.5, 2, size=(12, 5, 1))
    net = CovarianceNet(5, 200, bands=None, shrinkage=0.01).eval()
    found = net.prepare(torch.from_numpy(X)).numpy()
    S = np.stack([np.cov(one, bias=True) for one in X])
    S = 0.99 * S + 0.01 * np.trace(S, axis1=1, axis2=2)[:, None, None] / 5 * np.eye(5)
    theirs = pairwise_distance(S, metric="logeuclid")
    assert np.allclose(scipy.spatial.distance.cdist(found, found), theirs, atol=1e-6)


def test_a_band_holds_the_power_of_a_filtered_signal():
    sfreq, n_times = 128.0, 512
    time = np.arange(n_times) / sfreq
    x = np.stack([3 * np.sin(2 * np.pi * 10 * time), np.cos(2 * np.pi * 21 * time)])
    net = CovarianceNet(2, n_times, sfreq, bands=[(8, 12), (19, 23)], shrinkage=1e-6)
    assert net.n_latent == 3 * 3
    logs = net.prepare(torch.from_numpy(x[None]).float())[0].reshape(3, 3)
    power = logs[:, [0, 2]].exp()  # of the two channels: the matrices are diagonal
    expected = [[4.5, 0.5], [4.5, 0.0], [0.0, 0.5]]
    assert np.allclose(power, expected, atol=0.02)


def test_bands_of_auto():
    assert CovarianceNet(8, 256, 128.0).bins == [(2 * f, 2 * f + 8) for f in range(4, 40, 4)]
    assert CovarianceNet(8, 80, 40.0).bins == [(8, 16), (16, 24), (24, 32)]
    assert CovarianceNet(61, 128, 128.0).bins == []
    assert CovarianceNet(8, 256).bins == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"bands": [(10, 70)]},
        {"bands": [(10.1, 10.2)]},
        {"bands": "some"},
        {"bins": [(0, 4)]},
        {"bins": [(60, 66)]},
        {"shrinkage": 0.0},
        {"drop_prob": 1.0},
    ],
)
def test_wrong_options_are_named(wrong):
    with pytest.raises(SettingError, match=next(iter(wrong)).rstrip("s")):
        CovarianceNet(4, 128, 128.0, **wrong)
    with pytest.raises(SettingError, match="sfreq"):
        CovarianceNet(4, 128, bands=[(4, 8)])


def test_other_shapes_are_refused():
    with pytest.raises(ShapeError, match="4 channels x 128"):
        CovarianceNet(4, 128)(torch.zeros(2, 5, 128))


def test_a_trial_without_signal_is_finite():
    net = CovarianceNet(4, 128, 128.0).eval()
    assert torch.isfinite(net(torch.zeros(2, 4, 128))).all()


def test_prepared_statistics_are_what_it_computes_itself():
    net = CovarianceNet(4, 128, 128.0, drop_prob=0.0).train()
    x = torch.randn(16, 4, 128, generator=torch.Generator().manual_seed(0))
    assert torch.equal(net(x), net(x, net.prepare(x)))


DATA = at.make_subjects(n_subjects=5, n_trials=60, n_classes=3, random_state=0)
OPTIONS = {"encoder": "covariance", "n_steps": 200, "device": "cpu", "verbose": False}


def fitted(**more):
    clf = at.CensoredClassifier(validation=None, random_state=0, **OPTIONS | more)
    return clf.fit(DATA.select(subjects=[0, 1, 2, 3]))


def test_it_learns_is_saved_and_adapts(tmp_path):
    clf, new = fitted(), DATA.select(subjects=[4])
    assert clf.score(new) > 0.6  # chance is a third
    again = at.CensoredClassifier.load(clf.save(tmp_path / "cov.model"))
    assert np.array_equal(again.predict_proba(new.X), clf.predict_proba(new.X))
    for method in ("statistics", "statistics+information"):
        personal = clf.adapt(new.X[:40], method=method)
        assert not np.array_equal(personal.predict_proba(new.X), clf.predict_proba(new.X))
    assert np.array_equal(again.predict_proba(new.X), clf.predict_proba(new.X))
    live = clf.live()
    assert (live.predict(new.X) == new.y).mean() > 0.6


def test_a_small_memory_budget_changes_nothing_but_the_way():
    kept, read = fitted(), fitted(memory_budget=1)
    assert np.allclose(kept.predict_proba(DATA.X), read.predict_proba(DATA.X), atol=1e-4)


def test_masked_channels_reach_the_covariances():
    plain, masked = fitted(), fitted(augment="mask")
    assert not np.array_equal(plain.predict_proba(DATA.X), masked.predict_proba(DATA.X))
    read = fitted(augment="mask", memory_budget=1)
    assert np.allclose(masked.predict_proba(DATA.X), read.predict_proba(DATA.X), atol=1e-4)


@pytest.mark.nightly
def test_onnx_gives_what_it_gives(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    clf = fitted(normalise="train")
    file = clf.export_onnx(tmp_path / "cov.onnx")
    session = runtime.InferenceSession(str(file))
    X = np.asarray(DATA.X[:30], np.float32)
    found = session.run(None, {session.get_inputs()[0].name: X})[0]
    assert np.abs(found - clf.predict_proba(X)).max() < 1e-3
