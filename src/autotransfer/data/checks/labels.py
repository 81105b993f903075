"""Channels that give the class away: a trigger or stimulus channel left among the signals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from autotransfer.data.checks.findings import Finding, warning
from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.trials import Float32, Index
from autotransfer.errors import join_some

LABEL_SAMPLE = 20_000
"""Number of trials, drawn at random, on which label-like channels are looked for."""

LABEL_ACCURACY = 0.98
"""Balanced accuracy, in every subject, from which one number per trial gives the class away."""

LABEL_TRIALS = 30
"""With fewer trials one of many channels separates the classes by chance."""


class LabelWatch:
    """Watch for channels of which one number per trial gives the class away.

    One number per trial, the mean or the log-variance of a channel, is assigned to the class
    with the nearest median (over all subjects, since a trigger has the same code for everyone).
    A class that is told from the others so with a balanced accuracy of 98 % in every subject is
    reported. Looked for on at most 20,000 trials drawn at random with a fixed seed, so that the
    statistics do not grow with the data.
    """

    def __init__(self, data: SubjectDataset) -> None:
        self.data = data
        self.sample = np.arange(data.n_trials)
        if data.n_trials > LABEL_SAMPLE:
            sample = np.random.default_rng(0).choice(data.n_trials, LABEL_SAMPLE, replace=False)
            self.sample = np.sort(sample)
        self.numbers = np.zeros((2, len(self.sample), data.n_channels), np.float32)

    def look(self, start: int, block: Float32) -> None:
        """See the trials from number `start` on."""
        first, last = np.searchsorted(self.sample, [start, start + len(block)])
        inside = self.sample[first:last] - start
        rows = block if len(inside) == len(block) else block[inside]
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            mean = rows.mean(axis=-1)
            centred = rows - mean[..., None]
            self.numbers[0, first:last] = mean
            power = np.einsum("nct,nct->nc", centred, centred)
            # Silent channels get a number far below all others, for the order is all we need.
            self.numbers[1, first:last] = np.log(np.maximum(power, np.finfo(np.float32).tiny))

    def findings(self) -> Iterator[Finding]:
        """Say which channels tell which classes."""
        data = self.data
        y, subject = data.y_code[self.sample], data.subject_code[self.sample]
        if len(self.sample) < LABEL_TRIALS or len(np.unique(y)) < 2:
            return
        for numbers, what in zip(self.numbers, ("mean", "variance"), strict=True):
            separates = class_accuracy(np.nan_to_num(numbers), y, subject) >= LABEL_ACCURACY
            for channel in np.flatnonzero(separates.any(axis=1)):
                classes = np.flatnonzero(separates[channel])
                names = join_some([data.class_names[k] for k in classes])
                yield warning(
                    "label-like",
                    f"Channel {data.channels[channel]} gives the class away: its {what} over a "
                    f"trial tells class {names} from the others in every subject. If it is a "
                    "trigger or stimulus channel, take it out with pick_channels.",
                    channels=(data.channels[channel],),
                    classes=tuple(data.labels[classes].tolist()),
                )


def class_accuracy(
    numbers: npt.NDArray[np.float32], y: Index, subject: Index
) -> npt.NDArray[np.float64]:
    """Tell classes by one number per trial: balanced accuracy in the worst subject.

    Parameters
    ----------
    numbers : ndarray of shape (n_trials, n_channels)
        One number for each trial and channel.
    y, subject : ndarray of int of shape (n_trials,)
        Codes of class and subject.

    Returns
    -------
    ndarray of shape (n_channels, n_classes)
        Mean of sensitivity and specificity of "nearest class median is k", the smallest over
        subjects that have both class k and another one; 0 where there are fewer than two.

    Examples
    --------
    >>> y, subject = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    >>> class_accuracy(np.array([[1.0, 5.0], [2.0, 5.0], [1.1, 5.1], [2.1, 5.0]]), y, subject)
    array([[1. , 1. ],
           [0.5, 0.5]])
    """
    n_classes, n_subjects = int(y.max()) + 1, int(subject.max()) + 1
    present = np.unique(y)
    medians = np.stack([np.median(numbers[y == k], axis=0) for k in present])
    nearest = np.full(numbers.shape, np.inf)
    guess = np.zeros(numbers.shape, np.intp)
    for k, median in zip(present, medians, strict=True):
        distance = np.abs(numbers - median)
        guess[distance < nearest] = k
        nearest = np.minimum(nearest, distance)
    out = np.zeros((numbers.shape[1], n_classes))
    for k in present:
        rates = []
        for members in (y == k, y != k):
            right = (guess == k) == (y == k)[:, None]
            hits = np.zeros((n_subjects, numbers.shape[1]))
            np.add.at(hits, subject[members], right[members])
            n = np.bincount(subject[members], minlength=n_subjects)[:, None]
            rates.append(np.where(n > 0, hits / np.maximum(n, 1), np.nan))
        balanced = np.mean(rates, axis=0)
        usable = ~np.isnan(balanced[:, 0])
        if usable.sum() >= 2:
            out[:, k] = balanced[usable].min(axis=0)
    return out
