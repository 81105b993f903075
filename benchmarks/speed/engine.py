"""Trials on the engines against a bare `ProcessPoolExecutor`, in wall time.

A trial is a fixed amount of work in pure Python, measured first to take the seconds asked for.
Every engine is started and warmed (each worker has imported torch) before any trial is timed;
start-up is given apart. Then the trials are run in rounds: in each round every engine in turn runs
its share with all workers while the others are idle, so that a machine that is slow for a minute
is slow for all. Wall time is what counts here, because what an engine wastes is waiting. The ratio
is that of the sums over rounds; ideal is trials x seconds / workers, with nothing else running.

On a busy machine the trials themselves take longer, for some engines more than for others by
chance. The last column leaves that out: wall time against what the trials took by the workers' own
clocks, divided by the workers.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import Executor, ProcessPoolExecutor, wait
from multiprocessing import get_context

from autotransfer.search.engines import Engine, make_engine
from autotransfer.search.engines.base import ONE_THREAD
from benchmarks.common import report

BARE = "bare pool"
GOALS = {"local": 1.05, "ray": 1.15}


def work(steps: int) -> float:
    """Compute something that takes time in proportion to `steps`; return the seconds it took."""
    start, found = time.perf_counter(), 1
    for i in range(steps):
        found = (found * 1103515245 + i) % 2147483648
    return time.perf_counter() - start


def warm(seconds: float) -> int:
    """Import what a trial imports; stay long enough for the other worker to start too."""
    import torch

    time.sleep(seconds)
    return torch.get_num_threads() and os.getpid()


def calibrate(seconds: float) -> int:
    """Find the steps of `work` that take so long, from the least disturbed of a few tries."""
    steps, best = 2_000_000, float("inf")
    for _ in range(5):
        start = time.process_time()
        work(steps)
        best = min(best, time.process_time() - start)
    return round(steps * seconds / best)


def make(name: str, workers: int) -> Engine | Executor:
    """Make an engine, or the bare pool."""
    if name == BARE:
        return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    return make_engine(name, workers)


def start_up(name: str, workers: int) -> tuple[Engine | Executor, float]:
    """Start an engine; return it and the seconds until every worker has run something."""
    start = time.perf_counter()
    engine = make(name, workers)
    pids: set[int] = set()
    while len(pids) < workers:
        futures = [engine.submit(warm, 0.2) for _ in range(workers)]
        pids |= {future.result() for future in futures}
    return engine, time.perf_counter() - start


def main() -> None:
    options = report.parser(__doc__)
    options.add_argument("--trials", type=int, default=40)
    options.add_argument("--seconds", type=float, default=2.0, help="of one trial")
    options.add_argument("--rounds", type=int, default=10, help="turns of every engine")
    options.add_argument("--engines", nargs="+", default=["local", "ray"], choices=["local", "ray"])
    options.add_argument("--workers", type=int, default=2)
    tiny = {"trials": 1, "seconds": 0.01, "rounds": 1, "engines": ["local"], "workers": 1}
    args = report.arguments(options, **tiny)
    workers = args.workers
    # For the bare pool, whose workers inherit it, as ours do.
    os.environ.update(ONE_THREAD)
    every = [BARE, *args.engines]
    engines, started = {}, {}
    for name in every:
        engines[name], started[name] = start_up(name, workers)
    steps = calibrate(args.seconds)
    per_round = max(workers, args.trials // args.rounds // workers * workers)
    walls: dict[str, list[float]] = {name: [] for name in every}
    inside = dict.fromkeys(every, 0.0)
    for turn in range(args.rounds):
        # Everyone is first, and last, as often as possible.
        first = turn % len(every)
        for name in every[first:] + every[:first]:
            start = time.perf_counter()
            futures = [engines[name].submit(work, steps) for _ in range(per_round)]
            wait(futures)
            walls[name].append(time.perf_counter() - start)
            inside[name] += sum(future.result() for future in futures) / workers
        print(turn + 1, {name: round(walls[name][-1], 2) for name in every}, flush=True)
    for engine in engines.values():
        engine.shutdown()
    trials = per_round * args.rounds
    ideal = trials * args.seconds / workers
    base = sum(walls[BARE])
    rows = [
        {
            "engine": name,
            "trials": trials,
            "wall s": sum(wall),
            "of ideal": sum(wall) / ideal,
            "of bare": sum(wall) / base,
            "start-up s": started[name],
            "of trials": sum(wall) / inside[name],
        }
        for name, wall in walls.items()
    ]
    goals = [
        report.Goal(f"{name} / {BARE}, wall", sum(walls[name]) / base, GOALS[name], False)
        for name in args.engines
    ]
    title = f"{trials} trials of {args.seconds:g} s on {workers} workers (ideal {ideal:g} s)"
    report.finish(args, title, rows, goals, rounds=walls)


if __name__ == "__main__":
    main()
