"""What workers do in the tests of the driver: quick, and with faults on demand."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import numpy as np

from autotransfer.errors import NonFiniteLossError


def result(given):
    """Scores that depend on the trial alone."""
    text = json.dumps(given, sort_keys=True)
    value = (sum(text.encode()) % 97) / 97
    side = {"balanced_accuracy": value, "subjects": {str(given["fold"]): value}, "classes": {}}
    return {
        "validation": side,
        "test": side,
        "adapted": {},
        "best_epoch": 1,
        "seconds": 0.01,
        "epoch_seconds": 0.01,
        "epochs": 1,
        "curves": {"task_loss": [value]},
    }


def _note(handle, given):
    """Leave a trace of this attempt; returns how many there were before."""
    folder = Path(handle.get())
    name = f"{given['setting']['strength']}-{given['fold']}"
    before = len(list(folder.glob(f"{name}-*")))
    (folder / f"{name}-{time.time_ns()}").touch()
    return before


def fine(handle, given):
    _note(handle, given)
    return result(given)


def slow(handle, given):
    _note(handle, given)
    time.sleep(0.3)
    return result(given)


def faulty(handle, given):
    """Fold 0 raises, 1 dies, 2 hangs, 3 gives NaN, 4 eats memory, 5 raises a named error."""
    _note(handle, given)
    fold = given["fold"]
    if fold == 0:
        raise RuntimeError("boom of fold 0")
    if fold == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if fold == 2:
        time.sleep(3600)
    found = result(given)
    if fold == 3:
        found["validation"]["balanced_accuracy"] = float("nan")
    if fold == 4:
        return {"never": len(np.ones(2**33))}  # 64 GiB
    if fold == 5:
        raise NonFiniteLossError("the loss of fold 5 is not finite")
    return found


def dies_at_first(handle, given):
    """Die in the first attempt of every third fold."""
    if _note(handle, given) == 0 and given["fold"] % 3 == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return result(given)
