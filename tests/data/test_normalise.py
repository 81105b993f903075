"""Normalisers, judged by scipy and scikit-learn."""

import json

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from pyriemann.geometry.mean import gmean
from sklearn.covariance import shrunk_covariance
from sklearn.preprocessing import StandardScaler

from autotransfer.data.align import OWN
from autotransfer.data.normalise import NORMALISERS, Normaliser, moments
from autotransfer.data.trials import TrialArray
from autotransfer.errors import ChannelMismatchError, SettingError, ShapeError

KINDS = list(NORMALISERS)


def signals(shape=(6, 3, 50), seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    gains = 10.0 ** rng.uniform(-1, 1, (1, shape[1], 1))
    return (rng.normal(size=shape) * gains + offset).astype(np.float32)


def people(X):
    return np.arange(len(X)) % 2


def fitted(kind, X):
    return Normaliser(kind).fit(TrialArray(X), subject=people(X))


def by_trial(X):
    """The definition of "trial", written out in float64."""
    c = X.astype(np.float64) - X.astype(np.float64).mean(-1, keepdims=True)
    return c / np.sqrt((c**2).mean((1, 2), keepdims=True))


def by_scaler(X):
    flat = X.astype(np.float64).transpose(0, 2, 1).reshape(-1, X.shape[1])
    out = StandardScaler().fit_transform(flat)
    return out.reshape(X.shape[0], X.shape[2], X.shape[1]).transpose(0, 2, 1)


def by_person(kind):
    """Alignment by scikit-learn's shrinkage, pyRiemann's mean and scipy's root, in float64."""

    def reference(X, own=None):
        x = X.astype(np.float64)
        metric = "riemann" if kind == "riemannian" else "euclid"
        matrices = []
        for person in np.unique(people(X)) if own is None else [None]:
            mine = x if person is None else x[people(X) == person]
            trials = [shrunk_covariance(np.cov(one, bias=True), 0.01) for one in mine]
            matrices.append(gmean(np.stack(trials), metric=metric))
        whole = gmean(np.stack(matrices), metric=metric)
        if kind == "person":
            whole = np.diag(np.diag(whole))
        white = scipy.linalg.fractional_matrix_power(whole, -0.5)
        return white @ (x - x.mean(-1, keepdims=True))

    return reference


REFERENCE = {
    **{kind: by_person(kind) for kind in OWN},
    "channel": lambda X: scipy.stats.zscore(X.astype(np.float64), axis=-1),
    "trial": by_trial,
    "train": by_scaler,
    "none": lambda X: X,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_agrees_with_outside_reference(kind, offset):
    X = signals(offset=offset)
    out = fitted(kind, X).transform(X)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, REFERENCE[kind](X), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "none"])
@pytest.mark.parametrize("scale", [1e-20, 1e-9, 1e-6, 1e9, 1e20])
def test_units_do_not_matter(kind, scale):
    X = signals()
    scaled = (X.astype(np.float64) * scale).astype(np.float32)
    np.testing.assert_allclose(
        fitted(kind, scaled).transform(scaled), fitted(kind, X).transform(X), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0.0, 0.1, -1234.567, 1e-9, 3e7])
def test_flat_channel_becomes_zeros(kind, value):
    X = signals((5, 3, 101))
    X[:, 1] = value
    out = fitted(kind, X).transform(X)
    assert np.isfinite(out).all()
    if kind != "none":
        assert np.abs(out[:, 1]).max() < 1e-12  # a root found by eigenvectors has rounding
        assert np.abs(out[:, [0, 2]]).max() > 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_all_flat_and_one_time_point_are_finite(kind):
    for X in (np.full((2, 2, 7), 3.3, np.float32), np.ones((2, 2, 1), np.float32)):
        out = fitted(kind, X).transform(X)
        assert np.isfinite(out).all()
        assert kind == "none" or not out.any()


