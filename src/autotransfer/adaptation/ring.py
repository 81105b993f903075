"""The turn of a ring of electrodes: an armband that sits otherwise than in training."""

from __future__ import annotations

from torch import Tensor

from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.adaptation.shares import mutual_information
from autotransfer.adaptation.statistics import PRIOR, adaptable, statistics


def ring(fitted: Fitted, person: Person, *, prior: int = PRIOR) -> Fitted:
    """Turn the electrodes by as many places as makes predictions tell most.

    Every turn of the channels around the ring is tried, with the person's statistics under that
    turn where the encoder has any; the one with the largest mutual information of trial and
    predicted class is kept.

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
    return turns[told.index(max(told))]


def turned(fitted: Fitted, turn: int) -> Fitted:
    """Give the same network for signals whose electrodes sit so many places further on."""
    return fitted.with_normaliser(fitted.normaliser.turned(turn))


def _adapted(fitted: Fitted, person: Person, prior: int) -> Tensor:
    if adaptable(fitted.network):
        fitted = statistics(fitted, person, prior=prior)
    return fitted.probabilities(person.trials)
