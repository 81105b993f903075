"""Checks: every planted defect is found where it was planted, and nothing else is."""

import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotransfer.data import checks
from autotransfer.data.checks import check
from autotransfer.data.checks.axes import axis_findings
from autotransfer.data.checks.findings import ERRORS, WARNINGS, Report, error, warning
from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.synthetic import make_subjects
from autotransfer.data.trials import TrialArray
from autotransfer.errors import (
    DataWarning,
    LabelError,
    NonFiniteDataError,
    SettingError,
    SmallCellWarning,
    SubjectError,
    SubjectLeakageError,
)

NAMES = ["Fz", "C3", "C4", "Pz"]


def study(X=None, **changes):
    """Five people, a to e, 20 trials each: subject s has the trials 20 s to 20 s + 19."""
    clean = make_subjects(n_subjects=5, n_trials=20)
    given = {
        "y": np.array(["left", "right"])[clean.y],
        "subject": np.array(list("abcde"))[clean.subject],
        "channels": NAMES,
        **changes,
    }
    return SubjectDataset(
        clean.X if X is None else X, given.pop("y"), given.pop("subject"), **given
    )


def only(report, name):
    """The findings of one name, having made sure that there are no others."""
    assert {finding.name for finding in report} == {name}, str(report)
    return list(report)


def test_clean_data():
    report = check(study())
    assert len(report) == 0
    assert str(report) == "Nothing wrong was found."
    report.raise_errors()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report.warn()


@pytest.mark.parametrize(
    ("value", "name", "words"),
    [(np.nan, "nan", "NaN values"), (np.inf, "infinite", "infinite"), (-np.inf, "infinite", "inf")],
)
def test_values_that_are_not_numbers(value, name, words):
    data = study()
    data.X[[23, 25], 1, 7] = value
    data.X[61, 3, 100] = value
    report = check(data)
    b, d = only(report, name)
    assert (b.subjects, b.channels, b.trials) == (("b",), ("C3",), (23, 25))
    assert (d.subjects, d.channels, d.trials) == (("d",), ("Pz",), (61,))
    assert f"Subject b has {words}" in b.message
    assert "C3 in trials 23, 25." in b.message
    with pytest.raises(NonFiniteDataError, match=r"(?s)Subject b .*Subject d .*Pz in trial 61\."):
        report.raise_errors()


def test_nan_and_infinity_in_one_trial_are_both_named():
    data = study()
    data.X[5, 0, :2] = [np.nan, np.inf]
    assert {finding.name for finding in check(data)} == {"nan", "infinite"}


def test_flat_channels():
    data = study()
    data.X[30, 2] = 0.0
    data.X[40:60, 1] = -3.3
    report = check(data)
    b, c = only(report, "flat-channel")
    assert (b.subjects, b.channels, b.trials) == (("b",), ("C4",), (30,))
    assert (c.subjects, c.channels, c.trials) == (("c",), ("C3",), tuple(range(40, 60)))
    assert "C4 in trial 30." in b.message
    assert "C3 in all 20 trials." in c.message
    report.raise_errors()  # not an error
    with pytest.warns(DataWarning, match="Subject c has flat channels"):
        report.warn()


def test_flat_trials():
    data = study()
    data.X[[3, 4, 90]] = np.array([1, 2, 3, 4])[:, None]
    a, e = only(check(data), "flat-trial")
    assert (a.subjects, a.trials, e.subjects, e.trials) == (("a",), (3, 4), ("e",), (90,))
    assert "all channels are flat in trials 3, 4." in a.message


@pytest.mark.parametrize("levels", [None, 127, 20])
def test_clipped_channels(levels):
    """A strong signal cut at a rail, in float or integer steps; the weaker trials stay unnamed."""
    data = study()
    data.X[20:25, 3] *= 8
    limit = np.float32(np.abs(data.X[20:25, 3]).max() / 3)
    np.clip(data.X[20:40, 3], -limit, limit, out=data.X[20:40, 3])
    if levels:
        data.X[:] = np.round(data.X / limit * levels)
    (found,) = only(check(data), "clipped")
    assert (found.subjects, found.channels, found.trials) == (("b",), ("Pz",), (20, 21, 22, 23, 24))
    assert "Pz in trials 20, 21, 22, 23, 24." in found.message


