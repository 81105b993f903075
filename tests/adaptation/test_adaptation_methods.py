"""Methods of adaptation, each against a closed form or somebody else's code."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from scipy.optimize import approx_fprime
from scipy.stats import entropy as scipy_entropy
from sklearn.linear_model import LogisticRegression
from torch import nn

import autotransfer as at
from autotransfer.adaptation.fitted import MOST, Fitted, Person
from autotransfer.adaptation.head import head, refit
from autotransfer.adaptation.information import information
from autotransfer.adaptation.ring import ring, turned
from autotransfer.adaptation.shares import (
    class_shares,
    effective_classes,
    entropy,
    mutual_information,
)
from autotransfer.adaptation.tuning import tuning
from autotransfer.data.normalise import Normaliser
from autotransfer.data.trials import TrialArray
from autotransfer.encoder.network import Network

RNG = np.random.default_rng(0)


def linear(weight, bias):
    """Make a network whose latent is the signal itself."""
    encoder = nn.Flatten()
    encoder.n_latent = weight.shape[1]
    network = Network(encoder, len(bias))
    with torch.no_grad():
        network.head.weight.copy_(torch.as_tensor(weight))
        network.head.bias.copy_(torch.as_tensor(bias))
    return Fitted(network, Normaliser("none"))


# The head.


def test_around_zero_the_head_is_a_logistic_regression():
    z, codes = RNG.normal(size=(60, 5)), np.repeat([0, 1, 2], 20)
    z += 2 * np.eye(3, 5)[codes]
    z /= np.sqrt(np.mean(z**2))  # then the prior on W is that of scikit-learn
    weight, bias = refit(z, codes, np.zeros((3, 5)), np.zeros(3), 0.7)
    # scikit-learn has no prior on the bias: it is a feature here, for both.
    ones = np.hstack([z, np.ones((60, 1))])
    judge = LogisticRegression(C=1 / 0.7, fit_intercept=False, tol=1e-10, max_iter=10000)
    judge.fit(ones, codes)
    np.testing.assert_allclose(np.hstack([weight, bias[:, None]]), judge.coef_, atol=2e-3)


def test_the_head_is_at_the_minimum_of_its_formula():
    z, codes = 3 * RNG.normal(size=(12, 4)), np.array([0] * 7 + [2] * 5)
    start, begin = RNG.normal(size=(3, 4)), RNG.normal(size=3)
    weight, bias = refit(z, codes, start, begin, 2.0)
    scale2 = np.mean(z**2)

    def formula(flat):
        w, b = flat[:12].reshape(3, 4), flat[12:]
        logits = (z @ w.T + b)[:, [0, 2]]
        losses = np.log(np.exp(logits).sum(1)) - logits[np.arange(12), codes // 2]
        weights = np.where(codes == 0, 12 / 14, 12 / 10)
        prior = scale2 * np.sum((w - start) ** 2) + np.sum((b - begin) ** 2)
        return weights @ losses + prior

    slope = approx_fprime(np.append(weight.ravel(), bias), formula, 1e-6)
    before = approx_fprime(np.append(start.ravel(), begin), formula, 1e-6)
    assert np.abs(slope).max() < 1e-3 * np.abs(before).max()


def test_a_strong_prior_keeps_the_head_and_a_weak_one_follows_the_labels():
    weight, bias = RNG.normal(size=(2, 6)), RNG.normal(size=2)
    fitted = linear(weight, bias)
    X = RNG.normal(size=(30, 2, 3)).astype(np.float32)
    codes = (X[:, 0, 0] > 0).astype(np.intp)
    person = Person.of(TrialArray(X), codes)
    firm = head(fitted, person, strength=1e9).network.head
    np.testing.assert_allclose(firm.weight.detach(), weight, atol=1e-5)
    stays = head(fitted, person, strength=np.inf).network.head
    assert torch.equal(stays.weight, fitted.network.head.weight)
    assert torch.equal(stays.bias, fitted.network.head.bias)
    loose = head(fitted, person, strength=1e-3).probabilities(X).argmax(1).numpy()
    assert (loose == codes).all()


# Shares and information.


def test_shares_against_a_slow_search():
    """The estimate maximises likelihood times prior: no other shares on a grid do better."""
    p = RNG.dirichlet([0.4, 0.8, 1.0], size=50)
    found = class_shares(torch.from_numpy(p), prior=1.0, steps=2000).numpy()

    def height(q):
        return np.log(p @ q).sum() + np.log(q).sum()

    grid = [
        np.array([a, b, 1 - a - b])
        for a in np.arange(0.01, 1, 0.01)
        for b in np.arange(0.01, 1 - a - 0.005, 0.01)
    ]
    best = max(grid, key=height)
    assert height(found) >= height(best) - 1e-9
    np.testing.assert_allclose(found, best, atol=0.01)


def test_entropies_against_scipy():
    p = RNG.dirichlet([1.0, 2.0, 3.0], size=20)
    t = torch.from_numpy(p)
    np.testing.assert_allclose(entropy(t), scipy_entropy(p, axis=1), atol=1e-12)
    told = scipy_entropy(p.mean(0)) - scipy_entropy(p, axis=1).mean()
    assert float(mutual_information(t)) == pytest.approx(told)
    assert effective_classes(torch.tensor([0.25] * 4)) == pytest.approx(4)


@pytest.fixture(scope="module")
def trained():
    data = at.make_subjects(
        n_subjects=4, n_trials=60, n_channels=8, n_times=64, n_classes=4, random_state=3
    )
    clf = at.CensoredClassifier(
        max_epochs=8,
        normalise="trial",
        random_state=0,
        device="cpu",
        verbose=False,
        validation=None,
    ).fit(data)
    return Fitted(clf.network_, clf.normaliser_), data.select(subjects=[0])


def objective(fitted, X, shares):
    p = fitted.probabilities(X)
    mean = p.mean(0)
    return float(entropy(p).mean() + (mean * (mean / shares).log()).sum())


def test_information_lowers_what_it_says_it_lowers(trained):
    fitted, data = trained
    X = 1.5 * np.roll(np.asarray(data.X), 1, axis=1)  # not as in training
    person = Person.of(TrialArray(X))
    shares = class_shares(fitted.probabilities(X))
    made = information(fitted, person)
    assert objective(made, X, shares) < 0.7 * objective(fitted, X, shares)
    same = made.network.state_dict(), fitted.network.state_dict()
    changed = {n for n in same[0] if not torch.equal(same[0][n], same[1][n])}
    assert changed
    assert not any(name.startswith("head") or "running" in name for name in changed)


def test_of_one_class_information_keeps_its_share(trained):
    """Equal shares would make half of them something else."""
    fitted, data = trained
    X = np.asarray(data.X)[data.y_code == 1]
    plain = fitted.probabilities(X).argmax(1)
    sure = X[(plain == 1).numpy()]
    made = information(fitted, Person.of(TrialArray(sure)))
    assert (made.probabilities(sure).argmax(1) == 1).double().mean() > 0.95


def test_tuning_learns_labels_and_keeps_statistics(trained):
    fitted, data = trained
    X, codes = np.asarray(data.X), (data.y_code + 1) % 4  # other names for the same
    made = tuning(fitted, Person.of(TrialArray(X), codes), learning_rate=5e-3)
    right = [(one.probabilities(X).argmax(1).numpy() == codes).mean() for one in (fitted, made)]
    assert right[1] > right[0] + 0.3
    same = made.network.state_dict(), fitted.network.state_dict()
    assert all(torch.equal(same[0][n], same[1][n]) for n in same[0] if "running" in n)


def test_labels_of_one_class_teach_nothing(trained):
    fitted, data = trained
    mine = np.flatnonzero(data.y_code == 2)
    person = Person.of(TrialArray(np.asarray(data.X)[mine]), data.y_code[mine])
    for method in (head, tuning):
        same = method(fitted, person).network.state_dict(), fitted.network.state_dict()
        assert all(torch.allclose(same[0][n], same[1][n], atol=1e-6) for n in same[0])


# The ring.


@pytest.mark.parametrize("turn", range(8))
def test_the_ring_is_turned_back(trained, turn):
    fitted, data = trained
    X = np.asarray(data.X)
    found = ring(fitted, Person.of(TrialArray(np.roll(X, -turn, axis=1))))
    assert found.normaliser.turn % 8 == turn
    np.testing.assert_array_equal(
        found.probabilities(np.roll(X, -turn, axis=1)), fitted.probabilities(X)
    )


@pytest.mark.parametrize("normalise", ["train", "person", "euclidean"])
@pytest.mark.parametrize("already", [0, 5])
def test_where_predictions_tell_nothing_amplitudes_say_the_turn(trained, normalise, already):
    fitted, data = trained
    loud = np.arange(1, 9)[:, None] ** 2
    X = np.asarray(data.X * loud, np.float32)
    fitted = fitted.with_normaliser(Normaliser(normalise).fit(X, subject=data.subject))
    fitted = turned(fitted.with_network(deepcopy(fitted.network)), already)
    torch.nn.init.zeros_(fitted.network.head.weight)
    found = ring(fitted, Person.of(TrialArray(3 * np.roll(X, -2, axis=1))))
    assert found.normaliser.turn % 8 == 2
    flat = np.where(np.arange(8)[:, None] == 4, 0, X)
    for trials in (flat, 0 * X):
        assert ring(fitted, Person.of(TrialArray(trials))).probabilities(X).isfinite().all()


def test_amplitudes_are_those_of_training():
    rng = np.random.default_rng(0)
    X, subject = rng.normal(size=(12, 3, 40)).astype(np.float32), np.repeat([0, 1], 6)
    assert Normaliser("train").fit(X).amplitude == pytest.approx(X.std(axis=(0, 2)))
    own = [X[subject == who].var(axis=2).mean(0) for who in (0, 1)]
    mean = np.sqrt(np.mean(own, axis=0))
    assert Normaliser("euclidean").fit(X, subject=subject).amplitude == pytest.approx(
        mean, rel=0.05
    )
    assert Normaliser("channel").fit(X).amplitude is None


def test_a_turn_is_saved_and_exported(trained, tmp_path):
    fitted, data = trained
    X = np.asarray(data.X)[:5]
    state = turned(fitted, 3).normaliser.state()
    again = Normaliser.from_state(state)
    np.testing.assert_array_equal(
        again.transform(X), fitted.normaliser.transform(np.roll(X, 3, axis=1))
    )
    pytest.importorskip("onnxruntime")
    import onnxruntime

    clf = at.CensoredClassifier(
        max_epochs=1,
        random_state=0,
        device="cpu",
        verbose=False,
        validation=None,
        normalise="train",
    ).fit(at.make_subjects(n_subjects=3, n_trials=20, n_channels=8, n_times=64, random_state=0))
    clf.normaliser_ = clf.normaliser_.turned(3)
    run = onnxruntime.InferenceSession(str(clf.export_onnx(tmp_path / "m.onnx")))
    probabilities = run.run(None, {"signals": X})[0]
    np.testing.assert_allclose(probabilities, clf.probabilities(X), atol=1e-5)


@pytest.mark.parametrize("turn", ["1", 1.5, True, 10**7])
def test_a_damaged_turn_is_refused(turn):
    with pytest.raises(at.AutoTransferError, match="turn"):
        Normaliser.from_state({"kind": "trial", "turn": turn})


def test_of_many_trials_some_are_looked_at_and_all_are_counted():
    X = TrialArray(np.zeros((3 * MOST, 2, 4), np.float32))
    person = Person.of(X)
    assert (len(person.trials), person.n_trials) == (MOST, 3 * MOST)
    codes = np.arange(3 * MOST) % 3
    both = Person.of(X, codes, X)
    assert (len(both.trials), both.n_trials, len(both.codes)) == (2 * MOST, 6 * MOST, MOST)
