"""The guard: whether unlabelled trials are of enough classes to adapt to."""

from __future__ import annotations

from torch import Tensor

from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.adaptation.shares import class_shares, effective_classes

LEAST_SPREAD = 0.7
"""Share of the classes that predictions must reach on the whole."""

LEAST_SHARES = 0.47
"""Share of the classes that must be there as far as can be estimated."""

# Chosen on recordings of three data sets, whole and cut to half of the classes and to one: the
# lowest values at which the cut ones lose little (docs/adapting.md). Whoever needs adaptation most
# stands nearest to them: a model that takes many gestures for few.


def enough_classes(probabilities: Tensor) -> bool:
    """Whether predictions look like those of a recording of all classes.

    Judged by two effective numbers of classes beside the number of classes: that of the mean
    prediction, which falls when classes are missing that the model knows well; and that of the
    estimated shares (`class_shares`), which falls when predictions do not differ.

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
    n_classes = probabilities.shape[1]
    if effective_classes(probabilities.mean(0)) < LEAST_SPREAD * n_classes:
        return False
    # Nearly no prior: few trials of one class must not look like all.
    shares = class_shares(probabilities, prior=0.01, steps=200)
    return effective_classes(shares) >= LEAST_SHARES * n_classes


def refused(fitted: Fitted, person: Person) -> bool:
    """Whether a person's trials seem to be of too few classes to adapt to without labels.

    Statistics of one gesture are not those of the person: adapted to them, a model sees all other
    classes in it. Judged by the predictions of the network as it is.
    """
    return not enough_classes(fitted.probabilities(person.trials))
