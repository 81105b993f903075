"""The recipes that suit some data: what a search tries if nobody says anything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from autotransfer.data.info import eeg_channels, emg_channels
from autotransfer.data.problem import Problem
from autotransfer.encoder.covariance import auto_bands
from autotransfer.search.settings.recipe import ENCODER, Dimension, RecipeSpace
from autotransfer.training.options import TrainingOptions

STEPS, STEPS_EMG = (1000, 400, 2000), (2000, 800, 4000)
"""Lengths of a training: as a rule, where that is too long, where it is too short."""

# What a dimension is expected to gain is the most that one of its values gained on people held out
# in benchmarks/results/baseline.json (SSVEP, ERP, EMG), the mean of the three sets and rounded:
# kernel 0.008, filters 0.009, dropout 0.001. What was not measured there (batches, steps), and
# normalisation, where the first guess may be far off, stand by judgement. Augmentations have a
# benchmark of their own, from three seeds.
# Fewer steps (ERP +0.019, EMG -0.018) are cheap to try, and make all that follows cheaper. That,
# and what is said of EMG's batches below, was tried once by hand: no benchmark has these figures.


def recipe_space(
    problem: Problem,
    options: TrainingOptions,
    fixed: Sequence[str] = (),
    signal: str | None = None,
    new_person: str = "nothing",
) -> RecipeSpace:
    """Make the recipes that suit the data.

    Parameters
    ----------
    problem : Problem
        The data: sampling rate, length of a trial, channels, people.
    options : TrainingOptions
        Those of the run.
    fixed : sequence of str
        Options that the user has set, which are not searched.
    signal : {"eeg", "emg"}, optional
        The kind of signal; by default what channel names tell.
    new_person : {"nothing", "recording", "stream", "labels"}
        What there will be of somebody new: with anything, recipes that go by each person's own
        statistics are tried, too.
    """
    kept = {*fixed, *(options.encoder_options or {})}
    if options.max_epochs is not None:
        kept.add("n_steps")
    if "kernel_length" in kept:
        kept.add("kernel_seconds")  # another word for the same
    channels = problem.info.channels
    if signal is None and emg_channels(channels):
        signal = "emg"
    elif signal is None and 2 * len(eeg_channels(channels)) > len(channels or ()) > 0:
        signal = "eeg"
    emg = signal == "emg"
    own = new_person != "nothing"
    usual, fewer, more = STEPS_EMG if emg else STEPS
    found = [
        Dimension(
            "normalisation",
            _values("normalise", (*_normalisers(emg, signal), *(_OWN if own else ()))),
            0.03,
        ),
        _batches(problem, emg),
        Dimension("fewer steps", _values("n_steps", (usual, fewer)), 0.005, (1.0, 0.4)),
        Dimension("steps", _values("n_steps", (usual, more)), 0.01, (1.0, 2.0)),
        _augmentations(problem.X.shape[1], options.encoder == "eegnet"),
        Dimension("schedule", _values("schedule", ("cosine", "sqrt")), 0.002),
    ]
    if options.encoder == "eegnet" and own:
        person_norm = _values("person_norm", (False, True))
        found.append(Dimension("norm by person", person_norm, 0.01, (1.0, 1.3), "eegnet"))
    if options.encoder == "eegnet":
        found += [
            _kernels(problem, options, emg),
            _filters(emg),
            Dimension("dropout", _values("drop_prob", (0.25, 0.5)), 0.001),
        ]
        if not options.encoder_options:
            sfreq = problem.info.sfreq or options.sfreq
            # Where there are no bands it would be the same encoder twice.
            bands = not emg and bool(auto_bands(*problem.X.shape[1:], sfreq))
            of_eegnet = [name for d in found if d.encoder for name in d.values[0]]
            found.append(_encoders(kept, bands, of_eegnet))
    return RecipeSpace([d for d in found if not kept & {k for v in d.values for k in v}])


# The geometric mean is not searched: it takes longer than the arithmetic one, and one is enough.
_OWN = ("person", "euclidean")


def _values(name: str, values: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    return tuple({name: value} for value in values)


def _normalisers(emg: bool, signal: str | None) -> tuple[str, ...]:
    """Pattern of amplitude over channels is the signal of EMG, and noise of the skin in EEG."""
    if emg:
        return "train", "trial"
    return ("channel", "trial") if signal == "eeg" else ("channel", "trial", "train")


def _batches(problem: Problem, emg: bool) -> Dimension:
    """Batches and the learning rate that goes with them."""
    people = len(np.unique(problem.subject))
    large = min(16, max(4, people - people // 4))
    shapes = ((8, 8, 4e-3), (large, 8, 4e-3), (8, 8, 1.5e-3))
    costs = (1.0, large / 8, 1.0)
    if emg:
        # 2000 steps of 16 x 16 trials took 2.7 times as long and gave what 8 x 8 give (0.752).
        shapes, costs = ((8, 8, 3e-3), (large, 16, 3e-3), (8, 8, 1.5e-3)), (1.0, 2.7, 1.0)
    names = ("subjects_per_batch", "trials_per_subject", "learning_rate")
    values = tuple(dict(zip(names, shape, strict=True)) for shape in shapes)
    return Dimension("batches", values, 0.01, costs)


def _augmentations(n_channels: int, prepares: bool) -> Dimension:
    """Masking of channels, none, or masking and mixtures of people.

    Masking gained on all three data sets of ``benchmarks/accuracy/augmentations.py`` (0.021 in the
    mean) and mixtures on one. The others gained nowhere, turning the ring cost 0.05 where all bands
    sit alike, and they are not searched.
    """
    # Statistics that EEGNet prepares once are put right where channels are masked, and computed
    # anew after mixtures: a step takes 1.13 and 1.27 times as long with 8 channels, 1.33 and 2.4
    # times with 61.
    masking, both = (1.1 + n_channels / 260, 1.15 + n_channels / 50) if prepares else (1.05, 1.1)
    values = _values("augment", ("mask", None, "mask+mix"))
    # Covariances are computed once for a training, and would be anew in every step: not theirs.
    of = "eegnet" if prepares else ""
    return Dimension("augmentation", values, 0.006, (1.0, 1 / masking, both / masking), of)


def _encoders(kept: set[str], in_bands: bool, of_eegnet: Sequence[str]) -> Dimension:
    """EEGNet, or covariances in tangent space, for EEG also in bands.

    The mean of both was ahead of EEGNet on seven of nine data sets, by up to 0.03, and behind on
    ERP (``benchmarks/nine_sets/encoders.py``, one seed), whichever is better alone. Trained on what
    is computed once, covariances take seconds.
    """
    own: dict[str, Any] = {"encoder": "covariance", "normalise": "trial"}
    own |= dict.fromkeys(of_eegnet)  # a recipe does not tell of what its encoder has not
    own = {name: value for name, value in own.items() if name not in kept}
    bands = (None, "auto") if in_bands else (None,)
    values: list[dict[str, Any]] = [{"encoder": "eegnet"}]
    values += [{**own, "bands": some} for some in bands]
    return Dimension(ENCODER, tuple(values), 0.02, (1.0, 0.2, 0.4)[: len(values)])


def _filters(emg: bool) -> Dimension:
    """Temporal filters; twice as many were worth 0.017 to 0.02 on EMG, and less on EEG."""
    if emg:
        return Dimension("filters", _values("F1", (16, 8)), 0.001, (1.0, 0.6), "eegnet")
    return Dimension("filters", _values("F1", (8, 16)), 0.009, (1.0, 1.7), "eegnet")


def _kernels(problem: Problem, options: TrainingOptions, emg: bool) -> Dimension:
    """Lengths of the temporal filter, in seconds where the sampling rate is known."""
    sfreq = problem.info.sfreq or options.sfreq
    n_times = problem.X.shape[2]
    if sfreq is None:
        lengths = [n for n in (n_times // 4, n_times // 8, n_times // 2) if n > 1]
        return Dimension("kernel", _values("kernel_length", lengths), 0.008, (), "eegnet")
    window = n_times / sfreq
    seconds = (0.08, 0.16, 0.32) if emg else (0.5, 0.25, 1.0)
    short = [s for s in seconds if 2 / sfreq <= s <= window] or [window / 2]
    return Dimension("kernel", _values("kernel_seconds", short), 0.008, (), "eegnet")
