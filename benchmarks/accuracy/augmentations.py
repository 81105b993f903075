"""What augmentations of the training trials are worth on people never seen.

The uncensored network with the recipe that validation chose (`baseline.py`), without an
augmentation and with each one that suits the data, everything else equal: weights, batches and
dropout. People are in four groups, each tested by a model of the others; three seeds, whose scores
are averaged; differences are paired over people. Beside it the time that a training takes: the
encoder's statistics, prepared once, do not hold for signals that change. Finished trainings are
kept in --keep FILE: the same command goes on.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import autotransfer as at
from autotransfer.data.info import is_ring
from autotransfer.data.splits import Fold
from autotransfer.training import AUGMENTATIONS
from benchmarks.censors import evidence_tables
from benchmarks.censors.strength_tables import people
from benchmarks.common import pool, report
from benchmarks.common.parts_of_people import by_cell
from benchmarks.common.recordings import (
    RECORDINGS,
    arguments,
    at_work,
    networks,
    tested,
    training_parser,
)
from benchmarks.figures import RESULTS

GROUPS = 4
WORST = -0.05
"""Difference below which an augmentation is broken rather than useless."""


@dataclass(frozen=True)
class Job(pool.Job):
    """One training."""

    dataset: str
    augment: str | None
    group: int
    seed: int
    options: str
    """Of the classifier, as JSON."""

    @property
    def cell(self) -> str | None:
        """What was trained, on whatever group."""
        return self.augment


def groups(subject: Any) -> list[Fold]:
    """Hold out each group of people once: they test, all others train."""
    folds = at.SubjectFolds(GROUPS).held_out(subject)
    return [Fold(f.subject, f.train, f.validation[:0], f.validation) for f in folds]


def suiting(name: str) -> list[str | None]:
    """List what to try on a data set: nothing first; electrodes are turned if they are a ring."""
    ring = is_ring(RECORDINGS[name].load().info.channels)
    return [None, *(one for one in AUGMENTATIONS if ring or one != "ring")]


def run(job: Job) -> dict[str, Any]:
    """Train without a group of people, and score them."""
    _, data = at_work(job.dataset)
    fold = groups(data.subject)[job.group]
    train = data.select(trials=fold.train)
    clf = at.CensoredClassifier(
        augment=job.augment,
        sfreq=data.sfreq,
        validation=None,
        random_state=job.seed,
        device="cpu",
        verbose=False,
        **json.loads(job.options),
    )
    start = time.process_time()
    clf.fit(train.X, train.y, subject=train.subject)
    return {"test": tested(clf, data, fold), "seconds": time.process_time() - start}


def describe(job: Job, result: dict[str, Any]) -> str:
    """Tell of a finished training."""
    score = np.mean(list(result["test"].values()))
    return f"{job.dataset} group {job.group} seed {job.seed} {job.augment or 'none'}: {score:.3f}"


def rows_of(name: str, results: Mapping[Job, dict[str, Any]]) -> list[dict[str, Any]]:
    """Make a row for each augmentation of a data set, beside the training without any."""
    of = by_cell(results, name)
    plain = people(of[None])
    alone = np.mean([result["seconds"] for result in of[None]])
    made = []
    for augment, mine in of.items():
        found = evidence_tables.row(name, augment or "none", people(mine), plain)
        columns = ("people", "mean", "lower quartile", "difference", "95 % interval", "p")
        made.append(
            {"data": name, "augmentation": found["method"]}
            | {"seeds": len({job.seed for job in results if job.dataset == name})}
            | {column: found[column] for column in (*columns, "gained / lost")}
            | {"time": float(np.mean([result["seconds"] for result in mine]) / alone)}
        )
    return made


def goals(rows: list[dict[str, Any]]) -> list[report.Goal]:
    """Give what none of them may do."""
    return [
        report.Goal(f"{row['data']}: {row['augmentation']} beside none", row["difference"], WORST)
        for row in rows
        if row["augmentation"] != "none"
    ]


def main() -> None:
    parser = training_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.set_defaults(options=RESULTS / "baseline.json")
    args = arguments(parser, dataset=["ssvep"], max_epochs=1, seeds=1, options=None)
    todo = [
        Job(name, augment, group, seed, options)
        for seed in range(args.seeds)
        for name, options in networks(args).items()
        for group in range(GROUPS)
        for augment in suiting(name)
    ]
    results = pool.run_all(run, todo, args.keep, args.workers, describe)
    rows = [row for name in args.dataset for row in rows_of(name, results)]
    report.finish(
        args,
        "Augmentations of the training trials, balanced accuracy on people never seen",
        rows,
        goals(rows),
        trainings=[{**job.__dict__, **result} for job, result in results.items()],
    )


if __name__ == "__main__":
    main()
