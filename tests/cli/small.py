"""A small study in a file, a small run of it, and the command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import autotransfer as at
from autotransfer.data import write_npz

# Baseline and 2 settings on one fold; then baseline and 1 candidate of each measure on all 3.
TRIALS = 3 + 3 * 2
OPTIONS = [
    *("--procedure", "paper", "--measure", "mmd", "--measure", "adversary", "--mode", "marginal"),
    *("--strengths", "mmd=3", "--strengths", "adversary=0.1", "--keep", "1", "--n-folds", "3"),
    *("--max-epochs", "2", "--device", "cpu", "--no-portraits"),
]


def write_study(path: Path, seed: int = 0) -> Path:
    """Write 5 people's trials to a file."""
    data = at.make_subjects(n_subjects=5, n_trials=24, n_times=64, random_state=seed)
    write_npz(data, path)
    return path


def environment(**more: str) -> dict[str, str]:
    """Give what the command's process needs, and no colours that are not asked for."""
    plain = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "COLUMNS", "LINES")}
    return {**plain, "OMP_NUM_THREADS": "1", "TERM": "dumb", **more}


def command(*args: object) -> list[str]:
    """Give the command as a list of words."""
    return [sys.executable, "-m", "autotransfer", *map(str, args)]


def start(*args: object, **options: object) -> subprocess.Popen[str]:
    """Start the command."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command(*args), env=environment(), **given | options)


def call(*args: object) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        command(*args), env=environment(), capture_output=True, text=True, check=False
    )
