"""How well people can be told apart by their signals, before any training."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.trials import CHUNK_BYTES, Index
from autotransfer.leakage import measure_leakage
from autotransfer.leakage.probe import Floats
from autotransfer.leakage.result import Leakage

MAX_TRIALS, MAX_SUBJECTS = 2000, 40
OCTAVES = 5
"""Bands of the spectrum: from half the rate down, each half as wide as the one above."""


def signal_leakage(
    data: SubjectDataset,
    *,
    max_trials: int = MAX_TRIALS,
    max_subjects: int = MAX_SUBJECTS,
    random_state: int = 0,
) -> Leakage:
    """Measure what simple features of the raw signals give away about the subject.

    Parameters
    ----------
    data : SubjectDataset
        Labelled trials.
    max_trials, max_subjects : int
        Most trials and subjects to look at, spread evenly.
    random_state : int
        Seed of the probes.

    Returns
    -------
    Leakage
        Of the linear and the Gaussian probe, on `signal_features`.

    Notes
    -----
    A few seconds: it is a first look at how much there is to censor, not a study.

    Examples
    --------
    >>> from autotransfer.data.synthetic import make_subjects
    >>> leakage = signal_leakage(make_subjects(n_subjects=4, n_trials=40, random_state=0))
    >>> leakage.chance, leakage.best.accuracy.value > 0.5
    (0.25, True)
    """
    trials = spread_trials(data.subject_code, max_trials, max_subjects)
    recording = data.session if data.recording is None else data.recording
    return measure_leakage(
        signal_features(data, trials),
        data.subject[trials],
        recording=None if recording is None else recording[trials],
        probes=("linear", "gaussian"),
        random_state=random_state,
    )


def signal_features(data: SubjectDataset, trials: Index) -> Floats:
    """Compute features of trials: log variance of each channel, log power of each octave.

    Returns
    -------
    array of shape (n_trials, n_channels + number of octaves)
        Powers of octaves are means over channels.
    """
    step = max(1, CHUNK_BYTES // (8 * data.n_channels * data.n_times))
    parts = [_features(data.trials[trials[i : i + step]]) for i in range(0, len(trials), step)]
    return np.concatenate(parts)


def _features(block: npt.NDArray[Any]) -> Floats:
    signals = block.astype(np.float64)
    signals -= signals.mean(-1, keepdims=True)
    variance = signals.var(-1)
    power = np.abs(np.fft.rfft(signals, axis=-1)) ** 2
    n = power.shape[-1]
    edges = sorted({n >> octave for octave in range(OCTAVES)} - {0}, reverse=True)
    bands = [
        power[..., low:high].mean((1, 2))
        for high, low in zip(edges, [*edges[1:], 0], strict=True)
        if high > low
    ]
    powers = np.column_stack([variance, *bands])
    # A flat channel has no logarithm; the smallest number that a signal of this size can show.
    floor = np.finfo(np.float32).tiny
    logs: Floats = np.log(np.maximum(powers, floor))
    return logs


def spread_trials(subject: Index, max_trials: int, max_subjects: int) -> Index:
    """Choose trials evenly: over subjects, and over each subject's recording.

    Parameters
    ----------
    subject : array of int of shape (n_trials,)
        Code of the subject of each trial.
    max_trials, max_subjects : int
        Most of each.

    Examples
    --------
    >>> spread_trials(np.repeat([0, 1, 2], 10), 6, 2)
    array([ 0,  4,  9, 20, 24, 29])
    """
    codes = np.unique(subject)
    people = codes[_evenly(len(codes), max_subjects)]
    each = max(1, max_trials // len(people))
    trials = []
    for person in people:
        own_trials = np.flatnonzero(subject == person)
        trials.append(own_trials[_evenly(len(own_trials), each)])
    return np.sort(np.concatenate(trials))


def _evenly(n: int, limit: int) -> Index:
    return np.unique(np.linspace(0, n - 1, min(n, limit)).astype(np.intp))
