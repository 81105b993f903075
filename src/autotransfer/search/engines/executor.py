"""Any `concurrent.futures.Executor` as an engine: Dask's, submitit's, Python's own pools."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from concurrent.futures import ThreadPoolExecutor as ThreadPool
from typing import Any

from autotransfer.errors import AutoTransferWarning, EngineError, WorkerDiedError
from autotransfer.search.engines.base import Carried, Handle


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
    shares_filesystem : bool, optional
        Whether its workers see the driver's files. By default only Python's own pools do.
    """

    def __init__(
        self,
        executor: Executor,
        n_workers: int = 1,
        *,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        shares_filesystem: bool | None = None,
    ) -> None:
        self.executor = executor
        self.n_workers = int(getattr(executor, "_max_workers", n_workers))
        self.shares_filesystem = isinstance(executor, ThreadPool | ProcessPoolExecutor)
        if shares_filesystem is not None:
            self.shares_filesystem = shares_filesystem
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
