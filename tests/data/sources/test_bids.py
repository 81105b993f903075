"""BIDS folders, written and read by MNE-BIDS."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from autotransfer.data.sources.load import load
from autotransfer.errors import LabelError, MissingExtraError, SettingError, SourceError
from recorded import NAMES, make_raw

mne = pytest.importorskip("mne")
mne_bids = pytest.importorskip("mne_bids")
pytest.importorskip("edfio")

WINDOW = {"tmin": 0.0, "tmax": 1.0}
# What mne-bids says of a data set without the optional files is not ours to judge here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def write(root, subject, task="hands", session=None, run=None):
    raw = make_raw()
    raw.info["line_freq"] = 50
    path = mne_bids.BIDSPath(
        subject=subject, task=task, session=session, run=run, datatype="eeg", root=root
    )
    options = {"format": "EDF", "allow_preload": True, "overwrite": True, "verbose": "ERROR"}
    mne_bids.write_raw_bids(raw, path, **options)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bids")
    for run in ("1", "2"):
        write(folder, "01", session="a", run=run)
    write(folder, "02", session="b", run="1")
    (folder / "derivatives" / "sub-09" / "eeg").mkdir(parents=True)
    return folder


def test_people_sessions_and_runs(root):
    data = load(root, **WINDOW, band=(4, 30), sfreq=100)
    assert data.X.shape == (36, 3, 101)
    assert (data.sfreq, data.unit, data.channels) == (100, "V", ["C3", "Cz", "C4"])
    assert data.subject.tolist() == ["01"] * 24 + ["02"] * 12
    assert np.unique(data.session).tolist() == ["a", "b"]
    assert np.unique(data.recording).tolist() == ["01/a/1", "01/a/2", "02/b/1"]
    assert data.y.tolist() == NAMES.tolist() * 3
    assert set(load(root, **WINDOW, events=["left"]).y.tolist()) == {"left"}


def test_what_is_not_there(root, tmp_path):
    with pytest.raises(LabelError, match=r"event up\. Events: left, right"):
        load(root, **WINDOW, events=["up"])
    with pytest.raises(SettingError, match=r"no task 'feet'\. It has: hands"):
        load(root, **WINDOW, task="feet")
    with pytest.raises(SettingError, match="subject cannot be set for a BIDS folder"):
        load(root, **WINDOW, subject="x")
    with pytest.raises(SettingError, match=r"tmax=.*Events: left, right"):
        load(root)
    table = next(root.rglob("*_events.tsv"))
    with pytest.raises(SettingError, match="a file of events for each recording"):
        load(root, **WINDOW, events=table)
    (tmp_path / "dataset_description.json").write_text("{}")
    with pytest.raises(SourceError, match="looks like a BIDS folder, but no"):
        load(tmp_path, **WINDOW)


def test_several_tasks(tmp_path):
    write(tmp_path, "01")
    write(tmp_path, "01", task="feet")
    with pytest.raises(SettingError, match=r"several tasks: feet, hands.*--task"):
        load(tmp_path, **WINDOW)
    data = load(tmp_path, **WINDOW, task="feet")
    assert data.n_trials == 12
    assert data.session is None
    assert set(data.recording.tolist()) == {"01"}


def test_without_mne_bids_the_extra_is_named(root, monkeypatch):
    monkeypatch.setitem(sys.modules, "mne_bids", None)
    with pytest.raises(MissingExtraError, match=r"pip install mne-bids.*autotransfer\[bids\]"):
        load(root, **WINDOW)


def test_one_file_of_a_bids_folder_is_a_recording(root):
    """Its events are EDF's annotations then, and its person is in its name."""
    path = next(root.rglob("sub-02*.edf"))
    assert load(path, **WINDOW).subject_names == ["02"]
