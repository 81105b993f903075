"""The engine for a lab's cluster or a cloud: trials as Ray tasks.

Ray gives each trial its share of processors and GPUs, and holds a value that was `put` once per
machine. Trials wait here and not in Ray, so that they can be cancelled, and so that only those
that run are lost when Ray itself dies.
"""

from __future__ import annotations

import faulthandler
import math
import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple
from uuid import uuid4

from autotransfer.errors import (
    EngineError,
    MissingExtraError,
    SettingError,
    TrialTimeoutError,
    WorkerDiedError,
)
from autotransfer.search.engines.base import ONE_THREAD, Handle
from autotransfer.search.engines.fork_server import environment
from autotransfer.search.engines.worker import call, limit_memory, line

# What of Ray must live for a trial to end; Ray restarts or does without the rest.
_VITAL = {"gcs_server", "raylet"}
_DEATHS = (
    "WorkerCrashedError",
    "NodeDiedError",
    "LocalRayletDiedError",
    "ObjectLostError",  # and OwnerDiedError
    "OutOfMemoryError",
    "RayActorError",  # and ActorDiedError
    "RaySystemError",
)


class _Trial(NamedTuple):
    future: Future[Any]
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    mark: str


class RayEngine(Executor):
    """Trials as Ray tasks.

    Parameters
    ----------
    n_workers : int
        How many trials run at once, if we start Ray. A Ray that is there already runs as many as
        its processors and GPUs allow.
    time_limit : float, optional
        Seconds a trial may run, counted from when it begins, before its worker is killed.
    memory_limit : int, optional
        Bytes of memory per worker (Linux only).
    address : str, optional
        Of a Ray to connect to. By default the Ray to which this process is connected is used, and
        one is started on this machine if there is none.
    num_cpus, num_gpus : float
        Processors and GPUs per trial; fractions are possible.
    shares_filesystem : bool, optional
        Whether all machines see the driver's files. By default only if we start Ray.

    Notes
    -----
    A Ray that we started and that dies fails the trials that run, and is started anew for the
    next one; handles of `put` stay good. On a cluster whose clocks differ by seconds, a trial that
    took too long may be reported as a worker that died.
    """

    def __init__(
        self,
        n_workers: int = 1,
        *,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        address: str | None = None,
        num_cpus: float = 1.0,
        num_gpus: float = 0.0,
        shares_filesystem: bool | None = None,
    ) -> None:
        self._ray = _import_ray()
        if min(num_cpus, num_gpus) < 0 or num_cpus + num_gpus <= 0:
            raise SettingError(
                "num_cpus and num_gpus say what a trial needs: at least 0, and not both 0; not "
                f"{num_cpus!r} and {num_gpus!r}."
            )
        self.time_limit, self.memory_limit = time_limit, memory_limit
        self._n_workers, self._address = n_workers, address
        self._share = {"num_cpus": num_cpus, "num_gpus": num_gpus}
        self._foreign = bool(self._ray.is_initialized())
        self._ours = address is None and not self._foreign
        self.shares_filesystem = self._ours if shares_filesystem is None else shares_filesystem
        self._lock = threading.RLock()
        self._waiting: deque[_Trial] = deque()
        self._running: dict[Future[Any], _Trial] = {}
        self._news: queue.SimpleQueue[Future[Any] | None] = queue.SimpleQueue()
        self._closed = self._killed = self._lost = False
        self._capacity, self._counted = 0, -math.inf
        self._key = f"autotransfer-{uuid4().hex}"
        self.life = 0
        self._connect()
        self._thread = threading.Thread(target=self._serve, daemon=True, name="autotransfer ray")
        self._thread.start()

    @property
    def n_workers(self) -> int:
        """How many trials run at once; follows the cluster as it grows and shrinks."""
        if self._ours:
            return self._n_workers
        with self._lock:
            if time.monotonic() - self._counted > 5 and not self._lost:
                there = self._ray.cluster_resources()
                needs = (("CPU", self._share["num_cpus"]), ("GPU", self._share["num_gpus"]))
                self._capacity = min(int(there.get(k, 0) / need) for k, need in needs if need)
                self._counted = time.monotonic()
            return max(1, self._capacity)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run ``fn(*args, **kwargs)`` in a worker."""
        future: Future[Any] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("This engine was shut down; it takes no more trials.")
            mark = f"{self._key}-{uuid4().hex}"
            self._waiting.append(_Trial(future, fn, args, kwargs, mark))
        self._news.put(None)
        return future

    def put(self, value: Any) -> Handle:
        """Hand a value to all workers, once per machine; arrays are not copied."""
        return RayHandle(self, value)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more trials; end Ray if we started it, leave it if we connected to it.

        Parameters
        ----------
        wait : bool
            Whether to return only when this is done.
        cancel_futures : bool
            Whether to drop the trials that have not begun. Without `wait`, those that run are
            killed too.
        """
        with self._lock:
            self._closed = True
            self._killed = self._killed or (cancel_futures and not wait)
            while cancel_futures and self._waiting:
                future = self._waiting.popleft().future
                if future.cancel():
                    future.set_running_or_notify_cancel()
        self._news.put(None)
        if wait:
            self._thread.join()

    def _serve(self) -> None:
        """Keep Ray busy; runs in a thread of its own.

        Ray tells of a finished trial in a thread that must not be kept waiting.
        """
        while True:
            try:
                # Ray takes up to half a minute to say that it is dead: look every second.
                done = self._news.get(timeout=1.0 if self._running else None)
            except queue.Empty:
                done = None
            if done is not None and done in self._running:
                trial = self._running.pop(done)
                try:
                    self._finish(done, trial)
                except Exception as error:
                    trial.future.set_exception(EngineError(f"Ray failed: {line(error)}"))
            if self._running and self._is_lost():
                self._give_up("Ray itself died")
            if self._killed:
                self._give_up("the engine was shut down", stop=True)
            while self._waiting and len(self._running) < self._most():
                with self._lock:
                    if not self._waiting:
                        break
                    trial = self._waiting.popleft()
                if trial.future.set_running_or_notify_cancel():
                    try:
                        self._send(trial)
                    except Exception as error:
                        trial.future.set_exception(error)
            if self._closed and not self._waiting and not self._running:
                break
        if not self._foreign:
            self._ray.shutdown()

    def _most(self) -> int:
        # More than can run: a cluster that grows on demand must see the demand.
        return self.n_workers if self._ours else 2 * self.n_workers

    def _send(self, trial: _Trial) -> None:
        """Hand a trial to Ray, which is started anew if it is gone."""
        if self._is_lost():
            self._give_up("Ray itself died")
            self._connect()
        rest = (trial.mark, self.time_limit, self.memory_limit)
        try:
            inner = self._task.remote(trial.fn, trial.args, trial.kwargs, *rest).future()
        except Exception as error:
            raise EngineError(f"The trial cannot be sent to a worker: {line(error)}.") from error
        self._running[inner] = trial
        inner.add_done_callback(self._news.put)

    def _finish(self, inner: Future[Any], trial: _Trial) -> None:
        """Pass on what became of a trial."""
        error = inner.exception()
        if error is not None:
            trial.future.set_exception(self._translate(error, trial))
            return
        good, value, remote = inner.result()
        if good:
            trial.future.set_result(value)
        else:
            value.add_note(remote)
            trial.future.set_exception(value)

    def _translate(self, error: BaseException, trial: _Trial) -> BaseException:
        """Say an error of Ray in our words."""
        known = self._ray.exceptions
        if isinstance(error, known.RayTaskError):
            cause = getattr(error, "cause", error)
            cause.add_note(f"In the worker:\n{error}")
            return cause if isinstance(cause, Exception) else EngineError(line(cause))
        said: EngineError = EngineError(f"Ray failed: {line(error)}")
        if isinstance(error, tuple(getattr(known, name) for name in _DEATHS)):
            self._lost = self._lost or isinstance(error, known.LocalRayletDiedError)
            said = WorkerDiedError(f"The worker ended before its trial did: {line(error)}")
            if self._took_too_long(trial):
                said = TrialTimeoutError(
                    f"The trial took longer than its time limit of {self.time_limit:g} s and was "
                    "stopped."
                )
        said.__cause__ = error
        return said

    def _took_too_long(self, trial: _Trial) -> bool:
        """Whether a trial whose worker ended had come to its time limit."""
        if self.time_limit is None or self._is_lost():
            return False
        from ray.experimental.internal_kv import _internal_kv_del, _internal_kv_get

        began = _internal_kv_get(trial.mark)
        _internal_kv_del(trial.mark)
        return began is not None and time.time() - float(began) >= self.time_limit

    def _is_lost(self) -> bool:
        """Whether the connection to Ray is gone, or the Ray that we started is dead."""
        node = getattr(self._ray._private.worker, "_global_node", None)
        if not self._ray.is_initialized():
            self._lost = True
        elif self._ours and node is not None:
            self._lost = any(kind in _VITAL for kind, _ in node.dead_processes())
        return self._lost

    def _give_up(self, why: str, *, stop: bool = False) -> None:
        """Fail all trials that run."""
        for inner, trial in self._running.items():
            if stop and not self._is_lost():
                self._ray.cancel(inner.object_ref, force=True)  # type: ignore[attr-defined]
            text = f"The worker ended before its trial did: {why}."
            trial.future.set_exception(WorkerDiedError(text))
        self._running.clear()

    def _connect(self) -> None:
        """Start Ray, or connect to it, also if there was one before that is dead."""
        # Niceness 15, which is Ray's own choice, lets a worker starve while it imports torch.
        os.environ.setdefault("RAY_worker_niceness", "0")
        quiet = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": False}
        per_task: dict[str, Any] = {}
        on_term = signal.getsignal(signal.SIGTERM)
        try:
            if self._lost:
                self._ray.shutdown()
            if self._ours:
                # Workers inherit this; a runtime environment would cost time at every start. They
                # find the modules that the driver finds, as spawned processes do.
                path = os.pathsep.join(filter(None, sys.path))
                with environment({**ONE_THREAD, "PYTHONPATH": path}):
                    self._ray.init(
                        num_cpus=math.ceil(self._n_workers * self._share["num_cpus"]),
                        include_dashboard=False,
                        _node_ip_address="127.0.0.1",
                        **quiet,
                    )
            elif self._foreign and not self._lost:
                per_task["runtime_env"] = {"env_vars": ONE_THREAD}
            else:
                where = self._address or "auto"
                env = {"env_vars": ONE_THREAD}
                self._ray.init(address=where, runtime_env=env, **quiet)
        except Exception as error:
            self._lost = True
            raise EngineError(f"Ray cannot be started or reached: {line(error)}.") from error
        finally:
            # Ray puts its own way to end in the place of that of whoever wants to be asked.
            if callable(on_term) and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, on_term)
        self._lost = False
        self.life += 1
        # Whether to try again is decided above the engine, which counts the attempts.
        self._task = self._ray.remote(max_retries=0, **self._share, **per_task)(_call)


