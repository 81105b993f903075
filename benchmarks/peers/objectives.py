"""Objectives over the losses of subjects: IRM, V-REx and GroupDRO, for the benchmark only.

With L_s the class-weighted cross entropy of the trials of subject s in a batch, and the mean taken
over the subjects in it:

- IRM (IRMv1): mean_s L_s + λ mean_s |∂ L_s(w · logits) / ∂w at w = 1|²
- V-REx: mean_s L_s + λ Var_s(L_s)
- GroupDRO: sum_s q_s L_s, where q_s grows with exp(η L_s) at every step

Settings are DomainBed's defaults, which also has the warm-up: until 500 steps are done the weight
of the penalty is 1, then λ, with a fresh optimiser.

References
----------
Arjovsky et al. (2019), Invariant risk minimization. arXiv:1907.02893
Krueger et al. (2021), Out-of-distribution generalization via risk extrapolation. ICML.
Sagawa et al. (2020), Distributionally robust neural networks for group shifts. ICLR.
Gulrajani and Lopez-Paz (2021), In search of lost domain generalization. ICLR (DomainBed).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from autotransfer.training.loop import task_loss

WARMUP_STEPS = 500


@dataclass(frozen=True)
class Batch:
    """What an objective sees of a batch.

    Parameters
    ----------
    logits : Tensor of shape (B, n_classes)
        With their graph.
    y : Tensor of int64 of shape (B,)
        Class numbers.
    weights : Tensor of shape (n_classes,)
        Weights of the classes.
    subject : Tensor of int64 of shape (B,)
        Subject numbers, counted over the training subjects.
    warm : bool
        Whether the warm-up is over.
    """

    logits: Tensor
    y: Tensor
    weights: Tensor
    subject: Tensor
    warm: bool = True

    def people(self) -> tuple[Tensor, Tensor]:
        """Subjects in the batch (G,), and rows of each as a (G, B) matrix of ones and zeros."""
        present, row = torch.unique(self.subject, return_inverse=True)
        return present, functional.one_hot(row, len(present)).T.to(self.logits.dtype)


def subject_means(values: Tensor, weight: Tensor, rows: Tensor) -> Tensor:
    """Weighted mean over the rows of each subject: (B,), (B,), (G, B) -> (G,)."""
    tiny = torch.finfo(values.dtype).tiny  # a subject of unweighted classes only counts 0
    return (rows @ (weight * values)) / (rows @ weight).clamp_min(tiny)


def subject_losses(batch: Batch) -> tuple[Tensor, Tensor]:
    """Subjects in the batch (G,), and the task loss of each (G,)."""
    present, rows = batch.people()
    losses = functional.cross_entropy(batch.logits, batch.y, reduction="none")
    return present, subject_means(losses, batch.weights[batch.y], rows)


def irm_penalty(batch: Batch) -> Tensor:
    """Mean over subjects of the squared slope of the loss in a factor on the logits.

    The slope of trial i is ``sum_k p_ik l_ik - l_iy``. As in DomainBed, its square is the product
    of the slopes of every other row of a subject and of the rest: the square of one noisy slope
    would be too large by its variance. A subject with a single trial counts 0.
    """
    _, rows = batch.people()
    probabilities = batch.logits.softmax(1)
    of_label = batch.logits.gather(1, batch.y[:, None])[:, 0]
    slope = (probabilities * batch.logits).sum(1) - of_label
    place = (rows.cumsum(1) - 1) * rows  # the how-manieth row of its subject a row is
    odd = rows * (place % 2)
    weight = batch.weights[batch.y]
    return (subject_means(slope, weight, rows - odd) * subject_means(slope, weight, odd)).mean()


class Objective:
    """A loss of a batch from the losses of its subjects."""

    warmup_steps = 0
    """Steps before the penalty has its full weight."""

    def __call__(self, batch: Batch) -> Tensor:
        """Give the loss that the network is trained with, a scalar."""
        raise NotImplementedError


class Pooled(Objective):
    """The task loss of all rows together: the uncensored baseline."""

    def __call__(self, batch: Batch) -> Tensor:
        """Give the task loss."""
        return task_loss(batch.logits, batch.y, batch.weights)


class IRM(Objective):
    """IRMv1 with strength λ."""

    warmup_steps = WARMUP_STEPS

    def __init__(self, strength: float) -> None:
        self.strength = strength

    def __call__(self, batch: Batch) -> Tensor:
        """Give mean loss and penalty."""
        _, losses = subject_losses(batch)
        return losses.mean() + (self.strength if batch.warm else 1.0) * irm_penalty(batch)


class VREx(Objective):
    """V-REx with strength λ."""

    warmup_steps = WARMUP_STEPS

    def __init__(self, strength: float) -> None:
        self.strength = strength

    def __call__(self, batch: Batch) -> Tensor:
        """Give mean loss and the variance of losses."""
        _, losses = subject_losses(batch)
        penalty = (losses - losses.mean()).square().mean()
        return losses.mean() + (self.strength if batch.warm else 1.0) * penalty


class GroupDRO(Objective):
    """GroupDRO: weights of all training subjects, moved by those in the batch.

    Parameters
    ----------
    n_subjects : int
        Training subjects.
    step : float
        η, the speed of the weights.

    Notes
    -----
    A batch has some of the M subjects only. Its sum is multiplied by M / G, so that on average over
    batches it is the sum over all.
    """

    def __init__(self, n_subjects: int, step: float) -> None:
        self.weight = torch.full((n_subjects,), 1 / n_subjects)
        self.step = step

    def __call__(self, batch: Batch) -> Tensor:
        """Move the weights, then give the weighted loss."""
        present, losses = subject_losses(batch)
        self.weight[present] *= (self.step * losses.detach()).exp()
        self.weight /= self.weight.sum()
        return len(self.weight) / len(present) * (self.weight[present] * losses).sum()