def test_channel_flat_in_training_only_stays_silent():
    X = signals()
    X[:, 2] = 5.0
    out = fitted("train", X).transform(signals(seed=1))
    assert not out[:, 2].any()


def test_rounding_around_an_offset_is_flat():
    X = np.full((1, 1, 64), 1000.0, np.float32)
    X[..., ::2] = np.nextafter(np.float32(1000), np.float32(2000))
    assert not Normaliser("channel").transform(X).any()


def test_trial_keeps_the_pattern_over_channels():
    X = signals()
    out = Normaliser("trial").transform(X)
    ratio = X.std(-1) / out.std(-1)
    np.testing.assert_allclose(ratio, ratio[:, :1] * np.ones(3), rtol=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    n_channels=st.integers(1, 9),
    n_times=st.integers(1, 300),
    chosen=st.lists(st.integers(0, 10), min_size=1, max_size=6),
    layout=st.sampled_from(["C", "F", "strided"]),
)
def test_a_trial_gives_the_same_bits_in_any_block(kind, n_channels, n_times, chosen, layout):
    X = signals((11, n_channels, n_times), seed=n_times, offset=17.0)
    normaliser = fitted(kind, X)
    whole = normaliser.transform(X)
    block = X[chosen]
    if layout == "F":
        block = np.asfortranarray(block)
    elif layout == "strided":
        block = np.repeat(block, 2, axis=-1)[..., ::2]
    before = block.copy()
    assert normaliser.transform(block).tobytes() == whole[chosen].tobytes()
    assert np.array_equal(block, before)


@pytest.mark.parametrize("kind", KINDS)
def test_result_is_a_new_array(kind):
    X = signals()
    X.setflags(write=False)
    out = fitted(kind, X).transform(X)
    assert not np.shares_memory(out, X)


@pytest.mark.parametrize("chunk_bytes", [1, 1000, 10**9])
def test_moments_are_stable_for_a_large_offset(monkeypatch, chunk_bytes):
    monkeypatch.setattr("autotransfer.data.normalise.FIT_CHUNK_BYTES", chunk_bytes)
    base = np.random.default_rng(0).normal(size=(40, 3, 30)) + 1e6 * np.arange(1, 4)[:, None]
    X = base.astype(np.float32)
    mean, std = moments(TrialArray(X))
    exact = X.astype(np.float64)
    np.testing.assert_allclose(mean, exact.mean((0, 2)), rtol=1e-14)
    np.testing.assert_allclose(std, exact.std((0, 2)), rtol=1e-10)


def test_fit_reads_only_the_training_trials():
    X = signals((10, 3, 50))
    train = np.array([7, 1, 4])
    only = Normaliser("train").fit(TrialArray(X), train)
    np.testing.assert_allclose(only.mean, X[train].astype(np.float64).mean((0, 2)), atol=1e-12)
    quantised = TrialArray((X * 100).astype(np.int16), scale=0.01)
    assert Normaliser("train").fit(quantised, train).std.shape == (3,)


@pytest.mark.parametrize("kind", KINDS)
def test_state_survives_json_exactly(kind):
    X = signals()
    normaliser = fitted(kind, X)
    again = Normaliser.from_state(json.loads(json.dumps(normaliser.state())))
    assert again.state() == normaliser.state()
    assert again.transform(X).tobytes() == normaliser.transform(X).tobytes()


def test_wrong_name_lists_the_right_ones():
    with pytest.raises(
        SettingError, match=r"No normaliser 'zscore'.*channel, trial, train, person"
    ):
        Normaliser("zscore")
    with pytest.raises(SettingError, match="No normaliser 'None'"):
        Normaliser.from_state({})


