"""Folder stores that are damaged, foreign or newer are refused, and the message says why."""

from __future__ import annotations

import json

import numpy as np
import pytest

from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.sources.store import read_store, write_store
from autotransfer.errors import ShapeError, SourceError


@pytest.fixture
def data():
    X = np.arange(60, dtype=np.float32).reshape(6, 2, 5)
    people = ["ann", "ann", "bob", "bob", "cy", "cy"]
    return SubjectDataset(X, ["rest", "fist"] * 3, people, session=[0, 1] * 3, sfreq=200)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study"


def edit(path, **changes):
    about = json.loads((path / "dataset.json").read_text())
    about = {key: value for key, value in {**about, **changes}.items() if value != "DELETE"}
    (path / "dataset.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": "other"}, "does not describe a store"),
        ({"version": 2}, "format version 2.*newer.*upgrade"),
        ({"version": "1"}, '"version".*whole number'),
        ({"version": True}, '"version".*whole number'),
        ({"channels": "DELETE", "sfreq": "DELETE"}, "lacks sfreq, channels"),
        ({"shape": [6, 2]}, '"shape".*three positive'),
        ({"shape": "6x2x5"}, '"shape".*three positive'),
        ({"shape": [6, 2, 5.0]}, '"shape".*three positive'),
        ({"shape": [5, 2, 5]}, r"has shape \[6, 2, 5\].*says \[5, 2, 5\]"),
        ({"dtype": "int16"}, "dtype float32, but.*says.*int16"),
        ({"dtype": "object"}, '"dtype".*float32 or int16'),
        ({"dtype": ["float32"]}, '"dtype".*float32 or int16'),
        ({"scale": "big"}, '"scale".*must be a number'),
        ({"scale": -1}, '"scale".*positive'),
        ({"sfreq": [200]}, '"sfreq".*must be a number'),
        ({"channels": "C3"}, '"channels".*list of names'),
        ({"class_names": {"fist": 1}}, '"class_names".*list of names'),
        ({"subject_names": [1, 2, 3]}, '"subject_names".*list of names'),
        ({"arrays": ["X", "y"]}, '"arrays".*must name X, y and subject'),
        ({"arrays": None}, '"arrays".*must name X, y and subject'),
        ({"arrays": ["X", "y", "subject", "../secret"]}, '"arrays".*must name'),
        ({"fingerprint": 3}, '"fingerprint".*text'),
    ],
)
def test_a_wrong_description_is_refused(data, path, changes, words):
    write_store(data, path)
    edit(path, **changes)
    with pytest.raises(SourceError, match=words) as caught:
        read_store(path)
    assert "study" in str(caught.value)


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "\x00"])
def test_a_description_that_is_no_object_is_refused(data, path, content):
    write_store(data, path)
    (path / "dataset.json").write_text(content)
    with pytest.raises(SourceError, match=r"not valid JSON|must hold a JSON object"):
        read_store(path)


def test_names_that_do_not_fit_the_data_are_refused_with_the_folder(data, path):
    write_store(data, path)
    edit(path, channels=["C3"])
    with pytest.raises(ShapeError, match="study: 1 channel names for 2 channels"):
        read_store(path)


@pytest.mark.parametrize("name", ["X", "y", "subject", "session"])
def test_truncated_arrays_are_refused(data, path, name):
    write_store(data, path)
    file = path / f"{name}.npy"
    whole = file.read_bytes()
    for size in (len(whole) - 1, 150, 10, 0):
        file.write_bytes(whole[:size])
        with pytest.raises(SourceError, match=rf"{name}\.npy is damaged"):
            read_store(path)


def test_surplus_bytes_missing_and_foreign_arrays_are_refused(data, path):
    write_store(data, path)
    with (path / "X.npy").open("ab") as handle:
        handle.write(b"more")
    with pytest.raises(SourceError, match=r"X\.npy has \d+ bytes"):
        read_store(path)
    write_store(data, path, overwrite=True)
    np.save(path / "y.npy", np.zeros(5))
    with pytest.raises(SourceError, match=r"y\.npy has shape \(5,\).* 6 trials"):
        read_store(path)
    np.save(path / "y.npy", np.array(["a", 1, None] * 2, dtype=object), allow_pickle=True)
    with pytest.raises(SourceError, match=r"y\.npy .*Python objects"):
        read_store(path)
    (path / "y.npy").unlink()
    with pytest.raises(SourceError, match=r"lacks y\.npy"):
        read_store(path)


def test_missing_folder_and_folder_without_description(path):
    with pytest.raises(SourceError, match="no folder"):
        read_store(path)
    path.mkdir()
    with pytest.raises(SourceError, match=r"not a store: it has no dataset\.json"):
        read_store(path)
