"""A model with the batch-norm statistics of one new person: against the layers written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import autotransfer as at
from autotransfer.adaptation.fitted import MOST, Fitted, Person
from autotransfer.adaptation.statistics import statistics
from autotransfer.data.normalise import Normaliser
from autotransfer.data.trials import TrialArray
from autotransfer.encoder.network import Network
from autotransfer.errors import ChannelMismatchError, NonFiniteDataError, SettingError

DATA = at.make_subjects(n_subjects=4, n_trials=30, n_times=64, random_state=0)
ABOUT = {"n_trials": 20, "n_labels": 0, "method": "statistics"}
OPTIONS = {"max_epochs": 3, "random_state": 0, "device": "cpu", "verbose": False}


@pytest.fixture(scope="module")
def clf():
    return at.CensoredClassifier(**OPTIONS).fit(DATA.X, DATA.y, subject=DATA.subject)


def norms_in_training(clf, X):
    """Logits when the norms use the statistics of these very trials, dropout off."""
    net = clf.network_.encoder.literal().eval()
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.train()
    with torch.no_grad():
        z = net(torch.from_numpy(clf.normaliser_.transform(X)))
        return clf.network_.head(z.flatten(1)).numpy()


def test_against_torch_in_training_mode(clf):
    X = 3 * DATA.X[:25] + 1
    logits = norms_in_training(clf, X)
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    expected = shifted / shifted.sum(1, keepdims=True)
    np.testing.assert_allclose(clf.adapt(X, prior=0).predict_proba(X), expected, atol=1e-5)


def test_a_scale_of_the_person_is_undone():
    options = OPTIONS | {"normalise": "none", "validation": None}
    clf = at.CensoredClassifier(**options).fit(DATA.X, DATA.y, subject=DATA.subject)
    X = 100 * DATA.X[:30]  # so large that the norms' epsilon does not count
    latent = clf.adapt(X, prior=0).transform(X)
    np.testing.assert_allclose(clf.adapt(7 * X, prior=0).transform(7 * X), latent, atol=1e-3)
    assert np.abs(clf.transform(7 * X) - clf.transform(X)).max() > 0.1


def test_the_model_itself_stays(clf):
    before = {name: value.clone() for name, value in clf.network_.state_dict().items()}
    made = clf.adapt(5 * DATA.X[:20])
    after = clf.network_.state_dict()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    now = made.network_.state_dict()
    changed = {name for name in now if not torch.equal(now[name], before[name])}
    assert changed == {n for n in before if n.endswith(("running_mean", "running_var"))}
    assert "adapted" not in clf.provenance_
    assert made.provenance_["adapted"] == ABOUT


def test_a_prior_mixes_the_first_statistics(clf):
    """The first norm is the one whose input no other statistics change."""
    X = 5 * DATA.X[:20]
    old, new, mixed = (
        one.network_.encoder.bnorm_temporal.running_var
        for one in (clf, clf.adapt(X, prior=0), clf.adapt(X, prior=60))
    )
    torch.testing.assert_close(mixed, 0.25 * new + 0.75 * old)
    far = clf.adapt(X, prior=10**9).predict_proba(X)
    np.testing.assert_allclose(far, clf.predict_proba(X), atol=1e-5)


def test_it_is_saved_and_loaded(clf, tmp_path):
    made = clf.adapt(5 * DATA.X[:20])
    made.save(tmp_path / "model")
    again = at.CensoredClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(DATA.X), made.predict_proba(DATA.X))
    assert again.provenance_["adapted"] == ABOUT


def test_of_many_trials_some_are_looked_at_and_all_are_counted():
    """An encoder of one norm, so that its statistics are those of the signals."""
    encoder = nn.Sequential(nn.BatchNorm1d(3), nn.Flatten())
    encoder.n_latent = 3 * 8
    X = np.random.default_rng(0).normal(size=(4 * MOST, 3, 8)).astype(np.float32)
    X[1::2] += 10  # alternating: every fourth trial alone would be one half of them
    fitted = Fitted(Network(encoder, 2), Normaliser("none"))
    made = statistics(fitted, Person.of(TrialArray(X)), prior=4 * MOST).network
    mean = made.encoder[0].running_mean
    np.testing.assert_allclose(mean, 0.5 * X.mean((0, 2)), atol=0.2)
    torch.testing.assert_close(encoder[0].running_mean, torch.zeros(3))


def test_what_cannot_be(clf):
    with pytest.raises(SettingError, match="prior"):
        clf.adapt(DATA.X, prior=-1)
    with pytest.raises(ChannelMismatchError):
        clf.adapt(DATA.X[:, :2])
    bad = DATA.X[:5].copy()
    bad[3, 0, 0] = np.nan
    with pytest.raises(NonFiniteDataError):
        clf.adapt(bad)
    plain = at.CensoredClassifier(
        **OPTIONS, encoder=nn.Sequential(nn.Flatten(), nn.Linear(4 * 64, 8), nn.Linear(8, 2))
    ).fit(DATA.X, DATA.y, subject=DATA.subject)
    with pytest.raises(SettingError, match="no batch norm"):
        plain.adapt(DATA.X)
