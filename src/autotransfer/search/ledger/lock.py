"""The right to write to a file: one process has it, and the kernel takes it back."""

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


class FileLock:
    """The right to write to `path`, held by one process until it ends, however it ends.

    The file ``<name>.in-use`` stays when the lock is gone: whether it is locked counts, not
    whether it is there. Processes that the holder forks hold the lock with it.
    """

    def __init__(self, path: Path) -> None:
        self._handle = path.with_name(f"{path.name}.in-use").open("a+b", buffering=0)
        try:
            _lock(self._handle)
        except (BlockingIOError, PermissionError) as error:
            self._handle.seek(0)
            owner = self._handle.read().decode(errors="replace") or "another process"
            self._handle.close()
            raise RunInUseError(
                f"{path} is in use by {owner}. Wait until it is done or stop it, or look at "
                "the ledger with read_only=True."
            ) from error
        with contextlib.suppress(OSError):  # on a full disk the lock holds without a name
            self._handle.truncate(0)
            self._handle.write(f"process {os.getpid()} on {platform.node()}".encode())

    def release(self) -> None:
        """Let another process write."""
        self._handle.close()
