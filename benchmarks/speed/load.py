"""Much of everything: a run of 2,000 tiny trials, 500 people, 1,000,000 trials to predict.

Each part is a process of its own, whose memory and processor time are those that Linux counts.

run: a search of so many settings on four people, an epoch each, on two local workers. What the
driver spends on a trial (processor time of the process that made the run, less that of its start),
and its memory when a tenth of the trials is on record and at the end.

people: a run over 500 people with 200 trials each in a folder store of int16, 8 channels x 128 time
points: one censor and the baseline, five folds, an epoch each.

predict: ``autotransfer predict MODEL STORE --out FILE`` of a million such trials in a store.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import autotransfer as at
from autotransfer.cli.app import app
from autotransfer.data import StoreWriter
from autotransfer.search import Space
from benchmarks.common import report

TRIALS, PEOPLE, EACH, PREDICTED = 2_000, 500, 200, 1_000_000
CPU_MS = 10.0  # of the driver for a trial: at most
GROWTH_MB = 50.0  # of the driver from a tenth of the trials to all: at most
PREDICT_MB = 1024.0  # of a prediction of any size: at most
CHANNELS, TIMES = 8, 128

ENGINE: Any = "local"
"""With --smoke a thread: processes import torch first, which takes longer than all the rest."""


def resident() -> float:
    """Return the memory of this process in MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def peak(who: int) -> float:
    """Return the most memory of this process, or of the largest of its children, in MB."""
    return resource.getrusage(who).ru_maxrss / 1024


def run(folder: Path, n_trials: int) -> dict[str, float]:
    """Make a run of many tiny trials."""
    data = at.make_subjects(n_subjects=4, n_trials=8, n_channels=2, n_times=64, random_state=0)
    # One candidate is tried on three more folds than the search had, as are two baselines.
    strengths = np.linspace(0.1, 1, n_trials - 7).round(6).tolist()
    auto = at.AutoTransfer(
        procedure="paper",
        out=folder / "run",
        classifier=at.CensoredClassifier(max_epochs=1, device="cpu"),
        space=Space(["mmd"], ["marginal"], {"mmd": strengths}),
        keep=1,
        engine=ENGINE,
        n_jobs=2,
        portraits=False,
        verbose=False,
    )
    early: list[float] = []
    ledger = folder / "run" / "ledger.jsonl"

    def watch() -> None:
        """Take the memory when a tenth of the trials is on record."""
        while not early:
            time.sleep(0.5)
            if ledger.exists() and ledger.read_bytes().count(b"\n") > n_trials // 10:
                early.append(resident())

    threading.Thread(target=watch, daemon=True).start()
    start, begin = time.process_time(), time.perf_counter()
    auto.fit(data)
    cpu, taken = time.process_time() - start, time.perf_counter() - begin
    done = len(auto.trials_)
    return {
        "trials": done,
        "seconds": taken,
        "driver CPU ms a trial": 1e3 * cpu / done,
        "driver MB at a tenth": early[0] if early else resident(),
        "driver MB at the end": resident(),
    }


def write(path: Path, n_people: int, each: int) -> None:
    """Write a store of int16, person by person."""
    rng = np.random.default_rng(0)
    y = np.arange(each) % 4
    tones = np.sin(np.outer(np.arange(4) + 3, np.arange(TIMES)) / 5)
    with StoreWriter(path, dtype="int16", scale=1e-2, sfreq=128.0) as writer:
        for person in range(n_people):
            noise = rng.normal(scale=100, size=(each, CHANNELS, TIMES))
            X = (noise + 60 * tones[y][:, None]).round().astype(np.int16)
            writer.append(X, y, person)


