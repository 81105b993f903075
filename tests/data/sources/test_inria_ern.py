"""The reader of the Inria challenge, on small files of the published form."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from autotransfer.data import check, load, read_inria_ern
from autotransfer.errors import (
    ChannelMismatchError,
    DataWarning,
    LabelError,
    SettingError,
    SourceError,
    UnknownSubjectError,
)

CHANNELS = ["Fp1", "Cz", "O2"]
FEEDBACKS = {1: 4, 2: 6}  # session -> feedbacks; the originals have 60 and 100


def write_session(folder, subject, session, n, channels=CHANNELS, tail=300, value=None):
    """Write a recording; its Cz counts samples, so that a trial tells where it was cut."""
    starts = 50 + 280 * np.arange(n)
    n_samples = (starts[-1] if n else 0) + tail
    rng = np.random.default_rng([int(subject[1:]), session])
    table = pd.DataFrame({"Time": np.arange(n_samples) / 200})
    for name in channels:
        table[name] = rng.normal(size=n_samples).round(4)
    table["Cz"] = np.arange(n_samples) if value is None else value
    table["EOG"] = 99.0
    table["FeedBackEvent"] = np.isin(np.arange(n_samples), starts).astype(int)
    table.to_csv(folder / f"Data_{subject}_Sess{session:02}.csv", index=False)
    return starts


def write_labels(folder, people, feedbacks=FEEDBACKS):
    rows = [
        {"IdFeedBack": f"{who}_Sess{session:02}_FB{n:03}", "Prediction": (n + session) % 2}
        for who in people
        for session, count in feedbacks.items()
        for n in range(1, count + 1)
    ]
    pd.DataFrame(rows).to_csv(folder / "TrainLabels.csv", index=False)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train").mkdir()
    for who in ("S06", "S02"):
        for session, n in FEEDBACKS.items():
            write_session(tmp_path / "train", who, session, n)
    write_labels(tmp_path, ["S02", "S06"])
    return tmp_path


def test_trials_begin_at_the_feedback_and_carry_its_label(folder):
    data = read_inria_ern(folder)
    assert data.X.shape == (20, 3, 260)
    assert data.X.dtype == np.float32
    assert (data.sfreq, data.channels) == (200.0, CHANNELS)  # no Time, EOG, event
    assert data.subject.tolist() == ["S02"] * 10 + ["S06"] * 10
    assert data.session.tolist() == ([1] * 4 + [2] * 6) * 2
    assert data.recording[[0, 19]].tolist() == ["S02/1", "S06/2"]
    starts = [*(50 + 280 * np.arange(4)), *(50 + 280 * np.arange(6))] * 2
    expected = np.asarray(starts)[:, None] + np.arange(260)
    np.testing.assert_array_equal(data.X[:, 1], expected)
    numbers = [*range(1, 5), *range(1, 7)] * 2
    assert data.y.tolist() == [
        (n + s) % 2 for n, s in zip(numbers, data.session.tolist(), strict=True)
    ]
    assert data.class_names == ["wrong", "right"]


def test_the_signals_are_those_of_the_file(folder):
    data = read_inria_ern(folder, subjects=["S06"])
    table = pd.read_csv(folder / "train" / "Data_S06_Sess01.csv")
    np.testing.assert_allclose(data.X[2, 0], table["Fp1"][610:870], rtol=1e-6)


@pytest.mark.parametrize("where", ["", "train"])
def test_by_name_from_the_folder_or_the_one_below(folder, where):
    data = load(f"inria-ern:{folder / where}", subjects=["S02"], seconds=0.5)
    assert data.X.shape == (10, 3, 100)
    with pytest.raises(SettingError, match="channels cannot be set for inria-ern"):
        load(f"inria-ern:{folder}", channels=3)
    with pytest.raises(SettingError, match="seconds must be above 0"):
        load(f"inria-ern:{folder}", seconds=0)


def test_subjects_without_labels_are_left_out_and_named(folder):
    (folder / "test").mkdir()
    write_session(folder / "test", "S01", 1, 4)
    with pytest.warns(DataWarning, match=r"Subjects S01 have no labels"):
        data = read_inria_ern(folder)
    assert data.subject_ids.tolist() == ["S02", "S06"]
    with pytest.raises(UnknownSubjectError, match=r"subject S01 in .* There are of S02, S06"):
        read_inria_ern(folder, subjects=["S01"])


def test_a_missing_label_or_feedback_is_refused(folder):
    write_session(folder / "train", "S02", 2, 5)
    with pytest.raises(LabelError, match=r"5 feedbacks, but .* 6 labels of subject S02, session 2"):
        read_inria_ern(folder)
    write_session(folder / "train", "S02", 2, 7)
    with pytest.raises(LabelError, match="7 feedbacks"):
        read_inria_ern(folder)
    write_session(folder / "train", "S02", 2, 6)
    write_session(folder / "train", "S02", 3, 4)
    with pytest.raises(LabelError, match="0 labels of subject S02, session 3"):
        read_inria_ern(folder)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("", SourceError, "IdFeedBack and Prediction"),
        ("IdFeedBack,Label\nS02_Sess01_FB001,1\n", SourceError, "IdFeedBack and Prediction"),
        ("IdFeedBack,Prediction\nS02_Sess01_FB001,2\n", LabelError, "label 2 for 'S02_Sess01_FB0"),
        ("IdFeedBack,Prediction\nS02_Sess01_FB001,\n", LabelError, "label nan"),
        ("IdFeedBack,Prediction\nfirst,1\n", LabelError, "'first'"),
    ],
)
def test_damaged_labels(folder, text, error, words):
    (folder / "TrainLabels.csv").write_text(text)
    with pytest.raises(error, match=words):
        read_inria_ern(folder)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot be read"),
        ("Time,Fp1\n0,1\n", "expected Time, the EEG channels"),
        ("Time,EOG,FeedBackEvent\n0,1,0\n", "expected Time, the EEG channels"),
        ("Time,Fp1,Cz,O2,EOG,FeedBackEvent\n0,1,x,2,3,0\n", "cannot be read"),
    ],
)
def test_damaged_recordings(folder, text, words):
    (folder / "train" / "Data_S02_Sess01.csv").write_text(text)
    with pytest.raises(SourceError, match=words):
        read_inria_ern(folder)


def test_a_recording_that_ends_too_soon(folder):
    write_session(folder / "train", "S02", 1, 4, tail=100)
    with pytest.raises(SourceError, match=r"ends 0\.50 s after its last feedback"):
        read_inria_ern(folder)


def test_other_channels_in_one_file(folder):
    write_session(folder / "train", "S06", 2, 6, channels=["Fp1", "Cz", "Oz"])
    with pytest.raises(ChannelMismatchError, match=r"Sess02\.csv has other channels .*O2, Oz"):
        read_inria_ern(folder)


def test_values_that_are_missing_are_found_by_the_checks(folder):
    write_session(folder / "train", "S02", 1, 4, value=np.nan)
    assert "NaN" in str(check(read_inria_ern(folder)))


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(SourceError, match="There is no folder"):
        read_inria_ern(tmp_path / "nowhere")
    with pytest.raises(SourceError, match=r"no TrainLabels\.csv"):
        read_inria_ern(tmp_path)
    write_labels(tmp_path, ["S02"])
    with pytest.raises(SourceError, match=r"no Data_S\*_Sess\*\.csv files"):
        read_inria_ern(tmp_path)
