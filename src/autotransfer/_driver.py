"""A worker process ends with the driver that started it, from its first import on."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

DRIVER = "AUTOTRANSFER_DRIVER"
"""Variable of the environment in which a worker finds the number of the driver's process."""

_PR_SET_PDEATHSIG = 1


def leave_with_driver() -> None:
    """End this process when the driver is gone, even deep in C code; elsewhere do nothing.

    The package calls it before anything else, because what a worker imports next takes seconds.
    """
    # Not for the children of a worker.
    number = os.environ.pop(DRIVER, None)
    if number is None:
        return
    driver = int(number)
    if sys.platform.startswith("linux"):
        end_with(driver)
        return

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def end_with(parent: int) -> None:
    """Have Linux end this process with its parent: with the thread that started or forked it."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # gone before that
        os._exit(1)
