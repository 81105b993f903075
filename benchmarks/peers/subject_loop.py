"""Train a network by an objective over subjects, in all else as `CensoredClassifier` does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import autotransfer as at
from autotransfer.data.batches import SubjectBatches
from autotransfer.data.normalise import Normaliser
from autotransfer.data.problem import Problem
from autotransfer.data.splits import hold_out
from autotransfer.encoder.network import Network
from autotransfer.encoder.registry import make_encoder
from autotransfer.training.feed import Feed
from autotransfer.training.loop import LoopOptions, _Run, class_weights
from autotransfer.training.options import as_random_seed
from autotransfer.training.progress import EpochProgress
from benchmarks.peers.objectives import Batch, Objective

MEMORY = 4 * 2**30


def fit(
    clf: at.CensoredClassifier, X: Any, y: Any, subject: Any, make: Any
) -> at.CensoredClassifier:
    """Fit an uncensored classifier by an objective of one's own.

    Parameters
    ----------
    clf : CensoredClassifier
        Unfitted, without a measure; its options say how. Fitted in place.
    X, y, subject : array
        As for ``clf.fit``.
    make : callable
        Number of training subjects -> `Objective`.

    Returns
    -------
    CensoredClassifier
        The same, ready to predict.
    """
    problem = Problem.of(X, y, subject)
    seed = as_random_seed(clf.random_state)
    fold = hold_out(problem.subject, clf.validation, seed)
    _, channels, times = problem.X.shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        encoder = make_encoder(clf.encoder, channels, times, clf.sfreq, clf.encoder_options)
        network = Network(encoder, len(problem.classes))
    normaliser = Normaliser(clf.normalise).fit(problem.X, fold.train)
    used = np.union1d(fold.train, fold.validation)
    feed = Feed(problem.X, used, normaliser, network, torch.device("cpu"), MEMORY)
    batches = SubjectBatches(
        problem.codes,
        fold.subject,
        *clf.options.batch_shape(len(problem.classes)),
        trials=fold.train,
        by_class=False,  # as the uncensored baseline has them
        seed=seed,
    )
    options = LoopOptions(
        learning_rate=clf.learning_rate,
        weight_decay=clf.weight_decay,
        max_epochs=clf.options.epochs(len(fold.train)),
        schedule=clf.schedule,
        patience=clf.patience,
        seed=seed,
    )
    labels = torch.from_numpy(problem.codes.astype(np.int64))
    shares = class_weights(
        problem.codes[fold.train], len(problem.classes), fold.subject[fold.train]
    )
    weights = torch.from_numpy(shares)
    objective = make(len(fold.subjects("train")))
    run = _SubjectRun(objective, network, feed, fold, batches, labels, weights, options, None)
    with torch.random.fork_rng(devices=[]), EpochProgress(False, options.max_epochs) as shown:
        while not run.progress.done:
            run.epoch(shown)
    if run.stops_early:
        network.load_state_dict(run.best)
    clf.network_, clf.normaliser_ = network.eval(), normaliser
    clf.classes_, clf.n_channels_, clf.n_times_ = problem.classes, channels, times
    clf.class_names_, clf.info_ = list(problem.class_names), problem.info
    clf.amplitude_ = None
    clf.history_, clf.best_epoch_ = run.progress.history, run.progress.best_epoch
    return clf


class _SubjectRun(_Run):
    """The training loop with another loss; optimiser, rates, batches, stopping are inherited."""

    def __init__(self, objective: Objective, *parts: Any) -> None:
        super().__init__(*parts)
        self.objective = objective
        codes: npt.NDArray[np.int64] = np.full(len(self.fold.subject), -1, np.int64)
        trained = self.fold.subject[self.fold.train]
        codes[self.fold.train] = np.unique(trained, return_inverse=True)[1]
        self.subject = torch.from_numpy(codes)
        steps = objective.warmup_steps
        # A short training keeps half of its epochs for what comes after the warm-up.
        most = self.options.max_epochs // 2
        self.warmup = min(math.ceil(steps / self.batches.n_batches), most)

    def _is_done(self) -> bool:
        """As inherited, but no patience is lost in the warm-up."""
        ended = self.progress.epoch >= self.options.max_epochs
        return ended or (self.progress.epoch > self.warmup and super()._is_done())

    def _train_epoch(self, number: int) -> Tensor:
        """One pass over the training trials; returns the loss of every step."""
        if self.warmup and number == self.warmup + 1:
            self.optimiser.state.clear()
            self.progress.best_loss = math.inf  # weights of the warm-up are not the method's
        self.network.train()
        losses = torch.empty(self.batches.n_batches)
        for i, trials in enumerate(self.batches.epoch(number)):
            x, stats = self.feed.batch(trials)
            rows = torch.from_numpy(trials)
            _, logits = self.network(x, stats)
            loss = self.objective(
                Batch(logits, self.y[rows], self.weights, self.subject[rows], number > self.warmup)
            )
            losses[i] = loss.detach()
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
        bad = torch.nonzero(~torch.isfinite(losses))
        if len(bad):
            self._explain(number, int(bad[0]), float(losses[bad[0]]))
        return losses
