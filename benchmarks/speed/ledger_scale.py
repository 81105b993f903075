"""A ledger of 30,700 and of 100,000 trials: recording, opening, resuming, the table of results.

Trials are recorded one by one, as a run does it, but for 1% of them, which stay missing; the last
thousand, which are timed, each on the disk before the next, the others without waiting for the
disk, or filling a ledger would take an hour. Then a fresh process opens the ledger, finds what is
missing and records it, and another one makes the table of results. At the end one more records in
turn to the largest ledger and to one of 1,000 trials, and takes the processor time of each record.
An entry has the size of a real one: 40 epochs of three curves, scores of four classes, a setting of
eight parameters.

PostgreSQL is a server of our own on loopback, with fsync but for the filling.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd

from autotransfer.search.ledger import Entry, Ledger
from benchmarks.common import report
from benchmarks.common.postgres_server import PostgresServer

STAGE = "search"
CHOICES: dict[str, list[Any]] = {
    "measure": ["none", "adversary", "mmd", "pairmmd", "mige", "began"],
    "mode": ["marginal", "conditional", "complementary"],
    "strength": [0.0, 0.01, 0.03, 0.1, 0.3, 1.0],
    "dropout": [0.0, 0.25, 0.5],
    "max_norm": [None, 1.0],
}
TIMED = 1000  # trials
SMALL = 1000  # trials of the ledger that the largest is compared with
SECONDS = {"file": 2.0, "postgres": 3.0}  # to open and to find what is missing: at most
CPU_MS = 1.0  # of a record: at most
GROWTH = 1.25  # of the CPU time of a record, from `SMALL` trials to the largest ledger: at most


def identity(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def missing(start: int, stop: int) -> range:
    """Return which of the new trials stay missing: 1% of all, spread over the new ones."""
    return range(start, stop, max((stop - start) * 100 // stop, 1))


def entry(number: int) -> Entry:
    draw = random.Random(number)
    params = {name: draw.choice(values) for name, values in CHOICES.items()}
    params |= {"learning_rate": 10 ** draw.uniform(-4, -2), "epochs": 40, "seed": number}
    classes = ("left", "right", "feet", "tongue")
    curves = ("loss", "penalty", "validation")
    score = draw.random()
    result = {
        "balanced_accuracy": score,
        "per_class": {name: draw.random() for name in classes},
        "seconds": draw.uniform(10, 100),
    }
    history = {name: [draw.random() for _ in range(40)] for name in curves}
    definition = {"setting": params, "fold": number % 9, "validation": f"S{number % 9:03d}"}
    return Entry(
        identity(number),
        STAGE,
        "done",
        definition,
        result,
        value=score,
        params=params,
        curves=history,
    )


def memory() -> float:
    """Return the most memory this process ever had, in MB (Linux).

    Not `resource.getrusage`: its peak of a new process includes that of the process it came from.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


@contextmanager
def no_waiting(server: PostgresServer | None) -> Iterator[None]:
    """Let nothing wait for the disk."""
    if server is not None:
        server.flush(False)
        yield
        server.flush(True)
        return
    with mock.patch("os.fsync"):
        yield


def fill(storage: str, start: int, stop: int, timed: int, server: PostgresServer | None) -> float:
    """Record trials but for the missing ones; return the median ms of the last ones."""
    numbers = [n for n in range(start, stop) if n not in missing(start, stop)]
    with no_waiting(server):
        record(storage, numbers[:-timed], stop)
    return 1e3 * statistics.median(record(storage, numbers[-timed:], stop))


def record(storage: str, numbers: list[int], stop: int) -> list[float]:
    """Record trials; return the seconds of each."""
    taken: list[float] = []
    told = time.monotonic()
    with Ledger(storage, "run") as ledger:
        for number in numbers:
            made = entry(number)
            begin = time.perf_counter()
            ledger.record(made)
            taken.append(time.perf_counter() - begin)
            if time.monotonic() - told > 20:
                told = time.monotonic()
                print(f"  {number} of {stop} recorded", file=sys.stderr, flush=True)
    return taken


def resume(storage: str, start: str, stop: str) -> dict[str, float]:
    """Open, find what is missing, record it."""
    size = int(stop)
    imported = memory()
    begin = time.perf_counter()
    with Ledger(storage, "run") as ledger:
        opened = time.perf_counter()
        known = ledger.ids(STAGE)
        todo = [number for number in range(size) if identity(number) not in known]
        found = time.perf_counter()
        peak = memory()
        made = [entry(number) for number in todo]
        begun = time.perf_counter()
        for one in made:
            ledger.record(one)
        ended = time.perf_counter()
        assert todo == list(missing(int(start), size))
        assert len(ledger.ids(STAGE)) == size
    return {
        "open s": opened - begin,
        "find missing s": found - opened,
        "record missing ms each": 1e3 * (ended - begun) / len(todo),
        "memory of open MB": peak,
        "of which imports MB": imported,
    }


