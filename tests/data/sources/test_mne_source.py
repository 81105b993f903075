"""Data sets from MNE epochs."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

from autotransfer.data.sources.mne import from_mne
from autotransfer.errors import (
    ChannelMismatchError,
    DataWarning,
    DtypeError,
    EmptyDataError,
    LabelError,
    MissingExtraError,
    MissingSubjectError,
    SamplingRateError,
    SettingError,
    ShapeError,
    SubjectError,
)

mne = pytest.importorskip("mne")

CODES = {"fist": 11, "rest": 12}


def make(names=("C3", "Cz", "C4"), n=4, sfreq=100.0, times=50, tmin=0.0, his_id=None, **options):
    """Epochs in which the signal of a channel is its place in the alphabet plus the trial / 100."""
    info = mne.create_info(list(names), sfreq, options.pop("types", "eeg"))
    if his_id is not None:
        info["subject_info"] = {"his_id": his_id}
    level = np.array([sum(map(ord, name)) for name in names], float)
    signals = np.arange(n)[:, None, None] / 100 + level[:, None] + np.zeros(times)
    events = np.column_stack([np.arange(n) * 1000, np.zeros(n, int), 11 + np.arange(n) % 2])
    return mne.EpochsArray(
        signals, info, events, tmin, options.pop("codes", CODES), verbose="ERROR", **options
    )


def level(name, trial):
    return pytest.approx(sum(map(ord, name)) + trial / 100)


def test_a_mapping_with_one_or_more_epochs_per_subject():
    data = from_mne({"ann": make(n=4), "bob": [make(n=2), make(n=3)]})
    assert data.X.shape == (9, 3, 50)
    assert data.X.dtype == np.float32
    assert data.subject.tolist() == ["ann"] * 4 + ["bob"] * 5
    assert data.recording.tolist() == [0, 0, 0, 0, 1, 1, 2, 2, 2]
    assert data.y.tolist() == ["fist", "rest"] * 3 + ["fist", "rest", "fist"]
    assert (data.sfreq, data.channels) == (100.0, ["C3", "Cz", "C4"])
    assert data.X[8, 1, 49] == level("Cz", 2)


@pytest.mark.parametrize("ids", [[5, 9], (5, 9), np.array([5, 9]), [np.int64(5), np.int64(9)]])
def test_a_list_with_subject_ids(ids):
    data = from_mne([make(n=2), make(n=2)], subject=ids)
    assert data.subject.tolist() == [5, 5, 9, 9]


def test_subject_ids_from_the_recordings_and_a_single_object():
    assert from_mne([make(n=2, his_id="s1"), make(n=2, his_id="s2")]).subject_names == ["s1", "s2"]
    assert from_mne(make(n=2), subject="ann").subject.tolist() == ["ann", "ann"]


def test_unknown_subjects_are_asked_for():
    with pytest.raises(MissingSubjectError, match=r"Whose are the epochs number 1.*subject="):
        from_mne([make(his_id="s1"), make()])
    with pytest.raises(SubjectError, match="1 ids for 2 epochs objects"):
        from_mne([make(), make()], subject=["ann"])
    with pytest.raises(SubjectError, match="keys of the mapping"):
        from_mne({"ann": make()}, subject=["ann"])
    with pytest.raises(DtypeError, match="subject mixes"):
        from_mne([make(), make()], subject=["ann", 2])


def test_the_same_events_may_have_other_codes_in_another_recording():
    swapped = make(n=2, codes={"rest": 11, "fist": 12})
    assert from_mne({1: make(n=2), 2: swapped}).y.tolist() == ["fist", "rest", "rest", "fist"]


def test_labels_from_metadata():
    table = pd.DataFrame({"gesture": ["open", "close"], "block": [1, 2]})
    parts = {"ann": make(n=2, metadata=table), "bob": make(n=2, metadata=table)}
    assert from_mne(parts, label="gesture").y.tolist() == ["open", "close"] * 2
    assert from_mne(parts, label="block").y.tolist() == [1, 2, 1, 2]
    with pytest.raises(LabelError, match=r"subject ann .*'colour'.*columns are: gesture, block"):
        from_mne(parts, label="colour")
    with pytest.raises(LabelError, match=r"subject cy .*no metadata\."):
        from_mne({"cy": make()}, label="gesture")


def test_the_order_of_the_channels_may_differ():
    data = from_mne({"ann": make(["C3", "Cz"], n=2), "bob": make(["Cz", "C3"], n=2)})
    assert data.channels == ["C3", "Cz"]
    assert data.X[0, 0, 0] == data.X[2, 0, 0] == level("C3", 0)
    assert data.X[2, 1, 0] == level("Cz", 0)


def test_different_channels_are_an_error_that_offers_the_common_ones():
    parts = {"ann": make(["C3", "Cz", "C4"]), "bob": make(["Cz", "C3"]), "cy": make(["Oz", "Cz"])}
    with pytest.raises(ChannelMismatchError) as caught:
        from_mne(parts)
    message = str(caught.value)
    for words in (
        "subject ann lacks Oz",
        "subject bob lacks C4, Oz",
        "subject cy lacks C3, C4",
        "channels=\"common\" or channels=['Cz']",
    ):
        assert words in message
    common = from_mne(parts, channels="common")
    assert common.channels == ["Cz"]
    assert common.X[-1, 0, 0] == level("Cz", 3)


def test_channels_can_be_named():
    parts = {"ann": make(["C3", "Cz", "C4"]), "bob": make(["C4", "Cz"])}
    data = from_mne(parts, channels=["C4", "Cz"])
    assert data.channels == ["C4", "Cz"]
    assert data.X[5, 0, 0] == level("C4", 1)
    with pytest.raises(ChannelMismatchError, match="subject bob lacks C3"):
        from_mne(parts, channels=["C3", "Cz"])
    with pytest.raises(SettingError, match='"common"'):
        from_mne(parts, channels="C4")


def test_no_channel_in_common():
    parts = {"ann": make(["C3"]), "bob": make(["C4"])}
    for channels in (None, "common"):
        with pytest.raises(ChannelMismatchError, match="no channel in common"):
            from_mne(parts, channels=channels)


def test_eye_and_stimulus_channels_are_left_out_unless_named():
    part = make(["C3", "EOG1", "STI"], types=["eeg", "eog", "stim"])
    assert from_mne({1: part}).channels == ["C3"]
    assert from_mne({1: part}, channels=["EOG1", "C3"]).channels == ["EOG1", "C3"]


def test_emg_recordings_are_used_and_untyped_ones_explained():
    assert from_mne({1: make(["E1", "E2"], types="emg")}).channels == ["E1", "E2"]
    with pytest.raises(EmptyDataError, match=r"Subject 1 .*type misc.*set_channel_types"):
        from_mne({1: make(["a", "b"], types="misc")})


def test_bad_channels_are_kept_so_that_subjects_agree():
    part = make(["C3", "Cz"])
    part.info["bads"] = ["Cz"]
    assert from_mne({1: part, 2: make(["C3", "Cz"])}).channels == ["C3", "Cz"]


def test_different_sampling_rates_name_subjects_and_rates():
    with pytest.raises(SamplingRateError, match="100 Hz for subject ann, cy; 128 Hz for subject b"):
        from_mne({"ann": make(), "bob": make(sfreq=128.0), "cy": make()})


def test_different_time_windows_name_subjects():
    with pytest.raises(ShapeError, match=r"50 time points from 0 s for subject ann; 40 .*bob"):
        from_mne({"ann": make(), "bob": make(times=40)})
    with pytest.raises(ShapeError, match=r"50 time points from -0\.2 s for subject bob"):
        from_mne({"ann": make(), "bob": make(tmin=-0.2)})


def test_rejected_epochs_are_left_out_without_touching_the_users_object():
    signal = np.zeros((1, 1000))
    signal[0, 350:380] = 1.0
    raw = mne.io.RawArray(signal, mne.create_info(["C3"], 100.0, "eeg"), verbose="ERROR")
    events = np.array([[100, 0, 11], [300, 0, 11], [600, 0, 12]])
    options = {"tmin": 0, "tmax": 0.99, "baseline": None, "reject": {"eeg": 0.5}}
    lazy = mne.Epochs(raw, events, CODES, verbose="ERROR", **options)
    data = from_mne({1: lazy})
    assert data.y.tolist() == ["fist", "rest"]
    assert data.X.shape == (2, 1, 100)
    assert len(lazy.events) == 3


def test_epochs_without_trials_are_warned_about():
    with pytest.warns(DataWarning, match="Subject bob has epochs without any trial"):
        data = from_mne({"ann": make(), "bob": make()[:0]})
    assert data.subject_names == ["ann"]


@pytest.mark.parametrize("wrong", [[1], {"ann": None}, "text", {"ann": [make, None]}])
def test_what_is_not_epochs_is_refused(wrong):
    with pytest.raises(DtypeError, match=r"Item 0 is a .*, not mne\.Epochs"):
        from_mne(wrong, subject=None)


def test_nothing_is_refused():
    with pytest.raises(EmptyDataError, match="no epochs"):
        from_mne([])


def test_without_mne_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mne", None)
    with pytest.raises(MissingExtraError, match=r"pip install mne"):
        from_mne([make])


def test_subjects_and_labels_in_columns_of_the_metadata():
    """The name of a column is not the name of a person."""
    table = pd.DataFrame({"subject": ["ann", "bob", "ann", "bob"], "task": [1, 1, 2, 2]})
    data = from_mne(make(metadata=table), subject="subject", label="task")
    assert data.subject.tolist() == ["ann", "bob", "ann", "bob"]
    assert data.y.tolist() == [1, 1, 2, 2]
    both = from_mne([make(metadata=table), make(metadata=table)], subject="subject")
    assert both.subject_names == ["ann", "bob"]
    assert both.recording.tolist() == [0] * 4 + [1] * 4
    rejected = make(metadata=table)
    rejected.drop([1], verbose="ERROR")
    assert from_mne(rejected, subject="subject").subject.tolist() == ["ann", "ann", "bob"]


def test_a_column_that_is_not_there():
    table = pd.DataFrame({"person": ["ann", "bob", "ann", "bob"]})
    with pytest.raises(SubjectError, match=r"column 'subject'.*columns are: person.*\['subject'\]"):
        from_mne(make(metadata=table), subject="subject")
    with pytest.raises(SubjectError, match=r"number 1 have no metadata column 'person'"):
        from_mne([make(metadata=table), make()], subject="person")
    assert from_mne(make(metadata=table), subject=["subject"]).subject_names == ["subject"]
    assert from_mne(make(), subject="ann").subject_names == ["ann"]


def test_the_unit_is_known_where_mne_knows_it():
    assert from_mne({"ann": make()}).unit == "V"
    assert from_mne({"ann": make(types="mag")}).unit is None
