"""Where workers come from: on Linux forks of one process that has imported what they need.

Importing torch, scikit-learn and the rest takes a process seconds of CPU
(``benchmarks/speed/worker_start.py``). Python's fork server does it once for all workers of a
driver and for all its runs. It must end with the driver, and its forks with it, also when the
driver is killed; Python does not see to that, because the forks keep the server alive.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from threading import Lock
from typing import Any

from autotransfer._driver import DRIVER
from autotransfer.search.engines.base import ONE_THREAD

# Not on macOS, where forks of a process that has used its system libraries crash.
FORKS = sys.platform.startswith("linux")
PRELOADED = "autotransfer.search.engines.preloaded"

# A new process gets the environment of the driver, which is changed for a moment: one at a time.
_STARTING = Lock()


class _Server:
    """The fork server of a driver, which Linux ends with the thread that starts it."""

    def __init__(self) -> None:
        self.driver = os.getpid()
        # The thread of a pool lives as long as the pool does.
        self.thread = ThreadPoolExecutor(
            1, thread_name_prefix="autotransfer fork server", initializer=_block_signals
        )

    def ensure(self) -> None:
        """Start the server if it does not run; it may need seconds until it answers."""
        self.thread.submit(self._ensure).result()

    def _ensure(self) -> None:
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload([PRELOADED])
        # Python 3.11's server looks for what it imports first where a bare `python` looks.
        path = os.pathsep.join(map(os.path.abspath, sys.path))
        with _starting(PYTHONPATH=path):
            forkserver.ensure_running()


_SERVER: list[_Server] = []


def start_process(target: Callable[..., None], args: tuple[Any, ...], name: str) -> BaseProcess:
    """Start a process that ends with this one; the first one takes as long as the imports."""
    if not FORKS:
        return _spawn(target, args, name)
    with _STARTING:
        if not _SERVER:
            _SERVER.append(_Server())
    if _SERVER[0].driver != os.getpid():  # a driver that others have forked: not its server
        return _spawn(target, args, name)
    _SERVER[0].ensure()
    process = get_context("forkserver").Process(target=target, args=args, name=name)
    process.start()
    return process


def _spawn(target: Callable[..., None], args: tuple[Any, ...], name: str) -> BaseProcess:
    process = get_context("spawn").Process(target=target, args=args, name=name)
    with _starting():
        process.start()
    return process


@contextmanager
def _starting(**more: str) -> Iterator[None]:
    """Change the environment for a process of ours that is started meanwhile."""
    with _STARTING, environment({**ONE_THREAD, DRIVER: str(os.getpid()), **more}):
        yield


@contextmanager
def environment(values: dict[str, str]) -> Iterator[None]:
    """Change the environment for processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _block_signals() -> None:
    # Inherited by the server: both are for the driver, also while the server imports.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
