"""Data with known answers: oscillations whose class, subject and noise are made by formula.

For tests, examples and a first try of the package: the class can be learnt, the subject can be
decoded, and how strongly is set by the caller.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.validate import as_count, as_sampling_rate, as_seed
from autotransfer.errors import SamplingRateError, SettingError


def make_subjects(
    n_subjects: int = 8,
    n_trials: int = 40,
    n_classes: int = 2,
    n_channels: int = 4,
    n_times: int = 128,
    sfreq: float = 128.0,
    subject_shift: float = 1.0,
    noise: float = 1.0,
    random_state: int = 0,
) -> SubjectDataset:
    r"""Make labelled trials of several people, from a formula.

    Trial i of subject s with class y is, at time t in seconds,

        x(t) = M_s a_y √2 sin(2π f_y t + φ_i) + d b_s √2 sin(2π g_s t + ψ_i) + σ ε(t)
        M_s  = exp(d u_s / 4) (I + d G_s / (2 √C))

    with d = `subject_shift`, σ = `noise` and C = `n_channels`. Class y has a frequency f_y,
    evenly spaced from 0.06 to 0.20 of the sampling rate, and a spatial pattern a_y with root
    mean square 1 over channels. Subject s has a gain u_s ~ N(0, 1), a channel mixing G_s with
    N(0, 1) entries, and a rhythm of their own: frequency g_s uniform in 0.25 to 0.40 of the
    sampling rate, pattern b_s with root mean square 1. Phases φ_i, ψ_i are uniform and ε is white
    noise N(0, 1). So y tells itself by frequency and pattern in all people, s by rhythm, gain and
    pattern; with d = 0 all people are the same.

    Parameters
    ----------
    n_subjects : int
        Number of people.
    n_trials : int
        Number of trials of each person. Classes are balanced, in random order.
    n_classes, n_channels, n_times : int
        Numbers of classes, channels and time points.
    sfreq : float
        Sampling rate in Hz.
    subject_shift : float
        How much people differ, d.
    noise : float
        Standard deviation of the noise, σ.
    random_state : int
        Seed. A subject is the same whatever the number of subjects.

    Returns
    -------
    SubjectDataset
        n_subjects * n_trials trials, ordered by subject; subjects and classes are 0, 1, ...

    Examples
    --------
    >>> data = make_subjects(n_subjects=3, n_trials=10)
    >>> data
    SubjectDataset(30 trials, 3 subjects, 2 classes, 4 channels x 128 times, 128 Hz)
    >>> data.counts().tolist()
    [[5, 5], [5, 5], [5, 5]]
    """
    _require_counts(n_subjects=n_subjects, n_trials=n_trials, n_classes=n_classes)
    _require_counts(n_channels=n_channels, n_times=n_times)
    _require_sizes(subject_shift=subject_shift, noise=noise)
    random_state, rate = as_seed(random_state), as_sampling_rate(sfreq)
    if rate is None:
        raise SamplingRateError("sfreq must be a number in Hz, not None.")
    frequencies = class_frequencies(n_classes, rate)
    patterns = _patterns(np.random.default_rng([random_state, 1]), n_classes, n_channels)
    X = np.empty((n_subjects * n_trials, n_channels, n_times), np.float32)
    y = np.empty(n_subjects * n_trials, np.int64)
    times = np.arange(n_times) / rate
    for s in range(n_subjects):
        rng = np.random.default_rng([random_state, 2, s])
        gain = np.exp(subject_shift * rng.normal() / 4)
        mix = rng.normal(size=(n_channels, n_channels))
        mix = gain * (np.eye(n_channels) + subject_shift * mix / (2 * np.sqrt(n_channels)))
        own_frequency = rate * rng.uniform(0.25, 0.40)
        own_pattern = subject_shift * _patterns(rng, 1, n_channels)[0]
        rows = slice(s * n_trials, (s + 1) * n_trials)
        y[rows] = label = rng.permutation(np.arange(n_trials) % n_classes)
        phase, own_phase = rng.uniform(0, 2 * np.pi, (2, n_trials, 1))
        wave = np.sin(2 * np.pi * frequencies[label][:, None] * times + phase)
        own_wave = np.sin(2 * np.pi * own_frequency * times + own_phase)
        block = rng.normal(size=(n_trials, n_channels, n_times)) * noise
        block += np.sqrt(2) * (patterns @ mix.T)[label][:, :, None] * wave[:, None]
        block += np.sqrt(2) * own_pattern[:, None] * own_wave[:, None]
        X[rows] = block
    return SubjectDataset(X, y, np.repeat(np.arange(n_subjects), n_trials), sfreq=rate)


def make_leak(
    n_subjects: int = 6,
    n_trials: int = 400,
    confounding: float = 0.0,
    leak: float = 2.0,
    random_state: int = 0,
    draw: int = 0,
) -> SubjectDataset:
    r"""Make trials whose class and subject can be told apart perfectly, for tests of censoring.

    Trial i of subject s with class y in {0, 1} is a vector of 12 channels at one time point,

        x = Q [ ±(1.2, 1.2) ;  leak * b_s ;  0 ] + ε

    with Q an orthogonal matrix, b_s ~ N(0, I) in 4 dimensions and ε ~ N(0, I) in 12. The class
    stands in 2 dimensions, the subject in 4 others, so an encoder that drops those 4 loses
    nothing of the class: the best accuracy is Φ(1.2 √2) = 0.955 with and without censoring.

    Parameters
    ----------
    n_subjects, n_trials : int
        Number of people, and of trials of each.
    confounding : float
        From 0 to 1: P(y = 1 | s) goes from (1 - confounding) / 2 to (1 + confounding) / 2 over the
        subjects, so that the label alone tells something about the subject.
    leak : float
        How far subjects lie apart.
    random_state : int
        Seed of Q and b.
    draw : int
        Seed of the trials: other draws are more trials of the same people.

    Returns
    -------
    SubjectDataset
        n_subjects * n_trials trials of shape (12, 1), ordered by subject.

    Examples
    --------
    >>> make_leak(n_trials=10)
    SubjectDataset(60 trials, 6 subjects, 2 classes, 12 channels x 1 times)
    """
    _require_counts(n_subjects=n_subjects, n_trials=n_trials)
    _require_sizes(confounding=confounding, leak=leak)
    people = np.random.default_rng([as_seed(random_state), 3])
    q = np.linalg.qr(people.normal(size=(12, 12)))[0]
    codes = people.normal(size=(n_subjects, 4))
    rng = np.random.default_rng([as_seed(random_state), 4, as_seed(draw)])
    subject = np.repeat(np.arange(n_subjects), n_trials)
    share = 0.5 + confounding * np.linspace(-0.5, 0.5, n_subjects)
    y = (rng.uniform(size=len(subject)) < share[subject]).astype(np.int64)
    hidden = rng.normal(size=(len(subject), 12))
    hidden[:, :2] += 1.2 * (2 * y[:, None] - 1)
    hidden[:, 2:6] += leak * codes[subject]
    return SubjectDataset((hidden @ q.T)[:, :, None].astype(np.float32), y, subject)


def _require_counts(**counts: int) -> None:
    for name, count in counts.items():
        as_count(count, name)


def _require_sizes(**sizes: float) -> None:
    for name, size in sizes.items():
        if not (np.isfinite(size) and size >= 0) or (name == "confounding" and size > 1):
            raise SettingError(f"{name} must be a number of at least 0, not {size}.")


def class_frequencies(n_classes: int, sfreq: float) -> npt.NDArray[np.float64]:
    """Return the frequency in Hz of every class of `make_subjects`.

    Examples
    --------
    >>> class_frequencies(2, 100.0)
    array([ 6., 20.])
    """
    return sfreq * np.linspace(0.06, 0.20, n_classes)


def _patterns(rng: np.random.Generator, n: int, n_channels: int) -> npt.NDArray[np.float64]:
    """Draw n spatial patterns with root mean square 1 over channels."""
    patterns = rng.normal(size=(n, n_channels))
    scaled: npt.NDArray[np.float64] = patterns / np.sqrt(np.mean(patterns**2, 1, keepdims=True))
    return scaled
