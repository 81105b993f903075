"""Cost of drawing a batch of 8 subjects x 16 trials, for 10 to 100,000 subjects.

One thread, one run, the sizes taking turns, least of several repeats. An epoch deals its chunks
when it starts; each batch bears its share of that, start / batches in an epoch.
"""

from __future__ import annotations

import time
from itertools import islice

import numpy as np

from autotransfer.data.batches import SubjectBatches
from benchmarks.common import report

SIZES = (10, 1_000, 100_000)
TRIALS = 40
GOAL = 2.0


def make(n_subjects: int) -> SubjectBatches:
    n = n_subjects * TRIALS
    return SubjectBatches(np.arange(n) % 4, np.repeat(np.arange(n_subjects), TRIALS), 8, 16)


def start_seconds(batches: SubjectBatches, number: int, repeats: int) -> float:
    """Seconds from asking for an epoch to its first batch; a batch is part of it."""
    start = time.perf_counter()
    for i in range(repeats):
        next(batches.epoch(number + i))
    return (time.perf_counter() - start) / repeats


def batch_seconds(batches: SubjectBatches, number: int, least: int) -> float:
    """Seconds per batch after the first of an epoch, over at least so many batches."""
    seconds, drawn = 0.0, 0
    while drawn < least:
        epoch = batches.epoch(number)
        next(epoch)
        # Whole short epochs; of a long one the first `least` batches, the dearest: they are the
        # ones that cut the subjects' trials into chunks.
        start = time.perf_counter()
        drawn += sum(1 for _ in islice(epoch, least))
        seconds += time.perf_counter() - start
        number += 1
    return seconds / drawn


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--batches", type=int, default=300, help="batches in one repeat")
    args = report.arguments(parser, repeats=1, batches=10)
    sizes = SIZES[:2] if args.smoke else SIZES
    made, construction = {}, {}
    for size in sizes:
        start = time.perf_counter()
        made[size] = make(size)
        construction[size] = time.perf_counter() - start
    first = dict.fromkeys(sizes, float("inf"))
    batch = dict.fromkeys(sizes, float("inf"))
    for repeat in range(args.repeats):
        for size, batches in made.items():
            number = repeat * args.batches
            first[size] = min(first[size], start_seconds(batches, number, 3))
            batch[size] = min(batch[size], batch_seconds(batches, number, args.batches))
    rows, total = [], {}
    for size, batches in made.items():
        share = first[size] / len(batches)
        total[size] = batch[size] * (len(batches) - 1) / len(batches) + share
        rows.append(
            {
                "subjects": size,
                "trials": batches.n_trials,
                "batches in an epoch": len(batches),
                "construction ms": 1e3 * construction[size],
                "start of an epoch ms": 1e3 * first[size],
                "batch us": 1e6 * batch[size],
                "batch with its share of the start us": 1e6 * total[size],
            }
        )
    ratio = total[sizes[-1]] / total[sizes[0]]
    goal = report.Goal("cost at 100,000 subjects / cost at 10", ratio, GOAL, at_least=False)
    report.finish(args, "Drawing a batch of 8 subjects x 16 trials", rows, [goal])


if __name__ == "__main__":
    main()
