"""Folder stores: round trips, blocks that do not fit, a kill in the middle of writing."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.sources.store import StoreWriter, read_store, write_store
from autotransfer.data.trials import TrialArray
from autotransfer.errors import (
    ChannelMismatchError,
    DtypeError,
    EmptyDataError,
    LabelError,
    SettingError,
    ShapeError,
    SourceError,
)


def signals(n=6, channels=2, times=5, start=0):
    size = n * channels * times
    return np.arange(start, start + size, dtype=np.float32).reshape(n, channels, times)


@pytest.fixture
def data():
    return SubjectDataset(
        signals(),
        ["rest", "fist", "fist"] * 2,
        ["ann", "ann", "bob", "bob", "cy", "cy"],
        session=[0, 1, 0, 1, 0, 1],
        recording=list("abcdef"),
        sfreq=200,
        channels=["C3", "C4"],
        classes={"fist": "closed fist"},
        subjects={"cy": "Cyrus"},
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study"


def names(folder):
    return sorted(item.name for item in folder.iterdir())


def test_what_is_written_is_read_back_and_stays_on_disk(data, path):
    write_store(data, path)
    back = read_store(path)
    assert isinstance(back.X, np.memmap)
    np.testing.assert_array_equal(back.X, data.X)
    for name in ("y", "subject", "session", "recording"):
        np.testing.assert_array_equal(getattr(back, name), getattr(data, name))
    assert (back.sfreq, back.channels) == (200, ["C3", "C4"])
    assert back.class_names == ["closed fist", "rest"]
    assert back.subject_names == ["ann", "bob", "Cyrus"]


def test_the_description_can_be_read_by_a_person_and_names_the_data(data, path):
    write_store(data, path)
    about = json.loads((path / "dataset.json").read_text())
    assert (about["format"], about["version"]) == ("autotransfer-store", 1)
    assert about["shape"] == [6, 2, 5]
    assert about["dtype"] == "float32"
    assert about["fingerprint"] == data.fingerprint() == read_store(path).fingerprint()
    # Plain numpy opens the signals.
    np.testing.assert_array_equal(np.load(path / "X.npy"), signals())


def test_quantised_signals_stay_int16_also_of_a_selection(path):
    stored = np.array([[[100, -7]], [[3, 4]], [[32767, -32768]]], np.int16)
    data = SubjectDataset(TrialArray(stored, scale=0.5), [0, 1, 0], [1, 1, 2])
    write_store(data.select(trials=[2, 0]), path)
    assert np.load(path / "X.npy").tolist() == [[[32767, -32768]], [[100, -7]]]
    back = read_store(path)
    np.testing.assert_array_equal(back.X[:], [[[16383.5, -16384.0]], [[50.0, -3.5]]])
    assert (back.session, back.recording, back.sfreq) == (None, None, None)


def test_integers_too_large_for_int16_become_float32(path):
    large = np.full((2, 1, 3), 70_000, np.int32)
    write_store(SubjectDataset(TrialArray(large, scale=0.1), [0, 1], [1, 2]), path)
    np.testing.assert_allclose(read_store(path).X, 7_000, rtol=1e-6)


@given(
    y=st.lists(st.text(max_size=6) | st.just("Zoë"), min_size=1, max_size=8)
    | st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=8)
    | st.lists(st.booleans(), min_size=1, max_size=8)
)
@settings(deadline=None, max_examples=40)
def test_labels_of_any_kind_survive(tmp_path_factory, y):
    data = SubjectDataset(signals(len(y)), y, y)
    path = tmp_path_factory.mktemp("kinds") / "s"
    write_store(data, path)
    back = read_store(path)
    assert back.y.tolist() == data.y.tolist()
    assert back.subject.dtype == data.subject.dtype
    assert back.class_names == data.class_names


def test_a_store_grows_block_by_block(path):
    with StoreWriter(path, sfreq=100, subjects={2: "bob"}) as writer:
        writer.append(signals(3), ["a", "b", "a"], 1, session=0)
        writer.append(signals(1, start=900), ["longer name"], 2, session=[4])
    data = read_store(path)
    np.testing.assert_array_equal(data.X, np.concatenate([signals(3), signals(1, start=900)]))
    assert data.y.tolist() == ["a", "b", "a", "longer name"]
    assert data.subject.tolist() == [1, 1, 1, 2]
    assert data.session.tolist() == [0, 0, 0, 4]
    assert data.subject_names == ["1", "bob"]


def test_an_int16_store_grows_too(path):
    with StoreWriter(path, dtype="int16", scale=0.25) as writer:
        writer.append(signals().astype(np.int16), [0, 1] * 3, 1)
        writer.append(signals().astype(np.int8), [0, 1] * 3, 2)
    assert read_store(path).X[7, 0, 1] == 2.75  # trial 1, channel 0, time 1 of the block: 11 x 0.25


@pytest.mark.parametrize(
    ("block", "error", "words"),
    [
        ((signals(channels=3), [0] * 6, "bob"), ChannelMismatchError, "subject bob has 3 channels"),
        ((signals(times=9), [0] * 6, "bob"), ShapeError, "subject bob has 9 time points"),
        ((signals(), [0] * 5, "bob"), ShapeError, "y has 5 values but X has 6 trials"),
        ((signals(), ["a"] * 6, "bob"), DtypeError, "y of dtype <U1, the ones before of int64"),
        ((signals(), [0] * 6, 7), DtypeError, "subject of dtype int64, the ones before of <U3"),
        ((signals(), [0] * 6, "bob", 1), ShapeError, "session in every block or in none"),
        ((signals(), None, "bob"), LabelError, "y is missing"),
        ((signals()[0], [0] * 6, "bob"), ShapeError, "three dimensions"),
    ],
)
def test_a_block_that_does_not_fit_is_refused_and_the_rest_can_go_on(path, block, error, words):
    with StoreWriter(path) as writer:
        writer.append(signals(), [0, 1] * 3, "ann")
        with pytest.raises(error, match=words):
            writer.append(*block)
        writer.append(signals(), [0, 1] * 3, "cy")
    np.testing.assert_array_equal(read_store(path).X, np.concatenate([signals(), signals()]))


def test_an_int16_store_takes_only_what_it_can_hold(path):
    own = TrialArray(signals().astype(np.int16), scale=0.1)
    with StoreWriter(path, dtype="int16", scale=0.5) as writer:
        with pytest.raises(DtypeError, match="float32, which int16 cannot hold"):
            writer.append(signals(), [0, 1] * 3, 1)
        with pytest.raises(DtypeError, match="scale of its own"):
            writer.append(own, [0, 1] * 3, 1)
        writer.append(own.base, [0, 1] * 3, 1)
    assert read_store(path).n_trials == 6


def test_wrong_options_and_use_outside_with(path):
    with pytest.raises(SettingError, match="float32"):
        StoreWriter(path, dtype="float64")
    with pytest.raises(SettingError, match="int16"):
        StoreWriter(path, scale=2.0)
    with pytest.raises(SettingError, match="with block"):
        StoreWriter(path).append(signals(), [0, 1] * 3, 1)
    assert not path.exists()


def test_nothing_appended_or_wrong_names_write_nothing(path, tmp_path):
    with pytest.raises(EmptyDataError, match="No trials were appended"), StoreWriter(path):
        pass
    with (
        pytest.raises(ShapeError, match="5 channel names"),
        StoreWriter(path, channels=list("abcde")) as w,
    ):
        w.append(signals(), [0, 1] * 3, 1)
    assert names(tmp_path) == []


def test_an_error_in_the_block_leaves_nothing(path, tmp_path):
    def failing():
        with StoreWriter(path) as writer:
            writer.append(signals(), [0, 1] * 3, 1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert names(tmp_path) == []


def test_an_existing_store_is_kept_unless_overwritten(data, path, tmp_path):
    write_store(data, path)
    with pytest.raises(SourceError, match=r"already exists.*overwrite=True"):
        write_store(data, path)
    # From the very store that is replaced.
    write_store(read_store(path).select(subjects=["cy"]), path, overwrite=True)
    np.testing.assert_array_equal(read_store(path).X, signals()[4:])
    assert names(tmp_path) == ["study"]


def test_overwrite_never_deletes_what_is_not_a_store(data, path):
    path.mkdir()
    (path / "thesis.doc").write_text("years of work")
    with pytest.raises(SourceError, match="not a store, so it is not overwritten"):
        write_store(data, path, overwrite=True)
    assert (path / "thesis.doc").read_text() == "years of work"
    with pytest.raises(SourceError, match="no folder"):
        write_store(data, path / "no" / "such", overwrite=True)


def test_writing_does_not_hold_the_signals_in_memory(tmp_path):
    # A sparse file of zeros: 240 MB that take no disk space and no time to make.
    shape = (30_000, 8, 250)
    big = np.lib.format.open_memmap(tmp_path / "big.npy", "w+", np.float32, shape)
    data = SubjectDataset(big, np.arange(30_000) % 2, np.arange(30_000) % 50)
    tracemalloc.start()
    try:
        write_store(data, tmp_path / "s")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.7 * big.nbytes
    assert read_store(tmp_path / "s").X.shape == shape


# Writes stores of constant signals 1, 2, 3, ... one over the other, until it is killed.
WRITE_FOR_EVER = """
import itertools, sys
import numpy as np
from autotransfer.data.sources.store import StoreWriter
path, small = sys.argv[1], sys.argv[2] == "small"
for k in itertools.count(1):
    with StoreWriter(path, overwrite=True) as writer:
        for subject in itertools.count():
            if small and subject == 4:
                break
            writer.append(np.full((20, 4, 50), k, "f4"), np.arange(20) % 2, subject)
            print(k, subject, flush=True)
