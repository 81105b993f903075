"""Arrays of .mat files: as scipy reads them, from files that are sound."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from autotransfer.data.sources.matlab import read_mat

RNG = np.random.default_rng(0)
ARRAYS = {
    "double": RNG.normal(size=(5, 3)),
    "whole": np.arange(12.0).reshape(3, 4),  # MATLAB would write such numbers as bytes
    "single": np.float32(1.5),
    "small": np.arange(6, dtype=np.int16).reshape(2, 3),
    "bytes": np.uint8([[1, 2, 3]]),
    "long": np.array([[2**60, -1]]),
    "flags": np.array([True, False]),
    "cube": RNG.normal(size=(2, 3, 4)),
    "empty": np.zeros((0, 3)),
    "name_of_more_letters": RNG.integers(0, 9, (40, 7)),
}
OTHERS = {
    "text": "hello",
    "struct": {"a": 1.0, "b": np.arange(3)},
    "cell": np.array([1, "a"], dtype=object),
    "complex": RNG.normal(size=(2, 2)) + 1j,
}


@pytest.mark.parametrize("compressed", [False, True])
def test_numbers_are_those_that_scipy_reads(tmp_path, compressed):
    file = tmp_path / "a.mat"
    savemat(file, OTHERS | ARRAYS, do_compression=compressed)
    expected = loadmat(file)
    arrays = read_mat(file, [*ARRAYS, *OTHERS, "absent"])
    assert set(arrays) == {*ARRAYS, *OTHERS}
    for name in ARRAYS:
        assert arrays[name].dtype == expected[name].dtype
        np.testing.assert_array_equal(arrays[name], expected[name])
    assert all(arrays[name].size == 0 for name in OTHERS)
    assert set(read_mat(file, ["cube"])) == {"cube"}


def test_a_file_of_a_machine_with_the_other_byte_order(tmp_path):
    """Written by hand: scipy writes the order of the machine it runs on."""
    numbers = np.array([1.5, -2.0], ">f8").tobytes()
    flags = np.array([6, 8, 6, 0], ">u4").tobytes()
    dims = np.array([5, 8, 2, 1], ">u4").tobytes()
    name = np.array([1 << 16 | 1], ">u4").tobytes() + b"x\0\0\0"
    body = flags + dims + name + np.array([9, 16], ">u4").tobytes() + numbers
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    (tmp_path / "a.mat").write_bytes(head + np.array([14, len(body)], ">u4").tobytes() + body)
    for array in (read_mat(tmp_path / "a.mat", ["x"])["x"], loadmat(tmp_path / "a.mat")["x"]):
        np.testing.assert_array_equal(array, [[1.5], [-2.0]])
