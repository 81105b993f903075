"""An epoch of `CensoredClassifier.fit` against the bare loop of the same network.

The bare loop has everything in memory: signals laid out by channel, prepared statistics, class
weights; it draws a random permutation, takes the same number of steps of the same batch size with
the same optimiser, and computes the validation loss once. What `fit` adds is the drawing of
batches by subject and class, the record, and early stopping. One thread; the two take turns; the
least wall time of an epoch counts.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import torch

import autotransfer as at
import report
from autotransfer.errors import KernelLengthWarning
from autotransfer.training.network import Network
from autotransfer.training.task_loss import task_loss

SHAPES = [(8, 52), (8, 200), (16, 128), (61, 128)]
GOAL = 1.10


def bare_epochs(data: at.SubjectDataset, batch: int, epochs: int) -> list[float]:
    """Seconds of each epoch of the bare loop; the last subject validates."""
    validates = data.subject_code == data.subject_code.max()
    x = torch.from_numpy(at.data.Normaliser("channel").transform(np.asarray(data.X)))
    y = torch.from_numpy(data.y_code)
    train, held = (torch.from_numpy(np.flatnonzero(side)) for side in (~validates, validates))
    torch.manual_seed(0)
    network = Network(at.EEGNet(*x.shape[1:]), len(data.labels))
    stats = network.encoder.prepare(x)
    by_channel = x.transpose(0, 1).contiguous()
    weights = torch.full((len(data.labels),), 1 / len(data.labels))
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, fused=True)
    seconds = []
    for _ in range(epochs):
        start = time.perf_counter()
        network.train()
        for rows in train[torch.randperm(len(train))].split(batch):
            inputs = by_channel.index_select(1, rows).transpose(0, 1)
            _, logits = network(inputs, stats.index_select(0, rows))
            loss = task_loss(logits, y[rows], weights)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
        network.eval()
        with torch.no_grad():
            parts = [
                network(by_channel.index_select(1, rows).transpose(0, 1))[1]
                for rows in held.split(256)
            ]
            float(task_loss(torch.cat(parts), y[held], weights))
        seconds.append(time.perf_counter() - start)
    return seconds


def fit_epochs(data: at.SubjectDataset, subjects: int, trials: int, epochs: int) -> list[float]:
    """Seconds of each epoch of `fit`."""
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
    clf.fit(data.X, data.y, subject=data.subject)
    return [entry["seconds"] for entry in clf.history_]


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=5, help="epochs in a repeat")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", KernelLengthWarning)
    rows, goals = [], []
    for channels, times in SHAPES:
        data = at.make_subjects(
            n_subjects=9, n_trials=128, n_classes=4, n_channels=channels, n_times=times,
            sfreq=128.0, random_state=0,
        )  # fmt: skip
        for subjects, trials in ((8, 8), (8, 16)):
            batch = subjects * trials
            bare, fit = [], []
            for _ in range(args.repeats):
                bare += bare_epochs(data, batch, args.epochs)[1:]
                fit += fit_epochs(data, subjects, trials, args.epochs)[1:]
            ratio = min(fit) / min(bare)
            name = f"{channels} x {times}, batch {batch}"
            rows.append(
                {
                    "channels x times, batch": name,
                    "bare ms": 1e3 * min(bare),
                    "fit ms": 1e3 * min(fit),
                    "fit / bare": ratio,
                }
            )
            goals.append(report.Goal(f"{name}: fit / bare", ratio, GOAL, at_least=False))
    report.finish(args, "An epoch of 1,024 training and 128 validation trials", rows, goals)


if __name__ == "__main__":
    main()
