"""Trials in a file that every process maps for itself."""

from __future__ import annotations

from dataclasses import dataclass
from mmap import ALLOCATIONGRANULARITY
from typing import Any

import numpy as np

from autotransfer.data.trials import Array, Index, TrialArray


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


class FileTrials(TrialArray):
    """Trials that go to other processes by the name of their file, and not as a copy.

    Parameters
    ----------
    stored : Stored
        Where they lie.
    index, scale
        As in `TrialArray`.
    """

    def __init__(self, stored: Stored, index: Index | None, scale: float | None) -> None:
        super().__init__(stored.open(), index, scale)
        self.stored = stored

    def __reduce__(self) -> Any:
        return FileTrials, (self.stored, self.index, self.scale)


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
