"""One door for every source."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.sources.load import load
from autotransfer.data.sources.npz import write_npz
from autotransfer.data.sources.store import write_store
from autotransfer.errors import (
    MissingExtraError,
    MissingSubjectError,
    SettingError,
    ShapeError,
    SourceError,
)

X = np.arange(40, dtype=np.float32).reshape(4, 2, 5)
Y = ["a", "b", "a", "b"]
WHO = [1, 1, 2, 2]


@pytest.fixture
def data():
    return SubjectDataset(X, Y, WHO, sfreq=50)


def test_a_dataset_is_returned_as_it_is(data):
    assert load(data) is data


@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_npz_files_and_stores_by_path(data, tmp_path, kind):
    write_npz(data, tmp_path / "study.npz")
    write_store(data, tmp_path / "study.v1")
    for name in ("study.npz", "study.v1"):
        back = load(kind(tmp_path / name))
        assert back.fingerprint() == data.fingerprint()
        assert back.sfreq == 50


def test_an_upper_case_ending_and_the_home_sign(data, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    write_npz(data, "~/STUDY.NPZ")
    assert load("~/STUDY.NPZ").n_trials == 4


@pytest.mark.parametrize("source", [(X, Y, WHO), [X, Y, WHO], {"X": X, "y": Y, "subject": WHO}])
def test_arrays(source):
    data = load(source, sfreq=100, channels=["C3", "C4"])
    np.testing.assert_array_equal(data.X, X)
    assert (data.y.tolist(), data.subject.tolist()) == (Y, WHO)
    assert (data.sfreq, data.channels) == (100, ["C3", "C4"])


def test_errors_in_arrays_are_those_of_the_dataset():
    with pytest.raises(ShapeError, match="y has 2 values but X has 4 trials"):
        load((X, Y[:2], WHO))


@pytest.mark.parametrize("source", [{"X": X, "y": Y}, {"X": X, "y": Y, "subject": WHO, "Z": 1}, {}])
def test_a_mapping_with_wrong_keys_says_which_are_needed(source):
    with pytest.raises(SourceError, match="Needed are X, y, subject"):
        load(source)


@pytest.mark.parametrize("source", [None, 3, X, {1: X}, object(), b"study.npz"])
def test_anything_else_lists_what_can_be_loaded(source):
    with pytest.raises(SourceError) as caught:
        load(source)
    for words in (type(source).__name__, ".npz", "dataset.json", "mne.Epochs", "MOABB", "(X, y, s"):
        assert words in str(caught.value)


def test_two_arrays_lack_the_subjects():
    with pytest.raises(MissingSubjectError, match=r"load\(\(X, y, subject\)\)"):
        load((X, Y))


def test_a_path_that_does_not_exist(tmp_path):
    with pytest.raises(SourceError, match=r"nowhere\.npz does not exist"):
        load(tmp_path / "nowhere.npz")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a.mat", "loadmat"),
        ("a.h5", "h5py"),
        ("a.csv", "pandas"),
        ("a.npy", "single array"),
        ("dataset.json", "the folder or the .npz"),
        ("a.xyz", r"no known kind \(\.xyz\)\. What can be loaded"),
        ("a", r"no known kind \(no ending\)"),
    ],
)
def test_other_files_get_advice(tmp_path, name, words):
    (tmp_path / name).write_bytes(b"?")
    with pytest.raises(SourceError, match=words):
        load(tmp_path / name)


@pytest.mark.parametrize("ending", ["pkl", "pickle", "joblib", "pt"])
def test_pickles_are_refused_and_never_opened(tmp_path, ending):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    (tmp_path / f"a.{ending}").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(SourceError, match=r"execute any code.*numpy\.savez"):
        load(tmp_path / f"a.{ending}")
    assert not (tmp_path / "exploded").exists()


def test_folders_that_are_no_store(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(SourceError, match=r"no dataset\.json, only notes\.txt"):
        load(tmp_path)
    (tmp_path / "rec.mff").mkdir()
    pytest.importorskip("mne")
    with pytest.raises((SourceError, MissingExtraError), match=r"rec\.mff"):
        load(tmp_path / "rec.mff")


def test_options_that_mean_nothing_are_refused(data, tmp_path):
    write_npz(data, tmp_path / "a.npz")
    with pytest.raises(SettingError, match=r"paradigm cannot be set for a \.npz file"):
        load(tmp_path / "a.npz", paradigm=1)
    with pytest.raises(SettingError, match="sfreq cannot be set for a SubjectDataset"):
        load(data, sfreq=1)
    with pytest.raises(SettingError, match="label cannot be set for arrays"):
        load((X, Y, WHO), label="y")


def test_epochs_in_a_list_a_mapping_and_a_mapping_of_lists():
    mne = pytest.importorskip("mne")
    info = mne.create_info(["C3", "C4"], 50.0, "eeg")
    events = np.column_stack([np.arange(4), np.zeros(4, int), [1, 2, 1, 2]])
    one = mne.EpochsArray(X, info, events, event_id={"a": 1, "b": 2}, verbose="ERROR")
    sources = [([one, one, one], {"subject": [1, 2, 3]}), ({1: one, 2: one, 3: one}, {})]
    for source, options in [*sources, ({1: [one], 2: [one], 3: [one]}, {})]:
        data = load(source, channels=["C4"], **options)
        assert data.subject_ids.tolist() == [1, 2, 3]
        np.testing.assert_allclose(data.X[:4, 0], X[:, 1])
        assert data.y.tolist() == Y * 3
    with pytest.raises(SettingError, match="paradigm cannot be set for epochs"):
        load([one], paradigm=1)


def test_a_moabb_dataset_needs_a_paradigm():
    # Stands in for moabb's own class, which takes seconds to import.
    base = type("BaseDataset", (), {"__module__": "moabb.datasets.base"})
    study = type("Study", (base,), {"__module__": "my_own_module"})()
    with pytest.raises(SourceError, match="needs a paradigm"):
        load(study)
    with pytest.raises(SettingError, match="label cannot be set for a MOABB data set"):
        load(study, label="y")


def test_finding_out_imports_no_extra():
    code = """
import sys
from autotransfer.data.sources.load import load
load(([[[1.0, 2.0]]], ["a"], [1]))
try:
    load(object())
except OSError:
    pass
print([name for name in ("mne", "moabb") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