class RayHandle:
    """Stands for a value in Ray's store; puts it there again when Ray was started anew."""

    def __init__(self, engine: RayEngine, value: Any) -> None:
        self._engine, self._value = engine, value
        self._life, self._ref = 0, None

    def get(self) -> Any:
        """Return the value."""
        return self._value

    def __reduce__(self) -> tuple[Any, ...]:
        if self._life != self._engine.life:
            self._life, self._ref = self._engine.life, _import_ray().put(self._value)
        return _Stored, (self._ref,)


class _Stored(NamedTuple):
    """A handle as a worker sees it."""

    ref: Any

    def get(self) -> Any:
        return _import_ray().get(self.ref)


def _call(
    fn: Callable[..., Any],
    args: Any,
    kwargs: Any,
    mark: str,
    time_limit: float | None,
    memory_limit: int | None,
) -> tuple[bool, Any, str]:
    """Run a trial in a Ray worker."""
    import torch

    torch.set_num_threads(1)
    refusal = limit_memory(memory_limit)
    if refusal:
        return False, EngineError(refusal), ""
    if time_limit is None:
        return call(fn, args, kwargs)
    from ray.experimental.internal_kv import _internal_kv_del, _internal_kv_put

    # Ray does not say why a worker ended: the driver looks at when its trial began.
    _internal_kv_put(mark, str(time.time()).encode())
    # Needs no turn of the interpreter, which a trial in C code may never give.
    faulthandler.dump_traceback_later(time_limit, exit=True, file=2)
    try:
        return call(fn, args, kwargs)
    finally:
        faulthandler.cancel_dump_traceback_later()
        _internal_kv_del(mark)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError(
            'Ray is needed for engine="ray". Install it with pip install "ray[default]".'
        ) from error
    return ray
