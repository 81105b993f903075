"""People in a few parts, each tested by a model of the others: all test, at few trainings."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

import autotransfer as at
from autotransfer.data.splits import Fold
from benchmarks.common.recordings import networks, training_parser

PARTS = {"ssvep": 3, "erp": 2, "emg": 2}
"""Parts of the people; SSVEP has only twelve, and half of them teach too little."""

J = TypeVar("J", bound=Any)


def by_cell(results: Mapping[J, Mapping[str, Any]], name: str) -> dict[Any, list[Any]]:
    """Put the results of a data set together: what was trained -> its parts and seeds."""
    found: dict[Any, list[Any]] = {}
    for job, result in results.items():
        if job.dataset == name:
            found.setdefault(job.cell, []).append(result)
    return found


def beside(results: Mapping[J, Mapping[str, Any]], name: str, cell: Any, base: Any) -> list[Any]:
    """Give the trainings of a baseline that have the seeds of a cell.

    They began with the same weights and saw the same batches, so that the luck of a seed, which all
    censors trained with it share, is on both sides.
    """
    seeds = {job.seed for job in results if (job.dataset, job.cell) == (name, cell)}
    return [
        result
        for job, result in results.items()
        if (job.dataset, job.cell) == (name, base) and job.seed in seeds
    ]


def parts(subject: Any, n: int) -> list[Fold]:
    """Put people into parts, in random order; each part tests, all others train."""
    pairs = list(at.SubjectFolds(2 * n, shuffle=True, random_state=0).folds(subject))[::2]
    nobody = np.array([], dtype=np.intp)
    return [Fold(f.subject, f.train, nobody, np.union1d(f.validation, f.test)) for f in pairs]


def parts_parser(words: str | None) -> argparse.ArgumentParser:
    """Make the parser of a benchmark that trains on parts of the people."""
    parser = training_parser(words)
    parser.add_argument("--parts", type=int, help="of the people; each is tested by the others")
    return parser


def jobs(
    args: argparse.Namespace, job: Callable[..., J], cells: Iterable[tuple[tuple[Any, ...], int]]
) -> list[J]:
    """Make the jobs of all data sets: every cell, with its seed, on every part.

    Parts outside, cells inside: a run that is stopped has whole parts of everything.
    """
    cells = list(cells)
    number = {name: args.parts or PARTS[name] for name in args.dataset}
    return [
        job(name, *cell, number[name], part, seed, options)
        for name, options in networks(args).items()
        for part in range(number[name])
        for cell, seed in cells
    ]
