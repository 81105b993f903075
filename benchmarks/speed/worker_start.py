"""CPU that a worker of the local engine spends before the first step of its first training.

A worker trains twice on the same few trials, for one step each: what the first training takes more
than the second, with all that the process spent before, is what starting cost. On Linux workers are
forks of a process that has imported once what they need, and its CPU is given too; beside them, as
on other systems, workers that are spawned and import for themselves.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import autotransfer as at
from autotransfer.search.engines import fork_server, make_engine
from benchmarks.common.report import Goal, arguments, finish, parser

GOAL = 2.0


def start_cost(seed: int) -> tuple[float, int]:
    """Train twice; return the seconds of CPU before the first step, and the parent's number."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((48, 4, 128)).astype(np.float32)
    y, subject = np.tile([0, 1], 24), np.repeat(["a", "b", "c"], 16)
    ends = []
    for _ in range(2):
        clf = at.CensoredClassifier(n_steps=1, validation=None, random_state=0, verbose=False)
        clf.fit(X, y, subject=subject)
        ends.append(time.process_time())
    return 2 * ends[0] - ends[1], os.getppid()


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU that a running process has spent (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--repeats", type=int, default=5, help="workers of each kind")
    args = arguments(made, repeats=1)
    ways = ["forked", "spawned"] if fork_server.FORKS else ["spawned"]
    rows, goals = [], []
    for way in ways:
        fork_server.FORKS = way == "forked"
        costs, server = [], float("nan")
        for seed in range(args.repeats):
            with make_engine("local", 1) as engine:
                cost, parent = engine.submit(start_cost, seed).result()
                costs.append(cost)
                if way == "forked":
                    server = cpu_of(parent)
        rows.append(
            {
                "workers": way,
                "CPU s": statistics.median(costs),
                "least": min(costs),
                "most": max(costs),
                "once for all": server,
            }
        )
    if sys.platform.startswith("linux"):
        goals.append(Goal("CPU s of a forked worker", rows[0]["CPU s"], GOAL, at_least=False))
    finish(args, "CPU before a worker's first step", rows, goals)


if __name__ == "__main__":
    main()
