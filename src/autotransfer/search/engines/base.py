"""What an engine is, and what all engines share.

An engine is a `concurrent.futures.Executor` with a little more: it says how many trials run at
once, whether its workers see the driver's files, and hands a value to all workers. A future of an
engine ends with the result, with the error that the trial raised (the worker's traceback is in
its notes or its cause), with `WorkerDiedError` or with `TrialTimeoutError`. Whether to try again
is for the caller to decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

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
    def shares_filesystem(self) -> bool:
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


class WatchedFuture(Future[Any]):
    """The future of a trial whose worker tells of every epoch.

    Attributes
    ----------
    began, news : float
        When the trial began, and when it was last heard of (`time.monotonic`); infinite before.
    epochs : int
        Epochs that it was heard of since.
    """

    began = news = math.inf
    epochs = 0


@dataclass(frozen=True)
class Carried:
    """A value that travels with every trial that uses it: for small ones."""

    value: Any

    def get(self) -> Any:
        """Return the value."""
        return self.value