@pytest.mark.parametrize("bits", [2, 3, 4, 6, 8])
def test_quantised_and_rectified_signals_are_not_clipped(bits):
    data = study()
    step = np.abs(data.X).max() / 2 ** (bits - 1)
    coarse = np.round(data.X / step)
    assert not check(study(coarse)).named("clipped")
    assert not check(study(np.abs(coarse))).named("clipped")
    assert not check(study(np.maximum(coarse, 0))).named("clipped")
    phase = np.random.default_rng(0).uniform(0, 2 * np.pi, (100, 4, 1))
    wave = np.sin(2 * np.pi * np.arange(128) / 8 + phase)
    assert not check(study(np.round(wave * 2**bits))).named("clipped")


def test_trigger_channel_is_not_called_clipped_but_gives_the_class_away():
    data = study()
    data.X[:, 2] = 5.0
    data.X[:, 2, 10:20] += 1 + data.y_code[:, None]
    report = check(data)
    assert {finding.name for finding in report} == {"label-like"}
    found = report[0]
    assert (found.channels, found.classes) == (("C4",), ("left", "right"))
    assert "Channel C4 gives the class away" in found.message
    assert "tells class left, right from the others" in found.message
    assert "pick_channels" in found.message


@pytest.mark.parametrize("how", ["constant", "noisy", "loud", "one class"])
def test_label_like_channels(how):
    data = study(y=np.arange(100) % 3, classes=["x", "y", "z"])
    y = data.y_code[:, None]
    noise = np.random.default_rng(0).normal(size=(100, 128))
    plant = {
        "constant": np.tile(y, 128),
        "noisy": y + noise,
        "loud": 10.0**y * noise,
        "one class": 3.0 * (y == 1) + noise,
    }
    data.X[:, 0] = plant[how]
    found = check(data).named("label-like")
    assert found
    assert all(finding.channels == ("Fz",) for finding in found)
    classes = found[0].classes
    assert classes == ((1,) if how == "one class" else (0, 1, 2))


def test_a_few_trials_are_no_proof_of_a_label_channel():
    data = make_subjects(n_subjects=4, n_trials=4, n_channels=60)
    assert not check(data).named("label-like")


def test_class_told_in_some_subjects_only_is_not_label_like():
    data = study()
    data.X[:80, 1] += 10 * data.y_code[:80, None]
    assert not check(data).named("label-like")


def test_missing_and_lonely_classes():
    y = np.array(["left", "right"])[np.arange(100) % 2]
    y[20:40] = "left"
    y[[41, 44]] = "up"
    report = check(study(y=y))
    lonely, missing = report[0], report.named("missing-class")[0]
    assert (lonely.name, lonely.subjects) == ("class-in-one-subject", ("c",))
    assert (lonely.classes, lonely.trials) == (("up",), (41, 44))
    assert "Class up exists in subject c only" in lonely.message
    assert (missing.subjects, missing.classes) == (("b",), ("right",))
    assert "Subject b has no trials of class right" in missing.message
    with pytest.raises(LabelError, match="Class up exists in subject c only"):
        report.raise_errors()


def test_small_cells():
    y = np.array(["left", "right"])[np.arange(100) % 2]
    y[60:80] = ["right"] * 2 + ["left"] * 18
    report = check(study(y=y))
    (found,) = only(report, "small-cell")
    assert (found.subjects, found.classes, found.trials) == (("d",), ("right",), (60, 61))
    assert "2 of class right, where at least 4 are wanted" in found.message
    with pytest.warns(SmallCellWarning, match="Subject d has too few trials"):
        report.warn()
    assert not check(study(y=y), n_min=2).named("small-cell")
    with pytest.raises(SettingError, match="n_min must be at least 1"):
        check(study(), n_min=0)


def test_one_subject_or_one_class():
    with pytest.raises(SubjectError, match="All trials are of one subject, a"):
        check(study(subject=["a"] * 100)).raise_errors()
    with pytest.raises(LabelError, match="All trials are of one class, left"):
        check(study(y=["left"] * 100)).raise_errors()


@pytest.mark.parametrize("chunk_bytes", [1, 20_000, 10**9])
def test_copies(monkeypatch, chunk_bytes):
    monkeypatch.setattr(checks, "CHECK_CHUNK_BYTES", chunk_bytes)
    data = study()
    data.X[[47, 48]] = data.X[[5, 3]]  # a's under c
    data.X[99] = data.X[81]  # twice in e
    report = check(data)
    leak, twice = report
    assert (leak.name, leak.subjects, leak.trials) == (
        "copy-across-subjects",
        ("a", "c"),
        (3, 5, 47, 48),
    )
    assert "Subjects a and c share trials" in leak.message
    assert "trials 3 and 48, 5 and 47." in leak.message
    assert (twice.name, twice.level, twice.subjects) == ("copy-within-subject", "warning", ("e",))
    assert twice.trials == (81, 99)
    with pytest.raises(SubjectLeakageError, match="Subjects a and c"):
        report.raise_errors()


