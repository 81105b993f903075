"""What grows with the number of people, up to 10,000: reading, checking, folding, training.

Ten trials of each person, 4 channels x 64 time points, CPU seconds of one thread in one run. Memory
is what a fold list of 20 groups takes, counted from its arrays.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

import autotransfer as at
from autotransfer.data.synthetic import make_subjects
from benchmarks.common import report

SIZES = (100, 1_000, 10_000)
TRIALS = 10
FOLDS = 20


def seconds(do: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a call, and what it gave."""
    start = time.process_time()
    found = do()
    return time.process_time() - start, found


def trained(data: at.SubjectDataset, measure: str | None) -> at.CensoredClassifier:
    """One epoch, with one of twenty people validating."""
    clf = at.CensoredClassifier(
        measure, validation=0.05, max_epochs=1, random_state=0, device="cpu", verbose=False
    )
    return clf.fit(data.X, data.y, subject=data.subject)


def row(n_subjects: int) -> dict[str, Any]:
    """All figures of one size."""
    data = make_subjects(n_subjects=n_subjects, n_trials=TRIALS, n_times=64, random_state=0)
    found: dict[str, Any] = {"subjects": n_subjects, "trials": len(data)}
    found["check s"], _ = seconds(lambda: at.check(data))
    found["fingerprint s"], _ = seconds(data.fingerprint)
    found["folds s"], folds = seconds(lambda: list(at.SubjectFolds(FOLDS).folds(data.subject)))
    sides = [getattr(f, side) for f in folds for side in ("train", "validation", "test")]
    found["folds MB"] = sum(side.nbytes for side in sides) / 1e6
    for measure in (None, "mmd", "adversary"):
        taken, _ = seconds(partial(trained, data, measure))
        found[f"epoch {measure or 'uncensored'} s"] = taken
    return found


def main() -> None:
    args = report.arguments(report.parser(__doc__))
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", at.AutoTransferWarning)
    trained(make_subjects(n_subjects=10, n_trials=TRIALS, n_times=64), "adversary")  # warm up
    rows = [row(size) for size in ((20, 40) if args.smoke else SIZES)]
    per_trial = [r["epoch mmd s"] / r["trials"] for r in rows]
    grown = per_trial[-1] / per_trial[0]
    goals = [report.Goal("epoch per trial, 10,000 / 100 people", grown, 1.5, at_least=False)]
    report.finish(args, "What grows with the number of people", rows, goals)


if __name__ == "__main__":
    main()
