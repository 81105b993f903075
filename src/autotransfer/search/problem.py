"""A problem: the data of a run, the options that all its trials share, and its way to workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from mmap import ALLOCATIONGRANULARITY
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.data import atomic
from autotransfer.data.splits import Fold, SubjectFolds
from autotransfer.data.trials import Index, TrialArray

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Stored:
    """Signals in a file: where they lie, so that every worker maps the same pages."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    def open(self) -> Array:
        """Map the file."""
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)


@dataclass(frozen=True)
class Problem:
    """What all trials of a run have in common.

    Parameters
    ----------
    base : ndarray of shape (n_all, C, T), or Stored
        Signals, as in `TrialArray`, or the file they lie in.
    index, scale : ndarray, float, optional
        As in `TrialArray`.
    codes : ndarray of int of shape (n_trials,)
        Class numbers.
    subject : ndarray of shape (n_trials,)
        Subject of every trial.
    classes : ndarray
        Labels.
    fingerprint : str
        Of the data.
    hash : str
        Hash of fingerprint and options.
    options : mapping
        Options of `CensoredClassifier` that no setting changes.
    checkpoints : str, optional
        Folder where trials keep checkpoints.
    """

    base: Any
    index: Index | None
    scale: float | None
    codes: npt.NDArray[np.intp]
    subject: Array
    classes: Array
    fingerprint: str
    hash: str
    options: Mapping[str, Any]
    checkpoints: str | None = None

    @cached_property
    def X(self) -> TrialArray:
        """The signals."""
        base = self.base.open() if isinstance(self.base, Stored) else self.base
        return TrialArray(base, self.index, self.scale)

    @cached_property
    def _folds(self) -> dict[int, list[Fold]]:
        return {}

    def folds(self, n_folds: int) -> list[Fold]:
        """Make the folds; as many as subjects is one subject at a time."""
        if n_folds not in self._folds:
            self._folds[n_folds] = list(SubjectFolds(n_folds).folds(self.subject))
        return self._folds[n_folds]

    def __getstate__(self) -> dict[str, Any]:
        kept = self.__dict__.copy()
        for made in ("X", "_folds"):
            kept.pop(made, None)
        return kept

    def on_disk(self, folder: Path) -> Problem:
        """Give the same problem with its signals in a file, which is written if need be."""
        found = None if isinstance(self.base, Stored) else stored(self.base)
        if found is None and not isinstance(self.base, Stored):
            path = folder / f"signals-{self.fingerprint}.npy"
            if not path.exists():
                with atomic.file(path) as handle:
                    np.save(handle, np.ascontiguousarray(self.base))
            found = stored(np.load(path, mmap_mode="r"))
        return Problem(**self._fields() | ({} if found is None else {"base": found}))

    def in_memory(self) -> Problem:
        """Give the same problem with its signals as an array, for workers without our files."""
        if not isinstance(self.base, Stored) and stored(self.base) is None:
            return self
        return Problem(**self._fields() | {"base": self.X[:], "index": None, "scale": None})

    def with_checkpoints(self, folder: Path) -> Problem:
        """Give the same problem with a folder for checkpoints."""
        return Problem(**self._fields() | {"checkpoints": str(folder)})

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def stored(base: Array) -> Stored | None:
    """Say where in a file an array lies, if it is a contiguous part of a memory map."""
    node: Any = base
    while node is not None and not isinstance(node, np.memmap):
        node = getattr(node, "base", None)
    if node is None or node.filename is None or not base.flags.c_contiguous:
        return None
    # A view keeps the offset of the map it was cut from: the address tells where it begins.
    start = np.frombuffer(node._mmap, np.uint8).ctypes.data  # type: ignore[attr-defined]
    into_map = base.ctypes.data - start
    of_map = node.offset - node.offset % ALLOCATIONGRANULARITY
    return Stored(str(node.filename), base.dtype.str, base.shape, of_map + into_map)
