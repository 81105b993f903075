"""Level stream: a model that goes along with one person, trial by trial."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from copy import copy

import numpy as np
import pytest
import torch

import autotransfer as at
from autotransfer.adaptation import stream
from autotransfer.adaptation.fitted import Fitted
from autotransfer.adaptation.guard import ALWAYS, Guard
from autotransfer.adaptation.registry import Policy
from autotransfer.errors import (
    ChannelMismatchError,
    ModelFolderError,
    NonFiniteDataError,
    SettingError,
)

DATA = at.make_subjects(
    n_subjects=5, n_trials=80, n_channels=4, n_times=64, n_classes=3, random_state=0
)
KNOWN, NEW = DATA.select(subjects=[0, 1, 2, 3]), DATA.select(subjects=[4])
X = np.asarray(NEW.X)
OPTIONS = {"max_epochs": 20, "device": "cpu", "verbose": False, "validation": None}
OPTIONS["encoder_options"] = {"F1": 4, "kernel_length": 16}  # small, for speed


@pytest.fixture(scope="module")
def clf():
    return at.CensoredClassifier(**OPTIONS, random_state=0).fit(KNOWN)


@pytest.fixture(scope="module")
def pair(clf):
    return at.Ensemble([clf, at.CensoredClassifier(**OPTIONS, random_state=1).fit(KNOWN)])


@pytest.fixture(params=["clf", "pair"])
def model(request):
    return request.getfixturevalue(request.param)


def with_policy(clf, policy):
    other = copy(clf)
    other.provenance_ = {**clf.provenance_, "adaptation": policy.to_json()}
    return other


def test_the_first_trial_is_predicted_as_without_a_stream(model):
    np.testing.assert_allclose(
        model.live().predict_proba(X[0]), model.predict_proba(X[:1])[0], atol=1e-6
    )


def test_it_learns_and_the_model_stays(model):
    before = model.predict_proba(X)
    live = model.live()
    told = live.predict_proba(X)
    assert np.abs(told[-20:] - before[-20:]).max() > 0.01
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert live.n_trials == len(X)


def test_nothing_looks_ahead(model):
    future = np.random.default_rng(0).permutation(np.arange(50, 80))
    one = model.live().predict_proba(X)
    other = model.live().predict_proba(np.concatenate([X[:50], 9 * X[future]]))
    np.testing.assert_array_equal(one[:50], other[:50])
    assert not np.array_equal(one[50:], other[50:])


def test_one_by_one_is_the_same_as_in_blocks(model):
    one, block = model.live(), model.live()
    singly = np.array([one.predict_proba(x) for x in X])
    blocks = [block.predict_proba(X[a:b]) for a, b in ((0, 1), (1, 30), (30, 80))]
    np.testing.assert_array_equal(singly, np.concatenate(blocks))
    assert one.predict(X[0]).shape == ()
    assert one.predict(X[:3]).shape == (3,)


AT_NIGHT = [pytest.param(n, marks=pytest.mark.nightly) for n in (1, 32)]


@pytest.mark.parametrize("n", [36, 45, *AT_NIGHT])  # at 36 a network is being made
def test_a_saved_state_goes_on_to_the_same_bits(model, n, tmp_path):
    live = model.live()
    live.predict(X[:n])
    live.save(tmp_path / "live")
    expected = live.predict_proba(X[n:])
    again = at.load_model(tmp_path / "live")
    going = again.live()
    assert going.n_trials == n
    np.testing.assert_array_equal(going.predict_proba(X[n:]), expected)
    # and so does its beginning
    going.reset()
    np.testing.assert_array_equal(going.predict_proba(X), model.live().predict_proba(X))


def test_the_model_of_now_is_a_model_like_any_other(model, tmp_path):
    live = model.live()
    live.predict(X[:45])
    live.save(tmp_path / "live")
    now = live.model()
    told = now.predict_proba(X)
    live.predict(X[45:])
    np.testing.assert_array_equal(now.predict_proba(X), told)
    loaded = at.load_model(tmp_path / "live")
    np.testing.assert_array_equal(loaded.predict_proba(X), told)
    about = {"n_trials": 45, "n_labels": 0, "method": "stream"}
    assert now.members[0].provenance_["adapted"] == about
    now.save(tmp_path / "now")
    names = {path.name for path in (tmp_path / "now").rglob("*")}
    assert "stream.safetensors" not in names  # no signals
    assert "stream.safetensors" in {path.name for path in (tmp_path / "live").rglob("*")}


def test_a_stream_that_was_changed_is_refused(clf, tmp_path):
    live = clf.live()
    live.predict(X[:20])
    live.save(tmp_path / "live")
    file = tmp_path / "live" / "stream.safetensors"
    content = bytearray(file.read_bytes())
    content[-3] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(ModelFolderError, match="damaged or changed"):
        at.load_model(tmp_path / "live")


def test_statistics_are_the_running_mean_and_variance(clf):
    """Of the first norm, whose input nothing that is learned changes, in a literal loop."""
    few = 31  # before the network is made anew for the first time
    policy = Policy(guard=ALWAYS)
    going = stream.Stream(Fitted(clf.network_, clf.normaliser_), prior=10, policy=policy)
    for x in X[:few]:
        going.predict(x)
    layers = clf.network_.encoder.literal()
    norm = clf.network_.encoder.bnorm_temporal
    with torch.no_grad():
        h = layers.conv_temporal(layers.add_plane(torch.from_numpy(clf.normaliser_.transform(X))))
    each = [(h[i].mean((1, 2)), h[i].square().mean((1, 2))) for i in range(few)]
    mean = 10 * norm.running_mean + sum(m for m, _ in each)
    square = 10 * (norm.running_var + norm.running_mean**2) + sum(s for _, s in each)
    mean, square = mean / (10 + few), square / (10 + few)
    found = going.fitted.network.encoder.bnorm_temporal
    torch.testing.assert_close(found.running_mean, mean, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.running_var, square - mean**2, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("method", ["statistics+information", "statistics", "ring+statistics"])
def test_after_some_trials_it_is_adapted_as_to_a_recording(clf, method):
    """Literally: the network that `adapt` gives for the first 32 trials predicts the 41st."""
    live = clf.live(method=method)
    told = live.predict_proba(X[:41])
    expected = clf.adapt(X[:32], method=method).predict_proba(X[40:41])[0]
    np.testing.assert_allclose(told[40], expected, atol=1e-6)
    assert not np.allclose(told[39], clf.adapt(X[:32], method=method).predict_proba(X[39:40])[0])


def test_where_people_held_out_gained_nothing_it_predicts_and_learns_nothing(clf):
    still = with_policy(clf, Policy(stream="none"))
    np.testing.assert_allclose(still.live().predict_proba(X), clf.predict_proba(X), atol=1e-6)


def test_a_method_that_needs_labels_is_refused(clf):
    with pytest.raises(SettingError, match="needs labels"):
        clf.live(method="statistics+head")
    with pytest.raises(SettingError, match="statistic"):
        clf.live(method="statistic")


def test_an_armband_stays_turned_after_saving(clf, tmp_path):
    turned = np.roll(X, -2, axis=1)
    live = clf.live(method="ring+statistics")
    live.predict(turned[:50])
    assert live.model().normaliser_.turn % 4 == 2
    live.save(tmp_path / "live")
    expected = live.predict_proba(turned[50:])
    again = at.load_model(tmp_path / "live").live()
    np.testing.assert_array_equal(again.predict_proba(turned[50:]), expected)
    again.reset()
    begun = clf.live(method="ring+statistics")
    np.testing.assert_array_equal(again.predict_proba(turned), begun.predict_proba(turned))


def test_it_begins_anew_when_it_is_lost(clf, monkeypatch):
    monkeypatch.setattr(stream, "RISE", -1.0)  # every prediction is too uncertain
    live = clf.live()
    live.predict(X[: stream.PATIENCE - 1])
    assert live.n_resets == 0
    live.predict(X[stream.PATIENCE])
    assert (live.n_resets, live.n_trials) == (1, 0)
    np.testing.assert_allclose(live.predict_proba(X[0]), clf.predict_proba(X[:1])[0], atol=1e-6)


def test_trials_of_one_class_change_nothing(clf):
    sure = X[(clf.predict_proba(X)[:, 1] > 0.8)]
    assert len(sure) > 10
    live = clf.live()
    live.predict(np.concatenate([sure] * 3))
    np.testing.assert_allclose(live.model().predict_proba(X), clf.predict_proba(X), atol=1e-6)
    named = clf.live(method="statistics")  # which is done whatever was seen
    named.predict(np.concatenate([sure] * 3))
    assert np.abs(named.model().predict_proba(X) - clf.predict_proba(X)).max() > 0.01


def test_one_trial_again_and_again_does_no_harm(clf):
    live = clf.live()
    live.predict(np.repeat(X[:1], 60, 0))
    assert live.model().score(NEW) >= clf.score(NEW) - 0.1


def test_a_bad_trial_is_refused_and_not_used(clf):
    one, other = clf.live(), clf.live()
    bad = X[:4].copy()
    bad[2, 0, 0] = np.nan
    with pytest.raises(NonFiniteDataError):
        one.predict(bad)
    with pytest.raises(ChannelMismatchError):
        one.predict(X[:2, :3])
    np.testing.assert_array_equal(one.predict_proba(X[:9]), other.predict_proba(X[:9]))


def test_threads_are_served_one_at_a_time(clf):
    live = clf.live()
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(live.predict_proba, X))
    assert live.n_trials == len(X)
    assert np.allclose(np.sum(told, axis=1), 1)
    state = live.model().network_.state_dict()
    assert all(torch.isfinite(value).all() for value in state.values())


def test_a_model_that_is_trained_anew_knows_nobody(clf, tmp_path):
    live = clf.live()
    live.predict_proba(X[:10])
    again = at.load_model(live.save(tmp_path / "live"))
    assert again.live().n_trials == 10
    again.fit(KNOWN)
    assert again.live().n_trials == 0
    fresh = at.load_model(again.save(tmp_path / "anew")).live()
    assert fresh.n_trials == 0
    np.testing.assert_allclose(fresh.predict_proba(X[0]), again.predict_proba(X[:1])[0], atol=1e-6)


def test_trials_of_few_classes_are_waited_out_though_a_recording_of_them_is_used(clf):
    """What a guard lets be done with a recording of few classes was scored with those alone."""
    never = Guard(2.0, 2.0, certainty=True)
    made = with_policy(clf, Policy(stream="statistics", guard=never))
    few = NEW.X[:][NEW.y == NEW.y[0]]
    live = made.live()
    live.predict_proba(np.concatenate([few, few])[:41])
    np.testing.assert_array_equal(live.model().predict_proba(X), clf.predict_proba(X))
    with pytest.warns(at.AutoTransferWarning, match="few of the classes"):
        certain = made.adapt(few)
    assert np.abs(certain.predict_proba(X) - clf.predict_proba(X)).max() > 0.001


def test_a_trial_that_one_network_refuses_is_used_by_none(pair, monkeypatch):
    live = pair.live()
    live.predict_proba(X[:5])
    second = live._streams[1]
    encode = second._encode

    def overflows(x):
        latent, seen = encode(x)
        return latent * np.inf, seen

    monkeypatch.setattr(second, "_encode", overflows)
    with pytest.raises(SettingError, match="The trial was not used"):
        live.predict_proba(X[5])
    monkeypatch.setattr(second, "_encode", encode)
    assert [stream.n_trials for stream in live._streams] == [5, 5]
    other = pair.live()
    other.predict_proba(X[:5])
    np.testing.assert_array_equal(live.predict_proba(X[5:9]), other.predict_proba(X[5:9]))
