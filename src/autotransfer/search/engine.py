"""Engines: what runs trials in parallel.

An engine is a `concurrent.futures.Executor` with a little more: it says how many trials run at
once, whether its workers see the driver's files, and hands a value to all workers. A future of an
engine ends with the result, with the error that the trial raised (the worker's traceback is in
its notes or its cause), with `WorkerDiedError` or with `TrialTimeoutError`. Whether to try again
is for the caller to decide.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from concurrent.futures import ThreadPoolExecutor as ThreadPool
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

from autotransfer.errors import (
    AutoTransferWarning,
    EngineError,
    SettingError,
    WorkerDiedError,
    some,
)
from autotransfer.named import check_options, lookup

# Two OpenMP threads on a busy machine are 2 to 8 times slower than one, and threads that wait
# actively take the core from the next trial.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}


class Handle(Protocol):
    """Stands for a value that was handed to all workers."""

    def get(self) -> Any:
        """Return the value; works in the driver and in workers."""


class Engine(Protocol):
    """What runs trials in parallel."""

    @property
    def n_workers(self) -> int:
        """How many trials run at once."""

    @property
    def files(self) -> bool:
        """Whether workers see the driver's files: same machine, or a shared disk."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Run ``fn(*args)`` in a worker."""

    def put(self, value: Any) -> Handle:
        """Hand a value to all workers; the handle can be an argument of `submit`."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more trials and let the workers go."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> bool | None: ...


@dataclass(frozen=True)
class Carried:
    """A value that travels with every trial that uses it: for small ones."""

    value: Any

    def get(self) -> Any:
        """Return the value."""
        return self.value


def make_engine(
    engine: str | Executor,
    n_workers: int = 1,
    *,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    **options: Any,
) -> Engine:
    """Make an engine from its name, or from an executor of your own.

    Parameters
    ----------
    engine : str or concurrent.futures.Executor
        A name in `ENGINES`, or an executor (of Dask, of loky, ...), which is never shut down.
    n_workers : int
        How many trials run at once. An executor that knows its own number keeps it.
    time_limit : float, optional
        Seconds a trial may run before its worker is killed.
    memory_limit : int, optional
        Bytes of memory per worker; a trial that asks for more gets `MemoryError`, or
        `RuntimeError` from torch.
    **options : dict
        For ``"ray"`` and for an executor: see `RayEngine` and `ExecutorEngine`.

    Returns
    -------
    Engine
        To be used in a ``with`` statement.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as mine, make_engine(mine) as engine:
    ...     engine.n_workers, engine.submit(divmod, 7, 2).result()
    (2, (3, 1))
    """
    if isinstance(n_workers, bool) or not isinstance(n_workers, int) or n_workers < 1:
        raise SettingError(f"n_workers must be a whole number, at least 1; not {n_workers!r}.")
    for name, limit in (("time_limit", time_limit), ("memory_limit", memory_limit)):
        if limit is not None and not limit > 0:
            raise SettingError(f"{name} must be more than 0; not {limit!r}.")
    make: Callable[..., Engine] = ExecutorEngine
    first: tuple[Executor, ...] = ()
    if isinstance(engine, Executor):
        who, first = "An executor handed over", (engine,)
    elif not isinstance(engine, str):
        raise SettingError(
            f"An engine is a name ({some(sorted(ENGINES))}) or a concurrent.futures.Executor; "
            f"not a {type(engine).__name__}."
        )
    else:
        own = "hand over a concurrent.futures.Executor of your own"
        make, who = lookup("engine", engine, ENGINES, own)(), f"The engine {engine!r}"
    limits: dict[str, Any] = {"time_limit": time_limit, "memory_limit": memory_limit}
    known = set(inspect.signature(make).parameters) - {"n_workers", "executor", *limits}
    check_options(options, known, who)
    return make(*first, n_workers=n_workers, **limits, **options)


def _local() -> Callable[..., Engine]:
    from autotransfer.search.local import LocalEngine

    return LocalEngine


def _ray() -> Callable[..., Engine]:
    from autotransfer.search.ray_engine import RayEngine

    return RayEngine


# An engine is imported when it is asked for: the modules of engines import this one.
ENGINES: dict[str, Callable[[], Callable[..., Engine]]] = {"local": _local, "ray": _ray}


class ExecutorEngine(Executor):
    """Any `concurrent.futures.Executor` as an engine; never shut down by us.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Runs the trials.
    n_workers : int
        How many run at once, where the executor does not say.
    time_limit, memory_limit : optional
        Cannot be kept by a foreign executor; there is a warning if one is given.
    files : bool, optional
        Whether its workers see the driver's files. By default only Python's own pools do.
    """

    def __init__(
        self,
        executor: Executor,
        n_workers: int = 1,
        *,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        files: bool | None = None,
    ) -> None:
        self.executor = executor
        self.n_workers = int(getattr(executor, "_max_workers", n_workers))
        self.files = isinstance(executor, ThreadPool | ProcessPoolExecutor)
        if files is not None:
            self.files = files
        self._closed = False
        given = {"time_limit": time_limit, "memory_limit": memory_limit}
        lost = [name for name, limit in given.items() if limit is not None]
        if lost:
            warnings.warn(
                f"{' and '.join(lost)} cannot be kept by a {type(executor).__name__}; "
                "engine='local' and engine='ray' keep them.",
                AutoTransferWarning,
                stacklevel=3,
            )

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run ``fn(*args)`` in a worker of the executor."""
        if self._closed:
            raise RuntimeError("This engine was shut down; it takes no more trials.")
        try:
            inner = self.executor.submit(_one_thread, os.getpid(), fn, args, kwargs)
        except BrokenExecutor as error:
            raise EngineError(
                f"A worker of the {type(self.executor).__name__} died, which makes it useless. "
                "Make a new one, or use engine='local', which replaces dead workers."
            ) from error
        return LinkedFuture(inner, self._translate)

    def put(self, value: Any) -> Handle:
        """Hand a value to all workers: it travels with every trial that uses it."""
        return Carried(value)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more trials; the executor itself stays as it is."""
        self._closed = True

    def _translate(self, error: BaseException) -> BaseException:
        if not isinstance(error, BrokenExecutor):
            return error
        died = WorkerDiedError(
            f"A worker of the {type(self.executor).__name__} ended before its trial did, and all "
            "trials that were waiting are lost with it. engine='local' loses only that trial."
        )
        died.__cause__ = error
        return died


class LinkedFuture(Future[Any]):
    """Follows another future and says its errors in our words."""

    def __init__(
        self, inner: Future[Any], translate: Callable[[BaseException], BaseException]
    ) -> None:
        super().__init__()
        self._inner, self._translate = inner, translate
        inner.add_done_callback(self._follow)

    def cancel(self) -> bool:
        """Cancel the trial if it has not begun."""
        return self._inner.cancel()

    def running(self) -> bool:
        """Whether the trial runs."""
        return self._inner.running()

    def _follow(self, inner: Future[Any]) -> None:
        if inner.cancelled():
            super().cancel()
            self.set_running_or_notify_cancel()
        elif (error := inner.exception()) is not None:
            self.set_exception(self._translate(error))
        else:
            self.set_result(inner.result())


def _one_thread(driver: int, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Run a trial with one torch thread; a pool of threads shares the driver's, which stay."""
    if os.getpid() != driver:
        import torch

        torch.set_num_threads(1)
    return fn(*args, **kwargs)
