"""A censor at work: steps of its critics, the penalty of a batch, what a person wants to see."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from autotransfer.censoring import Censor, critic_optimisers
from autotransfer.data.trials import Index
from autotransfer.encoder.split import split_latent
from autotransfer.errors import (
    CriticDeadWarning,
    CriticWinsWarning,
    LatentCollapseWarning,
    LatentExplosionWarning,
    SmallCellWarning,
    SubjectLeakageError,
)
from autotransfer.training.checkpoint import by_prefix, load_optimiser, optimiser_tensors

History = Sequence[dict[str, float]]

# Spread of the latent outside of which something has gone wrong, and how much better than a blind
# guess a critic must have been once to be alive, or be at the end to have won.
SMALLEST, LARGEST = 1e-2, 1e2
ALIVE, WON = 0.02, 0.9


class Penalty:
    """The penalty of a training run, with the critics that belong to it.

    Parameters
    ----------
    censor : Censor
        On its device.
    strength : float
        Weight of the penalty in the loss.
    warmup_epochs : int
        First epochs, in which only the critics learn.
    subject, label : array of int of shape (n_all,)
        Subject of every trial, coded over the training subjects, and its class.
    """

    def __init__(
        self,
        censor: Censor,
        strength: float,
        warmup_epochs: int,
        subject: npt.NDArray[np.intp],
        label: npt.NDArray[np.intp],
    ) -> None:
        self.censor, self.strength, self.warmup_epochs = censor, strength, warmup_epochs
        self._subject, self._label = subject, label
        self._parameters = list(censor.parameters())
        self._optimisers = critic_optimisers(censor, 1.0)  # the rate is set for every epoch
        self._record: list[dict[str, Tensor]] = []
        self._censors = False
        # Of its own: the encoder's dropout is the same with and without a censor.
        self._draws = torch.Generator()
        self._z: Tensor | None = None

    def start(self, epoch: int, learning_rate: float, seed: int) -> None:
        """Begin an epoch in which the encoder learns at a given rate; `seed` is of the draws."""
        self._draws.manual_seed(seed)
        for optimiser in self._optimisers:
            for group in optimiser.param_groups:
                group["lr"] = learning_rate * self.censor.measure.critic_speed
        self._censors = epoch > self.warmup_epochs
        self._record = []

    def __call__(self, z: Tensor, trials: Index) -> Tensor:
        """Let the critics learn from a batch, then say what the encoder pays for it.

        Parameters
        ----------
        z : Tensor of shape (B, n_latent)
            Latents, with their graph.
        trials : array of int of shape (B,)
            Which trials they are.

        Returns
        -------
        Tensor of shape ()
            To be added to the task loss.
        """
        subject = self._subject[trials]
        if subject.min() < 0:
            raise SubjectLeakageError(
                "A trial of a subject that does not train reached the penalty. This is a defect of "
                "autotransfer; please report it."
            )
        cells = self.censor.cells(subject, self._label[trials])
        # The critics learn from the same rows: critics that had only seen the batch before made
        # the encoder answer to noise (placebo probe 0.845 instead of 0.646, adversary).
        self._z = detached = z.detach()
        readings: dict[str, Tensor] = {}
        for step in range(self.censor.n_critic):
            loss = self.censor.critic_loss(detached, cells, self._draws)
            if step == 0:  # the critic has not learnt from this batch yet
                readings = {"critic_loss": loss.detach(), **self.censor.readings()}
            for parameter in self._parameters:
                parameter.grad = None
            loss.backward()  # type: ignore[no-untyped-call]
            for optimiser in self._optimisers:
                optimiser.step()
        penalty = self.censor(z, cells, self._draws) if self._censors else 0 * z.sum()
        self._record.append(readings | {"penalty": penalty.detach()})
        return self.strength * penalty

    def finish(self) -> dict[str, float]:
        """End an epoch: means over its batches, and the spread of the last batch's latents."""
        # A batch of one subject has no reading of a critic that compares subjects.
        names = list(dict.fromkeys(name for entry in self._record for name in entry))
        values_by_name = [[entry[n] for entry in self._record if n in entry] for n in names]
        means = torch.stack([torch.stack(values).double().mean() for values in values_by_name])
        # The one time in an epoch to wait for a device.
        entry = dict(zip(names, means.tolist(), strict=True))
        assert self._z is not None
        entry["latent_scale"] = _scale(self._z)
        if hasattr(self.censor, "carrier"):
            entry["z1_scale"], entry["z2_scale"] = (_scale(part) for part in split_latent(self._z))
        return entry

    def tensors(self) -> dict[str, Tensor]:
        """Return all state of the critics, for a checkpoint."""
        state = {f"censor.{name}": value for name, value in self.censor.state_dict().items()}
        for i, optimiser in enumerate(self._optimisers):
            state |= {f"critic{i}.{k}": v for k, v in optimiser_tensors(optimiser).items()}
        return state

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Go on from the state in a checkpoint."""
        parts = by_prefix(tensors)
        self.censor.load_state_dict(parts["censor"])
        for i, optimiser in enumerate(self._optimisers):
            load_optimiser(optimiser, parts[f"critic{i}"])


def _scale(z: Tensor) -> float:
    """Root mean square of latents around their mean."""
    return float((z - z.mean(0)).square().mean().sqrt())


def warn_small_cells(penalty: Penalty, batches: Iterable[Index], name: str) -> None:
    """Warn when most trials of some batches are in cells too small for the penalty's censor."""
    smallest_usable = penalty.censor.measure.smallest_cell
    used = rows = 0
    smallest: list[int] = []
    for trials in batches:
        cells = penalty.censor.cells(penalty._subject[trials], penalty._label[trials])
        used += int(cells.count[cells.count >= smallest_usable].sum())
        rows += len(trials)
        smallest.append(int(np.median(cells.count)))
    if rows and used < rows / 2:
        cell = "(subject, class) cell" if cells.given is not None else "subject"
        warnings.warn(
            f"{name} needs {smallest_usable} trials of a {cell} in a batch, but typical ones have "
            f"{int(np.median(smallest))}: only {used / rows:.0%} of the trials can be censored. "
            "Raise trials_per_subject, or choose a measure or mode that needs fewer.",
            SmallCellWarning,
            stacklevel=2,
        )


