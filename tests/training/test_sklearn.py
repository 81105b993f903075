"""Scikit-learn's manners: parameters, clones, pipelines, routed subjects, its own checks."""

from __future__ import annotations

import inspect
import pickle
from typing import ClassVar

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import SkipTestWarning, UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks
from torch import nn

import autotransfer as at
from autotransfer.data import TrialArray
from autotransfer.errors import MissingSubjectError

QUICK = {
    "encoder_options": {"F1": 2, "kernel_length": 16},
    "max_epochs": 2,
    "random_state": 0,
    "verbose": False,
}


@pytest.fixture(scope="module")
def data():
    return at.make_subjects(n_subjects=4, n_trials=8, n_channels=2, n_times=64)


class Halved(TransformerMixin, BaseEstimator):
    """A step that keeps trials x channels x times."""

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def transform(self, X):
        return X / 2


class Watched(at.CensoredClassifier):
    """Note who reaches fit, and what validates there."""

    seen: ClassVar[list] = []

    def fit(self, X, y, subject=None):
        super().fit(X, y, subject=subject)
        people = set(np.unique(subject).tolist())
        assert people == {*self.training_subjects_, *self.validation_subjects_}
        Watched.seen.append(people)
        return self


@pytest.fixture
def seen():
    Watched.seen.clear()
    return Watched.seen


def names():
    return list(inspect.signature(at.CensoredClassifier.__init__).parameters)[1:]


def test_the_constructor_stores_what_it_is_given_and_nothing_else():
    given = {name: object() for name in names()}
    clf = at.CensoredClassifier(given.pop("measure"), **given)
    assert set(vars(clf)) == set(names())
    assert all(getattr(clf, name) is value for name, value in given.items())


def test_get_and_set_params():
    clf = at.CensoredClassifier()
    assert sorted(clf.get_params()) == sorted(names())
    assert clf.set_params(patience=3, normalise="trial") is clf
    assert clf.get_params()["patience"] == 3
    assert clf.normalise == "trial"
    with pytest.raises(ValueError, match="Invalid parameter 'lambda_'"):
        clf.set_params(lambda_=1)


def test_a_clone_has_equal_options_and_no_memory(data):
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(128, 4))
    clf = at.CensoredClassifier(**{**QUICK, "encoder": encoder, "encoder_options": None})
    clf.fit(data.X, data.y, subject=data.subject)
    twin = clone(clf)
    assert not hasattr(twin, "network_")
    assert twin.encoder is not encoder
    twin.fit(data.X, data.y, subject=data.subject)
    np.testing.assert_array_equal(twin.predict_proba(data.X), clf.predict_proba(data.X))


def test_repr_shows_what_was_changed():
    assert repr(at.CensoredClassifier(patience=3)) == "CensoredClassifier(patience=3)"


def test_the_hash_of_a_training_ignores_the_order_of_options():
    hashes = {
        at.CensoredClassifier(encoder_options=dict(pairs)).options.hash(
            "data", np.zeros(0, np.intp), 0
        )
        for pairs in ([("F1", 4), ("D", 2)], [("D", 2), ("F1", 4)])
    }
    assert len(hashes) == 1


def test_fit_leaves_the_options_alone(data):
    clf = at.CensoredClassifier(**QUICK)
    before = clf.get_params()
    assert clf.fit(data.X, data.y, subject=data.subject) is clf
    assert clf.get_params() == before
    assert clf.encoder_options is before["encoder_options"]


def test_tags_tell_the_kind_of_input():
    tags = get_tags(at.CensoredClassifier())
    assert tags.input_tags.three_d_array
    assert not tags.input_tags.two_d_array
    assert not tags.input_tags.sparse
    assert not tags.input_tags.allow_nan
    assert tags.target_tags.required
    assert tags.requires_fit
    assert not tags.non_deterministic
    assert tags.estimator_type == "classifier"
    assert tags.transformer_tags.preserves_dtype == ["float32"]


def test_a_fitted_estimator_can_be_pickled_by_its_owner(data):
    clf = at.CensoredClassifier(**QUICK).fit(data.X, data.y, subject=data.subject)
    back = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(back.predict_proba(data.X), clf.predict_proba(data.X))


@pytest.mark.parametrize("routing", [False, True])
def test_in_a_pipeline_as_last_step_and_as_transformer(data, routing):
    clf = at.CensoredClassifier(**QUICK)
    direct = clone(clf).fit(data.X / 2, data.y, subject=data.subject)
    with config_context(enable_metadata_routing=routing):
        if routing:
            clf.set_fit_request(subject=True)
            given = {"subject": data.subject}
        else:
            given = {"censoredclassifier__subject": data.subject}
        last = make_pipeline(Halved(), clf).fit(data.X, data.y, **given)
        inner = make_pipeline(Halved(), clone(clf), LogisticRegression())
        inner.fit(data.X, data.y, **given)
    np.testing.assert_array_equal(last.predict(data.X), direct.predict(data.X / 2))
    assert last.score(data.X, data.y) == direct.score(data.X / 2, data.y)
    latent = inner[:-1].transform(data.X)
    np.testing.assert_array_equal(latent, direct.transform(data.X / 2))
    assert latent.shape == (len(data), direct.network_.n_latent)


def test_fit_transform_takes_subjects(data):
    clf = at.CensoredClassifier(**QUICK)
    latent = clf.fit_transform(data.X, data.y, subject=data.subject)
    np.testing.assert_array_equal(latent, clf.transform(data.X))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("alias", [False, True])