"""


def start(path, kind):
    command = [sys.executable, "-c", WRITE_FOR_EVER, str(path), kind]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "1 0\n"
    return child


def kill(child):
    os.kill(child.pid, signal.SIGKILL)
    child.stdout.close()
    assert child.wait(30) == -signal.SIGKILL


@pytest.mark.skipif(os.name == "nt", reason="kill -9 is POSIX")
def test_a_kill_in_the_middle_of_writing_leaves_no_store_or_the_old_one(data, path, tmp_path):
    kill(start(path, "endless"))
    assert not path.exists()
    (leftover,) = tmp_path.iterdir()
    with pytest.raises(SourceError, match="not a store"):
        read_store(leftover)
    write_store(data, path)
    kill(start(path, "endless"))
    assert read_store(path).fingerprint() == data.fingerprint()


@pytest.mark.skipif(os.name == "nt", reason="kill -9 is POSIX")
def test_a_kill_at_any_moment_leaves_a_whole_store_or_none(path):
    rng = random.Random(0)
    found = 0
    for _ in range(5):
        child = start(path, "small")
        # The pipe must not fill up and stop the child.
        deadline = time.monotonic() + rng.uniform(0.02, 0.3)
        while time.monotonic() < deadline:
            child.stdout.readline()
        kill(child)
        if path.exists():
            found += 1
            data = read_store(path)
            told = json.loads((path / "dataset.json").read_text())["fingerprint"]
            assert data.X.shape == (80, 4, 50)
            assert data.fingerprint() == told
            assert np.ptp(data.X) == 0
    assert found > 0
