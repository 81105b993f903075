"""What a ``.npy`` array says of itself, compared with its file before memory is taken for it.

numpy takes the memory that the header asks for, terabytes too, and looks for the data afterwards.
"""

from __future__ import annotations

import io
import math
from typing import IO, Any, NamedTuple

import numpy as np

# As far as numpy itself reads them.
_LONGEST_HEADER = 10_000
_LONGEST_SIDE = 2**48
_LONGEST_TEXT = 4096  # bytes, which is 1024 characters
_LARGE = 2**28
_MOST_PACKING = 100


class Header(NamedTuple):
    """What the header of an array says: shape, dtype, and where in the file the data begin."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    start: int

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return self.start + math.prod(self.shape) * self.dtype.itemsize

    def check(self, size: int) -> None:
        """Raise `ValueError` unless the array is what fills a file of so many bytes.

        Parameters
        ----------
        size : int
            Bytes of the file, header included.
        """
        if self.dtype.itemsize == 0 or not all(0 <= n < _LONGEST_SIDE for n in self.shape):
            raise ValueError(f"there is no array of {self.dtype} of shape {self.shape}"[:200])
        if self.dtype.kind in "US" and self.dtype.itemsize > _LONGEST_TEXT:
            raise ValueError(f"it holds texts of up to {self.dtype.itemsize} bytes")
        if self.size != size:
            raise ValueError(f"it has {size} bytes, but its header asks for {self.size}")


def read_header(handle: IO[bytes]) -> Header:
    """Read the header at the beginning of an array's file; `ValueError` if it is none."""
    prefix = handle.read(12)
    major = prefix[6:7]
    if not prefix.startswith(np.lib.format.MAGIC_PREFIX) or major not in (b"\1", b"\2"):
        raise ValueError("it is not an array in .npy format")
    start = 10 if major == b"\1" else 12
    length = int.from_bytes(prefix[8:start], "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"its header has {length} bytes")
    text = io.BytesIO(prefix + handle.read(start + length - len(prefix)))
    try:
        np.lib.format.read_magic(text)
        one, two = np.lib.format.read_array_header_1_0, np.lib.format.read_array_header_2_0
        shape, _, dtype = (one if start == 10 else two)(text)
    except Exception as error:  # the header is Python text: it can be wrong in a dozen ways
        raise ValueError(f"its header cannot be read: {type(error).__name__}") from error
    return Header(shape, dtype, start + length)


def check_packing(packed: int, unpacked: int) -> None:
    """Raise `ValueError` where a small file would unpack to gigabytes.

    Recordings shrink to a half at best; labels, which shrink to nothing, are never large.
    """
    if unpacked > max(_LARGE, _MOST_PACKING * packed):
        raise ValueError(f"{packed} bytes would unpack to {unpacked}")