def test_cross_validation_never_shows_the_test_subject_to_fit(data, seen, alias, lazy):
    X = TrialArray(data.trials.base) if lazy else data.X
    folds, given = at.SubjectFolds(), {"subject": data.subject, "groups": data.subject}
    with config_context(enable_metadata_routing=True):
        if alias:
            folds.set_split_request(groups="subject")
            del given["groups"]
        clf = Watched(**QUICK).set_fit_request(subject=True)
        found = cross_validate(
            clf, X, data.y, cv=folds, params=given, return_indices=True, error_score="raise"
        )
    tested = [np.unique(data.subject[test]).tolist() for test in found["indices"]["test"]]
    assert sorted(tested) == [[0], [1], [2], [3]]
    assert len(seen) == 4
    for people, (who,) in zip(seen, tested, strict=True):
        assert people == {0, 1, 2, 3} - {who}
    assert np.isfinite(found["test_score"]).all()


def test_the_test_score_is_that_of_a_model_without_the_test_subject(data):
    with config_context(enable_metadata_routing=True):
        clf = at.CensoredClassifier(**QUICK).set_fit_request(subject=True)
        given = {"subject": data.subject, "groups": data.subject}
        guess = cross_val_predict(clf, data.X, data.y, cv=at.SubjectFolds(), params=given)
    for who in range(4):
        test = data.subject == who
        clf = at.CensoredClassifier(**QUICK)
        clf.fit(data.X[~test], data.y[~test], subject=data.subject[~test])
        np.testing.assert_array_equal(guess[test], clf.predict(data.X[test]))


def test_grid_search_routes_subjects_and_refits_on_all(data, seen):
    with config_context(enable_metadata_routing=True):
        clf = Watched(**QUICK).set_fit_request(subject=True)
        search = GridSearchCV(clf, {"learning_rate": [1e-3, 1e-2]}, cv=at.SubjectFolds(3))
        search.fit(data.X, data.y, subject=data.subject, groups=data.subject)
    assert len(seen) == 2 * 3 + 1
    assert seen[-1] == {0, 1, 2, 3}
    # Three groups of four people: {0, 1}, {2}, {3}; each tests once.
    expected = [{0, 1, 3}, {0, 1, 2}, {2, 3}]
    assert sorted(map(sorted, seen[:-1])) == sorted(2 * [sorted(people) for people in expected])
    assert search.best_estimator_.predict(data.X).shape == (len(data),)


def test_subjects_that_are_not_routed_are_missed_aloud(data):
    with pytest.raises(MissingSubjectError, match="set_fit_request"):
        cross_validate(
            at.CensoredClassifier(**QUICK),
            data.X,
            data.y,
            groups=data.subject,
            cv=at.SubjectFolds(),
            error_score="raise",
        )
    clf, given = at.CensoredClassifier(**QUICK), {"subject": data.subject, "groups": data.subject}
    with config_context(enable_metadata_routing=True), pytest.raises(UnsetMetadataPassedError):
        cross_validate(clf, data.X, data.y, cv=at.SubjectFolds(), params=given)


class Flat(at.CensoredClassifier):
    """Takes the 2-D data of scikit-learn's checks as one channel, and makes up three people."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = True, False
        return tags

    def fit(self, X, y, subject=None):
        X = self._as_channel(X)
        return super().fit(X, y, subject=np.arange(len(X)) % 3 if subject is None else subject)

    def _signals(self, X):
        return super()._signals(self._as_channel(X) if hasattr(self, "network_") else X)

    def _as_channel(self, X):
        array = X if hasattr(X, "todense") else np.asarray(X)
        return array[:, None] if array.ndim == 2 and not hasattr(X, "todense") else array


class SmallEncoder:
    """No function, because its address would be in the test's name, differently in each worker."""

    def __call__(self, n_channels, n_times):
        return nn.Sequential(nn.Flatten(), nn.Linear(n_channels * n_times, 8), nn.ELU())

    def __repr__(self):
        return "SmallEncoder()"


FLAT = Flat(
    encoder=SmallEncoder(),
    encoder_options={"latent": "output"},
    normalise="train",
    validation=None,
    learning_rate=0.05,
    max_epochs=30,
    random_state=0,
    verbose=False,
)

NO_FEATURES = "the input has channels and times (n_channels_, n_times_), not n_features_in_"
WORDS = "it is refused with our named error, whose words are not scikit-learn's"
EXPECTED = {
    "check_n_features_in": NO_FEATURES,
    "check_n_features_in_after_fitting": NO_FEATURES,
    "check_complex_data": WORDS,
    "check_estimators_empty_data_messages": WORDS,
    "check_fit2d_predict1d": WORDS,
    "check_requires_y_none": WORDS,
    "check_dtype_object": "numbers kept as objects are refused: they may hide ragged trials",
    "check_supervised_y_2d": "a column of labels is flattened without a warning: nothing is lost",
}


@parametrize_with_checks([FLAT], expected_failed_checks=lambda _: EXPECTED)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_scikit_learn_knows_that_it_cannot_check_three_dimensions():
    # It has data in two dimensions only and goes by the tags: hence Flat, for the other checks.
    with pytest.warns(SkipTestWarning, match="three_d_array=True"):
        results = check_estimator(at.CensoredClassifier(), on_skip=None)
    assert {result["status"] for result in results} == {"passed"}
