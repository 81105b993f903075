"""Data sets in one .npz file, with or without a JSON beside it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.sources.npz import read_npz, write_npz
from autotransfer.data.trials import TrialArray
from autotransfer.errors import DtypeError, LabelError, SamplingRateError, ShapeError, SourceError

REAL = Path(os.environ.get("AUTOTRANSFER_DATA", Path(__file__).parents[4] / "shared" / "data"))


def signals(n=6, channels=2, times=5):
    return np.arange(n * channels * times, dtype=np.float32).reshape(n, channels, times)


@pytest.fixture
def arrays():
    return {"X": signals(), "y": np.array([0, 1] * 3), "subject": np.array([3, 3, 3, 7, 7, 7])}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.npz"


def test_what_is_written_is_read_back(path):
    data = SubjectDataset(
        signals(),
        ["rest", "fist", "fist"] * 2,
        ["ann", "ann", "bob", "bob", "cy", "cy"],
        session=[0, 1, 0, 1, 0, 1],
        recording=list("abcdef"),
        sfreq=200,
        channels=["C3", "C4"],
        unit="mV",
        classes={"fist": "closed fist"},
        subjects={"cy": "Cyrus"},
    )
    write_npz(data, path)
    back = read_npz(path)
    np.testing.assert_array_equal(back.X, data.X)
    for name in ("y", "subject", "session", "recording"):
        np.testing.assert_array_equal(getattr(back, name), getattr(data, name))
    assert back.sfreq == 200
    assert back.channels == ["C3", "C4"]
    assert back.unit == "mV"
    assert back.class_names == ["closed fist", "rest"]
    assert back.subject_names == ["ann", "bob", "Cyrus"]
    assert back.fingerprint() == data.fingerprint()


def test_quantised_signals_stay_int16_in_the_file_and_in_memory(path):
    stored = np.array([[[100, -7]], [[3, 4]], [[32767, -32768]]], np.int16)
    data = SubjectDataset(TrialArray(stored, scale=0.5), [0, 1, 0], [1, 1, 2])
    write_npz(data.select(trials=[2, 0]), path)
    back = read_npz(path)
    assert back.trials.base.dtype == np.int16
    np.testing.assert_array_equal(back.X[:], [[[16383.5, -16384.0]], [[50.0, -3.5]]])


def test_float64_becomes_float32(path):
    write_npz(SubjectDataset(signals().astype(float), [0, 1] * 3, [1, 1, 1, 2, 2, 2]), path)
    assert read_npz(path).X.dtype == np.float32
    np.testing.assert_array_equal(read_npz(path).X, signals())


def test_writing_needs_the_ending_and_an_existing_folder(tmp_path, arrays):
    data = SubjectDataset(**arrays)
    with pytest.raises(SourceError, match=r"must end in \.npz"):
        write_npz(data, tmp_path / "study")
    with pytest.raises(SourceError, match=r"no folder .*nowhere"):
        write_npz(data, tmp_path / "nowhere" / "study.npz")


def test_names_come_from_the_json_beside_the_file(path, arrays):
    np.savez(path, **arrays)
    about = {"sfreq": 128.0, "channel_names": ["Oz", "O1"], "class_names": ["rest", "13Hz"]}
    about["subject_names"] = {"3": "carl", "7": "dora"}
    path.with_suffix(".json").write_text(json.dumps(about))
    data = read_npz(path)
    assert (data.sfreq, data.channels) == (128.0, ["Oz", "O1"])
    assert data.class_names == ["rest", "13Hz"]
    assert data.subject_names == ["carl", "dora"]


def test_the_file_itself_has_precedence_over_the_json(path, arrays):
    np.savez(path, **arrays, sfreq=250, channel_names=[b"C3", b"C4"])
    path.with_suffix(".json").write_text('{"sfreq": 1, "channel_names": ["a", "b"]}')
    assert read_npz(path).sfreq == 250
    assert read_npz(path).channels == ["C3", "C4"]


def test_the_scale_of_the_json_is_for_integers_only(path, arrays):
    path.with_suffix(".json").write_text('{"scale": 0.5}')
    np.savez(path, **arrays)
    assert read_npz(path).X[0, 0, 3] == 3
    np.savez(path, **{**arrays, "X": arrays["X"].astype(np.int16)})
    assert read_npz(path).X[0, 0, 3] == 1.5


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not valid JSON"),
        ("[" * 200_000, "not valid JSON"),
        ("[1]", "must hold a JSON object"),
        ('{"sfreq": "128"}', '"sfreq" .* must be a number'),
        ('{"sfreq": true}', '"sfreq" .* must be a number'),
        ('{"sfreq": NaN}', '"sfreq" .* must be a number'),
        ('{"channel_names": "C3"}', '"channel_names" .* list of names'),
        ('{"channel_names": {"0": "C3"}}', '"channel_names" .* list of names'),
        ('{"class_names": [1, 2]}', '"class_names" .* list of names'),
        ('{"subject_names": 5}', '"subject_names" .* list of names'),
    ],
)
def test_a_bad_json_beside_the_file_is_named(path, arrays, content, words):
    np.savez(path, **arrays)
    path.with_suffix(".json").write_text(content)
    with pytest.raises(SourceError, match=words) as caught:
        read_npz(path)
    assert "study.json" in str(caught.value)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"y": [0, 1]}, ShapeError, "y has 2 values but X has 6 trials"),
        ({"X": signals()[0]}, ShapeError, "three dimensions"),
        ({"X": signals().astype(str)}, DtypeError, "real numbers"),
        ({"X": signals().astype(complex)}, DtypeError, "real numbers"),
        ({"y": [0, np.nan] * 3}, LabelError, "NaN or infinite for trials 1, 3, 5"),
        ({"sfreq": -1.0}, SamplingRateError, "positive"),
        ({"sfreq": [1.0, 2.0]}, SourceError, "must be one number"),
        ({"scale": 0.0}, SourceError, "must be positive"),
        ({"channels": ["C3"]}, ShapeError, "1 channel names for 2 channels"),
        ({"channels": [1, 2]}, SourceError, "list of names"),
    ],
)
def test_bad_content_is_named_with_the_file(path, arrays, change, error, words):
    np.savez(path, **{**arrays, **change})
    with pytest.raises(error, match=words) as caught:
        read_npz(path)
    assert "study.npz" in str(caught.value)


def test_missing_file_and_folder(path):
    with pytest.raises(SourceError, match=r"no file .*study\.npz"):
        read_npz(path)
    path.mkdir()
    with pytest.raises(SourceError, match="no file"):
        read_npz(path)


def test_missing_keys_are_listed_with_those_that_are_there(path, arrays):
    np.savez(path, X=arrays["X"], labels=arrays["y"])
    with pytest.raises(SourceError) as caught:
        read_npz(path)
    for words in ("lacks y, subject", "holds: X, labels", "Needed are: X, y, subject"):
        assert words in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04 but no more", b"\x80\x04N."])
def test_what_is_no_zip_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r"damaged or not a \.npz"):
        read_npz(path)


def test_a_npy_called_npz_is_refused(path, arrays):
    with path.open("wb") as handle:
        np.save(handle, arrays["X"])
    with pytest.raises(SourceError, match="single array"):
        read_npz(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_file_is_refused(path, arrays, share):
    np.savez(path, **arrays)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(SourceError, match="damaged"):
        read_npz(path)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_flipped_byte_in_the_signals_is_noticed(path, arrays, save):
    save(path, **arrays)
    content = bytearray(path.read_bytes())
    content[200] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(SourceError, match=r'"X" of .* is damaged'):
        read_npz(path)


@pytest.mark.parametrize("key", ["X", "y", "subject", "session", "channels"])
def test_pickled_objects_are_refused_and_never_executed(path, arrays, key, tmp_path):
    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    np.savez(path, **{**arrays, key: np.array([Bomb()] * 6, dtype=object)})
    with pytest.raises(SourceError, match=rf'"{key}" of .* Python objects .* refused'):
        read_npz(path)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.skipif(not REAL.is_dir(), reason="real recordings are not here")
@pytest.mark.parametrize(
    ("name", "shape", "sfreq", "n_subjects", "first", "channel", "label", "person"),
    [
        # First stored number times scale: -2 x 1, 96 x 0.01, -673 x 0.02.
        ("myo_emg", (10184, 8, 200), 200, 37, -2.0, "EMG1", "neutral", "pre/Female0"),
        ("ssvep_exoskeleton", (1728, 8, 256), 128, 12, 0.96, "Oz", "rest", "subject01"),
        ("uci_eeg_objects", (1054, 61, 128), 128, 20, -13.46, "Fp1", "S1_obj", "co2a0000364"),
    ],
)
def test_real_recordings(name, shape, sfreq, n_subjects, first, channel, label, person):
    data = read_npz(REAL / name / f"{name}.npz")
    assert data.X.shape == shape
    assert data.sfreq == sfreq
    assert data.trials.base.dtype == np.int16
    assert data.X[0, 0, 0] == pytest.approx(first, rel=1e-5)
    assert len(data.subject_ids) == len(data.subject_names) == n_subjects
    assert data.channels[0] == channel
    assert data.class_names[0] == label
    assert data.subject_names[0] == person
