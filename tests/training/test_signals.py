"""What a model knows of its signals and classes, and what it says of others."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, cross_val_score
from torch import nn

import autotransfer as at
from autotransfer.data.info import Recording, SignalInfo
from autotransfer.errors import (
    ChannelMismatchError,
    DataError,
    DataWarning,
    LabelError,
    SamplingRateError,
    SettingError,
    SubjectError,
    UnitError,
)

NAMES = ["Oz", "O1", "O2", "PO3"]
CLASSES = {0: "13Hz", 1: "17Hz"}
PEOPLE = {i: f"subject{i + 1:02}" for i in range(5)}
BASE = at.make_subjects(n_subjects=5, n_trials=24, n_channels=4, n_times=64, random_state=0)


def dataset(X=BASE.X, **options):
    known = {
        "sfreq": 128.0,
        "channels": NAMES,
        "unit": "uV",
        "classes": CLASSES,
        "subjects": PEOPLE,
    }
    return at.SubjectDataset(X, BASE.y, BASE.subject, **known | options)


DATA = dataset()


def classifier(**options):
    given = {"max_epochs": 2, "random_state": 0, "verbose": False, "normalise": "train"}
    return at.CensoredClassifier(**given | options)


@pytest.fixture(scope="module", params=["fitted", "saved and loaded"])
def model(request, tmp_path_factory):
    clf = classifier().fit(DATA)
    if request.param == "fitted":
        return clf
    return at.CensoredClassifier.load(clf.save(tmp_path_factory.mktemp("model") / "model"))


def test_a_data_set_is_all_that_fit_needs(model):
    arrays = classifier(sfreq=128.0).fit(BASE.X, BASE.y, subject=BASE.subject)
    np.testing.assert_array_equal(model.predict_proba(BASE.X), arrays.predict_proba(BASE.X))
    np.testing.assert_array_equal(model.predict(DATA), arrays.predict(BASE.X))
    assert model.score(DATA) == arrays.score(BASE.X, BASE.y)
    with pytest.raises(DataError, match=r"fit\(data\) alone"):
        classifier().fit(DATA, BASE.y)


def test_names_are_kept(model):
    assert model.class_names_ == ["13Hz", "17Hz"]
    assert model.info_ == SignalInfo(tuple(NAMES), 128.0, "uV")
    assert model.classes_.tolist() == [0, 1]
    words = model.describe()
    for word in ("`13Hz`, `17Hz`", "`Oz`, `O1`, `O2`, `PO3`", "128 Hz", " uV", "output of the enc"):
        assert word in words


def test_channels_are_put_in_order_by_name(model):
    order = [2, 0, 3, 1]
    shuffled = dataset(np.asarray(BASE.X)[:, order], channels=[NAMES[i] for i in order])
    wanted = model.predict_proba(DATA)
    np.testing.assert_array_equal(model.predict_proba(shuffled), wanted)
    np.testing.assert_array_equal(model.transform(shuffled), model.transform(DATA))
    more = np.concatenate([np.ones((len(BASE.X), 1, 64)), BASE.X], 1)
    np.testing.assert_array_equal(
        model.predict_proba(dataset(more, channels=["EOG", *NAMES])), wanted
    )
    adapted = model.adapt(DATA.select(subjects=[0]))
    np.testing.assert_array_equal(
        model.adapt(shuffled.select(subjects=[0])).predict_proba(shuffled),
        adapted.predict_proba(DATA),
    )


def test_units_are_converted(model):
    volts = dataset(np.asarray(BASE.X, np.float64) * 1e-6, unit="V")
    np.testing.assert_allclose(model.predict_proba(volts), model.predict_proba(DATA), atol=1e-5)
    with pytest.raises(UnitError, match="trained on signals in uV, but these are in counts"):
        model.predict(dataset(unit="counts"))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sfreq": 256.0}, SamplingRateError, "at 128 Hz, but these are at 256 Hz"),
        ({"channels": ["Oz", "O1", "Cz", "Pz"]}, ChannelMismatchError, "needs the channels O2, PO"),
    ],
)
@pytest.mark.parametrize("method", ["predict", "predict_proba", "transform", "adapt"])
def test_other_recordings_are_refused_by_name(model, method, options, error, message):
    data = dataset(**options).select(subjects=[1])
    with pytest.raises(error, match=message):
        getattr(model, method)(data)


def test_channels_without_names_are_taken_in_the_order_of_the_model(model):
    with pytest.warns(DataWarning, match="do not name their channels"):
        predicted = model.predict(Recording(BASE.trials, SignalInfo(sfreq=128.0)))
    np.testing.assert_array_equal(predicted, model.predict(BASE.X))


@pytest.mark.parametrize("factor", [1e-6, 1 / 31, 31, 1e6])
def test_another_amplitude_is_told(model, factor):
    with pytest.warns(DataWarning, match="amplitude of these signals"):
        model.predict(np.asarray(BASE.X) * factor)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("factor", [1 / 29, 1, 29])
def test_people_may_differ_in_amplitude(model, factor):
    model.predict(np.asarray(BASE.X) * factor)


def test_the_amplitude_is_that_of_the_training_people():
    X = np.array(BASE.X)
    X[BASE.subject == 3] *= 1e3
    clf = classifier(validation=[3]).fit(X, BASE.y, subject=BASE.subject)
    trained = X[np.isin(BASE.subject, clf.training_subjects_)]
    assert clf.amplitude_ == pytest.approx(np.median(trained.std(2)), rel=1e-3)


def test_a_rate_that_contradicts_the_data():
    with pytest.raises(SamplingRateError, match=r"sfreq=250, but the data say .* 128 Hz"):
        classifier(sfreq=250).fit(DATA)


def test_a_model_folder_with_impossible_names(tmp_path):
    clf = classifier().fit(DATA)
    documents = clf._documents()
    for key, value in (("channels", ["Oz"]), ("channels", "Oz"), ("sfreq", -1), ("unit", [])):
        signals = documents["model"]["signals"] | {key: value}
        with pytest.raises(DataError):
            SignalInfo.from_json(signals, 4)


def test_muscles_normalised_by_channel_are_told():
    emg = dataset(channels=["EMG1", "EMG2", "EMG3", "EMG4"])
    with pytest.warns(DataWarning, match="normalise='trial'"):
        classifier(normalise="channel", max_epochs=1).fit(emg)


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(4 * 64, 8), nn.ReLU())
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(self.body(x))


def test_the_latent_of_a_module_is_said(tmp_path, caplog, capsys):
    with caplog.at_level(logging.INFO, "autotransfer"):
        clf = classifier(encoder=Own(), verbose=True).fit(DATA)
    said = "the input of the layer 'fc': 8 numbers"
    assert said in caplog.text
    assert said in capsys.readouterr().err
    assert "the latent is the input of the layer 'fc', 8 numbers" in clf.describe()
    card = (clf.save(tmp_path / "model") / "README.md").read_text()
    assert "the latent is the input of the layer 'fc', 8 numbers" in card
    assert json.loads((tmp_path / "model" / "model.json").read_text())["n_latent"] == 8


def test_words_for_beginners():
    with pytest.raises(SettingError, match="subject, and not groups"):
        classifier().fit(BASE.X, BASE.y, groups=BASE.subject)
    with pytest.raises(SettingError, match="subject, and not groups"):
        at.AutoTransfer().fit(BASE.X, BASE.y, groups=BASE.subject)
    with pytest.raises(SettingError, match="not sample_weight"):
        classifier().fit(BASE.X, BASE.y, subject=BASE.subject, sample_weight=BASE.y)
    with pytest.raises(SettingError, match=r"CensoredClassifier\(encoder='eegnet'\)"):
        at.AutoTransfer(classifier="eegnet").fit(DATA)
    clf = classifier(max_epochs=1).fit(DATA)
    with pytest.raises(SettingError, match="unlabelled holds trials beside labelled ones"):
        clf.adapt(BASE.X, unlabelled=BASE.X)
    with pytest.raises(SubjectError, match="one person, but these trials are of subject01"):
        clf.adapt(DATA)


def test_groups_of_a_splitter_are_not_ours():
    """scikit-learn hands groups to the splitter only, because fit does not name them."""
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        clf = classifier(max_epochs=1).set_fit_request(subject=True)
        params = {"groups": BASE.subject, "subject": BASE.subject}
        X = np.asarray(BASE.X)
        assert len(cross_val_score(clf, X, BASE.y, params=params, cv=GroupKFold(2))) == 2


def test_info_is_not_changed_by_what_it_is_compared_with():
    known = SignalInfo(("a", "b"), 100.0, "uV")
    same = known.match(BASE.trials, replace(known, channels=("b", "a")))
    np.testing.assert_array_equal(same[:3], BASE.trials[:3][:, [1, 0]])
    assert known.match(BASE.trials, known) is BASE.trials


def test_classes_and_people_are_selected_by_name():
    part = DATA.select(labels=["13Hz"], subjects=["subject02", "subject04"])
    assert set(part.y) == {0}
    assert set(part.subject) == {1, 3}
    assert part.subject_names == ["subject02", "subject04"]
    assert set(DATA.select(subjects=[0]).subject) == {0}
    with pytest.raises(DataError, match=r"No class 19Hz. Known: 0 \(13Hz\), 1 \(17Hz\)"):
        DATA.select(labels=["19Hz"])


def test_picked_channels_are_a_view():
    part = DATA.pick_channels(["O2", "Oz"])
    np.testing.assert_array_equal(part.X[:], np.asarray(BASE.X)[:, [2, 0]])
    assert part.trials.base is DATA.trials.base
    assert (part.channels, part.unit) == (["O2", "Oz"], "uV")
    again = part.pick_channels(["Oz"]).select(subjects=[2])
    np.testing.assert_array_equal(again.X[:], np.asarray(BASE.X)[BASE.subject == 2][:, [0]])


def test_a_data_set_is_scored_by_the_names_of_its_classes(model):
    """Every file may number the classes anew."""
    other = dataset()
    turned = at.SubjectDataset(BASE.X, 1 - BASE.y, BASE.subject, classes=["17Hz", "13Hz"])
    assert model.score(turned) == model.score(other)
    strange = at.SubjectDataset(BASE.X, BASE.y + 5, BASE.subject)
    with pytest.raises(LabelError, match=r"does not know the class 5, 6\. It knows: 13Hz, 17Hz"):
        model.score(strange)
