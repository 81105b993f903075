"""What workers do in the tests of the driver: quick, and with faults on demand."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import numpy as np

from autotransfer.errors import NonFiniteLossError
from autotransfer.training.progress import EpochProgress


def result(trial):
    """Scores that depend on the trial alone."""
    text = json.dumps(trial.to_json(), sort_keys=True)
    value = (sum(text.encode()) % 97) / 97
    side = {"balanced_accuracy": value, "subjects": {str(trial.fold): value}, "classes": {}}
    return {
        "validation": side,
        "test": side,
        "adapted": {},
        "best_epoch": 1,
        "still_falling": False,
        "seconds": 0.01,
        "epoch_seconds": 0.01,
        "epochs": 1,
        "curves": {"task_loss": [value]},
    }


def _note(handle, trial):
    """Leave a trace of this attempt; returns how many there were before."""
    folder = Path(handle.get())
    name = f"{trial.setting.strength}-{trial.fold}"
    before = len(list(folder.glob(f"{name}-*")))
    (folder / f"{name}-{time.time_ns()}").touch()
    return before


def fine(handle, trial):
    _note(handle, trial)
    return result(trial)


def slow(handle, trial):
    _note(handle, trial)
    time.sleep(0.3)
    return result(trial)


def stalls(handle, trial):
    """Train three epochs; in fold 1 the third takes very long."""
    _note(handle, trial)
    with EpochProgress(False, 3) as view:
        for epoch in (1, 2, 3):
            time.sleep(4 if epoch == 3 and trial.fold == 1 else 0.05)
            view.epoch(epoch, 0.5, None, None)
    return result(trial)


def hangs(handle, trial):
    _note(handle, trial)
    time.sleep(3600)


def faulty(handle, trial):
    """Fold 0 raises, 1 dies, 2 hangs, 3 gives NaN, 4 eats memory, 5 raises a named error."""
    _note(handle, trial)
    fold = trial.fold
    if fold == 0:
        raise RuntimeError("boom of fold 0")
    if fold == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if fold == 2:
        time.sleep(3600)
    found = result(trial)
    if fold == 3:
        found["validation"]["balanced_accuracy"] = float("nan")
    if fold == 4:
        return {"never": len(np.ones(2**33))}  # 64 GiB
    if fold == 5:
        raise NonFiniteLossError("the loss of fold 5 is not finite")
    return found


def dies_at_first(handle, trial):
    """Die in the first attempt of every third fold."""
    if _note(handle, trial) == 0 and trial.fold % 3 == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return result(trial)
