"""More people to train on, or more minutes of the new one: three Myo data sets in one.

The five gestures that all three have, 83 people. People are in five groups, each held out once; the
network that a run begins with is trained on 8, 16, 32 or 64 of the others, drawn by the seed (16
are 8 of them and 8 more), and everybody held out is new: with nothing, a recording, or five labels
of each gesture, with the turn of the ring and without it. The method is chosen by the scores of all
other people. Three seeds, whose scores are averaged; differences are paired over people. Finished
trainings are kept in --keep FILE: the same command goes on.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import autotransfer as at
from autotransfer.data.problem import Problem
from autotransfer.data.splits import Fold
from autotransfer.errors import AutoTransferWarning
from autotransfer.search.levels.cases import OTHER, SAME, Case
from autotransfer.search.levels.person import people_held_out, score_cases
from autotransfer.search.levels.worth import Levels
from benchmarks.accuracy.across import SETS, cases, opened, rows_of
from benchmarks.accuracy.levels import CHOSEN, trained
from benchmarks.common import pool, report

SIZES = (8, 16, 32, 64)
GROUPS = 5


@dataclass(frozen=True)
class Job(pool.Job):
    """One training on some people, and all levels of a group of others."""

    people: int
    group: int
    seed: int
    n_steps: int | None = None
    """Fewer, for a try."""
    made_up: bool = False
    """Whether people are made up, of the shape of the recordings."""


@functools.cache
def everybody(made_up: bool) -> at.SubjectDataset:
    """Put the three data sets together."""
    parts = []
    for number, name in enumerate(SETS):
        data = opened(name, made_up)
        if made_up:  # numbered from 0 in each
            own = [f"{number}-{who}" for who in data.subject]
            data = at.SubjectDataset(data.trials[:], data.y, own, sfreq=data.sfreq)
        parts.append(data)
    return at.combine(parts)


def fold_of(data: at.SubjectDataset, job: Job) -> Fold:
    """Hold out a group of people, and draw those who train from the others."""
    folds = at.SubjectFolds(GROUPS, shuffle=True, random_state=0)
    held = list(folds.held_out(data.subject))[job.group]
    others = np.unique(data.subject[held.train])
    drawn = np.random.default_rng(job.seed).permutation(others)[: job.people]
    train = held.train[np.isin(data.subject[held.train], drawn)]
    return Fold(held.subject, train, held.validation[:0], held.validation)


def run(job: Job) -> dict[str, Any]:
    """Train on some people, and score a group of others in every case."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", AutoTransferWarning)
    data = everybody(job.made_up)
    problem, fold = Problem.of(data), fold_of(data, job)
    clf = trained(problem, fold, job.seed, job.n_steps)
    people = people_held_out(problem, fold.test, clf, job.seed)
    return {"cases": score_cases(people, cases()), "guard": {}}


def describe(job: Job, result: Mapping[str, Any]) -> str:
    """Tell of a finished training."""
    scores = Levels.of([result], 1).scores
    few = Case("nothing", tested=SAME), Case("recording", None, "ring+statistics", SAME)
    means = " to ".join(f"{np.mean(list(scores[case].values())):.3f}" for case in few)
    return f"{job.people} people, group {job.group} seed {job.seed}: {means}"


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--people", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="fewer, for a try")
    pool.add_options(parser)
    args = report.arguments(parser, people=[2], seeds=1, steps=2, workers=0)
    todo = [
        Job(people, group, seed, args.steps, args.smoke)
        for seed in range(args.seeds)
        for people in args.people
        for group in range(GROUPS)
    ]
    results = pool.run_all(run, todo, args.keep, args.workers, describe)
    rows: list[dict[str, Any]] = []
    for people in args.people:
        levels = []
        for seed in range(args.seeds):
            mine = [r for job, r in results.items() if (job.people, job.seed) == (people, seed)]
            levels.append(Levels.of(mine, GROUPS))
        rows += rows_of(str(people), levels)
    rows = [{"trained on": int(row.pop("data")), **row} for row in rows]
    short = [
        row
        for row in rows
        if row["method"] in (CHOSEN, "") and (row["level"], row["tested"]) != ("nothing", OTHER)
    ]
    title = "Balanced accuracy of new people by the number of people trained on"
    report.finish(args, title, rows, [], short=short)


if __name__ == "__main__":
    main()
