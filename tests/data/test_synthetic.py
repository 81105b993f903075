"""Synthetic subjects: the formula holds, y can be learnt across people and s can be decoded."""

import time

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score

from autotransfer.data.synthetic import class_frequencies, make_subjects
from autotransfer.errors import SettingError


def spectra(data):
    power = np.abs(np.fft.rfft(data.X, axis=-1)) ** 2
    return np.log(power + 1e-3).reshape(len(data), -1)


def test_deterministic_and_balanced():
    one, two = make_subjects(n_subjects=3), make_subjects(n_subjects=3)
    assert one.fingerprint() == two.fingerprint()
    assert one.fingerprint() != make_subjects(n_subjects=3, random_state=1).fingerprint()
    assert (one.counts() == 20).all()
    assert one.X.dtype == np.float32


def test_more_subjects_leave_the_first_as_they_were():
    few, many = make_subjects(n_subjects=2), make_subjects(n_subjects=5)
    assert np.array_equal(few.X, many.X[: len(few)])


def test_without_shift_and_noise_only_the_class_is_left():
    sfreq, n_times = 100.0, 100
    data = make_subjects(
        4, 20, 3, n_times=n_times, sfreq=sfreq, subject_shift=0.0, noise=0.0, random_state=3
    )
    # f = 6, 13, 20 Hz: whole periods in one second, so all power is in one bin.
    power = np.abs(np.fft.rfft(data.X, axis=-1)) ** 2
    peak = power.sum(axis=1).argmax(axis=-1)
    assert np.array_equal(peak, np.round(class_frequencies(3, sfreq))[data.y].astype(int))
    np.testing.assert_allclose((data.X**2).mean(axis=(1, 2)), 1.0, rtol=1e-5)
    # One spatial pattern for each class, up to the sign, in all subjects.
    for k in range(3):
        rows = data.X[data.y == k].transpose(1, 0, 2).reshape(4, -1)
        assert np.linalg.matrix_rank(rows, tol=1e-3) == 1


def test_class_is_learnable_across_subjects_and_subject_decodable():
    data = make_subjects(n_subjects=6, n_trials=30)
    model = LogisticRegression(C=0.01, max_iter=500)
    features = spectra(data)
    across = cross_val_score(
        model, features, data.y, groups=data.subject, cv=GroupKFold(6), scoring="accuracy"
    )
    assert across.mean() > 0.9
    assert cross_val_score(model, features, data.subject, cv=3).mean() > 0.9


def test_subject_cannot_be_decoded_without_shift():
    data = make_subjects(n_subjects=4, n_trials=40, subject_shift=0.0)
    score = cross_val_score(LogisticRegression(C=0.01), spectra(data), data.subject, cv=4).mean()
    assert score < 0.40  # chance is 0.25


def test_fast():
    start = time.perf_counter()
    make_subjects(n_subjects=50)
    assert time.perf_counter() - start < 2.0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n_subjects": 0}, "n_subjects must be a whole number of at least 1, not 0"),
        ({"n_times": -1}, "n_times must be a whole number of at least 1, not -1"),
        ({"noise": -0.5}, "noise must be a number of at least 0"),
        ({"subject_shift": float("nan")}, "subject_shift must be a number"),
    ],
)
def test_wrong_settings(wrong, words):
    with pytest.raises(SettingError, match=words):
        make_subjects(**wrong)
