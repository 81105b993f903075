"""The turn of a ring of electrodes: an armband that sits otherwise than in training."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.adaptation.shares import mutual_information
from autotransfer.adaptation.statistics import PRIOR, adaptable, statistics
from autotransfer.data.align import Float64
from autotransfer.data.trials import Float32

AMPLITUDES = 0.1
"""Weight of amplitudes beside the information of predictions, which alone misses the turn of some
people by much. With 0, 0.05, 0.1 and 0.25 people of CIIL EMG had 0.795, 0.857, 0.857 and 0.853 by
the turn that was found, those of Myo EMG 0.890, 0.890, 0.910 and 0.908, and those of CIIL EMG and
Myo disco by a network of Myo EMG 0.859, 0.877, 0.877, 0.873 and 0.832, 0.832, 0.832, 0.835; by the
best turn 0.882, 0.910, 0.882 and 0.836 (one seed, 14 to 32 people)."""


def ring(fitted: Fitted, person: Person, *, prior: int = PRIOR) -> Fitted:
    r"""Turn the electrodes by as many places as makes predictions tell most.

    Every turn of the channels around the ring is tried, with the person's statistics under that
    turn where the encoder has any. The one is kept with the largest

        I - `AMPLITUDES` * sum_c (a_c - b_c)^2

    with the mutual information I of trial and predicted class, and the logarithm of each channel's
    standard deviation less its mean over channels: a of the person under that turn, b in training.
    Where the normaliser keeps no amplitudes of training, it is I alone.

    Parameters
    ----------
    fitted : Fitted
        Trained on channels that stand around an arm in their order; not changed.
    person : Person
        All trials are used, and no label.
    prior : int
        As of `statistics`.
    """
    turns = [turned(fitted, turn) for turn in range(person.trials.shape[1])]
    told = [float(mutual_information(_adapted(one, person, prior))) for one in turns]
    worth = np.array(told) - AMPLITUDES * _misfits(fitted, person.trials)
    return turns[int(worth.argmax())]


def turned(fitted: Fitted, turn: int) -> Fitted:
    """Give the same network for signals whose electrodes sit so many places further on."""
    return fitted.with_normaliser(fitted.normaliser.turned(turn))


def _adapted(fitted: Fitted, person: Person, prior: int) -> Tensor:
    if adaptable(fitted.network):
        fitted = statistics(fitted, person, prior=prior)
    return fitted.probabilities(person.trials)


def _misfits(fitted: Fitted, trials: Float32) -> Float64:
    """Say how far amplitudes of channels are from those in training, under each turn, (C,)."""
    known, already = fitted.normaliser.amplitude, fitted.normaliser.turn
    own = np.std(trials, axis=(0, 2), dtype=np.float64)
    if known is None or not own.any() or not known.any():
        return np.zeros(len(own))
    here, there = _pattern(own), _pattern(known)
    turns = range(already, already + len(own))
    return np.array([np.sum((np.roll(here, turn) - there) ** 2) for turn in turns])


def _pattern(amplitudes: Float64) -> Float64:
    """Logarithms about their mean; a flat channel counts as a very quiet one."""
    logs = np.log(np.maximum(amplitudes, 1e-3 * amplitudes.max()))
    return np.asarray(logs - logs.mean())
