"""The competitors' training is ours but for the loss; alignment and statistics do what they say."""

import numpy as np
import pytest
import torch

import autotransfer as at
from benchmarks.peers import subject_loop
from benchmarks.peers.align import by_subject, euclidean_alignment, own_scale, random_gains
from benchmarks.peers.objectives import IRM, GroupDRO, Pooled


@pytest.fixture(scope="module")
def data():
    return at.make_subjects(n_subjects=5, n_trials=24, n_classes=3, random_state=0)


def classifier(data, **options):
    given = {"max_epochs": 4, "normalise": "trial", **options}
    return at.CensoredClassifier(
        sfreq=data.sfreq, validation=[0], random_state=0, device="cpu", verbose=False, **given
    )


def weights(clf):
    return clf.network_.state_dict()


def test_with_the_task_loss_it_is_the_uncensored_baseline_to_the_bit(data):
    ours = classifier(data).fit(data.X, data.y, subject=data.subject)
    same = subject_loop.fit(classifier(data), data.X, data.y, data.subject, lambda n: Pooled())
    for name, value in weights(ours).items():
        assert torch.equal(value, weights(same)[name]), name
    assert [e["validation_loss"] for e in ours.history_] == [
        e["validation_loss"] for e in same.history_
    ]
    assert ours.best_epoch_ == same.best_epoch_
    assert (ours.predict(data.X) == same.predict(data.X)).all()


def test_weights_of_the_warm_up_are_not_kept_and_patience_waits(data):
    # 2 steps an epoch: the warm-up of 500 would be 250 epochs, and is half of all at most.
    clf = classifier(data, max_epochs=12, patience=1)
    clf = subject_loop.fit(clf, data.X, data.y, data.subject, lambda n: IRM(100.0))
    assert clf.best_epoch_ > 6
    assert len(clf.history_) > 6


def test_weights_of_subjects_follow_their_losses(data):
    made = []

    def make(n_subjects):
        made.append(GroupDRO(n_subjects, step=0.5))
        return made[0]

    subject_loop.fit(classifier(data), data.X, data.y, data.subject, make)
    assert len(made[0].weight) == 4  # one of the five validates
    assert float(made[0].weight.sum()) == pytest.approx(1, abs=1e-5)
    assert float(made[0].weight.std()) > 1e-3


def test_aligned_signals_have_the_identity_for_mean_covariance_in_every_subject(data):
    X = by_subject(data, euclidean_alignment)
    for who in data.subject_ids:
        mine = X[data.subject == who].astype(float)
        mean = np.einsum("nct,ndt->cd", mine, mine) / (len(mine) * mine.shape[2])
        np.testing.assert_allclose(mean, np.eye(data.n_channels), atol=1e-4)


def test_alignment_undoes_a_gain_and_survives_a_flat_channel(data):
    X = data.trials[:10]
    np.testing.assert_allclose(
        euclidean_alignment(50 * X + 3), euclidean_alignment(X), atol=1e-3, rtol=1e-3
    )
    X = X.copy()
    X[:, 1] = 0
    found = euclidean_alignment(X)
    assert np.isfinite(found).all()
    assert np.abs(found[:, 1]).max() < 1e-6


def test_own_scale_undoes_gains_of_channels_and_survives_a_flat_one(data):
    X = data.trials[:10].copy()
    found = own_scale(X)
    np.testing.assert_allclose(found.std((0, 2)), 1, atol=0.05)
    gains = np.array([3.0, 0.1] * data.n_channels)[: data.n_channels, None]
    np.testing.assert_allclose(own_scale(gains * X + 5), found, atol=1e-3)
    X[:, 1] = 7
    assert np.abs(own_scale(X)[:, 1]).max() < 1e-5


def test_random_gains_are_of_trials_and_channels_and_as_wide_as_asked():
    X = np.ones((500, 8, 3))
    found = random_gains(X, 0.3, 0)
    assert (found == found[..., :1]).all()
    logs = np.log(found[..., 0])
    assert abs(logs.mean()) < 0.02
    assert abs(logs.std() - 0.3) < 0.02
    assert (random_gains(X, 0.3, 0) == found).all()
    assert (random_gains(X, 0.3, 1) != found).any()
    assert (random_gains(X, 0.0, 0) == X).all()
