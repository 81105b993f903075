"""The first look at how well people can be told apart by their signals."""

import numpy as np

from autotransfer.data.dataset import SubjectDataset
from autotransfer.leakage.signals import signal_features, signal_leakage, spread_trials


def people(gain, n_subjects=4, n_trials=60, seed=0):
    """White noise of people who differ by the gain of their channels, or do not."""
    rng = np.random.default_rng(seed)
    subject = np.repeat(np.arange(n_subjects), n_trials)
    X = rng.normal(size=(len(subject), 3, 64))
    X *= np.exp(gain * rng.normal(size=(n_subjects, 3)))[subject][:, :, None]
    return SubjectDataset(X, np.tile([0, 1], len(subject) // 2), subject, sfreq=100)


def test_people_who_differ_are_told_apart():
    found = signal_leakage(people(gain=1.0))
    assert found.chance == 0.25
    assert found.best.accuracy.low > 0.8


def test_people_who_do_not_differ_are_not():
    found = signal_leakage(people(gain=0.0))
    assert found.best.above_chance.low < 0 < found.best.above_chance.high


def test_features_are_variances_and_octaves():
    data = people(gain=1.0)
    trials = np.array([5, 100, 7])
    found = signal_features(data, trials)
    assert found.shape == (3, 3 + 5)
    np.testing.assert_allclose(found[:, :3], np.log(data.X[trials].var(-1)), rtol=1e-4)


def test_a_tone_is_in_its_octave():
    t = np.arange(128) / 128
    tones = [np.sin(2 * np.pi * f * t) for f in (2, 6, 12, 24, 48)]
    X = np.repeat(np.stack(tones)[:, None], 2, axis=1)
    data = SubjectDataset(X, [0, 1, 0, 1, 0], np.arange(5), sfreq=128)
    found = signal_features(data, np.arange(5))
    assert found[:, 2:].argmax(1).tolist() == [4, 3, 2, 1, 0]


def test_flat_channels_give_numbers():
    X = np.zeros((4, 2, 16))
    X[:, 0] = np.random.default_rng(0).normal(size=(4, 16))
    found = signal_features(SubjectDataset(X, [0, 1] * 2, [0, 0, 1, 1]), np.arange(4))
    assert np.isfinite(found).all()


def test_trials_are_spread_over_subjects_and_time():
    subject = np.repeat(np.arange(100), 50)
    chosen = spread_trials(subject, max_trials=400, max_subjects=40)
    who, count = np.unique(subject[chosen], return_counts=True)
    assert len(who) == 40
    assert set(count) == {10}
    assert who[0] == 0
    assert who[-1] == 99
    first = chosen[subject[chosen] == 0]
    assert first[0] == 0
    assert first[-1] == 49
    assert spread_trials(np.array([1, 0, 1]), 100, 100).tolist() == [0, 1, 2]
