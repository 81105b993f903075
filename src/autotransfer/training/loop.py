"""The training loop: task loss, penalty, validation, checkpoints, and early stopping if asked for.

Ours and not a library's because critics with their own optimisers, best-validation weights and
bit-equal repeats are awkward in skorch and Lightning, whose loops also add 1 to 4 ms to a step
that the fused EEGNet does in a few.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from autotransfer.data.batches import SubjectBatches
from autotransfer.data.splits import Fold
from autotransfer.encoder.network import Network
from autotransfer.errors import NonFiniteLossError, join_some
from autotransfer.registry import lookup
from autotransfer.training.augment import corrected_statistics, lookup_augmentations
from autotransfer.training.checkpoint import (
    by_prefix,
    load_optimiser,
    optimiser_tensors,
    read_checkpoint,
    write_checkpoint,
)
from autotransfer.training.feed import Feed
from autotransfer.training.log import TrainingLog
from autotransfer.training.penalty import Penalty, warn_after
from autotransfer.training.progress import EpochProgress
from autotransfer.training.schedule import SCHEDULES


def class_weights(
    codes: npt.NDArray[np.intp], n_classes: int, subject: npt.NDArray[Any] | None = None
) -> npt.NDArray[np.float64]:
    """Weight classes by the inverse of their number of trials, and by how many people have them.

    ``w_k = (a_k / n_k) / sum_j (a_j / n_j)``, where ``a_k`` is the mean over people of one over the
    number of a person's classes, or of 0 for a person without class k. It is the share that class
    k has in the score, the mean over people of the balanced accuracy over the classes that a
    person has. Where everybody has all classes the ``a_k`` are equal, and trials alone count.

    A class without trials has weight 0: nothing can be learned about it, and 1 / 0 would spoil
    the others.

    Parameters
    ----------
    codes : array of int of shape (n_trials,)
        Class numbers of the training subjects' trials only.
    n_classes : int
        Number of classes.
    subject : array of shape (n_trials,), optional
        Whose these trials are. Without it, trials alone count.

    Returns
    -------
    array of shape (n_classes,)
        Weights that sum to 1.

    Examples
    --------
    >>> codes = np.repeat([0, 1, 2], [30, 10, 60])
    >>> class_weights(codes, 3).round(3).tolist()
    [0.222, 0.667, 0.111]

    The second of two people has class 2 alone, which so is two thirds of the score:

    >>> class_weights(codes, 3, np.repeat(["a", "b"], [70, 30])).round(3).tolist()
    [0.167, 0.5, 0.333]
    """
    counts = np.bincount(codes, minlength=n_classes).astype(float)
    shares = np.ones(n_classes)
    if subject is not None:
        people, whose = np.unique(subject, return_inverse=True)
        has = np.zeros((len(people), n_classes), bool)
        has[whose, codes] = True
        shares = (has / has.sum(1, keepdims=True)).mean(0)
    inverse = np.divide(shares, counts, out=np.zeros(n_classes), where=counts > 0)
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


@dataclass(frozen=True)
class LoopOptions:
    """How to train: options of `CensoredClassifier`, which documents them.

    `seed` is that of batches and dropout, `training_hash` that of the run, for its checkpoint.
    """

    learning_rate: float
    weight_decay: float
    max_epochs: int
    schedule: str = "sqrt"
    patience: int | None = None
    augment: str | None = None
    sfreq: float | None = None
    seed: int = 0
    checkpoint: Path | None = None
    checkpoint_every: int = 10
    training_hash: str = ""
    verbose: bool = False


@dataclass
class Progress:
    """Where a training stands; all of it is in a checkpoint."""

    epoch: int = 0
    best_epoch: int = 0
    best_loss: float = math.inf
    done: bool = False
    history: list[dict[str, float]] = field(default_factory=list)


def train(
    network: Network,
    feed: Feed,
    fold: Fold,
    batches: SubjectBatches,
    y: npt.NDArray[np.intp],
    weights: npt.NDArray[np.float64],
    options: LoopOptions,
    penalty: Penalty | None = None,
    log: TrainingLog | None = None,
) -> Progress:
    """Train a network in place; it ends with the weights of the least validation loss, or the last.

    Parameters
    ----------
    network : Network
        On its device.
    feed : Feed
        Signals of the training and validation subjects.
    fold : Fold
        Who trains and who validates. Without validation subjects, as without patience, all
        `max_epochs` are trained and the last weights kept.
    batches : SubjectBatches
        Of ``fold.train``.
    y : array of int of shape (n_all,)
        Class number of every trial.
    weights : array of shape (n_classes,)
        Weights of the classes in the task loss.
    options : LoopOptions
        How to train.
    penalty : Penalty, optional
        What is added to the task loss; None trains the uncensored baseline.
    log : TrainingLog, optional
        Is told of every epoch.

    Returns
    -------
    Progress
        With the history, one entry an epoch.
    """
    labels, shares = torch.from_numpy(np.asarray(y, np.int64)), torch.from_numpy(weights)
    run = _Run(network, feed, fold, batches, labels, shares, options, penalty)
    devices = [run.device] if run.device.type == "cuda" else []
    # Own random stream: fitting leaves the caller's untouched and does not depend on it.
    with torch.random.fork_rng(devices=devices):
        run.resume()
        with EpochProgress(options.verbose, options.max_epochs) as view:
            while not run.progress.done:
                run.epoch(view)
                if log is not None:
                    log.epoch(run.progress.history[-1])
    if run.stops_early:
        network.load_state_dict(run.best)
    network.eval()
    if penalty is not None:
        warn_after(run.progress.history, run.progress.best_epoch)
    return run.progress


@dataclass
class _Run:
    """The state of one training."""

    network: Network
    feed: Feed
    fold: Fold
    batches: SubjectBatches
    y: Tensor
    weights: Tensor
    options: LoopOptions
    penalty: Penalty | None
    progress: Progress = field(default_factory=Progress)
    best: dict[str, Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        options, parameters = self.options, list(self.network.parameters())
        self.device = parameters[0].device
        self.weights = self.weights.to(parameters[0])
        self.optimiser = torch.optim.AdamW(
            parameters, lr=options.learning_rate, weight_decay=options.weight_decay, fused=True
        )
        self.stops_early = len(self.fold.validation) > 0 and options.patience is not None
        self.schedule = lookup("schedule", options.schedule, SCHEDULES)
        self.augmentations = lookup_augmentations(options.augment)
        # Of its own: dropout is the same with and without augmentations.
        self.draws = torch.Generator()
        codes = np.unique(self.fold.subject, return_inverse=True)[1]
        self.subject = torch.from_numpy(codes.astype(np.int64))

    def epoch(self, view: EpochProgress) -> None:
        """Train one epoch, validate, decide whether to go on."""
        options, progress = self.options, self.progress
        start = time.perf_counter()
        number = progress.epoch + 1
        # A stream of its own for each epoch: a resumed run needs no generator state.
        seeds = np.random.SeedSequence([options.seed, number]).generate_state(3).tolist()
        torch.manual_seed(seeds[0])
        self.draws.manual_seed(seeds[2])
        rate = options.learning_rate * self.schedule.factor(number, options.max_epochs)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        if self.penalty is not None:
            self.penalty.start(number, rate, seeds[1])
        losses = self._train_epoch(number)
        entry = {"epoch": number, "learning_rate": rate, "task_loss": float(losses.mean())}
        if self.penalty is not None:
            entry |= self.penalty.finish()
        progress.epoch = number
        patience_left = None
        if len(self.fold.validation):
            loss = self.validation_loss()
            entry["validation_loss"] = loss
            if not math.isfinite(loss):
                raise NonFiniteLossError(
                    f"The validation loss is {loss} after epoch {number}. Lower the learning rate, "
                    "or check the validation subjects' signals."
                )
        if self.stops_early:
            if loss < progress.best_loss:
                progress.best_loss, progress.best_epoch = loss, number
                self.best = {k: v.detach().clone() for k, v in self.network.state_dict().items()}
            patience_left = self._patience_left()
        else:
            self._require_finite_weights(number)
            progress.best_epoch = number
            progress.best_loss = entry.get("validation_loss", math.inf)
        entry["seconds"] = time.perf_counter() - start
        progress.history.append(entry)
        progress.done = self._is_done()
        if options.checkpoint and (progress.done or number % options.checkpoint_every == 0):
            self.save()
        best = progress.best_loss if len(self.fold.validation) else None
        view.epoch(number, entry["task_loss"], best, patience_left)

    def _is_done(self) -> bool:
        """Whether the epochs, or the patience, are used up."""
        impatient = self.stops_early and self._patience_left() <= 0
        return self.progress.epoch >= self.options.max_epochs or impatient

    def _patience_left(self) -> int:
        """Count the epochs that may pass without a lower validation loss."""
        assert self.options.patience is not None
        return self.progress.best_epoch + self.options.patience - self.progress.epoch

    def _train_epoch(self, number: int) -> Tensor:
        """One pass over the training trials; returns the loss of every step."""
        self.network.train()
        losses = torch.empty(self.batches.n_batches, device=self.device)
        for i, trials in enumerate(self.batches.epoch(number)):
            x, stats = self.feed.batch(trials)
            rows = torch.from_numpy(trials)
            codes, people = self.y[rows], self.subject[rows]
            for augmentation in self.augmentations:
                before = x
                x = augmentation.function(x, codes, people, self.draws, self.options.sfreq)
                if stats is not None:
                    prepare = self.network.encoder.prepare
                    stats = corrected_statistics(stats, before, x, augmentation, prepare)  # type: ignore[arg-type]
            y = codes.to(self.device, non_blocking=True)
            z, logits = self.network(x, stats, people)
            loss = task_loss(logits, y, self.weights)
            losses[i] = loss.detach()
            if self.penalty is not None:
                loss = loss + self.penalty(z, trials)
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
        # Looked at once an epoch: to look at every step would make it wait for the device.
        losses = losses.cpu()
        bad = torch.nonzero(~torch.isfinite(losses))
        if len(bad):
            self._explain(number, int(bad[0]), float(losses[bad[0]]))
        return losses

    def _explain(self, epoch: int, step: int, loss: float) -> None:
        """Say when and where the loss stopped being finite."""
        trials = next(t for i, t in enumerate(self.batches.epoch(epoch)) if i == step)
        people = np.unique(self.fold.subject[trials]).tolist()
        raise NonFiniteLossError(
            f"The task loss became {loss} in epoch {epoch}, step {step + 1} of "
            f"{self.batches.n_batches}, on a batch of subjects {join_some(people)} (trials "
            f"{join_some(trials.tolist())}). Lower the learning rate (now "
            f"{self.options.learning_rate:g}), normalise the signals, or look at these trials."
        )

    def _require_finite_weights(self, epoch: int) -> None:
        """Look at the weights: no loss has seen those of the last step yet."""
        bad = [n for n, v in self.network.state_dict().items() if not bool(torch.isfinite(v).all())]
        if bad:
            raise NonFiniteLossError(
                f"The weights {join_some(bad)} were no longer finite after the last step of epoch "
                f"{epoch}. Lower the learning rate (now {self.options.learning_rate:g}), or "
                "normalise the signals."
            )

    @torch.no_grad()
    def validation_loss(self) -> float:
        """Task loss over all trials of the validation subjects."""
        self.network.eval()
        trials = self.fold.validation
        logits = torch.cat([self.network(x)[1] for _, x in self.feed.blocks(trials)])
        y = self.y[torch.from_numpy(trials)].to(self.device)
        return float(task_loss(logits, y, self.weights))

    def save(self) -> None:
        """Write the checkpoint."""
        tensors = {f"network.{k}": v for k, v in self.network.state_dict().items()}
        tensors |= {f"best.{k}": v.clone() for k, v in self.best.items()}
        tensors |= {f"optimiser.{k}": v for k, v in optimiser_tensors(self.optimiser).items()}
        if self.penalty is not None:
            tensors |= {f"penalty.{k}": v for k, v in self.penalty.tensors().items()}
        assert self.options.checkpoint is not None
        state = asdict(self.progress)
        if not math.isfinite(state["best_loss"]):
            state["best_loss"] = None  # JSON has no infinity
        write_checkpoint(self.options.checkpoint, self.options.training_hash, tensors, state)

    def resume(self) -> None:
        """Go on where the checkpoint ends, if there is one."""
        if self.options.checkpoint is None:
            return
        content = read_checkpoint(self.options.checkpoint, self.options.training_hash)
        if content is None or content[1]["epoch"] > self.options.max_epochs:
            return  # none, or of a longer training, whose earlier weights are gone
        tensors, state = content
        if state["best_loss"] is None:
            state["best_loss"] = math.inf
        self.progress = Progress(**state)
        self.progress.done = self._is_done()  # there may be more epochs to go now
        parts = by_prefix(tensors)
        self.network.load_state_dict(parts["network"])
        self.best = {k: v.to(self.device) for k, v in parts["best"].items()}
        load_optimiser(self.optimiser, parts["optimiser"])
        if self.penalty is not None:
            self.penalty.load(parts["penalty"])
