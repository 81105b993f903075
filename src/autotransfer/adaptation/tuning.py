"""The whole network trained on for a few steps on a few labelled trials."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold
from torch import Tensor
from torch.nn import functional

from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.data.trials import Array
from autotransfer.encoder.network import Network

STEPS = (0, 10, 20, 40)
"""Lengths among which cross-validation over the labelled trials chooses."""

ALONE = 20
"""Steps where no class has two labelled trials, and nothing can be left out."""

RATE, BATCH, PARTS = 1e-3, 64, 2


def tuning(fitted: Fitted, person: Person, *, learning_rate: float = RATE) -> Fitted:
    """Train encoder and head on labelled trials, for as many steps as cross-validation says.

    The loss is the class-weighted cross entropy over the classes of which there are labelled
    trials: from labels of one class nothing is learned. Norms keep their statistics and nothing is
    dropped out, because a batch of a few trials of one person has no statistics worth having. The
    labelled trials are cut into two parts; the number of steps is that with the least loss on the
    part left out, 0 among them.

    Parameters
    ----------
    fitted : Fitted
        Trained; not changed.
    person : Person
        With labelled trials.
    learning_rate : float
        Adam's.
    """
    labelled, numbers = person.with_labels()
    given, codes = np.unique(numbers, return_inverse=True)
    if len(given) < 2:
        return fitted
    signals = fitted.signals(labelled)
    labels = torch.from_numpy(codes.astype(np.int64)).to(signals.device)
    task = _Task(signals, labels, torch.from_numpy(given).to(signals.device), learning_rate)
    steps = _length(fitted.network, task)
    network = deepcopy(fitted.network)
    for _ in _train(network, task, np.arange(len(codes)), steps):
        pass
    return fitted.with_network(network)


@dataclass(frozen=True)
class _Task:
    """Labelled signals; labels are positions in the classes given."""

    signals: Tensor
    labels: Tensor
    given: Tensor
    learning_rate: float

    def loss(self, network: Network, trials: Array) -> Tensor:
        """Mean cross entropy of some trials, the classes given weighing the same."""
        logits = network(self.signals[trials])[1][:, self.given]
        weight = 1 / torch.bincount(self.labels).to(logits)
        each = functional.cross_entropy(logits, self.labels[trials], reduction="none")
        share = weight[self.labels[trials]]
        return (share * each).sum() / share.sum()


def _length(network: Network, task: _Task) -> int:
    """Find the number of steps with the least loss on trials left out."""
    labels = task.labels.cpu().numpy()
    parts = min(PARTS, int(np.bincount(labels).min()))
    if parts < 2:
        return ALONE
    losses = np.zeros(len(STEPS))
    cut = StratifiedKFold(parts, shuffle=True, random_state=0)
    for kept, left in cut.split(np.zeros(len(labels)), labels):
        copy = deepcopy(network)
        for step in _train(copy, task, kept, STEPS[-1]):
            if step in STEPS:
                with torch.no_grad():
                    losses[STEPS.index(step)] += float(task.loss(copy, left))
    return STEPS[int(losses.argmin())]


def _train(network: Network, task: _Task, trials: Array, steps: int) -> Iterator[int]:
    """Train a network in place; gives the number of steps done, before the first and after each."""
    network.eval()
    optimiser = torch.optim.Adam(network.parameters(), lr=task.learning_rate)
    generator = torch.Generator().manual_seed(0)  # the same trials give the same model
    yield 0
    for step in range(1, steps + 1):
        drawn = trials[torch.randperm(len(trials), generator=generator)[:BATCH].numpy()]
        loss = task.loss(network, drawn)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        yield step
    optimiser.zero_grad()
