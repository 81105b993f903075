"""Nothing to learn: hands-off runs on labels that are shuffled within each person.

Each run has its own made-up people and tries recipes, a censor and seeds, as any run does; what it
then tells of a new person must be chance. The interval that its report prints covers chance in
most of the runs, or the choice has looked at whom it scores.
"""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

import autotransfer as at
from autotransfer.report.statistics import student_interval
from autotransfer.search import Dimension, RecipeSpace, Space
from benchmarks.common import report
from benchmarks.common.recordings import temporary_folder

PEOPLE, TRIALS = 12, 40
LEAST = 0.9
"""Share of the runs whose 95 % interval covers chance: at least."""

RECIPES = RecipeSpace(
    [
        Dimension("normalisation", ({"normalise": "channel"}, {"normalise": "trial"}), 0.03),
        Dimension("steps", ({"n_steps": 20}, {"n_steps": 40}), 0.01, (1.0, 2.0)),
        Dimension("rate", ({"learning_rate": 3e-3}, {"learning_rate": 1e-2}), 0.01),
    ]
)
TINY = {"F1": 2, "kernel_length": 8, "depthwise_kernel_length": 4}


def run(seed: int, folder: Path) -> dict[str, Any]:
    """Make a run on shuffled labels; gives what it tells of a new person."""
    data = at.make_subjects(
        n_subjects=PEOPLE, n_trials=TRIALS, n_channels=3, n_times=32, random_state=seed
    )
    rng, y = np.random.default_rng(seed), data.y.copy()
    for person in data.subject_ids:
        mine = np.flatnonzero(data.subject == person)
        y[mine] = rng.permutation(y[mine])
    with ThreadPoolExecutor(1) as pool:
        auto = at.AutoTransfer(
            out=folder,
            recipes=RECIPES,
            space=Space(["mmd"], ["marginal"], {"mmd": [1.0]}),
            classifier=at.CensoredClassifier(encoder_options=TINY, device="cpu"),
            n_folds=4,
            engine=pool,
            portraits=False,
            levels=False,
            random_state=seed,
            verbose=False,
        ).fit(data.X, y, subject=data.subject)
    choice = auto.choice_
    mean = student_interval(list(choice.nested.values()), choice.nested_error)
    return {
        "run": seed,
        "nested": mean.value,
        "low": mean.low,
        "high": mean.high,
        "covers chance": mean.low <= 0.5 <= mean.high,
        "networks": len(auto.choice_.members),
        "first answer": bool(auto.choice_.setting.recipe == RECIPES.default),
    }


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--runs", type=int, default=40)
    args = report.arguments(parser, runs=1)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", at.AutoTransferWarning)
    folder = temporary_folder()
    rows = []
    for seed in range(args.runs):
        rows.append(run(seed, folder / str(seed)))
        print(rows[-1], flush=True)
    covered = float(np.mean([row["covers chance"] for row in rows]))
    goals = [
        report.Goal("share of runs whose interval covers chance", covered, LEAST),
        report.Goal(
            "mean of all runs", float(np.mean([row["nested"] for row in rows])), 0.51, False
        ),
    ]
    report.finish(args, "Labels shuffled within people", rows, goals, covered=covered)


if __name__ == "__main__":
    main()