def people(folder: Path, n_people: int, each: int) -> dict[str, float]:
    """Make a run over many people."""
    write(folder / "store", n_people, each)
    start = time.perf_counter()
    auto = at.AutoTransfer(
        procedure="paper",
        out=folder / "run",
        classifier=at.CensoredClassifier(max_epochs=1, device="cpu"),
        space=Space(["mmd"], ["marginal"], {"mmd": [0.3]}),
        n_folds=5 if n_people >= 5 else 3,
        keep=1,
        engine=ENGINE,
        n_jobs=2,
        portraits=False,
        verbose=False,
    ).fit(at.load(folder / "store"))
    return {
        "people": n_people,
        "trials of people": n_people * each,
        "trials": len(auto.trials_),
        "seconds": time.perf_counter() - start,
        "driver MB at most": peak(resource.RUSAGE_SELF),
        "worker MB at most": peak(resource.RUSAGE_CHILDREN),
    }


def predict(folder: Path, n_trials: int) -> dict[str, float]:
    """Predict many trials by the command line."""
    each = min(1000, n_trials)
    write(folder / "train", 3, 40)
    write(folder / "store", n_trials // each, each)
    clf = at.CensoredClassifier(max_epochs=2, device="cpu", verbose=False)
    clf.fit(at.load(folder / "train")).save(folder / "model")
    words = ["predict", folder / "model", folder / "store", "--out", folder / "out.csv"]
    start = time.perf_counter()
    if ENGINE == "local":
        command = [sys.executable, "-m", "autotransfer", *map(str, words)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    else:
        app(list(map(str, words)), standalone_mode=False)
    taken = time.perf_counter() - start
    with (folder / "out.csv").open() as file:
        rows = sum(1 for _ in file) - 1
    assert rows == n_trials // each * each
    return {
        "trials": rows,
        "seconds": taken,
        "trials a second": rows / taken,
        "MB at most": peak(resource.RUSAGE_CHILDREN),
    }


PARTS: dict[str, Callable[..., dict[str, float]]]
PARTS = {"run": run, "people": people, "predict": predict}


def in_fresh_process(part: str, *sizes: int) -> dict[str, float]:
    """Run a part in a process of its own."""
    words = [part, *map(str, sizes)]
    command = [sys.executable, "-m", "benchmarks.speed.load", "--part", *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def in_this_process(part: str, *sizes: int) -> dict[str, float]:
    """Run a part."""
    warnings.simplefilter("ignore", at.AutoTransferWarning)
    with tempfile.TemporaryDirectory() as there:
        return PARTS[part](Path(there), *sizes)


def goals_of(figures: dict[str, dict[str, float]]) -> list[report.Goal]:
    """Give the bounds."""
    run, predicted = figures["run"], figures["predict"]
    grown = run["driver MB at the end"] - run["driver MB at a tenth"]
    cpu, most = run["driver CPU ms a trial"], predicted["MB at most"]
    return [
        report.Goal("run: ms of the driver's CPU for a trial", cpu, CPU_MS, at_least=False),
        report.Goal("run: MB by which the driver grew", grown, GROWTH_MB, at_least=False),
        report.Goal("predict: MB at most", most, PREDICT_MB, at_least=False),
    ]


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--people", type=int, default=PEOPLE)
    parser.add_argument("--predicted", type=int, default=PREDICTED)
    parser.add_argument("--part", nargs="+", help=argparse.SUPPRESS)
    args = report.arguments(parser, trials=10, people=4, predicted=50)
    if args.part:
        part, *sizes = args.part
        print(json.dumps(in_this_process(part, *map(int, sizes))))
        return
    do = in_fresh_process
    if args.smoke:
        global ENGINE
        do, ENGINE = in_this_process, ThreadPoolExecutor(1)
    each = 20 if args.smoke else EACH
    sizes_of = {"run": (args.trials,), "people": (args.people, each), "predict": (args.predicted,)}
    figures = {}
    for part, sizes in sizes_of.items():
        figures[part] = do(part, *sizes)
        print(f"{part}: {figures[part]}", file=sys.stderr, flush=True)
    rows = [
        {"part": part, "figure": name, "value": value}
        for part, values in figures.items()
        for name, value in values.items()
    ]
    goals = [] if args.smoke else goals_of(figures)
    report.finish(args, "Much of everything", rows, goals, **figures)


if __name__ == "__main__":
    main()