def warn_after(history: History, best_epoch: int) -> None:
    """Warn about what the record of a censored training shows."""
    entry, when = history[best_epoch - 1], f"in epoch {best_epoch}, whose weights were kept"
    for name in ("latent_scale", "z1_scale", "z2_scale"):
        scale = entry.get(name, 1.0)
        what = {"latent_scale": "latent", "z1_scale": "half z1", "z2_scale": "half z2"}[name]
        if scale < SMALLEST:
            text = f"The {what} has collapsed: its spread is {scale:.2g} {when}."
            warnings.warn(f"{text} Lower the strength.", LatentCollapseWarning, stacklevel=2)
        elif scale > LARGEST:
            text = f"The {what} has exploded: its spread is {scale:.3g} {when}. Lower the strength"
            warnings.warn(f"{text} or the learning rate.", LatentExplosionWarning, stacklevel=2)
    if "critic_accuracy" in entry:
        # On a scale from 0, a blind guess, to 1, always right.
        skill = [
            (e["critic_accuracy"] - e["critic_chance"]) / max(1 - e["critic_chance"], 1e-9)
            if "critic_accuracy" in e
            else 0.0
            for e in history
        ]
        words = f"guessed the subject in {entry['critic_accuracy']:.0%} of the trials"
    elif "critic_ratio" in entry:
        # A ratio of errors of 2 or more under the right label stands for a critic that has won.
        skill = [min(max(e.get("critic_ratio", 1.0) - 1, 0.0), 1.0) for e in history]
        words = f"had errors {entry['critic_ratio']:.2f} times larger under the right subject"
    else:
        return
    if max(skill) < ALIVE:
        warnings.warn(
            "The critic never told subjects apart better than a blind guess: either the latent "
            "holds nothing about them, or the critic does not learn. Compare with a leakage probe; "
            "raise critic_speed or n_critic.",
            CriticDeadWarning,
            stacklevel=2,
        )
    if skill[best_epoch - 1] > WON:
        warnings.warn(
            f"The critic won: {when}, it {words}. The latent is not censored. Raise the strength, "
            "or train for longer.",
            CriticWinsWarning,
            stacklevel=2,
        )
