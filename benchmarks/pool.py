"""Jobs in processes of one thread each; what is finished is kept, and the same command goes on."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from autotransfer.training.progress import duration


@dataclass(frozen=True)
class Job:
    """What a process does; benchmarks add fields that JSON can hold."""

    @property
    def key(self) -> str:
        """Identity in the file of kept results."""
        return json.dumps(self.__dict__, sort_keys=True)


J = TypeVar("J", bound=Job)


def kept(file: Path) -> dict[str, dict[str, Any]]:
    """Read finished jobs: key -> result."""
    entries = map(json.loads, file.read_text().splitlines())
    return {entry["key"]: entry["result"] for entry in entries}


def run_all(
    run: Callable[[J], dict[str, Any]],
    todo: list[J],
    keep: Path | None,
    workers: int,
    describe: Callable[[J, dict[str, Any]], str],
) -> dict[J, dict[str, Any]]:
    """Run jobs in processes; `describe` makes the line that tells of a finished one."""
    found = kept(keep) if keep is not None and keep.exists() else {}
    missing = [job for job in todo if job.key not in found]
    # One thread each: two on a busy machine are slower than one. Set before the workers start.
    os.environ.update(OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE")
    start = time.monotonic()
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_leave_with_parent
    ) as pool:
        running = {pool.submit(run, job): job for job in missing}
        for i, done in enumerate(as_completed(running), 1):
            job = running[done]
            found[job.key] = done.result()
            if keep is not None:
                with keep.open("a") as file:
                    file.write(json.dumps({"key": job.key, "result": found[job.key]}) + "\n")
            left = (time.monotonic() - start) / i * (len(missing) - i)
            line = f"{i}/{len(missing)} {describe(job, found[job.key])}, {duration(left)} left"
            print(line, flush=True)
    return {job: found[job.key] for job in todo}


def _leave_with_parent() -> None:
    """End this worker when its driver is gone; a pool's orphans would go on for hours."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
