"""A worker process of the local engine: the driver's end, the process itself, what they say.

The worker says an empty message when it is ready (or why it refuses), then for every trial an
empty message when the trial has arrived and one after each epoch, and its reply.
"""

from __future__ import annotations

import copyreg
import io
import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import torch

from autotransfer._driver import DRIVER
from autotransfer.errors import EngineError
from autotransfer.search.engines.base import ONE_THREAD
from autotransfer.search.engines.fork_server import start_process
from autotransfer.training.progress import AFTER_EPOCH


class Worker:
    """The driver's end of a worker process, which is started at once.

    Where workers are spawned, the system ends the process with the thread that makes this object.

    Parameters
    ----------
    memory_limit : int, optional
        Bytes of memory that the process may have.
    """

    def __init__(self, memory_limit: int | None = None) -> None:
        # A fork would have the environment that the driver had when the fork server was started.
        environ = {name: value for name, value in os.environ.items() if name != DRIVER}
        self.pipe, theirs = Pipe()
        args = (theirs, memory_limit, {**environ, **ONE_THREAD})
        try:
            self.process = start_process(_work, args, "autotransfer worker")
        except BaseException:
            self.pipe.close()
            raise
        finally:
            theirs.close()

    def begin(self, message: bytes) -> bool:
        """Send a trial; return False if the worker is gone and never saw it."""
        try:
            self.pipe.send_bytes(message)
            return self.receive() is not None
        except (EOFError, OSError):
            return False

    def receive(self, seconds: float | None = None) -> bytes | None:
        """Wait for a message; None when it does not come in time, EOFError when it never will."""
        ready = wait([self.pipe, self.process.sentinel], seconds)
        if not ready:
            return None
        # The process may have ended after its last message.
        if self.pipe in ready or self.pipe.poll():
            return self.pipe.recv_bytes()
        raise EOFError

    def end(self, seconds: float = 0.0) -> str:
        """Make sure that the process is gone, and say how it ended.

        Parameters
        ----------
        seconds : float
            Time to end by itself.
        """
        self.pipe.close()
        if seconds:
            self.process.join(seconds)
        self.process.kill()
        self.process.join()
        return ending(self.process.exitcode)


def ending(code: int | None) -> str:
    """Say in words how a process ended.

    Examples
    --------
    >>> ending(3)
    'it ended with exit code 3'
    >>> ending(-11)
    'it was killed by signal SIGSEGV'
    """
    if code is None:
        return "its exit code is not known"
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    hint = ", as the system does when memory runs out" if name == "SIGKILL" else ""
    return f"it was killed by signal {name}{hint}"


def pack(value: Any) -> bytes:
    """Turn a value into bytes for another process of ours."""
    buffer = io.BytesIO()
    pickler = ForkingPickler(buffer, -1)
    # torch's own way hands tensors over as open files, which are lost when the sender dies.
    pickler.dispatch_table = copyreg.dispatch_table
    pickler.dump(value)
    return buffer.getvalue()


def unpack(data: bytes) -> Any:
    """Turn the bytes of `pack` into the value."""
    return ForkingPickler.loads(data)


def line(error: BaseException) -> str:
    """Write an error in one line."""
    return "".join(traceback.format_exception_only(error)).strip().replace("\n", " ")


def _work(pipe: Connection, memory_limit: int | None, environ: dict[str, str]) -> None:
    """Run trials until the driver closes the pipe; the main function of a worker."""
    os.environ.clear()
    os.environ.update(environ)
    # Both are for the driver, which lets trials finish: a terminal or Slurm sends them to all.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    torch.set_num_threads(1)
    AFTER_EPOCH.set(lambda: pipe.send_bytes(b""))
    pipe.send_bytes(limit_memory(memory_limit).encode())
    while True:
        try:
            message = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            fn, args, kwargs = unpack(message)
        except Exception as error:
            unread = EngineError(f"The worker cannot read the trial: {line(error)}.")
            fn, args, kwargs = _raise, (unread,), {}
        del message
        # Only now: what a trial has to import first is not part of its time.
        pipe.send_bytes(b"")
        reply = _reply(fn, args, kwargs)
        del fn, args, kwargs
        pipe.send_bytes(reply)
        del reply


def _raise(error: Exception) -> None:
    raise error


def _reply(fn: Callable[..., Any], args: Any, kwargs: Any) -> bytes:
    outcome = call(fn, args, kwargs)
    try:
        return pack(outcome)
    except Exception as error:
        kind = type(outcome[1]).__name__
        unsent = EngineError(f"The trial's result, a {kind}, cannot be sent: {line(error)}.")
        return pack((False, unsent, remote_traceback(error)))


def call(fn: Callable[..., Any], args: Any, kwargs: Any) -> tuple[bool, Any, str]:
    """Run a trial; return whether it went well, its result or error, and the error's traceback."""
    # An exit asked for by the trial (SystemExit) ends the worker: it must not reach the driver.
    try:
        return True, fn(*args, **kwargs), ""
    except Exception as error:
        told: Exception = error
        try:
            unpack(pack(error))  # errors with parameters of their own can often not be read
        except Exception:
            told = EngineError(f"The trial failed with {line(error)}")
        return False, told, remote_traceback(error)


def remote_traceback(error: BaseException) -> str:
    """Write down where in the worker an error came from."""
    return "In the worker:\n" + "".join(traceback.format_exception(error)).rstrip()


def limit_memory(limit: int | None) -> str:
    """Limit the memory of this process; return what is wrong with the limit, if anything."""
    if limit is None:
        return ""
    import resource

    status = Path("/proc/self/status").read_text()
    used = int(status.partition("VmData:")[2].split()[0]) * 1024
    if limit <= used:
        return (
            f"memory_limit is {limit / 1e6:.0f} MB, but a worker has {used / 1e6:.0f} MB before "
            "its first trial. Allow more."
        )
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    return ""
