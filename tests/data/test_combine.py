"""Putting data sets together, and what must be said when they do not fit."""

import numpy as np
import pytest

from autotransfer.data.combining import combine
from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.trials import TrialArray
from autotransfer.errors import (
    ChannelMismatchError,
    EmptyDataError,
    LabelError,
    SamplingRateError,
    ShapeError,
    SubjectError,
    UnitError,
)


def person(name, channels=("C3", "Cz", "C4"), n_times=20, n=4, **given):
    rng = np.random.default_rng(sum(map(ord, str(name))))
    X = rng.normal(size=(n, len(channels), n_times)).astype(np.float32)
    options = {"sfreq": 100.0, "y": [0, 1] * (n // 2), **given}
    return SubjectDataset(X, options.pop("y"), [name] * n, channels=list(channels), **options)


def test_same_channels():
    a, b = person("a", session=[0] * 4), person("b", session=[1] * 4, recording=[1, 1, 2, 2])
    both = combine([a, b])
    assert np.array_equal(both.X, np.concatenate([a.X, b.X]))
    assert both.subject.tolist() == ["a"] * 4 + ["b"] * 4
    assert both.y.tolist() == [0, 1] * 4
    assert both.session.tolist() == [0] * 4 + [1] * 4
    assert both.recording is None  # a has none
    assert (both.sfreq, both.channels) == (100.0, ["C3", "Cz", "C4"])


def test_channels_in_another_order_are_put_in_order():
    a, b = person("a"), person("b", ("C4", "C3", "Cz"))
    both = combine([a, b])
    assert both.channels == ["C3", "Cz", "C4"]
    assert np.array_equal(both.X[4:], b.X[:, [1, 2, 0]])


def test_missing_channels_name_subjects_and_offer_the_common_ones():
    parts = [person("a"), person("b", ("Cz", "C4")), person("c", ("C4", "C3", "Cz", "Oz"))]
    with pytest.raises(ChannelMismatchError) as caught:
        combine(parts)
    text = str(caught.value)
    assert "subject a without Oz" in text
    assert "subject b without C3, Oz" in text
    assert 'All have Cz, C4: use channels="common"' in text
    both = combine(parts, channels="common")
    assert both.channels == ["Cz", "C4"]
    assert np.array_equal(both.X[8:], parts[2].X[:, [2, 0]])
    assert combine(parts, channels=["C4"]).channels == ["C4"]
    with pytest.raises(ChannelMismatchError, match=r"subjects a, b without Oz\."):
        combine(parts, channels=["C4", "Oz"])


def test_nothing_in_common():
    parts = [person("a", ("C3",)), person("b", ("E1",))]
    for channels in (None, "common"):
        with pytest.raises(ChannelMismatchError, match="same names first"):
            combine(parts, channels=channels)
    with pytest.raises(ChannelMismatchError, match="not 'C3'"):
        combine(parts, channels="C3")


def test_sampling_rates():
    parts = [person("a"), person("b", sfreq=250), person("c"), person("d", sfreq=None)]
    with pytest.raises(SamplingRateError) as caught:
        combine(parts)
    text = str(caught.value)
    assert "subjects a, c at 100 Hz" in text
    assert "subject b at 250 Hz" in text
    assert "subject d of unknown rate" in text
    assert "Resample" in text
    assert combine([person("a", sfreq=None), person("b", sfreq=None)]).sfreq is None


def test_window_lengths():
    with pytest.raises(ShapeError, match=r"subject a with 20 .*subject b with 30 .*first 20"):
        combine([person("a"), person("b", n_times=30)])


def test_subject_in_two_data_sets():
    parts = [person("a"), person("b"), person("a")]
    with pytest.raises(SubjectError, match=r"a \(data sets 0 and 2\).*same_subjects=True"):
        combine(parts)
    assert combine(parts, same_subjects=True).subject_ids.tolist() == ["a", "b"]


def test_names_of_classes_must_agree():
    a = person("a", classes=["rest", "fist"])
    with pytest.raises(LabelError, match="Class 0 is called 'rest' in one data set and 'fist'"):
        combine([a, person("b", classes=["fist", "rest"])])
    with pytest.raises(LabelError, match="Class 'fist' has the id 1 in one data set and 2"):
        combine([a, person("b", y=[0, 2] * 2, classes={0: "rest", 2: "fist"})])
    assert combine([a, person("b")]).class_names == ["rest", "fist"]


def test_text_and_numbers_do_not_mix():
    with pytest.raises(LabelError, match="y is text in some data sets"):
        combine([person("a"), person("b", y=["0", "1"] * 2)])
    with pytest.raises(SubjectError, match="subject is text in some"):
        combine([person("a"), person(1)])


def test_lazy_trials_and_nothing():
    lazy = SubjectDataset(TrialArray(np.full((2, 1, 3), 4, np.int16), scale=0.5), [0, 1], [7, 7])
    assert combine([lazy]).X.tolist() == np.full((2, 1, 3), 2.0).tolist()
    with pytest.raises(EmptyDataError, match="at least one"):
        combine([])


def test_units_become_one():
    volts = SubjectDataset(np.full((2, 1, 5), 1e-6), [0, 1], ["a", "a"], unit="V")
    micro = SubjectDataset(np.full((2, 1, 5), 3.0), [0, 1], ["b", "b"], unit="\u00b5V")
    both = combine([micro, volts])
    assert both.unit == "uV"
    np.testing.assert_allclose(both.X[:, 0, 0], [3, 3, 1, 1], rtol=1e-6)
    other = SubjectDataset(np.ones((2, 1, 5)), [0, 1], ["c", "c"], unit="counts")
    with pytest.raises(UnitError, match="subject b in uV; subject c in counts"):
        combine([micro, other])
