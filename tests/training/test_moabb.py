"""Inside MOABB's cross-subject evaluation the subjects reach fit, and the tested one does not."""

from __future__ import annotations

import os

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline

import autotransfer as at

if os.environ.get("AUTOTRANSFER_NEED_EXTRAS") != "1":
    pytest.importorskip("moabb", minversion="1.7")

pytestmark = [
    pytest.mark.slow,  # importing moabb alone takes seconds
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
SEEN, TARGETS = [], []


class Watched(at.CensoredClassifier):
    """Writes down whom it was shown."""

    def fit(self, X, y, subject=None, X_target_unlabeled=None):
        SEEN.append((len(X), subject))
        TARGETS.append(X_target_unlabeled)
        return super().fit(X, y, subject, X_target_unlabeled)


def evaluated(tmp_path, monkeypatch, request, **options):
    """Run MOABB's evaluation of a small classifier; `request` is what it asks of `fit`."""
    for name in ("_MNE_FAKE_HOME_DIR", "MNE_DATA", "MOABB_RESULTS"):
        monkeypatch.setenv(name, str(tmp_path))
    from moabb.datasets.fake import FakeDataset
    from moabb.evaluations import CrossSubjectEvaluation
    from moabb.paradigms import LeftRightImagery

    dataset = FakeDataset(
        event_list=("left_hand", "right_hand"),
        n_subjects=4,
        n_sessions=1,
        n_runs=1,
        n_events=8,
        duration=40,
        seed=1,
    )
    clf = Watched(
        "mmd",
        encoder_options={"F1": 2, "kernel_length": 16},
        max_epochs=1,
        random_state=0,
        verbose=False,
    )
    SEEN.clear()
    TARGETS.clear()
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(clf.set_fit_request(**request))
        return CrossSubjectEvaluation(
            paradigm=LeftRightImagery(resample=64),
            datasets=[dataset],
            hdf5_path=str(tmp_path),
            overwrite=True,
            **options,
        ).process({"censored": pipeline})


@pytest.mark.filterwarnings("ignore::autotransfer.errors.AdaptationWarning")
def test_a_part_of_the_tested_one_reaches_fit_where_it_is_asked_for(tmp_path, monkeypatch):
    request = {"subject": "subjects", "X_target_unlabeled": True}
    options = {"cv_kwargs": {"calibration_size": 0.5}}
    results = evaluated(tmp_path, monkeypatch, request, **options)
    assert [len(target) for target in TARGETS] == [4] * 4
    assert np.isfinite(results["score"]).all()


def test_the_subjects_reach_fit_and_the_tested_one_does_not(tmp_path, monkeypatch):
    results = evaluated(tmp_path, monkeypatch, {"subject": "subjects"})
    assert TARGETS == [None] * 4
    tested = [int(who) for who in results["subject"]]
    assert sorted(tested) == [1, 2, 3, 4]
    assert len(SEEN) == 4
    shown = []
    for n_trials, subject in SEEN:
        assert len(subject) == n_trials == 24
        people, counts = np.unique(subject, return_counts=True)
        assert counts.tolist() == [8, 8, 8]
        (absent,) = {1, 2, 3, 4} - set(people.tolist())
        shown.append(absent)
    assert sorted(shown) == sorted(tested)  # each person is absent once: when tested
    assert np.isfinite(results["score"]).all()
