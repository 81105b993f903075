"""Arrays of numbers from MATLAB's ``.mat`` files (format 5, which ``save`` and ``save -v7`` write).

Read here and not by ``scipy.io.loadmat``: that one uses a number in the file as an index without
looking at it, and a single wrong byte ends the whole process (scipy 1.17; not only lengths would
have to be checked before, but all that is in the file). A process of its own for the reading would
be safe too, but slower, and longer than these lines, which know only what they need.

References
----------
MATLAB, MAT-File Format: https://www.mathworks.com/help/pdf_doc/matlab/matfile_format.pdf
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.data.sources.npy import check_packing

# Data types of elements, and classes of arrays, by their numbers.
_TYPES = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8"}
_CLASSES |= {15: "u8"}
_MATRIX, _COMPRESSED = 14, 15
_COMPLEX = 0x08  # of an array's flags
_VERSION_5 = 1
_MOST_VARIABLES = 10_000

Array = npt.NDArray[Any]


def read_mat(file: Path, names: Collection[str]) -> dict[str, Array]:
    """Read some variables of a ``.mat`` file; nothing in it is executed.

    Parameters
    ----------
    file : Path
        The file.
    names : collection of str
        Variables wanted.

    Returns
    -------
    dict of str to array
        Those that are there. What is not an array of real numbers is an empty array.

    Raises
    ------
    NotImplementedError
        The file is of another format, such as 7.3.
    ValueError, zlib.error
        It is damaged.
    """
    data = np.memmap(file, np.uint8, "r").data  # which reads no more than is looked at
    order = {b"IM": "<", b"MI": ">"}.get(bytes(data[126:128]))
    if order is None:
        raise ValueError("it is not a .mat file")
    if int(np.frombuffer(data[124:126], f"{order}u2")[0]) >> 8 != _VERSION_5:
        raise NotImplementedError("it is of another format")
    arrays = {}
    for number, (kind, content) in enumerate(_elements(data[128:], order)):
        if kind == _COMPRESSED:
            kind, content = next(_elements(_unpacked(content, order), order))
        if kind != _MATRIX or number == _MOST_VARIABLES:
            raise ValueError("it holds what is no variable")
        name, array = _array(content, order, names)
        if array is not None:
            arrays[name] = array
    return arrays


def _elements(data: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Yield type and content of one element after the other, each seen to lie in the data."""
    while len(data):
        kind, length = map(int, np.frombuffer(data[:8], f"{order}u4", count=2))
        start = 8
        if kind >> 16:  # at most four bytes, in the place of the length
            kind, length, start = kind & 0xFFFF, kind >> 16, 4
        if length > len(data) - start or (start == 4 and length > 4):
            raise ValueError(f"a part of it should have {length} bytes, and has not")
        yield kind, data[start : start + length]
        # All begin at a multiple of eight, but for what follows a compressed one.
        after = start + length
        data = data[after if kind == _COMPRESSED else -(-after // 8) * 8 :]


def _unpacked(packed: memoryview, order: str) -> memoryview:
    """Unpack a compressed element, which is as long as it says itself."""
    unpacker = zlib.decompressobj()
    head = unpacker.decompress(packed, 8)
    length = int(np.frombuffer(head, f"{order}u4", count=2)[1])
    check_packing(len(packed), length)
    content = head + unpacker.decompress(unpacker.unconsumed_tail, length or 1)
    unpacker.decompress(unpacker.unconsumed_tail, 64)  # padding, and the checksum at the end
    if not unpacker.eof:
        raise ValueError("a compressed part of it does not end where it should")
    return memoryview(content)


def _array(data: memoryview, order: str, names: Collection[str]) -> tuple[str, Array | None]:
    """Read name and numbers of an array; None in their place if it is not wanted."""
    parts = _elements(data, order)
    flags, dims, label = (next(parts, (0, data[:0]))[1] for _ in range(3))
    name = bytes(label).decode("latin-1")
    if name not in names:
        return name, None
    flag = int(np.frombuffer(flags, f"{order}u4", count=2)[0])
    dtype, is_complex = _CLASSES.get(flag & 0xFF), bool(flag >> 8 & _COMPLEX)
    shape = np.frombuffer(dims, f"{order}i4").tolist()
    kind, content = next(parts, (0, data[:0]))
    if dtype is None or is_complex or kind not in _TYPES:
        return name, np.empty((0, 0))
    numbers = np.frombuffer(content, f"{order}{_TYPES[kind]}")
    if min(shape, default=-1) < 0 or prod(shape) != len(numbers):
        raise ValueError(f"{name} should have the shape {shape}, but has {len(numbers)} numbers")
    return name, numbers.reshape(shape, order="F").astype(dtype)