def table(storage: str, size: str) -> dict[str, float]:
    """Make the table of results from a ledger that others may be writing."""
    begin = time.perf_counter()
    with Ledger(storage, "run", read_only=True) as ledger:
        rows = [
            {
                "id": one.id,
                **one.definition["setting"],
                "fold": one.definition["fold"],
                "balanced_accuracy": one.result["balanced_accuracy"],
                **one.result["per_class"],
            }
            for one in ledger.each(STAGE)
        ]
    frame = pd.DataFrame(rows)
    assert frame["id"].nunique() == len(frame) == int(size)
    return {"table s": time.perf_counter() - begin, "memory of table MB": memory()}


def compare(large: str, small: str, size: str, timed: str) -> dict[str, float]:
    """Record to two ledgers in turn, so that whatever else the machine does concerns both."""
    new = [entry(number) for number in range(int(size), int(size) + int(timed))]
    seconds: dict[str, list[float]] = {large: [], small: []}
    with Ledger(large, "run") as first, Ledger(small, "run") as second:
        for one in new:
            for storage, ledger in ((large, first), (small, second)):
                begin = time.process_time()
                ledger.record(one)
                seconds[storage].append(time.process_time() - begin)
    ms = [1e3 * statistics.median(seconds[storage]) for storage in (large, small)]
    return {"record CPU ms": ms[0], "of a small ledger ms": ms[1]}


WORKS: dict[str, Callable[..., dict[str, float]]]
WORKS = {"resume": resume, "table": table, "compare": compare}


def in_fresh_process(part: str, *words: object) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.speed.ledger_scale",
        "--part",
        part,
        *map(str, words),
    ]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def in_this_process(part: str, *words: object) -> dict[str, float]:
    return WORKS[part](*map(str, words))


def measure(
    kind: str, sizes: list[int], small: int, timed: int, run: Callable[..., dict[str, float]]
) -> list[dict[str, Any]]:
    """Let one ledger grow from size to size; compare it with a small one at the end."""
    rows = []
    with ExitStack() as stack:
        server = None
        if kind == "postgres":
            server = stack.enter_context(PostgresServer())
            storage, other = server.create_database(), server.create_database()
        else:
            there = stack.enter_context(tempfile.TemporaryDirectory())
            storage, other = f"{there}/ledger.jsonl", f"{there}/small.jsonl"
        for start, stop in zip([0, *sizes], sizes, strict=False):
            print(f"{kind}: {stop} trials", file=sys.stderr, flush=True)
            row: dict[str, Any] = {"storage": kind, "trials": stop}
            row["record ms"] = fill(storage, start, stop, timed, server)
            row |= run("resume", storage, start, stop)
            row |= run("table", storage, stop)
            if kind == "file":
                row["file MB"] = Path(storage).stat().st_size / 1e6
            print(json.dumps(row), file=sys.stderr, flush=True)  # the next may take long
            rows.append(row)
        record(other, list(range(small)), small)
        rows[-1] |= run("compare", storage, other, sizes[-1], timed)
    return rows


def goals_of(rows: list[dict[str, Any]]) -> Iterator[report.Goal]:
    for row in rows:
        name = f"{row['storage']}, {row['trials']} trials: "
        seconds = row["open s"] + row["find missing s"]
        what = f"{name}seconds to open and find what is missing"
        yield report.Goal(what, seconds, SECONDS[row["storage"]], at_least=False)
        if "record CPU ms" in row:
            cpu = row["record CPU ms"]
            yield report.Goal(f"{name}ms of CPU of a record", cpu, CPU_MS, at_least=False)
            growth = cpu / row["of a small ledger ms"]
            what = f"{name}CPU of a record relative to a ledger of {SMALL}"
            yield report.Goal(what, growth, GROWTH, at_least=False)


def options() -> argparse.Namespace:
    parser = report.parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[30_700, 100_000])
    kinds = list(SECONDS)
    parser.add_argument("--storage", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    args = options()
    if args.part:
        part, *words = args.part
        print(json.dumps(WORKS[part](*words)))
        return
    sizes, small, timed, run = sorted(args.sizes), SMALL, TIMED, in_fresh_process
    if args.smoke:
        sizes, small, timed, run = [50], 20, 10, in_this_process
    rows = [row for kind in args.storage for row in measure(kind, sizes, small, timed, run)]
    goals = [] if args.smoke else list(goals_of(rows))
    # One table would be too wide to read.
    turned = [
        {"figure": key} | {f"{row['storage']} {row['trials']}": row.get(key, "") for row in rows}
        for key in rows[-1] | rows[0]
        if key not in {"storage", "trials"}
    ]
    report.finish(args, "A ledger of many trials", turned, goals, ledgers=rows)


if __name__ == "__main__":
    main()
