"""braindecode's EEGNet in skorch, as its tutorials and MOABB's pipelines train it.

Channels are scaled to mean 0 and standard deviation 1 over the training trials; AdamW with a
learning rate of 0.001, batches of 64, a loss without weights of classes; up to 300 epochs, ended 30
after the one with the lowest validation loss, whose weights are kept.
"""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np
import torch
from braindecode import EEGClassifier
from braindecode.models import EEGNet
from skorch.callbacks import Callback, EarlyStopping
from skorch.dataset import Dataset, ValidSplit
from skorch.helper import predefined_split
from torch import nn

from autotransfer.data.normalise import Normaliser
from benchmarks.peers.align import by_subject, euclidean_alignment
from benchmarks.peers.known import Array, Known

BATCH = 64
PATIENCE = 30
TRIALS, PEOPLE = "trials", "people"
"""What is kept aside for early stopping: a fifth of the trials, or the validation subjects."""

TUNING_EPOCHS = 50


class Clock(Callback):  # type: ignore[misc]
    """End a training that takes too long.

    Parameters
    ----------
    seconds : float
        Most of the time of the processor.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def on_train_begin(self, net: Any, **_: Any) -> None:
        """Start the clock."""
        self.start = time.process_time()

    def on_epoch_end(self, net: Any, **_: Any) -> None:
        """Look at it."""
        if time.process_time() - self.start > self.seconds:
            raise KeyboardInterrupt  # skorch's own way to end a training


class Trained:
    """A trained network: called with signals (n, C, T) of one person, it predicts labels.

    Parameters
    ----------
    module : Module
        braindecode's network.
    normaliser : Normaliser
        Fitted on training trials.
    classes : array
        Labels by number.
    aligned : bool
        Whether every person's trials are aligned by themselves.
    epochs : int
        Epochs that were trained.
    """

    def __init__(
        self, module: nn.Module, normaliser: Normaliser, classes: Array, aligned: bool, epochs: int
    ) -> None:
        self.module, self.normaliser, self.classes = module, normaliser, classes
        self.aligned, self.epochs = aligned, epochs

    def __call__(self, X: Array) -> Array:
        """Predict labels (n,)."""
        self.module.eval()
        with torch.no_grad():
            parts = [self.module(part).argmax(1) for part in torch.split(self._signals(X), 256)]
        predicted: Array = self.classes[torch.cat(parts).numpy()]
        return predicted

    def tuned(self, X: Array, y: Array, seed: int) -> Trained:
        """Train all weights on for 50 epochs with a tenth of the learning rate.

        Parameters
        ----------
        X : array of shape (n, C, T)
            Labelled trials of the new person.
        y : array of shape (n,)
            Their labels.
        seed : int
            Of dropout and the order of trials.
        """
        module = copy.deepcopy(self.module).train()
        signals, codes = self._signals(X), torch.from_numpy(np.searchsorted(self.classes, y))
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-4, weight_decay=0)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for _ in range(TUNING_EPOCHS):
                for part in torch.split(torch.randperm(len(codes)), BATCH):
                    if len(part) > 1:  # a batch norm cannot train on one trial
                        optimizer.zero_grad()
                        loss = nn.functional.cross_entropy(module(signals[part]), codes[part])
                        loss.backward()  # type: ignore[no-untyped-call]
                        optimizer.step()
        return Trained(module, self.normaliser, self.classes, self.aligned, self.epochs)

    def _signals(self, X: Array) -> torch.Tensor:
        X = euclidean_alignment(X) if self.aligned else np.asarray(X)
        return torch.from_numpy(self.normaliser.transform(X))


def fit(
    known: Known,
    new: Any,
    *,
    split: str = TRIALS,
    aligned: bool = False,
    max_epochs: int = 300,
    seconds: float = np.inf,
) -> Trained:
    """Train the network.

    Parameters
    ----------
    known : Known
        Labelled trials.
    new : None
        Nothing of the new person is needed to fit.
    split : {"trials", "people"}
        What is kept aside for early stopping.
    aligned : bool
        Whether every person's trials are aligned by themselves (Euclidean alignment), those of the
        new person as well.
    max_epochs : int
        Most epochs.
    seconds : float
        Most time of the processor; a training that takes longer ends with its best weights.
    """
    data, classes = known.data, known.data.labels
    X = by_subject(data, euclidean_alignment) if aligned else data.trials[:]
    held = np.isin(data.subject, known.validation) & (split == PEOPLE)
    normaliser = Normaliser("train").fit(X[~held])
    signals = normaliser.transform(X)
    codes = np.searchsorted(classes, data.y).astype(np.int64)
    aside: Any = ValidSplit(0.2, stratified=True, random_state=known.seed)
    if split == PEOPLE:
        aside = predefined_split(Dataset(signals[held], codes[held]))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(known.seed)
        # With its own lengths in samples, whatever the sampling rate, as its tutorials have it.
        module = EEGNet(n_chans=X.shape[1], n_outputs=len(classes), n_times=X.shape[2])
        # The same numbers, but for which ones dropout draws, from its own layers in 0.5 to 0.7 of
        # the time, measured on 8 x 256, 8 x 200 and 61 x 128, batches of 64, one thread: so it gets
        # further within its hour.
        module = module.to(memory_format=torch.channels_last)
        clf = EEGClassifier(
            module,
            criterion=nn.CrossEntropyLoss,
            optimizer=torch.optim.AdamW,
            optimizer__lr=1e-3,
            optimizer__weight_decay=0,
            iterator_train__shuffle=True,
            batch_size=BATCH,
            max_epochs=max_epochs,
            train_split=aside,
            callbacks=[
                EarlyStopping("valid_loss", patience=PATIENCE, load_best=True),
                Clock(seconds),
            ],
            classes=list(range(len(classes))),
            verbose=0,
            device="cpu",
        )
        clf.fit(signals[~held], codes[~held])
    return Trained(clf.module_, normaliser, classes, aligned, len(clf.history))
