"""What can be had by name, against MOABB's own figures."""

from __future__ import annotations

import json
import sys

import pytest

from autotransfer.data import catalogue, load
from autotransfer.errors import MissingExtraError, SettingError, SourceError, UnknownSubjectError

OURS = ["inria-ern:FOLDER", "faces-basic:FOLDER"]


def test_the_list_is_there_without_moabb_and_as_json():
    rows = catalogue()
    names = [row.name for row in rows]
    assert len(names) == len(set(names)) >= 14
    assert [name for name in names if not name.startswith("moabb:")] == OURS
    for row in rows:
        again = json.loads(json.dumps(row.to_json()))
        assert again["licence"]
        assert again["source"].startswith("https://")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("moab:Kalunga2016", "no source of data 'moab'. Did you mean 'moabb'?"),
        ("inria:there", "no source of data 'inria'"),
        ("moabb:", "lacks the name of a data set"),
        ("faces-basic:", "lacks the folder of its files"),
    ],
)
def test_names_that_are_wrong_before_the_colon(name, words):
    with pytest.raises(SettingError, match=words.replace("?", r"\?")):
        load(name)


def test_a_name_without_its_source_gets_a_hint():
    with pytest.raises(SourceError, match="Did you mean 'moabb:Kalunga2016'"):
        load("Kalunga2016")
    with pytest.raises(SourceError, match="Did you mean 'inria-ern:FOLDER'"):
        load("inria-ern")


def test_paths_with_a_colon_stay_paths(tmp_path):
    for path in (f"{tmp_path}/a:b.npz", "./moab:x.npz", "C:\\study.npz"):
        with pytest.raises(SourceError, match="does not exist"):
            load(path)


def test_without_moabb_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "moabb", None)
    monkeypatch.setitem(sys.modules, "moabb.datasets", None)
    with pytest.raises(MissingExtraError, match=r"pip install moabb"):
        load("moabb:Kalunga2016")


@pytest.fixture(scope="module")
def moabb(tmp_path_factory):
    """Keep MNE and MOABB from writing their settings and data into the user's home."""
    found = pytest.importorskip("moabb")
    folder = str(tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_MNE_FAKE_HOME_DIR", "MNE_DATA", "MOABB_RESULTS"):
            patch.setenv(name, folder)
        yield found


@pytest.mark.slow
def test_the_figures_are_those_of_moabb(moabb):
    import moabb.datasets

    from autotransfer.data.sources.catalogue import SEE_PAGE
    from autotransfer.data.sources.moabb_name import suitable_paradigm

    for row in catalogue():
        if row.name in OURS:
            continue
        dataset = getattr(moabb.datasets, row.name.partition(":")[2])()
        about = dataset.METADATA
        paradigm = suitable_paradigm(dataset)
        assert paradigm.is_valid(dataset), row.name
        assert row.subjects == len(dataset.subject_list), row.name
        assert row.classes == len(paradigm.used_events(dataset)), row.name
        assert row.channels == about.acquisition.channel_types["eeg"], row.name
        assert row.sfreq == about.acquisition.sampling_rate, row.name
        said = about.documentation.license
        assert row.licence == (SEE_PAGE if said == "Unknown" else said), row.name
        # What is above 64 Hz is gone before the recording is brought to 128 Hz.
        assert max(high for _, high in paradigm.filters) < 64
        assert paradigm.resample == 128


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Montage name:FutureWarning")
def test_a_data_set_by_name(moabb):
    data = load("moabb:FakeDataset", subjects=[2, 5])
    assert data.subject_ids.tolist() == [2, 5]
    assert data.labels.tolist() == ["fake1", "fake2", "fake3"]
    assert (data.sfreq, data.channels) == (128.0, ["C3", "Cz", "C4"])
    with pytest.raises(UnknownSubjectError, match="no subject 99"):
        load("moabb:FakeDataset", subjects=[99])
    with pytest.raises(SettingError, match="label cannot be set for moabb"):
        load("moabb:FakeDataset", label="y")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Montage name:FutureWarning")
def test_a_paradigm_of_ones_own(moabb):
    from moabb.paradigms import MotorImagery

    given = MotorImagery(events=["fake1", "fake2"], n_classes=2)
    data = load("moabb:FakeDataset", subjects=[1], paradigm=given)
    assert data.labels.tolist() == ["fake1", "fake2"]


@pytest.mark.slow
def test_unknown_data_sets_and_kinds_without_a_paradigm(moabb):
    with pytest.raises(SettingError, match=r"no MOABB data set 'kalunga'.*Did you mean 'Kalunga2"):
        load("moabb:kalunga")
    with pytest.raises(SettingError, match=r"of kind 'rstate'.*paradigm=\.\.\."):
        load("moabb:Hinss2021")
