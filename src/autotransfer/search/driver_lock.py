"""The right to write to a journal: one process has it, and the kernel takes it back."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from io import FileIO
from pathlib import Path

from autotransfer.errors import RunInUseError

if sys.platform == "win32":
    import msvcrt

    def _lock(handle: FileIO) -> None:
        handle.seek(1 << 30)  # Windows also keeps others from reading what is locked
        msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(handle: FileIO) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


class DriverLock:
    """The right to write, held by one process until it ends, however it ends.

    The file ``<journal>.in-use`` stays when the lock is gone: whether it is locked counts, not
    whether it is there. (``<journal>.lock`` is Optuna's name, and Optuna deletes it.) Processes
    that the holder forks, unlike those it spawns, hold the lock with it.
    """

    def __init__(self, journal: Path) -> None:
        path = journal.with_name(f"{journal.name}.in-use")
        self._handle = path.open("a+b", buffering=0)
        try:
            _lock(self._handle)
        except (BlockingIOError, PermissionError) as error:
            self._handle.seek(0)
            owner = self._handle.read().decode(errors="replace") or "another process"
            self._handle.close()
            raise RunInUseError(
                f"{journal} is in use by {owner}. Wait until it is done or stop it, or look at "
                "the ledger with read_only=True."
            ) from error
        with contextlib.suppress(OSError):  # on a full disk the lock holds without a name
            self._handle.truncate(0)
            self._handle.write(f"process {os.getpid()} on {platform.node()}".encode())

    def release(self) -> None:
        """Let another process write."""
        self._handle.close()
