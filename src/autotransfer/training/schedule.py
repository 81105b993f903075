"""How the learning rate falls in the course of a training.

Ours and not ``torch.optim.lr_scheduler``: a rate that is a function of the epoch alone needs no
state in a checkpoint, and the critics of a penalty go by it, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """A schedule by name.

    Parameters
    ----------
    summary : str
        What it does, in a line.
    factor : callable
        ``factor(epoch, epochs)``, by which the learning rate is multiplied in an epoch, counted
        from 1, of a training of so many.
    knows_end : bool
        Whether it depends on how many epochs there are: such a training is no beginning of a
        longer one.
    """

    summary: str
    factor: Callable[[int, int], float]
    knows_end: bool = False


def sqrt(epoch: int, epochs: int) -> float:
    """Fall with the root of the epoch: ``1 / sqrt(t)``, as in the paper.

    Examples
    --------
    >>> [sqrt(epoch, 100) for epoch in (1, 4, 100)]
    [1.0, 0.5, 0.1]
    """
    return 1 / math.sqrt(epoch)


def cosine(epoch: int, epochs: int) -> float:
    """Fall along half a cosine to 0: ``(1 + cos(pi (t - 1/2) / T)) / 2``.

    Of Loshchilov and Hutter (2017), without restarts, in the middle of epoch t of T.

    Examples
    --------
    >>> [round(cosine(epoch, 5), 3) for epoch in range(1, 6)]
    [0.976, 0.794, 0.5, 0.206, 0.024]
    """
    return (1 + math.cos(math.pi * (epoch - 0.5) / epochs)) / 2


SCHEDULES: dict[str, Schedule] = {
    "sqrt": Schedule("by the root of the epoch, as in the paper", sqrt),
    "cosine": Schedule("along half a cosine, to 0 in the last epoch", cosine, knows_end=True),
}
"""The schedules by name."""
