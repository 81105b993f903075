"""The engine of one machine: processes, each replaced when it dies."""

from __future__ import annotations

import atexit
import os
import queue
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Executor, Future
from multiprocessing import current_process
from typing import Any, NamedTuple

from autotransfer.errors import (
    AutoTransferWarning,
    EngineError,
    TrialTimeoutError,
    WorkerDiedError,
)
from autotransfer.search.engines.base import Carried, Handle, WatchedFuture
from autotransfer.search.engines.worker import Worker, line, pack, unpack

_GUARD = (
    'If this is a script, put what it does under `if __name__ == "__main__":`, because every '
    "worker imports the script once more."
)


class _Trial(NamedTuple):
    future: WatchedFuture
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


# Not ProcessPoolExecutor: there a worker that dies takes the pool and all waiting trials with it,
# a trial cannot be stopped, and workers outlive a driver that was killed.
class LocalEngine(Executor):
    """Worker processes on this machine, with one torch thread each.

    A worker is started when a trial needs it and kept for the next. When it dies, or is killed
    because its trial took too long, only that trial's future fails and the next trial gets a fresh
    worker. Workers end when the driver is gone, in whatever way.

    Parameters
    ----------
    n_workers : int
        How many trials run at once.
    time_limit : float, optional
        Seconds a trial may run before its worker is killed.
    memory_limit : int, optional
        Bytes of memory per worker (Linux only).

    Examples
    --------
    >>> with LocalEngine(2) as engine:
    ...     futures = [engine.submit(pow, 2, n) for n in range(4)]
    ...     [future.result() for future in futures]
    [1, 2, 4, 8]
    """

    shares_filesystem = True

    def __init__(
        self,
        n_workers: int = 1,
        *,
        time_limit: float | None = None,
        memory_limit: int | None = None,
    ) -> None:
        # Python would refuse too, but later, in other words, and once per trial.
        if getattr(current_process(), "_inheriting", False):
            raise EngineError(f"A worker that is being started cannot start workers. {_GUARD}")
        if memory_limit is not None and not sys.platform.startswith("linux"):
            warnings.warn(
                "memory_limit is kept on Linux only; here it is ignored.",
                AutoTransferWarning,
                stacklevel=3,
            )
            memory_limit = None
        if os.name == "posix":
            from multiprocessing import resource_tracker

            # Started later, by a thread of ours, it would let Ctrl-C through to that thread.
            resource_tracker.ensure_running()
        self.n_workers = n_workers
        self.time_limit, self.memory_limit = time_limit, memory_limit
        self._trials: queue.SimpleQueue[_Trial | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._slots: list[_Slot] = []
        self._lock = threading.Lock()
        self._closed = self._killed = False
        self._broken = ""
        # multiprocessing's own exit function, registered before, waits for workers to end.
        atexit.register(self._leave)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run ``fn(*args, **kwargs)`` in a worker."""
        future = WatchedFuture()
        with self._lock:
            if self._closed:
                raise RuntimeError("This engine was shut down; it takes no more trials.")
            if self._broken:
                raise EngineError(self._broken)
            self._trials.put(_Trial(future, fn, args, kwargs))
            if not self._idle.acquire(blocking=False) and len(self._slots) < self.n_workers:
                self._slots.append(_Slot(self))
                self._slots[-1].start()
        return future

    def put(self, value: Any) -> Handle:
        """Hand a value to all workers: it travels with every trial that uses it."""
        return Carried(value)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more trials and let the workers go.

        Parameters
        ----------
        wait : bool
            Whether to return only when all workers have ended.
        cancel_futures : bool
            Whether to drop the trials that have not begun. Without `wait`, those that run are
            killed too.
        """
        with self._lock:
            self._closed = True
            while cancel_futures and not self._trials.empty():
                trial = self._trials.get()
                if trial is not None and trial.future.cancel():
                    trial.future.set_running_or_notify_cancel()
            self._trials.put(None)
            if cancel_futures and not wait:
                self._killed = True
                for slot in self._slots:
                    if slot.worker is not None:
                        slot.worker.process.kill()
        atexit.unregister(self._leave)
        if wait:
            for slot in self._slots:
                slot.join()

    def _leave(self) -> None:
        self.shutdown(wait=False, cancel_futures=True)


class _Slot(threading.Thread):
    """Feeds one worker, and the next one when that is gone.

    The thread must outlive its worker: where workers are spawned, Linux ends one with the thread
    that started it.
    """

    def __init__(self, engine: LocalEngine) -> None:
        super().__init__(name="autotransfer engine", daemon=True)
        self.engine = engine
        self.worker: Worker | None = None

    def run(self) -> None:
        """Run trials until the engine is shut down."""
        if hasattr(signal, "pthread_sigmask"):
            # Inherited by the worker: both are for the driver, also while a worker starts.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        trials = self.engine._trials
        while (trial := trials.get()) is not None:
            try:
                self._run(trial)
            except BaseException as error:
                # A trial that does not run yet can be cancelled at any moment.
                if trial.future.running() or trial.future.set_running_or_notify_cancel():
                    trial.future.set_exception(error)
            del trial
            self.engine._idle.release()
        trials.put(None)  # for the next slot
        self._end(seconds=5)

    def _run(self, trial: _Trial) -> None:
        """Run a trial; raise what did not come from the trial itself."""
        future = trial.future
        if future.cancelled():
            future.set_running_or_notify_cancel()
            return
        try:
            message = pack((trial.fn, trial.args, trial.kwargs))
        except Exception as error:
            raise EngineError(f"The trial cannot be sent to a worker: {line(error)}.") from error
        # A worker that was killed while it was idle has nothing to do with this trial.
        for _ in range(2):
            worker = self.worker or self._start()
            if not future.running() and not future.set_running_or_notify_cancel():
                return
            if worker.begin(message):
                break
            how = self._end()
        else:
            raise WorkerDiedError(f"Two workers died before the trial began; the second: {how}.")
        del message
        try:
            reply = self._reply(worker, future)
        except (EOFError, OSError):
            how = self._end(seconds=5)
            raise WorkerDiedError(f"The worker ended before its trial did: {how}.") from None
        if reply is None:
            self._end()
            raise TrialTimeoutError(
                f"The trial took longer than its time limit of {self.engine.time_limit:g} s and "
                "was stopped."
            )
        try:
            good, value, remote = unpack(reply)
        except Exception as error:
            raise EngineError(f"The answer of a worker cannot be read: {line(error)}.") from error
        if good:
            future.set_result(value)
        else:
            value.add_note(remote)
            future.set_exception(value)

    def _reply(self, worker: Worker, future: WatchedFuture) -> bytes | None:
        """Wait for the reply of a trial that has begun; None if it takes too long."""
        future.began = future.news = time.monotonic()
        limit = self.engine.time_limit
        left = None
        while True:
            if limit is not None:
                left = max(future.began + limit - time.monotonic(), 0.0)
            reply = worker.receive(left)
            if reply != b"":
                return reply
            future.epochs, future.news = future.epochs + 1, time.monotonic()

    def _start(self) -> Worker:
        """Start a worker; a second failure in a row makes the engine useless."""
        engine, text = self.engine, ""
        for _ in range(2):
            if engine._broken:
                raise EngineError(engine._broken)
            try:
                # Not under the lock: the first one waits until the fork server has imported.
                worker = Worker(engine.memory_limit)
            except (OSError, EOFError) as error:
                raise EngineError(f"A worker cannot be started: {line(error)}.") from error
            with engine._lock:
                self.worker = worker
                killed = engine._killed
            if killed:
                self._end()
                raise WorkerDiedError("The engine was shut down before the trial began.")
            try:
                text = (worker.receive() or b"").decode()
            except (EOFError, OSError):
                how = self._end(seconds=5)
                text = f"A worker died while it started, twice in a row: {how}. {_GUARD}"
                continue
            if not text:
                return worker
            self._end()
            break
        with engine._lock:
            engine._broken = text
        raise EngineError(text)

    def _end(self, seconds: float = 0.0) -> str:
        """Let the worker go; say how it ended."""
        with self.engine._lock:
            worker, self.worker = self.worker, None
        if worker is None:
            return ""
        how = worker.end(seconds)
        return "the engine was shut down" if self.engine._killed else how
