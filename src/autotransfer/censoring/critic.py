"""Small networks that play against the encoder, and their optimisers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from autotransfer.censoring.row_adam import RowAdam


@contextmanager
def frozen(critic: nn.Module) -> Iterator[None]:
    """Let gradients pass through a critic without reaching its parameters.

    The flag is read when an operation runs forward, so that it can be set back at once.
    """
    parameters = [p for p in critic.parameters() if p.requires_grad]
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


class SubjectTable(nn.Embedding):
    """A learnt line of numbers for each subject.

    Adding line s to a layer's output is what a one-hot of s at its input does, at a cost that does
    not grow with the number of subjects. Above `DENSE` subjects its gradient holds only the lines
    that a batch used, and so does the optimiser's step.
    """

    DENSE = 1000

    def __init__(self, n_subjects: int, width: int, bound: float) -> None:
        super().__init__(n_subjects, width, sparse=n_subjects > self.DENSE)
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Lines (Q, width) of subjects (Q,), who may be named several times."""
        if not self.sparse or not self.weight.requires_grad:
            return super().forward(input)
        # Each line once: to sort and sum a gradient in which lines repeat takes longer than a step.
        lines, place = torch.unique(input, return_inverse=True)
        return super().forward(lines).index_select(0, place)

    def once(self, subjects: Tensor) -> Tensor:
        """Lines (P, width) of different subjects (P,)."""
        return super().forward(subjects)


def columns(z: Tensor, label: Tensor | None, n_labels: int) -> Tensor:
    """Put a one-hot of the label beside the latent: (N, K + n_labels)."""
    if label is None:
        return z
    return torch.cat([z, F.one_hot(label, n_labels).to(z.dtype)], 1)


def spread(n_inputs: int) -> float:
    """Bound of the uniform first weights of a layer with so many inputs (torch's own rule)."""
    return 1 / math.sqrt(max(n_inputs, 1))


def standardise(z: Tensor) -> Tensor:
    """Give every column mean 0 and variance 1 over the batch, with gradient."""
    # One operation instead of seven: a third of the time. The floor keeps the gradient finite when
    # all rows are equal.
    return F.batch_norm(z, None, None, training=True, eps=1e-6)


def critic_optimisers(critic: nn.Module, learning_rate: float) -> list[torch.optim.Optimizer]:
    """Make the optimisers of all critics in a module: Adam, lazy where gradients are sparse.

    Parameters
    ----------
    critic : nn.Module
        A measure or a censor.
    learning_rate : float
        Of its critics.
    """
    sparse = {id(m.weight) for m in critic.modules() if isinstance(m, nn.Embedding) and m.sparse}
    dense = [p for p in critic.parameters() if id(p) not in sparse]
    lines = [p for p in critic.parameters() if id(p) in sparse]
    optimisers: list[torch.optim.Optimizer] = []
    if dense:
        optimisers.append(torch.optim.Adam(dense, lr=learning_rate, fused=True))
    if lines:
        optimisers.append(RowAdam(lines, learning_rate))
    return optimisers
