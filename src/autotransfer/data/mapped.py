"""Trials in a file that every process maps for itself."""

from __future__ import annotations

from dataclasses import dataclass
from mmap import ALLOCATIONGRANULARITY
from pathlib import Path
from typing import Any

import numpy as np

from autotransfer.data.trials import Array, Index, TrialArray
from autotransfer.errors import DataError


@dataclass(frozen=True)
class Stored:
    """Signals in a file: where they lie, so that every worker maps the same pages."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    changed: int
    """When the file was last written, in nanoseconds."""

    def open(self) -> Array:
        """Map the file, unless it was written to since."""
        if _changed(self.path) != self.changed:
            raise DataError(
                f"{self.path} was written to after its signals were handed over, so a trial would "
                "train on other data than you gave. Load the file and fit again."
            )
        return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)


def _changed(path: str) -> int:
    return Path(path).stat().st_mtime_ns


class FileTrials(TrialArray):
    """Trials that go to other processes by the name of their file, and not as a copy.

    Parameters
    ----------
    stored : Stored
        Where they lie.
    index, scale, channels
        As in `TrialArray`.
    """

    def __init__(
        self,
        stored: Stored,
        index: Index | None,
        scale: float | None,
        channels: Index | None = None,
    ) -> None:
        super().__init__(stored.open(), index, scale, channels)
        self.stored = stored

    def __reduce__(self) -> Any:
        return FileTrials, (self.stored, self.index, self.scale, self.channels)


def stored(base: Array) -> Stored | None:
    """Say where in a file an array lies, if it is a contiguous part of a map for reading.

    What was written to a copy-on-write map (mode "c") is not in the file, and other maps may still
    be written to: such arrays go to other processes as copies.
    """
    node: Any = base
    while node is not None and not isinstance(node, np.memmap):
        node = getattr(node, "base", None)
    if node is None or node.filename is None or node.mode != "r" or not base.flags.c_contiguous:
        return None
    # A view keeps the offset of the map it was cut from: the address tells where it begins.
    start = np.frombuffer(node._mmap, np.uint8).ctypes.data  # type: ignore[attr-defined]
    into_map = base.ctypes.data - start
    of_map = node.offset - node.offset % ALLOCATIONGRANULARITY
    path = str(node.filename)
    return Stored(path, base.dtype.str, base.shape, of_map + into_map, _changed(path))
