"""Single probes, their folds and their bootstrap, judged by scikit-learn, scipy and by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression

from autotransfer.leakage import probes
from autotransfer.leakage import scores as probe_scores
from autotransfer.leakage.folds import make_units
from autotransfer.leakage.probe import Part, calibrate
from autotransfer.leakage.scores import UnitScores, bootstrap, label_prior, standardise


def part(seed=0, n=120, n_subjects=3, n_latent=4, shift=1.0):
    rng = np.random.default_rng(seed)
    subject = np.r_[
        np.arange(n_subjects), rng.choice(n_subjects, n - n_subjects, p=[0.6, 0.3, 0.1])
    ]
    z = rng.normal(size=(n, n_latent)) + shift * np.eye(n_subjects, n_latent)[subject]
    prior = np.full((n, n_subjects), -np.log(n_subjects))
    return Part(z, subject, np.zeros((n, 0)), prior)


@pytest.mark.parametrize("penalty", [0.1, 0.01])
def test_the_linear_probe_is_that_of_scikit_learn(penalty):
    own, other = part(0), part(1)
    _, score = probes._fit_linear(own, penalty, None)
    reference = LogisticRegression(C=1 / penalty, tol=1e-8, max_iter=1000)
    reference.fit(own.latent, own.subject, sample_weight=own.weight)
    scores = score(other)
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    np.testing.assert_allclose(p, reference.predict_proba(other.latent), atol=2e-3)


def test_the_gaussian_probe_is_that_of_scipy():
    own, other = part(0), part(1)
    scores = probes._gaussian_score(*probes._moments(own), 0.0, 0.0)(other)
    for s in range(3):
        z = own.latent[own.subject == s]
        covariance = np.cov(z.T, bias=True) + 1e-3 * np.eye(4)
        expected = multivariate_normal(z.mean(0), covariance).logpdf(other.latent)
        constant = 2 * np.log(2 * np.pi)  # K / 2 log 2 pi, the same for all subjects
        np.testing.assert_allclose(scores[:, s] - constant, expected, rtol=1e-4, atol=1e-4)


def test_a_scale_undoes_overconfidence_and_silences_nonsense():
    own, other = part(0, n=400), part(1, n=400)
    _, score = probes._fit_linear(own, 0.01, None)
    right = calibrate(score, other)
    bold = calibrate(lambda p: 5 * score(p), other)
    assert bold.scale == pytest.approx(right.scale / 5, rel=0.01)
    assert bold.inner_loss == pytest.approx(right.inner_loss, abs=1e-6)
    nonsense = calibrate(lambda p: -score(p), other)
    assert nonsense.inner_loss == pytest.approx(np.log(3), abs=0.01)


@pytest.mark.parametrize("name", sorted(probes.PROBES))
def test_a_probe_does_not_repeat_what_the_label_says(name):
    def sample(seed):
        rng = np.random.default_rng(seed)
        subject = np.repeat(np.arange(4), 150)
        label = np.eye(2)[(rng.random(600) < np.array([0.05, 0.3, 0.7, 0.95])[subject]).astype(int)]
        prior = label @ label_prior(subject, label, 4)
        return Part(rng.normal(size=(600, 3)), subject, label, prior)

    train, inner, both = sample(0), sample(1), sample(2)
    scores = probes.PROBES[name](train, inner, both, 0).score(inner)
    told = np.stack([scores[inner.label[:, y] == 1].mean(0) for y in range(2)])
    prior = label_prior(inner.subject, inner.label, 4)
    # The label's share in the odds of two subjects: 5 nats before the probe, none in the probe.
    assert np.ptp(prior[1] - prior[0]) > 4
    assert np.ptp(told[1] - told[0]) < 0.5


def test_label_counts_by_hand():
    subject, label = np.repeat([0, 1], [40, 20]), np.repeat([0, 1, 0, 1], [30, 10, 5, 15])
    prior = np.exp(label_prior(subject, np.eye(2)[label], 2))
    counts = np.array([[30.5, 10.5], [5.5, 15.5]])
    shares = counts / counts.sum(1, keepdims=True)
    mean = shares.mean(0)
    expected = counts.sum(1, keepdims=True) * mean
    draw = 1 / ((counts - expected) ** 2 / expected).sum()
    shares = draw * mean + (1 - draw) * shares
    np.testing.assert_allclose(prior.T, shares / shares.sum(0), rtol=1e-12)
    np.testing.assert_allclose(prior.sum(1), 1)


def test_equal_shares_of_labels_say_nothing():
    rng = np.random.default_rng(0)
    subject = np.repeat(np.arange(6), 100)
    label = np.eye(2)[np.concatenate([rng.permutation(np.arange(100) % 2) for _ in range(6)])]
    first = np.arange(600) % 100 < 80
    prior = label_prior(subject[first], label[first], 6)
    np.testing.assert_allclose(np.exp(prior), 1 / 6, rtol=0.05)


def test_standardising_knows_the_known_trials_only():
    z = np.random.default_rng(0).normal(5, 3, size=(50, 3))
    z[:40, 1] = 0.1
    known = np.arange(40)
    scaled = standardise(z, known)
    np.testing.assert_allclose(scaled[known].mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled[known].std(0), [1, 0, 1], atol=1e-12)
    assert (scaled[:, 1] == 0).all()
    changed = z.copy()
    changed[40:] = 1e9
    np.testing.assert_array_equal(standardise(changed, known)[:40], scaled[:40])
    assert np.abs(standardise(changed, known)).max() == 10


def test_the_bootstrap_has_the_variance_of_a_mean(monkeypatch):
    monkeypatch.setattr(probe_scores, "REPLICATES", 40_000)
    rng = np.random.default_rng(0)
    owner = np.repeat([0, 1], [2, 6])
    values = rng.normal(size=(8, 1))
    each, drawn = bootstrap(UnitScores(values, np.ones(8), owner, ()), rng)
    np.testing.assert_allclose(each[:, 0], [values[:2].mean(), values[2:].mean()])
    assert drawn.mean() == pytest.approx(each.mean(), abs=0.01)
    expected = (values[:2].var(ddof=1) / 2 + values[2:].var(ddof=1) / 6) / 4
    assert drawn.var() == pytest.approx(expected, rel=0.03)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(2, 12), min_size=2, max_size=7), min_size=2, max_size=4),
    st.integers(2, 6),
    st.integers(12, 40),
    st.randoms(use_true_random=False),
)
def test_folds(sizes, n_folds, most, random):
    subject = np.concatenate([np.full(sum(own), s) for s, own in enumerate(sizes)])
    recording = np.concatenate([np.repeat(np.arange(len(own)), own) for own in sizes])
    order = np.array(random.sample(range(len(subject)), len(subject)))
    subject, recording = subject[order], recording[order]
    rng = np.random.default_rng(0)
    z = rng.normal(size=(len(subject), 2))
    units = make_units(z, subject, recording, n_folds, most, rng)
    assert len(np.unique(units.trials)) == len(units.trials)
    np.testing.assert_array_equal(units.ids[units.subject], subject[units.trials])
    assert np.bincount(units.subject).max() <= most
    folds = list(units.folds())
    assert 2 <= len(folds) <= n_folds
    for fold in folds:
        sides = [fold.train, fold.inner, fold.test]
        assert sorted(np.concatenate(sides)) == list(range(len(units.trials)))
        for side in (fold.train, fold.inner, fold.test):
            assert set(units.subject[side]) == set(range(len(units.ids)))
        known = np.concatenate([fold.train, fold.inner])
        assert not set(units.unit[known]) & set(units.unit[fold.test])
        whole = units.n_groups[units.subject] > 2
        inner, train = (side[whole[side]] for side in (fold.inner, fold.train))
        assert not set(units.unit[inner]) & set(units.unit[train])
    assert set(np.concatenate([fold.test for fold in folds])) == set(range(len(units.trials)))


def test_trials_are_drawn_evenly_from_recordings():
    subject = np.repeat([0, 1], 200)
    recording = np.tile(np.repeat([0, 1, 2], [150, 30, 20]), 2)
    rng = np.random.default_rng(0)
    units = make_units(rng.normal(size=(400, 2)), subject, recording, 5, 75, rng)
    assert np.bincount(units.unit).tolist() == [28, 27, 20, 28, 27, 20]
