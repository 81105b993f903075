"""The person's covariances beside the network: against scipy and scikit-learn, piece by piece."""

from __future__ import annotations

import itertools
import os

import numpy as np
import pytest
import torch
from scipy.linalg import logm
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

import autotransfer as at
from autotransfer.adaptation import covariances as module
from autotransfer.adaptation.covariances import covariances
from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.adaptation.head import refit
from autotransfer.data.trials import TrialArray
from autotransfer.training.model.onnx import export_onnx

DATA = at.make_subjects(
    n_subjects=4, n_trials=60, n_channels=4, n_times=64, n_classes=3, random_state=0
)
KNOWN, NEW = DATA.select(subjects=[0, 1, 2]), DATA.select(subjects=[3])
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def clf():
    clf = at.CensoredClassifier(
        max_epochs=5,
        encoder_options={"F1": 4, "kernel_length": 16},
        normalise="trial",
        validation=None,
        random_state=0,
        device="cpu",
        verbose=False,
    )
    return clf.fit(KNOWN)


def coupled(n, codes):
    """Make noise in which the class is what two of the channels have in common."""
    x = RNG.normal(size=(n, 4, 64))
    sign = np.array([1.0, -1.0, 0.0])[codes]
    x[:, 1] = sign[:, None] * x[:, 0] + np.sqrt(1 - 0.9 * np.abs(sign))[:, None] * x[:, 1]
    return x.astype(np.float32)


def logarithms(x):
    """Write out what the encoder of covariances has of normalised signals."""
    rows, columns = np.triu_indices(x.shape[1])
    found = []
    for trial in x.astype(float):
        trial = trial - trial.mean(1, keepdims=True)
        S = trial @ trial.T / trial.shape[1]
        S = 0.95 * S + 0.05 * np.trace(S) / len(S) * np.eye(len(S))
        found.append(logm(S)[rows, columns] * np.where(rows == columns, 1, np.sqrt(2)))
    return np.array(found)


def test_with_a_label_of_each_class_it_is_a_mean_of_two_classifiers(clf):
    few = np.concatenate([np.flatnonzero(NEW.y_code == code)[:1] for code in range(3)])
    X, codes = NEW.X[few], NEW.y_code[few]
    made = clf.adapt(X, NEW.y[few], method="covariances")
    signals = clf.normaliser_.transform(NEW.X[:])
    c = logarithms(signals)
    c = (c - c[few].mean(0)) / np.sqrt(c[few].var(0).mean())
    scale = np.sqrt(np.mean(c[few] ** 2))
    ones = np.hstack([c / scale, np.ones((len(c), 1))])
    judge = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10000)
    own = judge.fit(ones[few], codes).predict_log_proba(ones)
    network = np.log(clf.adapt(X, NEW.y[few], method="head").predict_proba(NEW.X))
    expected = softmax((2 * network + own) / 3, axis=1)
    np.testing.assert_allclose(made.predict_proba(NEW.X), expected, atol=5e-3)


def test_shares_against_a_slow_mean(clf, monkeypatch):
    """The same in other words and other loops."""
    X, y = NEW.X[:24], NEW.y_code[:24]
    seen = {}

    def spy(latents, codes, original=module._shares):
        seen["latents"] = latents
        seen["shares"] = original(latents, codes)
        return seen["shares"]

    monkeypatch.setattr(module, "_shares", spy)
    covariances(Fitted(clf.network_, clf.normaliser_), Person.of(TrialArray(X), y))
    one = seen["latents"]
    z, c, n = one.z, one.c, min(5, np.bincount(y).min())
    losses = {}
    for A, w, t in itertools.product(module.STRENGTHS, module.WEIGHTS, module.SCALES):
        loss = 0.0
        for kept, left in StratifiedKFold(n, shuffle=True, random_state=0).split(z, y):
            W, a = refit(z[kept], y[kept], one.weight, one.bias, A)
            V, b = refit(c[kept], y[kept], np.zeros((3, c.shape[1])), np.zeros(3), 1.0)
            p = softmax(t * (z[left] @ W.T + a + w * (c[left] @ V.T + b)), axis=1)
            for row, code in zip(p, y[left], strict=True):
                loss -= np.log(row[code]) * len(y) / 3 / np.sum(y == code)
        losses[A, w, t] = loss
    total = sum(np.exp(-loss) for loss in losses.values())
    shares = {key: np.exp(-loss) / total for key, loss in losses.items()}
    network, own = seen["shares"]
    for A, found in zip(module.STRENGTHS, network, strict=True):
        assert found == pytest.approx(sum(s * t for (B, _, t), s in shares.items() if B == A))
    assert own == pytest.approx(sum(s * w * t for (_, w, t), s in shares.items()))


