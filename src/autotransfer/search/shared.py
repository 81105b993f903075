"""What all trials of a run share, and the engine that runs them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, Self

from autotransfer.data.problem import Problem
from autotransfer.search.engines import Engine, Handle, make_engine
from autotransfer.search.levels.cases import N_LABELS
from autotransfer.search.run_folder import RunFolder


@dataclass(frozen=True)
class Shared:
    """What all trials of a run share.

    Parameters
    ----------
    problem : Problem
        The data.
    options : mapping
        Options of `CensoredClassifier` that no setting changes.
    hash : str
        Hash of both.
    checkpoints : str, optional
        Folder where trials keep checkpoints.
    new_person : {"nothing", "recording", "stream", "labels"}
        What will be known of a new person: who is held out is treated so.
    n_labels : int
        Labels of each class, at level labels.
    """

    problem: Problem
    options: Mapping[str, Any]
    hash: str
    checkpoints: str | None = None
    new_person: str = "nothing"
    n_labels: int = N_LABELS


WORKER_MEMORY = 450 * 2**20
"""A worker with torch and this package loaded."""


class Starter:
    """Gives the engine and the handle of the problem: ``engine, handle = starter()``.

    Parameters
    ----------
    shared : Shared
        Handed to the workers: by its file where they see our files, else as an array.
    folder : RunFolder or None
        Where signals and checkpoints of a run lie; None for an engine that leaves no files.
    engine, workers, time_limit, options
        As for `make_engine`.
    checkpoints : bool
        Whether trials keep checkpoints.
    """

    def __init__(
        self,
        shared: Shared,
        folder: RunFolder | None,
        engine: str | Executor,
        workers: int,
        time_limit: float | None,
        options: Mapping[str, Any],
        checkpoints: bool,
    ) -> None:
        self._shared, self._folder, self._checkpoints = shared, folder, checkpoints
        self._engine, self._workers, self._time_limit = engine, workers, time_limit
        self._options = options
        self._running: tuple[Engine, Handle] | None = None

    def __call__(self) -> tuple[Engine, Handle]:
        """Start the engine, or give the one that runs."""
        if self._running is None:
            engine = make_engine(
                self._engine,
                self._workers,
                time_limit=self._time_limit,
                # A trial that eats memory shall fail by itself, not take the machine down.
                memory_limit=fair_memory(self._workers) if self._engine == "local" else None,
                **self._options,
            )
            self._running = engine, engine.put(self._portable(engine))
        return self._running

    def _portable(self, engine: Engine) -> Shared:
        """Give what is shared in the form in which it reaches the workers."""
        shared, folder = self._shared, self._folder
        if not engine.shares_filesystem:
            return replace(shared, problem=shared.problem.in_memory())
        if folder is None:
            return shared
        folder.signals.mkdir(parents=True, exist_ok=True)
        shared = replace(shared, problem=shared.problem.on_disk(folder.signals))
        if not self._checkpoints:
            return shared
        folder.checkpoints.mkdir(parents=True, exist_ok=True)
        return replace(shared, checkpoints=str(folder.checkpoints))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._running is not None:
            self._running[0].shutdown(wait=kind is None, cancel_futures=kind is not None)
            self._running = None


def fair_memory(workers: int) -> int | None:
    """Give each worker its share of the machine's memory."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None  # not every system tells
    return max(int(0.9 * total / max(workers, 1)), 2 * WORKER_MEMORY)
