"""Recordings in files: from what MNE reads to trials."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from autotransfer.data.sources.load import load
from autotransfer.data.sources.recordings.files import files_below
from autotransfer.errors import (
    ChannelMismatchError,
    DataWarning,
    EmptyDataError,
    LabelError,
    MissingExtraError,
    MissingSubjectError,
    SamplingRateError,
    SettingError,
    SourceError,
    SubjectError,
)
from recorded import NAMES, ONSETS, RATE, add_stimuli, make_raw, save

mne = pytest.importorskip("mne")

WINDOW = {"tmin": 0.0, "tmax": 1.0}
pytestmark = pytest.mark.filterwarnings("error::autotransfer.errors.AutoTransferWarning")


@pytest.fixture(scope="module")
def anna(tmp_path_factory):
    return save(make_raw("anna"), tmp_path_factory.mktemp("anna") / "anna_raw.fif")


def power(data, frequency):
    """Amplitude at a frequency, mean over trials and channels."""
    signals = np.asarray(data.X, float)
    signals = signals - signals.mean(2, keepdims=True)
    times = np.arange(data.n_times) / data.sfreq
    return np.abs(signals @ np.exp(-2j * np.pi * frequency * times)).mean(1) * 2 / data.n_times


def test_a_recording_becomes_trials(anna):
    data = load(anna, **WINDOW)
    assert data.X.shape == (12, 3, 201)
    assert data.X.dtype == np.float32
    assert (data.sfreq, data.unit, data.channels) == (RATE, "V", ["C3", "Cz", "C4"])
    assert data.y.tolist() == NAMES.tolist()
    assert set(data.subject.tolist()) == {"anna"}
    assert set(data.recording.tolist()) == {"anna_raw"}
    with mne.use_log_level("ERROR"):
        raw = mne.io.read_raw(anna, preload=True)
    start = round(ONSETS[3] * RATE)
    expected = raw.get_data()[:, start : start + 201].astype(np.float32)
    np.testing.assert_array_equal(data.X[3], expected)


def test_the_trials_are_those_that_mne_cuts(anna):
    data = load(anna, tmin=-0.5, tmax=1.5, band=(2, 30), sfreq=100)
    with mne.use_log_level("ERROR"):
        raw = mne.io.read_raw(anna, preload=True)
        events, codes = mne.events_from_annotations(raw)
        raw.filter(2, 30)
        raw, events = raw.resample(100, events=events)
        epochs = mne.Epochs(raw, events, codes, -0.5, 1.5, baseline=None, preload=True)
    np.testing.assert_array_equal(data.X, epochs.get_data().astype(np.float32))
    assert data.sfreq == 100
    assert data.n_times == 201


def test_a_band_takes_away_what_is_outside_of_it(anna):
    before, after = load(anna, **WINDOW), load(anna, **WINDOW, band=(4, 30))
    assert power(before, 50).min() > 4e-5
    assert power(after, 50).max() < 1e-6
    left = np.array(NAMES) == "left"
    assert power(after, 10)[left].min() > 5e-6
    assert power(after, 10)[~left].max() < 1e-6
    assert abs(np.mean(after.X)) < 1e-7 < np.mean(before.X)
    lowpass = load(anna, **WINDOW, band=(None, 30))
    assert np.mean(lowpass.X) == pytest.approx(2e-5, rel=0.05)


def test_muscles_are_filtered_too(tmp_path):
    """MNE passes over EMG unless it is named."""
    path = save(make_raw("anna", ("E1", "E2"), "emg"), tmp_path / "emg_raw.fif")
    assert power(load(path, **WINDOW, band=(4, 30)), 50).max() < 1e-6


@pytest.mark.parametrize(
    "band", [(30, 4), (4,), 4, "4-30", (0, 30), (4, 4), (None, None), (4, "a")]
)
def test_a_band_that_is_none_is_refused(anna, band):
    with pytest.raises(SettingError, match=r"band must be \(low, high\) in Hz"):
        load(anna, **WINDOW, band=band)


def test_a_band_above_what_the_rate_can_hold_is_refused(anna):
    with pytest.raises(SettingError, match=r"At 200 Hz \(anna_raw\) there is nothing above 100 Hz"):
        load(anna, **WINDOW, band=(4, 100))
    with pytest.raises(SettingError, match=r"At 50 Hz there is nothing above 25 Hz"):
        load(anna, **WINDOW, band=(4, 30), sfreq=50)


def test_a_higher_rate_is_warned_of(anna):
    with pytest.warns(DataWarning, match="no knowledge"):
        assert load(anna, **WINDOW, sfreq=400).n_times == 401


def test_the_window_is_asked_for_and_checked(anna):
    with pytest.raises(SettingError, match=r"tmax=.*--tmax.*Events: left, right"):
        load(anna)
    with pytest.raises(SettingError, match=r"tmin must be below tmax, not 1 and 0.5"):
        load(anna, tmin=1, tmax=0.5)
    with pytest.raises(SettingError, match="tmax must be seconds, not '1'"):
        load(anna, tmax="1")
    with pytest.raises(EmptyDataError, match="reach beyond the recording"):
        load(anna, tmin=0, tmax=60)


def test_events_by_name_with_own_names_and_in_part(anna):
    assert set(load(anna, **WINDOW, events=["right"]).y.tolist()) == {"right"}
    data = load(anna, **WINDOW, events={"L": "left", "R": "right"})
    assert data.y.tolist() == ["L", "R"] * 6


def test_events_that_are_not_there_or_not_right(anna):
    with pytest.raises(
        LabelError, match=r"No recording has the event T1, T2\. Events: left, right"
    ):
        load(anna, **WINDOW, events=["T1", "T2"])
    with pytest.raises(LabelError, match="has the event up"):
        load(anna, **WINDOW, events=["left", "up"])
    with pytest.raises(SourceError, match=r"'left' is no file.*as a list"):
        load(anna, **WINDOW, events="left")
    for wrong in ([1.5], {"a": None}, 3):
        with pytest.raises(SettingError, match="event"):
            load(anna, **WINDOW, events=wrong)
    with pytest.raises(SettingError, match="asks for left under two names"):
        load(anna, **WINDOW, events={"a": "left", "b": "left"})
    with pytest.raises(SettingError, match="events is empty"):
        load(anna, **WINDOW, events=[])


@pytest.mark.parametrize("samples", [1, 5])
@pytest.mark.parametrize("events", [{"left": 7, "right": 9}, {"left": "7", "right": np.int64(9)}])
def test_codes_of_the_stimulus_channel(tmp_path, samples, events):
    raw = add_stimuli(make_raw("anna", annotated=False), {"left": 7, "right": 9}, samples)
    path = save(raw, tmp_path / "a_raw.fif")
    data = load(path, **WINDOW, events=events, sfreq=100)
    assert data.y.tolist() == NAMES.tolist()
    assert data.channels == ["C3", "Cz", "C4"]
    assert power(data, 10)[::2].min() > 5e-6 > power(data, 10)[1::2].max()
    assert load(path, **WINDOW).y.tolist() == ["7", "9"] * 6
    with pytest.raises(LabelError, match=r"has the event 8\. Events: 7, 9"):
        load(path, **WINDOW, events={"left": 7, "right": 8})


def test_a_number_may_be_the_name_of_an_annotation(tmp_path):
    raw = make_raw("anna", annotated=False)
    raw.set_annotations(mne.Annotations(ONSETS, 0, np.where(NAMES == "left", "769", "770")))
    data = load(save(raw, tmp_path / "a_raw.fif"), **WINDOW, events={"left": 769, "right": 770})
    assert data.y.tolist() == NAMES.tolist()


def test_without_events_a_file_of_them_is_asked_for(tmp_path):
    path = save(make_raw("anna", annotated=False), tmp_path / "a_raw.fif")
    with pytest.raises(LabelError, match=r"neither an annotation nor a stimulus channel.*--events"):
        load(path, **WINDOW)


@pytest.mark.parametrize("first", [0, 1000])
@pytest.mark.parametrize("form", ["tsv", "csv", "eve", "annot"])
def test_a_file_of_events(tmp_path, form, first):
    raw = make_raw("anna", annotated=False, first=first)
    path = save(raw, tmp_path / "a_raw.fif")
    codes = np.where(NAMES == "left", 1, 2)
    if form == "eve":
        where = tmp_path / "a-eve.fif"
        samples = np.round(ONSETS * RATE).astype(int) + first
        mne.write_events(where, np.column_stack([samples, 0 * codes, codes]), verbose="ERROR")
    elif form == "annot":
        where = tmp_path / "a-annot.fif"
        mne.Annotations(ONSETS, 0, NAMES).save(where, verbose="ERROR")
    else:
        where, gap = tmp_path / f"a_events.{form}", "\t" if form == "tsv" else ","
        rows = [f"{onset}{gap}0{gap}{name}" for onset, name in zip(ONSETS, NAMES, strict=True)]
        where.write_text("\n".join([gap.join(["onset", "duration", "trial_type"]), *rows]))
    data = load(path, **WINDOW, events=where)
    assert data.y.tolist() == (NAMES if form != "eve" else codes.astype(str)).tolist()
    assert power(data, 10)[::2].min() > 5e-6 > power(data, 10)[1::2].max()


def test_a_file_of_events_that_does_not_fit(tmp_path, anna):
    table = tmp_path / "events.tsv"
    table.write_text("time\tname\n1\tleft\n")
    with pytest.raises(LabelError, match=r"columns time, name\. Needed are onset"):
        load(anna, **WINDOW, events=table)
    table.write_text("onset\ttrial_type\n1970-01-01\tleft\n")
    with pytest.raises(LabelError, match="must be seconds, not '1970-01-01'"):
        load(anna, **WINDOW, events=table)
    table.write_text("onset\ttrial_type\n2\tleft\n5\tn/a\n8\tright\n")
    with pytest.warns(DataWarning, match=r"1 of 3 events .* have no trial_type"):
        assert load(anna, **WINDOW, events=table).y.tolist() == ["left", "right"]
    codes = tmp_path / "late-eve.fif"
    mne.write_events(codes, np.array([[400, 0, 1], [90000, 0, 1]]), verbose="ERROR")
    with pytest.raises(LabelError, match=r"1 of 2 events .* lie outside of anna_raw"):
        load(anna, **WINDOW, events=codes)
    with pytest.raises(SettingError, match="there are 2 recordings"):
        load([anna, save(make_raw("ben"), tmp_path / "ben_raw.fif")], **WINDOW, events=codes)


def test_several_people_in_a_list_a_folder_and_a_mapping(tmp_path):
    for name in ("anna", "ben"):
        (tmp_path / name).mkdir()
        save(make_raw(name), tmp_path / name / f"{name}_raw.fif")
    save(make_raw("ben", names=("C4", "C3", "Cz")), tmp_path / "ben" / "second_raw.fif")
    files = sorted(tmp_path.glob("*/*.fif"))
    for source in (files, list(map(str, files)), tmp_path, str(tmp_path)):
        data = load(source, **WINDOW)
        assert data.subject.tolist() == ["anna"] * 12 + ["ben"] * 24
        assert np.unique(data.recording).tolist() == ["anna_raw", "ben_raw", "second_raw"]
        # Its channels stand in another order there: they are found by name.
        assert data.X[24:, 0].mean() == pytest.approx(2e-5, rel=1e-3)
    mapping = {"x": files[0], "y": [files[1], str(files[2])]}
    assert load(mapping, **WINDOW).subject.tolist() == ["x"] * 12 + ["y"] * 24
    with pytest.raises(SubjectError, match="leave subject out"):
        load(mapping, **WINDOW, subject="z")
    with pytest.raises(SourceError, match="same file is given twice"):
        load([files[0], files[0]], **WINDOW)


def test_whose_it_is(tmp_path):
    path = save(make_raw(), tmp_path / "first_raw.fif")
    with pytest.raises(
        MissingSubjectError, match=r"Whose recording is first_raw\.fif\? .*subject="
    ):
        load(path, **WINDOW)
    assert load(path, **WINDOW, subject="ben").subject_names == ["ben"]
    assert load(path, **WINDOW, subject=[3]).subject_ids.tolist() == [3]
    with pytest.raises(SubjectError, match="2 ids for 1 recordings"):
        load(path, **WINDOW, subject=["a", "b"])
    with pytest.raises(SubjectError, match=r"load\(\{subject: files\}"):
        load(path, **WINDOW, subject={"a": path})
    named = save(make_raw(), tmp_path / "sub-07_task-x_raw.fif")
    assert load(named, **WINDOW).subject_names == ["07"]
    # The id inside comes before the name, and both are one person.
    both = save(make_raw("anna"), tmp_path / "sub-07_task-y_raw.fif")
    assert load([named, both], **WINDOW).subject_names == ["anna"]


def test_ids_and_names_that_contradict_each_other(tmp_path):
    one = save(make_raw("anna"), tmp_path / "sub-01_raw.fif")
    two = save(make_raw("anna"), tmp_path / "sub-02_raw.fif")
    with pytest.raises(SubjectError, match=r"of subjects 01 and 02, but inside .* anna and anna"):
        load([one, two], **WINDOW)
    other = save(make_raw("ben"), tmp_path / "sub-01_run-2_raw.fif")
    with pytest.raises(SubjectError, match=r"sub-01_raw\.fif and sub-01_run-2_raw\.fif"):
        load([one, other], **WINDOW)
    assert load([one, two], **WINDOW, subject=["a", "b"]).subject_names == ["a", "b"]


def test_edf_files_without_a_name_are_not_one_person(tmp_path):
    """An anonymous EDF file says that its person is called X."""
    pytest.importorskip("edfio")
    for name in ("sub-1_eeg.edf", "sub-2_eeg.edf", "else.edf"):
        mne.export.export_raw(tmp_path / name, make_raw(), verbose="ERROR")
    with pytest.raises(MissingSubjectError, match=r"Whose recording is else\.edf"):
        load(tmp_path, **WINDOW)
    (tmp_path / "else.edf").unlink()
    data = load(tmp_path, **WINDOW, sfreq=100)
    assert data.subject_names == ["1", "2"]
    assert (data.unit, data.y.tolist()) == ("V", NAMES.tolist() * 2)


def test_recordings_that_differ(tmp_path):
    a = save(make_raw("a"), tmp_path / "a_raw.fif")
    b = save(make_raw("b", rate=100.0), tmp_path / "b_raw.fif")
    with pytest.raises(SamplingRateError, match=r"200 Hz: a_raw; 100 Hz: b_raw.*--sfreq 100"):
        load([a, b], **WINDOW)
    data = load([a, b], **WINDOW, sfreq=100)
    assert (data.sfreq, data.X.shape) == (100, (24, 3, 101))
    c = save(make_raw("c", ("C3", "Oz")), tmp_path / "c_raw.fif")
    with pytest.raises(ChannelMismatchError, match="subject c lacks Cz, C4"):
        load([a, c], **WINDOW)
    assert load([a, c], **WINDOW, channels="common").channels == ["C3"]


def test_bad_stretches_and_cut_off_trials_are_told(tmp_path):
    raw = make_raw("anna")
    raw.set_annotations(raw.annotations + mne.Annotations([2.5], [0.5], ["BAD_jump"]))
    path = save(raw, tmp_path / "a_raw.fif")
    with pytest.warns(DataWarning, match=r"2 of 12 trials .*1 BAD_jump, 1 TOO_SHORT"):
        data = load(path, tmin=0, tmax=5.1)
    assert data.n_trials == 10
    assert "BAD_jump" not in data.y


def test_a_recording_without_trials_is_told(tmp_path, anna):
    rest = make_raw("ben", annotated=False)
    rest.set_annotations(mne.Annotations([1.0], [1.0], ["rest"]))
    path = save(rest, tmp_path / "rest_raw.fif")
    with pytest.warns(DataWarning, match="There is no trial in rest_raw"):
        data = load([anna, path], **WINDOW, events=["left", "right"])
    assert data.subject_names == ["anna"]


def epochs_of(his_id):
    options = {"tmin": -0.5, "tmax": 1.0, "baseline": None, "preload": True, "verbose": "ERROR"}
    return mne.Epochs(make_raw(his_id), **options)


def test_epochs(tmp_path):
    for name in ("anna", "ben"):
        epochs_of(name).save(tmp_path / f"{name}-epo.fif", verbose="ERROR")
    data = load(tmp_path)
    assert data.X.shape == (24, 3, 301)
    assert data.subject_names == ["anna", "ben"]
    assert data.y.tolist() == NAMES.tolist() * 2
    part = load(tmp_path, tmin=0, tmax=0.5, sfreq=100, events={"L": "left"}, channels=["Cz"])
    assert part.X.shape == (12, 1, 51)
    assert part.y.tolist() == ["L"] * 12
    with pytest.raises(SettingError, match=r"go from -0.5 to 1 s"):
        load(tmp_path, tmin=0, tmax=3)
    with pytest.raises(SettingError, match="too short to be filtered"):
        load(tmp_path, band=(4, 30))
    with pytest.raises(LabelError, match=r"has the event up\. Events: left, right"):
        load(tmp_path, events=["up"])
    save(make_raw("anna"), tmp_path / "anna_raw.fif")
    with pytest.raises(SourceError, match=r"epochs \(anna-epo, ben-epo\) and .*\(anna_raw\)"):
        load(tmp_path, **WINDOW)


def test_only_recordings_of_a_folder_are_read(tmp_path):
    save(make_raw("a"), tmp_path / "a_raw.fif")
    mne.write_events(tmp_path / "a-eve.fif", np.array([[400, 0, 1]]), verbose="ERROR")
    (tmp_path / ".hidden").mkdir()
    save(make_raw("b"), tmp_path / ".hidden" / "b_raw.fif")
    info = mne.create_info(["C3", "Cz", "C4"], RATE, "eeg")
    long = mne.io.RawArray(np.zeros((3, 300_000)), info, verbose="ERROR")
    long.save(tmp_path / "c_raw.fif", split_size="2MB", verbose="ERROR")
    assert (tmp_path / "c_raw-1.fif").exists()
    numbered = save(make_raw("d"), tmp_path / "d-1.fif")
    names = [path.name for path in files_below(tmp_path)]
    assert names == ["a_raw.fif", "c_raw.fif", numbered.name]
    with pytest.raises(SourceError, match=r"neither a recording nor epochs .*events"):
        load(tmp_path / "a-eve.fif", **WINDOW)


@pytest.mark.filterwarnings("ignore::autotransfer.errors.DataWarning")
@pytest.mark.parametrize("name", ["a.fif", "a.edf", "a.vhdr", "a.set", "a.bdf"])
def test_damaged_files_are_named(tmp_path, name):
    for content in (b"", b"?", b"\0" * 5000):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SourceError, match=name):
            load(tmp_path / name, **WINDOW)


def test_a_recording_that_was_cut_off_is_named(tmp_path, anna):
    path = tmp_path / "half_raw.fif"
    path.write_bytes(anna.read_bytes()[: anna.stat().st_size // 2])
    with (
        pytest.warns(DataWarning, match="half_raw.*Invalid tag"),
        pytest.raises(SourceError, match="half_raw"),
    ):
        load(path, **WINDOW, subject="anna")


def test_without_mne_the_extra_is_named(anna, monkeypatch):
    monkeypatch.setitem(sys.modules, "mne", None)
    with pytest.raises(MissingExtraError, match="pip install mne"):
        load(anna, **WINDOW)


def test_options_of_others_are_refused(anna, tmp_path):
    with pytest.raises(SettingError, match=r"task cannot be set for recordings"):
        load(anna, task="x")
    np.savez(tmp_path / "a.npz", X=np.zeros((2, 1, 9)), y=[0, 1], subject=[0, 1])
    with pytest.raises(SettingError, match=r"band cannot be set for a \.npz file"):
        load(tmp_path / "a.npz", band=(1, 2))
