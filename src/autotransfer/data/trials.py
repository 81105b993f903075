"""Signals that stay where they are: trials read by number from memory, a memory map or int16.

A study of thousands of people does not fit memory, and a selection of subjects must not copy the
recordings. `TrialArray` is the one place that knows how trials are fetched; everything above it
asks for ``X[numbers]`` and gets float32.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Float32 = npt.NDArray[np.float32]
Index = npt.NDArray[np.intp]

SAMPLE_NUMBERS = 2**20
"""About how many numbers a sample of trials may have."""

CHUNK_BYTES = 64 * 2**20
"""How much of the signals one step of a pass over the data reads."""


class TrialArray:
    """Trials x channels x times, read lazily as float32.

    Parameters
    ----------
    base : ndarray or memmap of shape (n_all, n_channels, n_times)
        The stored signals: any real dtype, in memory or memory-mapped.
    index : ndarray of int, optional
        Which trials of `base` these are, in order. All of them by default.
    scale : float, optional
        Factor that turns stored numbers into signal units (quantised recordings).
    channels : ndarray of int, optional
        Which channels of `base` these are, in order. All of them by default.

    Notes
    -----
    Fetching n trials costs O(n) whatever the size of `base`. Pages of a memory map are given back
    to the system after each fetch, so that resident memory does not grow with the number of
    trials that were ever read.

    Examples
    --------
    >>> X = TrialArray(np.arange(24, dtype=np.int16).reshape(4, 2, 3), scale=0.5)
    >>> X.shape
    (4, 2, 3)
    >>> X[[3, 0]][:, 0, 0]
    array([9., 0.], dtype=float32)
    """

    dtype = np.dtype(np.float32)
    ndim = 3

    def __init__(
        self,
        base: npt.NDArray[Any],
        index: Index | None = None,
        scale: float | None = None,
        channels: Index | None = None,
    ) -> None:
        self.base = base
        self.index = index
        self.scale = scale
        self.channels = channels
        self._mmap = _memory_map(base)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n_trials, n_channels, n_times)."""
        n = len(self.base) if self.index is None else len(self.index)
        n_channels = self.base.shape[1] if self.channels is None else len(self.channels)
        return (n, int(n_channels), int(self.base.shape[2]))

    @property
    def nbytes(self) -> int:
        """Bytes these trials take as float32 in memory."""
        n, channels, times = self.shape
        return 4 * n * channels * times

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        where = "memory-mapped" if self._mmap is not None else "in memory"
        return f"TrialArray(shape={self.shape}, stored as {self.base.dtype}, {where})"

    def __getitem__(self, key: Any) -> Float32:
        """Fetch trials as a float32 array; the key may index channels and times too."""
        trials, others = (key[0], key[1:]) if isinstance(key, tuple) else (key, ())
        if trials is Ellipsis:
            trials, others = slice(None), (Ellipsis, *others)
        if isinstance(trials, list):
            trials = np.asarray(trials)
        where = trials if self.index is None else self.index[trials]
        values = np.asarray(self.base[where])
        if self.channels is not None:
            values = values[..., self.channels, :]
        if self.scale is not None:
            out = values.astype(np.float32)
            out *= np.float32(self.scale)
        else:
            # A slice of a memory map must become memory before its pages are given back; numbers
            # have already made a copy.
            view = self._mmap is not None and np.may_share_memory(values, self.base)
            out = values.astype(np.float32, copy=view)
        if self._mmap is not None:
            self._mmap.madvise(mmap.MADV_DONTNEED)
        if not others:
            return out
        # The trial axis is gone when one trial was asked for by number.
        return out[others] if np.ndim(out) < 3 else out[(slice(None), *others)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        out = self[:]
        return out if dtype is None else out.astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Float32]:
        for start, block in self.chunks():
            del start
            yield from block

    def take(self, trials: Index) -> TrialArray:
        """Select trials by number, without reading them."""
        index = np.asarray(trials, dtype=np.intp)
        index = index if self.index is None else self.index[index]
        return TrialArray(self.base, index, self.scale, self.channels)

    def pick(self, channels: Index) -> TrialArray:
        """Select channels by number, in the order given, without reading them."""
        index = np.asarray(channels, dtype=np.intp)
        index = index if self.channels is None else self.channels[index]
        return TrialArray(self.base, self.index, self.scale, index)

    def times(self, factor: float) -> TrialArray:
        """Give the same trials in another unit: every number times a factor."""
        scale = factor if self.scale is None else factor * self.scale
        return TrialArray(self.base, self.index, scale, self.channels)

    def sample(self, limit: int) -> Float32:
        """Fetch at most so many trials, evenly over all; few of long ones, to look at them only."""
        n, channels, times = self.shape
        return self[evenly(n, min(limit, max(8, SAMPLE_NUMBERS // (channels * times))))]

    def chunks(self, chunk_bytes: int = CHUNK_BYTES) -> Iterator[tuple[int, Float32]]:
        """Walk over all trials in pieces: (number of the first trial, float32 block)."""
        n, channels, times = self.shape
        step = max(1, chunk_bytes // max(1, 4 * channels * times))
        for start in range(0, n, step):
            yield start, self[start : start + step]


def evenly(n: int, limit: int) -> Index:
    """Choose at most so many of n places, evenly over all."""
    return np.unique(np.linspace(0, n - 1, min(n, limit)).round().astype(np.intp))


def _memory_map(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """Find the mmap under an array, if its pages can be given back (not on Windows)."""
    node: Any = array
    while node is not None and not isinstance(node, np.memmap):
        node = getattr(node, "base", None)
    # Pages of a copy-on-write map that were written to exist in memory only: given back, they
    # would be lost. Of other maps than numpy's it cannot be known.
    memory: mmap.mmap | None = getattr(node, "_mmap", None)
    return memory if hasattr(memory, "madvise") and getattr(node, "mode", "c") != "c" else None