@pytest.mark.parametrize(
    "state",
    [
        {"mean": [1.0]},
        {"mean": [1.0], "std": [1.0, 2.0]},
        {"mean": [], "std": []},
        {"mean": [float("nan")], "std": [1.0]},
        {"mean": [0.0], "std": [-1.0]},
        {"mean": ["a"], "std": [1.0]},
    ],
)
def test_damaged_state(state):
    with pytest.raises(SettingError, match=r"normaliser is damaged.*Fit it again"):
        Normaliser.from_state({"kind": "train", **state})


def test_wrong_use():
    with pytest.raises(SettingError, match="call fit with the training trials"):
        Normaliser("train").transform(signals())
    with pytest.raises(ChannelMismatchError, match=r"have 2 channels.*fitted on 3"):
        fitted("train", signals()).transform(signals((4, 2, 50)))
    with pytest.raises(ShapeError, match="trials x channels x times"):
        Normaliser("channel").transform(signals()[0])


@pytest.mark.parametrize("kind", OWN)
def test_people_who_train_have_statistics_of_their_own(kind):
    X = signals((12, 3, 50))
    X[people(X) == 1] *= np.array([5, 0.1, 30], np.float32)[:, None]
    normaliser = fitted(kind, X)
    own = normaliser.transform(X, people(X))
    for person in (0, 1):
        mine = people(X) == person
        np.testing.assert_allclose(
            own[mine], REFERENCE[kind](X[mine], own=True), rtol=1e-4, atol=1e-5
        )
    # Somebody else is treated as if nobody were named.
    nobody = np.full(len(X), 7)
    assert normaliser.transform(X, nobody).tobytes() == normaliser.transform(X).tobytes()


@pytest.mark.parametrize("kind", OWN)
def test_adapted_to_somebody_it_is_theirs_and_by_a_share_between(kind):
    X = signals((12, 3, 50))
    X[people(X) == 1] *= np.array([5, 0.1, 30], np.float32)[:, None]
    normaliser, new = fitted(kind, X), 7 * signals((9, 3, 50), seed=3)
    before = normaliser.state()
    theirs = normaliser.adapted(new, 1.0).transform(new)
    np.testing.assert_allclose(theirs, REFERENCE[kind](new, own=True), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        normaliser.adapted(new, 0.0).transform(new), normaliser.transform(new), rtol=1e-5
    )
    ways = [normaliser.adapted(new, share).covariance for share in (0, 0.5, 1)]
    if kind == "riemannian":  # on the geodesic the logarithm of the volume goes evenly
        ways = [np.linalg.slogdet(one)[1] for one in ways]
    np.testing.assert_allclose(ways[1], (ways[0] + ways[2]) / 2, rtol=1e-6)
    assert normaliser.state() == before
    # Without statistics of people there is nothing to adapt.
    usual = Normaliser("channel")
    assert usual.adapted(new, 0.5) is usual


@pytest.mark.parametrize("kind", OWN)
def test_a_ring_is_turned_before_it_is_whitened(kind):
    X = signals((12, 3, 50))
    turned = fitted(kind, X).turned(1)
    moved = np.roll(X, 1, axis=1)
    assert turned.transform(X).tobytes() == fitted(kind, X).transform(moved).tobytes()
    np.testing.assert_allclose(
        turned.adapted(X, 1.0).covariance, fitted(kind, X).adapted(moved, 1.0).covariance
    )


@pytest.mark.parametrize("kind", OWN)
def test_without_people_or_statistics_it_says_so(kind):
    with pytest.raises(SettingError, match="goes by the person of each trial"):
        Normaliser(kind).fit(signals())
    with pytest.raises(SettingError, match="no statistics yet"):
        Normaliser(kind).transform(signals())
    damaged = {"kind": kind, "covariance": [[1.0, 2.0], [2.0, 1.0]]}
    for wrong in (damaged["covariance"], "x", [[float("nan")]], [[1.0, 0.0]], [[0.0]], None):
        with pytest.raises(SettingError, match="The saved normaliser is damaged"):
            Normaliser.from_state({**damaged, "covariance": wrong})
