"""Jobs in processes of one thread each; what is finished is kept, and the same command goes on."""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from autotransfer.text import duration


@dataclass(frozen=True)
class Job:
    """What a process does; benchmarks add fields that JSON can hold."""

    @property
    def key(self) -> str:
        """Identity in the file of kept results."""
        return json.dumps(self.__dict__, sort_keys=True)


J = TypeVar("J", bound=Job)


WORKERS = "processes; with 0 this one does all"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a benchmark that has jobs."""
    parser.add_argument("--workers", type=int, default=2, help=WORKERS)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep finished trainings here")


def kept(file: Path) -> dict[str, dict[str, Any]]:
    """Read finished jobs: key -> result, of several with a key the last."""
    entries = map(json.loads, file.read_text().splitlines())
    return {entry["key"]: entry["result"] for entry in entries}


def run_all(
    run: Callable[..., dict[str, Any]],
    todo: list[J],
    keep: Path | None,
    workers: int,
    describe: Callable[[J, dict[str, Any]], str],
    whole: Callable[[J, dict[str, Any]], bool] = lambda job, result: True,
) -> dict[J, dict[str, Any]]:
    """Run jobs in processes; `describe` makes the line that tells of a finished one.

    A kept result that is not `whole` is handed to `run` beside its job, to be completed. If a job
    fails, the others go on and are kept, and then its error is raised. Without workers they run in
    this process: starting others takes seconds.
    """
    found = kept(keep) if keep is not None and keep.exists() else {}
    given = {job: [found[job.key]] if job.key in found else [] for job in todo}
    missing = [job for job, before in given.items() if not (before and whole(job, *before))]
    # One thread each: two on a busy machine are slower than one. Set before the workers start.
    os.environ.update(OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE")
    errors: list[BaseException] = []
    start = time.monotonic()
    with executor(workers) as pool:
        running = {pool.submit(run, job, *given[job]): job for job in missing}
        for i, done in enumerate(as_completed(running), 1):
            job = running[done]
            if (error := done.exception()) is not None:
                print(f"FAILED {job.key}: {error!r}", flush=True)
                errors.append(error)
                continue
            found[job.key] = done.result()
            if keep is not None:
                with keep.open("a") as file:
                    file.write(json.dumps({"key": job.key, "result": found[job.key]}) + "\n")
            left = (time.monotonic() - start) / i * (len(missing) - i)
            line = f"{i}/{len(missing)} {describe(job, found[job.key])}, {duration(left)} left"
            print(line, flush=True)
    if errors:
        raise errors[0]
    return {job: found[job.key] for job in todo}


def executor(workers: int) -> Executor:
    """Make a pool of processes, or of one thread of this process for 0 workers."""
    if workers == 0:
        return ThreadPoolExecutor(1)
    context = get_context("spawn")
    return ProcessPoolExecutor(
        workers, mp_context=context, initializer=_leave_with, initargs=(os.getpid(),)
    )


def _leave_with(parent: int) -> None:
    """End this worker when its driver is gone; a pool's orphans would go on for hours."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
