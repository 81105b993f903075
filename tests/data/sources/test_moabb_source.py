"""Data sets from MOABB; its fake data set needs no download."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from autotransfer.data.sources.load import load
from autotransfer.data.sources.moabb import from_moabb
from autotransfer.errors import (
    MissingExtraError,
    SettingError,
    ShapeError,
    SubjectError,
    UnknownSubjectError,
)

pytest.importorskip("moabb")

pytestmark = [
    pytest.mark.slow,  # importing moabb alone takes seconds
    pytest.mark.filterwarnings("ignore:Montage name:FutureWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    """Keep MNE and MOABB from writing their settings and data into the user's home."""
    folder = str(tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_MNE_FAKE_HOME_DIR", "MNE_DATA", "MOABB_RESULTS"):
            patch.setenv(name, folder)
        yield folder


@pytest.fixture(scope="module")
def dataset(home):
    from moabb.datasets.fake import FakeDataset

    return FakeDataset(
        event_list=("left_hand", "right_hand"),
        n_subjects=3,
        n_sessions=2,
        n_runs=2,
        n_events=4,
        duration=20,
        channels=("C3", "Cz", "C4"),
        seed=1,
    )


@pytest.fixture(scope="module")
def paradigm(home):
    from moabb.paradigms import LeftRightImagery

    return LeftRightImagery()


def test_the_same_trials_as_moabb_gives(dataset, paradigm):
    data = from_moabb(dataset, paradigm, subjects=[3, 1])
    X, y, table = paradigm.get_data(dataset, [3, 1])
    np.testing.assert_allclose(data.X, X, rtol=1e-5)
    assert data.y.tolist() == y.tolist()
    assert data.subject.tolist() == table["subject"].tolist()
    assert data.session.tolist() == table["session"].tolist()
    # 2 subjects x 2 sessions x 2 runs of 4 trials.
    assert data.n_trials == 32
    assert data.recording[[0, 31]].tolist() == ["3/0/0", "1/1/1"]
    assert len(set(data.recording)) == 8
    assert (data.sfreq, data.channels) == (128.0, ["C3", "Cz", "C4"])


def test_all_subjects_by_default_and_the_common_door(dataset, paradigm):
    assert from_moabb(dataset, paradigm).subject_ids.tolist() == [1, 2, 3]
    assert load(dataset, paradigm=paradigm, subjects=[2]).subject_ids.tolist() == [2]


def test_unknown_subjects_are_refused(dataset, paradigm):
    with pytest.raises(UnknownSubjectError, match=r"no subject 99\. Known: 1, 2, 3"):
        from_moabb(dataset, paradigm, subjects=[1, 99])
    with pytest.raises(SubjectError, match="none was asked for"):
        from_moabb(dataset, paradigm, subjects=[])


def test_a_paradigm_that_does_not_fit_is_refused(dataset):
    from moabb.paradigms import P300, FilterBankLeftRightImagery

    with pytest.raises(SettingError, match=r"P300 does not fit .*'imagery'.*left_hand, right"):
        from_moabb(dataset, P300())
    with pytest.raises(SettingError, match="must be a MOABB paradigm object"):
        from_moabb(dataset, "imagery")
    bank = FilterBankLeftRightImagery(filters=[[8, 12], [12, 20]])
    with pytest.raises(ShapeError, match="filter bank"):
        from_moabb(dataset, bank, subjects=[1])


def test_without_moabb_the_extra_is_named(monkeypatch, dataset, paradigm):
    monkeypatch.setitem(sys.modules, "moabb", None)
    with pytest.raises(MissingExtraError, match=r"pip install moabb"):
        from_moabb(dataset, paradigm)
