"""Methods of adaptation: one table of laws that every one of them keeps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import autotransfer as at
from autotransfer.adaptation import ADAPTATIONS, LEVELS, tuning
from autotransfer.errors import (
    AdaptationWarning,
    LabelError,
    SettingError,
    ShapeError,
    SubjectError,
)

PAGE = Path(__file__).parents[2] / "docs" / "adapting.md"
DATA = at.make_subjects(
    n_subjects=5, n_trials=60, n_channels=4, n_times=64, n_classes=3, random_state=0
)
KNOWN, NEW = DATA.select(subjects=[0, 1, 2, 3]), DATA.select(subjects=[4])
FIRST, LATER = NEW.select(trials=np.arange(40)), NEW.select(trials=np.arange(40, 60))
OPTIONS = {"max_epochs": 15, "device": "cpu", "verbose": False, "validation": None}
OPTIONS["encoder_options"] = {"F1": 4, "kernel_length": 16}  # small, for speed

each = pytest.mark.parametrize("method", [*ADAPTATIONS, "statistics+information", "auto"])


@pytest.fixture(autouse=True)
def _shorter(monkeypatch):
    monkeypatch.setattr(tuning, "STEPS", (0, 4, 8))


@pytest.fixture(scope="module")
def clf():
    return at.CensoredClassifier(**OPTIONS, random_state=0).fit(KNOWN)


@pytest.fixture(scope="module")
def pair(clf):
    return at.Ensemble([clf, at.CensoredClassifier(**OPTIONS, random_state=1).fit(KNOWN)])


def needs_labels(method):
    return any(ADAPTATIONS[name].level == "labels" for name in method.split("+") if name != "auto")


def adapted(model, method, data=FIRST, **options):
    labels = data.y if needs_labels(method) else None
    return model.adapt(data, labels, method=method, **options)


def same_weights(one, other):
    states = one.network_.state_dict(), other.network_.state_dict()
    there = states[0].keys() == states[1].keys()
    return there and all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def relabelled(data, seed=1):
    """Give the same trials with labels of nothing."""
    y = np.random.default_rng(seed).permutation(data.y)
    return at.SubjectDataset(data.X, y, data.subject)


@each
def test_the_shared_model_stays(clf, method):
    before = {name: value.clone() for name, value in clf.network_.state_dict().items()}
    asked = {name: value.requires_grad for name, value in clf.network_.named_parameters()}
    provenance, turn = dict(clf.provenance_), clf.normaliser_.turn
    made = adapted(clf, method)
    assert made is not clf
    assert all(torch.equal(clf.network_.state_dict()[k], v) for k, v in before.items())
    assert {n: v.requires_grad for n, v in clf.network_.named_parameters()} == asked
    assert (clf.provenance_, clf.normaliser_.turn) == (provenance, turn)
    assert "adapted" in made.provenance_


@each
def test_the_same_trials_give_the_same_bits_and_move_no_random_stream(clf, method):
    torch.manual_seed(0)
    state = torch.get_rng_state()
    one = adapted(clf, method)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(1)
    assert same_weights(one, adapted(clf, method))


@each
def test_below_level_labels_no_label_is_read(clf, method):
    if needs_labels(method):
        changed = clf.adapt(FIRST, relabelled(FIRST).y, method=method)
        assert not same_weights(adapted(clf, method), changed)
    else:
        assert same_weights(adapted(clf, method), adapted(clf, method, relabelled(FIRST)))


@each
def test_unlabelled_trials_beside_labelled_ones_have_no_labels_either(clf, method):
    few = FIRST.select(trials=np.arange(9))
    rest = FIRST.select(trials=np.arange(9, 40))
    one, other = (
        clf.adapt(few, few.y, unlabelled=more, method=method) for more in (rest, relabelled(rest))
    )
    assert same_weights(one, other)


@each
@pytest.mark.parametrize("kind", ["one trial", "all equal"])
def test_a_trial_alone_or_equal_ones_do_no_harm(clf, method, kind):
    trials = np.zeros(40, int) if kind == "all equal" else [0]
    data = at.SubjectDataset(FIRST.X[trials], FIRST.y[trials], FIRST.subject[trials])
    if needs_labels(method) or method == "auto":
        made = adapted(clf, method, data)
        assert made.score(LATER) >= clf.score(LATER) - 0.1
    else:
        # Statistics of a trial that is always the same are what they are: finite, and not more.
        assert np.isfinite(adapted(clf, method, data).predict_proba(LATER)).all()


@each
def test_it_is_saved_and_loaded_to_the_bit(clf, pair, method, tmp_path):
    for number, model in enumerate((clf, pair)):
        made = adapted(model, method)
        made.save(tmp_path / str(number))
        again = at.load_model(tmp_path / str(number))
        np.testing.assert_array_equal(again.predict_proba(LATER), made.predict_proba(LATER))
        about = again.members[0].provenance_["adapted"]
        assert about == made.members[0].provenance_["adapted"]
        assert "Adapted to one person by 40 trials" in made.describe()


@each
def test_an_ensemble_is_the_mean_of_its_adapted_members(pair, method):
    alone = [adapted(member, method).predict_proba(LATER) for member in pair.members]
    made = adapted(pair, method).predict_proba(LATER)
    np.testing.assert_allclose(made, np.mean(alone, 0), atol=1e-12)


@pytest.mark.parametrize("name", ADAPTATIONS)
def test_the_page_has_a_line_for_it(name):
    line = next(x for x in PAGE.read_text().splitlines() if x.startswith(f"| `{name}` |"))
    assert ADAPTATIONS[name].words in line
    assert ADAPTATIONS[name].level in LEVELS


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"method": "statistic"}, SettingError, "Did you mean 'statistics'"),
        ({"method": None}, SettingError, "method of adaptation"),
        ({"method": "statistics+statistics"}, SettingError, "twice"),
        ({"method": "head"}, SettingError, "needs labels"),
        ({"unlabelled": LATER.X}, SettingError, "adapt\\(X, y, unlabelled"),
        ({"y": FIRST.y[:5]}, ShapeError, "values"),
        ({"y": FIRST.y + 10}, LabelError, "does not know the class"),
        ({"y": FIRST.y.astype(str)}, LabelError, "y holds text"),
    ],
)
def test_what_cannot_be(clf, arguments, error, words):
    with pytest.raises(error, match=words):
        clf.adapt(FIRST.X, **arguments)


def test_a_recording_of_one_class_is_refused_with_a_warning(clf, pair):
    sure = KNOWN.X[np.argsort(clf.predict_proba(KNOWN)[:, 1])[-40:]]
    for model in (clf, pair):
        with pytest.warns(AdaptationWarning, match="few of the classes"):
            made = model.adapt(sure)
        np.testing.assert_array_equal(made.predict_proba(LATER), model.predict_proba(LATER))
        assert made.members[0].provenance_["adapted"]["method"] == "none"
    assert not same_weights(clf, clf.adapt(sure, method="statistics"))  # who asks for it gets it
    y = np.repeat([0, 1], len(sure))[: len(sure)]
    assert clf.adapt(sure, y).provenance_["adapted"]["method"] == "covariances"


def test_nobody_is_adapted_to_two_people(clf):
    with pytest.raises(SubjectError, match="one person"):
        clf.adapt(FIRST, FIRST.y, unlabelled=DATA)
    with pytest.raises(SubjectError, match="one person"):
        clf.adapt(DATA)


def test_labels_of_a_data_set_are_found_by_the_names_of_classes():
    """A file may number the same classes otherwise."""
    names = {0: "rest", 1: "open", 2: "close"}
    known = at.SubjectDataset(KNOWN.X, KNOWN.y, KNOWN.subject, classes=names)
    clf = at.CensoredClassifier(**OPTIONS, random_state=0).fit(known)
    other = at.SubjectDataset(
        FIRST.X, 2 - FIRST.y, FIRST.subject, classes={2: "rest", 1: "open", 0: "close"}
    )
    plain = at.SubjectDataset(FIRST.X, FIRST.y, FIRST.subject, classes=names)
    one, two = (clf.adapt(data, data.y, method="head") for data in (plain, other))
    assert same_weights(one, two)


@pytest.mark.parametrize("labels", [False, True])
def test_fit_with_a_target_is_fit_and_then_adapt(labels):
    X, y = np.asarray(FIRST.X), FIRST.y
    given = {"X_target_unlabeled": X[20:]}
    if labels:
        given |= {"X_target_labeled": X[:20], "y_target_labeled": y[:20]}
    whole = at.CensoredClassifier(**OPTIONS, random_state=0).fit(KNOWN, **given)
    plain = at.CensoredClassifier(**OPTIONS, random_state=0).fit(KNOWN)
    made = plain.adapt(X[:20], y[:20], unlabelled=X[20:]) if labels else plain.adapt(X[20:])
    assert same_weights(whole, made)
    assert whole.provenance_["adapted"] == made.provenance_["adapted"]
    assert not same_weights(whole, plain)


def test_labels_of_a_target_without_trials_are_refused():
    with pytest.raises(SettingError, match="belong together"):
        at.CensoredClassifier(**OPTIONS).fit(KNOWN, y_target_labeled=FIRST.y)
