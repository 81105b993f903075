"""The task loss: class-weighted cross entropy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional


def class_weights(codes: npt.NDArray[np.intp], n_classes: int) -> npt.NDArray[np.float64]:
    """Weight classes by the inverse of their number of trials.

    ``w_k = (1 / n_k) / sum_j (1 / n_j)``

    A class without trials has weight 0: nothing can be learned about it, and 1 / 0 would spoil
    the others.

    Parameters
    ----------
    codes : array of int of shape (n_trials,)
        Class numbers of the training subjects' trials only.
    n_classes : int
        Number of classes.

    Returns
    -------
    array of shape (n_classes,)
        Weights that sum to 1.

    Examples
    --------
    >>> class_weights(np.repeat([0, 1, 2], [30, 10, 60]), 3).round(3).tolist()
    [0.222, 0.667, 0.111]
    """
    counts = np.bincount(codes, minlength=n_classes).astype(float)
    inverse = np.divide(1.0, counts, out=np.zeros(n_classes), where=counts > 0)
    weights: npt.NDArray[np.float64] = inverse / inverse.sum()
    return weights


def task_loss(logits: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    """Cross entropy, averaged with the weight of each trial's class.

    ``sum_i w_{y_i} ce_i / sum_i w_{y_i}``: its scale does not depend on the batch size, the number
    of classes or the weights, so that `strength` means the same everywhere.

    Parameters
    ----------
    logits : Tensor of shape (B, n_classes)
    y : Tensor of int64 of shape (B,)
    weights : Tensor of shape (n_classes,)

    Returns
    -------
    Tensor
        A scalar; 0 for a batch in which every trial's class has weight 0.
    """
    total = functional.cross_entropy(logits, y, weight=weights, reduction="sum")
    # A batch of unweighted classes only (they have no training trials) would divide 0 by 0.
    return total / weights[y].sum().clamp_min(torch.finfo(logits.dtype).tiny)
