"""Models trained on each person's own scale or covariance, from training to use."""

from __future__ import annotations

import numpy as np
import pytest

import autotransfer as at
from autotransfer.adaptation.guard import Guard
from autotransfer.adaptation.registry import Policy
from autotransfer.data.align import OWN
from autotransfer.data.normalise import Normaliser
from autotransfer.data.problem import Problem
from autotransfer.data.splits import hold_out

DATA = at.make_subjects(
    n_subjects=5, n_trials=40, n_channels=4, n_times=64, n_classes=2, random_state=0
)
KNOWN, NEW = DATA.select(subjects=[0, 1, 2, 3]), DATA.select(subjects=[4])
OPTIONS = {"max_epochs": 6, "device": "cpu", "verbose": False, "validation": None}
OPTIONS |= {"encoder_options": {"F1": 4, "kernel_length": 16}, "random_state": 0}

each = pytest.mark.parametrize("kind", OWN)


def fitted(kind, data=KNOWN, **options):
    return at.CensoredClassifier(**(OPTIONS | options), normalise=kind).fit(data)


@pytest.fixture(scope="module")
def models():
    made = {kind: fitted(kind) for kind in OWN}
    for clf in made.values():  # so small that its guard would let nothing pass
        clf.provenance_["adaptation"] = Policy(guard=Guard(0.0, 0.0)).to_json()
    return made


def louder(data, person, factor):
    """Give one person's signals another scale."""
    mine = (data.subject == person)[:, None, None]
    return at.SubjectDataset(np.where(mine, factor * data.X[:], data.X[:]), data.y, data.subject)


@each
def test_the_scale_of_people_who_train_does_not_matter(models, kind):
    # By a power of two, so that nothing is rounded. It moves the mean of all, which only those
    # meet who are not known: everybody else's model is the same.
    other = fitted(kind, louder(KNOWN, 1, 4.0))
    for name, value in models[kind].network_.state_dict().items():
        np.testing.assert_allclose(
            value.numpy(), other.network_.state_dict()[name].numpy(), rtol=2e-4, atol=2e-4
        )
    usual = [
        fitted("none", data).network_.head.weight.detach().numpy()
        for data in (KNOWN, louder(KNOWN, 1, 4.0))
    ]
    assert np.abs(usual[0] - usual[1]).max() > 0.01


@each
@pytest.mark.filterwarnings("ignore:The amplitude of these signals")
def test_the_scale_of_somebody_new_does_not_matter_once_adapted(models, kind):
    X = NEW.X[:]
    here, there = (
        models[kind].adapt(scale * X, method="statistics", prior=0).predict_proba(scale * X)
        for scale in (1.0, 64.0)
    )
    np.testing.assert_allclose(here, there, rtol=1e-3, atol=1e-4)
    assert np.abs(models[kind].predict_proba(64 * X) - models[kind].predict_proba(X)).max() > 0.05


@each
def test_people_held_out_reach_neither_statistics_nor_weights(kind):
    scrambled = louder(KNOWN, 2, 300.0)
    made = []
    for data in (KNOWN, scrambled):
        clf = at.CensoredClassifier(**OPTIONS, normalise=kind)
        problem = Problem.of(data)
        made.append(clf.fit_fold(problem, hold_out(problem.subject, [2], 0), 0))
    states = [clf.network_.state_dict() for clf in made]
    assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])
    assert np.array_equal(*(clf.normaliser_.covariance for clf in made))


@each
def test_saved_exported_and_streamed_it_is_the_same(models, kind, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    clf, X = models[kind], NEW.X[:]
    personal = clf.adapt(X, method="statistics+information")
    assert not np.array_equal(personal.normaliser_.covariance, clf.normaliser_.covariance)
    again = at.load_model(personal.save(tmp_path / "model"))
    assert np.array_equal(again.predict_proba(X), personal.predict_proba(X))
    session = onnxruntime.InferenceSession(personal.export_onnx(tmp_path / "model.onnx"))
    told = session.run(["probabilities"], {"signals": X.astype(np.float32)})[0]
    np.testing.assert_allclose(told, personal.predict_proba(X), atol=1e-5)

    # Saved in the middle, a stream goes on to the same bits.
    live = clf.live(prior=4)
    before = live.predict_proba(X[:24])
    live.save(tmp_path / "live")
    went_on = live.predict_proba(X[24:])
    later = at.load_model(tmp_path / "live").live()
    assert np.array_equal(later.predict_proba(X[24:]), went_on)
    # Its statistics are the person's, by and by; and a reset forgets them.
    now = live.model().normaliser_.covariance
    distance = [
        np.abs(one - personal.normaliser_.covariance).sum()
        for one in (clf.normaliser_.covariance, now)
    ]
    assert distance[1] < distance[0]
    later.reset()
    assert np.array_equal(later.predict_proba(X[:24]), before)


@each
def test_a_damaged_stream_is_refused(models, kind, tmp_path):
    live = models[kind].live()
    live.predict(NEW.X[:3])
    now = live.model()
    state = live._streams[0].state()
    now.stream_ = state | {"covariance.now": state["covariance.now"] * float("nan")}
    with pytest.raises(at.AutoTransferError, match="does not fit this model"):
        at.load_model(now.save(tmp_path / "live")).live()


def test_a_normaliser_that_was_read_knows_nobody(models):
    made = models["euclidean"].normaliser_
    again = Normaliser.from_state(made.state())
    X = KNOWN.X[:5]
    assert np.array_equal(again.transform(X, KNOWN.subject[:5]), made.transform(X))
    assert "subject" not in made.state()