def test_what_only_covariances_tell_is_learned_and_what_they_do_not_tell_is_not(clf):
    codes = np.tile([0, 1, 2], 25)
    X = coupled(75, codes)
    made = clf.adapt(X[:15], codes[:15], method="covariances")
    only = clf.adapt(X[:15], codes[:15], method="head")
    assert made.score(X[15:], codes[15:]) > 0.9 > only.score(X[15:], codes[15:])
    # Signals of the new person, who is like those known; labels of noise change little.
    plain = clf.adapt(NEW.X[:30], NEW.y[:30], method="head")
    both = clf.adapt(NEW.X[:30], NEW.y[:30], method="covariances")
    assert both.score(NEW.X[30:], NEW.y[30:]) >= plain.score(NEW.X[30:], NEW.y[30:]) - 0.05


def test_of_classes_without_labels_the_order_stays(clf):
    codes = NEW.y_code[:40]
    two = codes < 2
    made = clf.adapt(NEW.X[:40][two], NEW.y[:40][two], method="covariances")
    n = clf.network_.n_latent
    head = made.network_.head
    with torch.no_grad():
        scale = float(head.bias[2] / clf.network_.head.bias[2])
        assert 0 < scale <= 1
        expected = scale * clf.network_.head.weight[2]
    torch.testing.assert_close(head.weight[2, :n], expected)
    assert not head.weight[2, n:].any()


def test_of_one_class_nothing_is_learned(clf):
    X = NEW.X[NEW.y_code == 1]
    made = clf.adapt(X, np.repeat(NEW.labels[1], len(X)), method="covariances")
    assert made.network_ is clf.network_


def test_who_is_adapted_again_has_one_set_of_covariances(clf):
    few = NEW.X[:20], NEW.y[:20]
    once = clf.adapt(*few, method="covariances")
    twice = once.adapt(*few, method="statistics+covariances")
    assert twice.network_.n_latent == once.network_.n_latent == clf.network_.n_latent + 10
    assert twice.score(NEW.X[20:], NEW.y[20:]) > 0.5


def test_statistics_and_a_stream_go_on_from_it(clf):
    made = clf.adapt(NEW.X[:20], NEW.y[:20], method="statistics+covariances")
    later = made.adapt(NEW.X[20:], method="statistics")
    norms = [one.network_.encoder.covariances.norm.running_mean for one in (made, later)]
    assert not torch.equal(*norms)
    live = made.live(method="statistics")
    told = live.predict_proba(NEW.X[20:])
    np.testing.assert_allclose(told[0], made.predict_proba(NEW.X[20:21])[0], atol=1e-6)
    assert not np.allclose(told[-1], made.predict_proba(NEW.X[59:60])[0], atol=1e-6)


@pytest.mark.slow
def test_it_is_exported(clf, tmp_path):
    if os.environ.get("AUTOTRANSFER_NEED_EXTRAS") != "1":
        pytest.importorskip("onnxscript")
        pytest.importorskip("onnxruntime")
    import onnxruntime

    made = clf.adapt(NEW.X[:20], NEW.y[:20])
    session = onnxruntime.InferenceSession(str(export_onnx(made, tmp_path / "one.onnx")))
    probabilities, latent = session.run(None, {"signals": NEW.X[20:]})
    np.testing.assert_allclose(probabilities, made.predict_proba(NEW.X[20:]), atol=1e-4)
    np.testing.assert_allclose(latent, made.transform(NEW.X[20:]), atol=2e-3)
