"""The guard: whether unlabelled trials are of enough classes to adapt to."""

from __future__ import annotations

from torch import Tensor

from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.adaptation.shares import class_shares, effective_classes

LEAST_SPREAD = 0.64
"""Least variety of the mean prediction: 0 is one class, 1 is all classes equally often."""

LEAST_SHARES = 0.3
"""Least variety of the estimated shares of the classes."""

# Chosen by hand on recordings of five data sets, whole and cut to half of the classes and to one;
# benchmarks/accuracy/levels.py judges them (its table has no committed figures yet). Whoever needs
# adaptation most stands nearest to them: a person of whose gestures the model takes many for few.


def variety(shares: Tensor) -> float:
    """Tell how many classes shares are of, between one (0) and all of them equally (1).

    Examples
    --------
    >>> import torch
    >>> variety(torch.tensor([1.0, 0.0, 0.0])), variety(torch.tensor([0.5, 0.5, 0.0]))
    (0.0, 0.5)
    """
    return (effective_classes(shares) - 1) / max(len(shares) - 1, 1)


def enough_classes(probabilities: Tensor) -> bool:
    """Whether predictions look like those of a recording of all classes.

    Judged by the `variety` of the mean prediction, which is small when classes are missing that the
    model knows well, and by that of the estimated shares (`class_shares`), which is small when
    predictions do not differ.

    Parameters
    ----------
    probabilities : Tensor of shape (n_trials, n_classes)
        Of the network before it was adapted.

    Examples
    --------
    >>> import torch
    >>> four = torch.eye(4).repeat(5, 1)
    >>> enough_classes(four), enough_classes(four[four[:, 0] + four[:, 1] > 0])
    (True, False)
    """
    if variety(probabilities.mean(0)) < LEAST_SPREAD:
        return False
    # Nearly no prior: few trials of one class must not look like all.
    return variety(class_shares(probabilities, prior=0.01, steps=200)) >= LEAST_SHARES


def refused(fitted: Fitted, person: Person) -> bool:
    """Whether a person's trials seem to be of too few classes to adapt to without labels.

    Statistics of one gesture are not those of the person: adapted to them, a model sees all other
    classes in it. Judged by the predictions of the network as it is.
    """
    return not enough_classes(fitted.probabilities(person.trials))