@settings(max_examples=40, deadline=None)
@given(
    a=st.integers(0, 99),
    b=st.integers(0, 99),
    delay=st.integers(1, 112),
    pad=st.sampled_from([0, 5, 40]),
    bits=st.sampled_from([None, 8, 4]),
    chunk=st.sampled_from([1, 30_000, 10**9]),
)
def test_shifted_windows_of_one_recording(a, b, delay, pad, bits, chunk):
    """B starts `delay` samples into A: found exactly when they are of two subjects."""
    data = study()
    if a == b:
        return
    recording = np.random.default_rng(delay).normal(size=(4, 128 + delay)).astype(np.float32)
    if bits:
        recording = np.round(recording * 2 ** (bits - 3))
    recording[:, delay : delay + min(pad, 112 - delay)] = 0  # silence within the shared part
    data.X[a], data.X[b] = recording[:, :128], recording[:, delay:]
    before = checks.CHECK_CHUNK_BYTES
    checks.CHECK_CHUNK_BYTES = chunk
    try:
        report = check(data)
    finally:
        checks.CHECK_CHUNK_BYTES = before
    leaks = report.named("overlap-across-subjects")
    if data.subject[a] == data.subject[b]:
        assert not leaks
    else:
        assert [leak.trials for leak in leaks] == [tuple(sorted((a, b)))]
        assert leaks[0].subjects == tuple(sorted((data.subject[a], data.subject[b])))
        assert f"trials {min(a, b)} and {max(a, b)}." in leaks[0].message
        with pytest.raises(SubjectLeakageError, match="windows that share samples"):
            report.raise_errors()


def test_chance_agreement_is_no_copy():
    """Silence, padding, sparse pulses, ramps and coarse rest signals agree between people."""
    rng = np.random.default_rng(0)
    sparse = np.zeros((100, 4, 128), np.float32)
    sparse[np.arange(100), 1, rng.integers(20, 100, 100)] = 1
    ramp = np.tile(np.arange(128, dtype=np.float32), (100, 4, 1))
    padded = study().X.copy()
    padded[:, :, :60] = 0
    padded[:, :, 110:] = 0
    coarse = np.round(rng.normal(size=(100, 1, 128)))
    square = np.sign(np.sin(2 * np.pi * np.arange(128) / 16))[None, None] * np.ones((100, 4, 1))
    for X, channels in ((sparse, NAMES), (ramp, NAMES), (padded, NAMES), (coarse, ["Fz"])):
        report = check(study(X, channels=channels))
        assert not report.errors, str(report)
    assert check(study(square)).errors  # the very same wave in all people is a copy


def test_recordings_under_two_subjects():
    counted = np.tile(np.repeat(np.arange(4), 5), 5)  # 0 to 3 anew for each person
    assert len(check(study(recording=counted))) == 0
    unequal = np.concatenate([np.arange(60), *[np.arange(10)] * 4])
    subject = np.repeat(list("abcde"), [60, 10, 10, 10, 10])
    assert not check(study(recording=unequal, subject=subject)).named("recording-across-subjects")
    unique = np.repeat(np.arange(20), 5) + 100
    assert len(check(study(recording=unique))) == 0
    unique[40:45] = 107  # c's first recording has the id of b's last
    (found,) = only(check(study(recording=unique)), "recording-across-subjects")
    assert found.level == "warning"
    assert found.subjects == ("b", "c")
    assert found.trials == (35, 36, 37, 38, 39, 40, 41, 42, 43, 44)
    assert "Recording 107 stands under subjects b, c" in found.message


def test_report_reads_well():
    findings = [warning("flat-channel", f"w{i}.", subjects=(i,)) for i in range(20)]
    report = Report([*findings, error("one-class", "No."), error("nan", "Bad.")])
    assert repr(report) == "Report(2 errors, 20 warnings)"
    assert str(report).splitlines()[:3] == [
        "error (one-class): No.",
        "error (nan): Bad.",
        "warning (flat-channel): w0.",
    ]
    assert "... and 12 more (flat-channel), subjects 8, 9, 10" in str(report)
    with pytest.raises(LabelError, match=r"No\.\nBad\."):
        report.raise_errors()
    assert not set(ERRORS) & set(WARNINGS)


