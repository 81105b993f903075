"""The reader of faces and houses, on small files of the published form."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.io import savemat

from autotransfer.data import load, read_faces_basic
from autotransfer.errors import (
    ChannelMismatchError,
    DataWarning,
    SamplingRateError,
    SettingError,
    SourceError,
    UnknownSubjectError,
)

CODES = [[1, 51, 100], [50, 77]]  # of two runs
HOUSE_OR_FACE = ["house", "face", "face", "house", "face"]

pytestmark = pytest.mark.filterwarnings("ignore:Electrodes differ")


def stim_of(runs, shown=400, between=400):
    """Make the codes as the library has them: nothing, then pictures between 101, then nothing."""
    parts = [np.zeros(500)]
    for codes in runs:
        parts.append(np.full(between, 101))
        for code in codes:
            parts += [np.full(shown, code), np.full(between, 101)]
        parts.append(np.zeros(700))
    return np.concatenate(parts).astype(np.uint8)


def write(folder, subject, n_electrodes, runs=CODES, **changes):
    stim = changes.pop("stim", stim_of(runs))
    rng = np.random.default_rng(n_electrodes)
    data = np.rint(rng.normal(size=(len(stim), n_electrodes)) * 1000)
    data[:, 0] = np.arange(len(stim))  # tells where a trial was cut
    arrays = {"data": data, "stim": stim[:, None], "srate": 1000.0, **changes}
    there = folder / "data" / subject
    there.mkdir(parents=True, exist_ok=True)
    file = there / f"{subject}_faceshouses.mat"
    kept = {name: value for name, value in arrays.items() if value is not None}
    savemat(file, kept, do_compression=True)  # as MATLAB does by default
    return data


@pytest.fixture
def folder(tmp_path):
    for subject, n in (("ca", 5), ("de", 3)):
        write(tmp_path, subject, n)
    return tmp_path


def test_trials_begin_with_the_picture_and_carry_its_kind(folder):
    data = read_faces_basic(folder, subjects=["ca"])
    assert data.X.shape == (5, 5, 400)
    assert data.X.dtype == np.float32
    assert data.y.tolist() == HOUSE_OR_FACE
    assert data.recording.tolist() == ["ca/1"] * 3 + ["ca/2"] * 2
    assert data.sfreq == 1000.0
    stim = stim_of(CODES)
    first = [np.flatnonzero(stim == code)[0] for run in CODES for code in run]
    np.testing.assert_array_equal(data.X[:, 0], np.add.outer(first, np.arange(400)))


def test_the_first_electrodes_of_each_and_a_warning_that_says_so(folder):
    with pytest.warns(DataWarning, match=r"number \(3 to 5\) and place; the first 3 of each"):
        data = read_faces_basic(folder)
    assert data.X.shape == (10, 3, 400)
    assert data.subject.tolist() == ["ca"] * 5 + ["de"] * 5
    assert data.channels == ["electrode 1", "electrode 2", "electrode 3"]
    whole = read_faces_basic(folder, subjects=["ca"])
    np.testing.assert_array_equal(data.X[:5], whole.X[:, :3])


def test_electrodes_asked_for_by_number(folder):
    assert read_faces_basic(folder, channels=2).n_channels == 2
    with pytest.raises(ChannelMismatchError, match=r"has 4 electrodes: de \(3\).* at most 3"):
        read_faces_basic(folder, channels=4)
    with pytest.raises(SettingError, match="channels must be a whole number"):
        read_faces_basic(folder, channels="all")


def test_by_name(folder):
    data = load(f"faces-basic:{folder}", subjects=["de"], seconds=0.2)
    assert data.X.shape == (5, 3, 200)
    with pytest.raises(SettingError, match="paradigm cannot be set for faces-basic"):
        load(f"faces-basic:{folder}", paradigm=1)
    with pytest.raises(SettingError, match="seconds must be above 0"):
        load(f"faces-basic:{folder}", seconds=-1)


def test_flickers_of_the_code_are_no_pictures(tmp_path):
    stim = stim_of(CODES)
    between = np.flatnonzero(stim == 101)[100]
    within = np.flatnonzero(stim == 51)[100]
    stim[between : between + 3] = 60
    stim[within : within + 3] = 0
    write(tmp_path, "ha", 2, stim=stim)
    data = read_faces_basic(tmp_path)
    assert data.y.tolist() == HOUSE_OR_FACE
    assert data.recording.tolist() == ["ha/1"] * 3 + ["ha/2"] * 2


def test_unknown_subjects_and_missing_files(folder, tmp_path_factory):
    with pytest.raises(UnknownSubjectError, match=r"subject zz in .* There are of ca, de"):
        read_faces_basic(folder, subjects=["ca", "zz"])
    with pytest.raises(SourceError, match="There is no folder"):
        read_faces_basic(folder / "nowhere")
    with pytest.raises(SourceError, match=r"no \*_faceshouses\.mat files"):
        read_faces_basic(tmp_path_factory.mktemp("empty"))


@pytest.mark.parametrize("lost", ["data", "stim", "srate"])
def test_a_variable_that_is_missing_is_named(folder, lost):
    write(folder, "de", 3, **{lost: None} if lost != "stim" else {})
    if lost == "stim":
        savemat(
            folder / "data" / "de" / "de_faceshouses.mat",
            {"data": np.zeros((5, 2)), "srate": 1000.0},
        )
    with pytest.raises(SourceError, match=f"lacks the variable {lost}"):
        read_faces_basic(folder)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"data": np.zeros((10, 2))}, "do not fit together"),
        ({"data": np.zeros((10, 2, 2))}, "do not fit together"),
        ({"data": np.array(["a", "b"])}, "do not fit together"),
        ({"srate": 0.0}, "do not fit together"),
        ({"srate": "fast"}, "do not fit together"),
        ({"stim": np.zeros(4000, np.uint8)}, "has no picture"),
        ({"stim": stim_of(CODES)[:2000]}, "ends before the last trial"),
    ],
)
def test_files_whose_variables_do_not_fit(folder, changes, words):
    write(folder, "de", 3, **changes)
    with pytest.raises(SourceError, match=words):
        read_faces_basic(folder)


def test_rates_that_differ(folder):
    write(folder, "de", 3, srate=500.0)
    with pytest.raises(SamplingRateError, match="different sampling rates"):
        read_faces_basic(folder)


def test_files_of_format_7_3_say_what_to_do(folder):
    h5py = pytest.importorskip("h5py")
    file = folder / "data" / "de" / "de_faceshouses.mat"
    file.unlink()
    # As MATLAB writes them: an HDF5 file behind a header of 512 bytes.
    with h5py.File(file, "w", userblock_size=512) as made:
        made["data"] = np.zeros((2, 10))
    header = b"MATLAB 7.3 MAT-file".ljust(124) + bytes([0, 2]) + b"IM"
    with file.open("r+b") as handle:
        handle.write(header)
    with pytest.raises(SourceError, match=r"format 7\.3.*-v7"):
        read_faces_basic(folder)


@pytest.mark.parametrize("keep", [0, 60, 200, 3000])
def test_damaged_files(folder, keep):
    file = folder / "data" / "de" / "de_faceshouses.mat"
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(SourceError, match=r"de_faceshouses\.mat"):
        read_faces_basic(folder)
    file.write_bytes(b"not a mat file at all, but long enough to have a header" * 10)
    with pytest.raises(SourceError, match=r"de_faceshouses\.mat"):
        read_faces_basic(folder)
