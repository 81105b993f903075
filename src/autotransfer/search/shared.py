"""What all trials of a run share, in the form in which it reaches the workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotransfer.data.problem import Problem


@dataclass(frozen=True)
class Shared:
    """What all trials of a run share.

    Parameters
    ----------
    problem : Problem
        The data.
    options : mapping
        Options of `CensoredClassifier` that no setting changes.
    hash : str
        Hash of both.
    checkpoints : str, optional
        Folder where trials keep checkpoints.
    """

    problem: Problem
    options: Mapping[str, Any]
    hash: str
    checkpoints: str | None = None