def test_short_and_memory_mapped_trials(tmp_path):
    for n_times in (1, 2, 5, 17):
        check(make_subjects(n_times=n_times)).raise_errors()
    X = study().X.copy()
    X[70] = X[7]
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert check(study(mapped)).named("copy-across-subjects")[0].trials == (7, 70)


REPOSITORY = Path(__file__).resolve().parents[2]
RECORDINGS = Path(os.environ.get("AUTOTRANSFER_DATA", REPOSITORY.parent / "shared" / "data"))


def real(name):
    folder = RECORDINGS / name
    if not (folder / f"{name}.npz").exists():
        pytest.skip(f"no {name} in {RECORDINGS}; set AUTOTRANSFER_DATA")
    z = np.load(folder / f"{name}.npz")
    about = json.loads((folder / f"{name}.json").read_text())
    return SubjectDataset(
        TrialArray(z["X"], scale=float(z["scale"])),
        z["y"],
        z["subject"],
        recording=z.get("recording", None),
        sfreq=about["sfreq"],
        channels=about["channel_names"],
        classes=about["class_names"],
        subjects=dict(enumerate(about["subject_names"])),
    )


def test_real_emg():
    """8-bit EMG: strong contractions do saturate; nothing else is wrong, and it is fast."""
    data = real("myo_emg")
    start = time.perf_counter()
    report = check(data)
    assert time.perf_counter() - start < 3.0
    for finding in only(report, "clipped"):
        signals = np.abs(data.trials[np.array(finding.trials)])
        assert (signals.max(axis=(1, 2)) >= 127).all()


def test_real_ssvep():
    assert len(check(real("ssvep_exoskeleton"))) == 0


def test_real_erp():
    first, second = only(check(real("uci_eeg_objects")), "flat-channel")
    assert "Subject co2a0000368 has flat channels: Cz in trials 119, 120" in first.message
    assert "Subject co2c0000341 has flat channels: O2 in trials 776, 777" in second.message
    assert second.channels == ("O2", "O1")


def test_real_copy_is_found():
    """The defect the originals had: a recording of one person under another's name."""
    data = real("myo_emg")
    X = data.trials.base.copy()
    X[2000, :, :150] = X[100, :, 50:]
    report = check(SubjectDataset(TrialArray(X), data.y, data.subject))
    (leak,) = report.errors
    assert (leak.name, leak.trials) == ("overlap-across-subjects", (100, 2000))


ROOT = Path(os.environ.get("AUTOTRANSFER_DATA", "../shared/data"))
SETS = ("myo_emg", "threedc_emg", "ssvep_exoskeleton", "uci_eeg_objects", "mitbih_ecg")


@pytest.mark.skipif(not ROOT.is_dir(), reason="needs the recordings")
@pytest.mark.parametrize("name", SETS)
def test_swapped_axes_of_recordings_are_told(name):
    data = SubjectDataset(*some(name))
    assert list(axis_findings(data)) == []
    swapped = SubjectDataset(data.X.transpose(0, 2, 1), data.y, data.subject)
    (finding,) = axis_findings(swapped)
    assert finding.name == "swapped-axes"
    assert "X.transpose(0, 2, 1)" in finding.message


@pytest.mark.skipif(not ROOT.is_dir(), reason="needs the recordings")
def test_swapped_axes_are_told_by_the_signals_too():
    """Of 61 channels x 61 times only the signals can tell."""
    X, y, subject = some("uci_eeg_objects")
    square = X[:, :, :61]
    swapped = SubjectDataset(square.transpose(0, 2, 1), y, subject)
    assert list(axis_findings(SubjectDataset(square, y, subject))) == []
    assert [f.name for f in axis_findings(swapped)] == ["swapped-axes"]


def some(name):
    with np.load(ROOT / name / f"{name}.npz") as arrays:
        return arrays["X"][:600].astype(np.float32), arrays["y"][:600], arrays["subject"][:600]


def test_muscles_and_the_normalisation_of_channels():
    data = study(channels=["EMG1", "EMG2", "EMG3", "EMG4"])
    assert len(check(data)) == len(check(data, normalise="trial")) == 0
    (finding,) = only(check(data, normalise="channel"), "emg-normalised-by-channel")
    assert finding.channels == ("EMG1", "EMG2", "EMG3", "EMG4")
    assert "normalise='trial'" in finding.message
    assert len(check(study(), normalise="channel")) == 0
