"""An epoch of `CensoredClassifier.fit` against the bare loop of the same network.

The bare loop has everything in memory: signals laid out by channel, prepared statistics, class
weights; it draws a random permutation, takes the same number of steps of the same batch size with
the same optimiser, and computes the validation loss once. What `fit` adds is the drawing of
batches by subject and class, the record, and early stopping. One thread; the two take turns; CPU
time of a turn's epochs counts, and the ratio is the median over turns of one turn's fit to the
same turn's bare loop.
"""

from __future__ import annotations

import time
import warnings
from statistics import median
from typing import ClassVar
from unittest import mock

import numpy as np
import torch

import autotransfer as at
from autotransfer.encoder.network import Network
from autotransfer.errors import KernelLengthWarning
from autotransfer.training import loop
from autotransfer.training.loop import task_loss
from autotransfer.training.progress import EpochProgress
from benchmarks.common import report

SHAPES = [(8, 52), (8, 200), (16, 128), (61, 128)]
GOAL = 1.10


class Clock(EpochProgress):
    """Reads the CPU time at the end of every epoch of `fit`."""

    ends: ClassVar[list[float]] = []

    def epoch(self, epoch: int, loss: float, best: float | None, patience_left: int | None) -> None:
        """Read the clock."""
        self.ends.append(time.process_time())
        super().epoch(epoch, loss, best, patience_left)


def bare_epochs(data: at.SubjectDataset, batch: int, epochs: int) -> float:
    """CPU seconds of all epochs of the bare loop but the first; the last subject validates."""
    validates = data.subject_code == data.subject_code.max()
    x = torch.from_numpy(at.data.Normaliser("channel").transform(np.asarray(data.X)))
    y = torch.from_numpy(data.y_code)
    train, held = (torch.from_numpy(np.flatnonzero(side)) for side in (~validates, validates))
    torch.manual_seed(0)
    encoder = at.EEGNet(*x.shape[1:])
    network, stats = Network(encoder, len(data.labels)), encoder.prepare(x)
    by_channel = x.transpose(0, 1).contiguous()
    weights = torch.full((len(data.labels),), 1 / len(data.labels))
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)
    for epoch in range(epochs):
        if epoch == 1:
            start = time.process_time()
        network.train()
        for rows in torch.split(train[torch.randperm(len(train))], batch):
            inputs = by_channel.index_select(1, rows).transpose(0, 1)
            _, logits = network(inputs, stats.index_select(0, rows))
            loss = task_loss(logits, y[rows], weights)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
            optimiser.step()
        network.eval()
        with torch.no_grad():
            parts = [
                network(by_channel.index_select(1, rows).transpose(0, 1))[1]
                for rows in torch.split(held, 256)
            ]
            float(task_loss(torch.cat(parts), y[held], weights))
    return time.process_time() - start


def fit_epochs(data: at.SubjectDataset, subjects: int, trials: int, epochs: int) -> float:
    """CPU seconds of all epochs of `fit` but the first."""
    Clock.ends.clear()
    clf = at.CensoredClassifier(
        max_epochs=epochs,
        patience=epochs,
        validation=[data.subject_ids[-1]],
        subjects_per_batch=subjects,
        trials_per_subject=trials,
        random_state=0,
        device="cpu",
        verbose=False,
    )
    with mock.patch.object(loop, "EpochProgress", Clock):
        clf.fit(data.X, data.y, subject=data.subject)
    return Clock.ends[-1] - Clock.ends[0]


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--epochs", type=int, default=9, help="epochs in a turn")
    args = report.arguments(parser, turns=1, epochs=2)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", KernelLengthWarning)
    rows, goals = [], []
    for channels, times in SHAPES[: 1 if args.smoke else None]:
        data = at.make_subjects(
            n_subjects=9, n_trials=128, n_classes=4, n_channels=channels, n_times=times,
            sfreq=128.0, random_state=0,
        )  # fmt: skip
        for subjects, trials in ((8, 8), (8, 16)):
            batch = subjects * trials
            bare, fit = [], []
            for _ in range(args.turns):
                bare.append(bare_epochs(data, batch, args.epochs))
                fit.append(fit_epochs(data, subjects, trials, args.epochs))
            turns = sorted(f / b for f, b in zip(fit, bare, strict=True))
            ratio = median(turns)
            name = f"{channels} x {times}, batch {batch}"
            rows.append(
                {
                    "channels x times, batch": name,
                    "bare ms": 1e3 * median(bare) / (args.epochs - 1),
                    "fit ms": 1e3 * median(fit) / (args.epochs - 1),
                    "fit / bare": ratio,
                    "least turn": turns[0],
                    "most": turns[-1],
                }
            )
            goals.append(report.Goal(f"{name}: fit / bare", ratio, GOAL, at_least=False))
    report.finish(args, "An epoch of 1,024 training and 128 validation trials", rows, goals)


if __name__ == "__main__":
    main()
