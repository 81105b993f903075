"""The task loss, judged by scikit-learn, torch and by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss
from sklearn.utils.class_weight import compute_class_weight
from torch import nn

from autotransfer.training.loop import class_weights, task_loss


def example(seed, n=50, n_classes=4):
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, n_classes)) * 3
    y = np.r_[np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)]
    return logits, y


def ours(logits, y, weights, dtype=torch.float64):
    return task_loss(
        torch.tensor(logits, dtype=dtype), torch.tensor(y), torch.tensor(weights, dtype=dtype)
    )


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_scikit_learn(seed):
    logits, y = example(seed)
    weights = class_weights(y, 4)
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    expected = log_loss(y, p, sample_weight=weights[y])
    assert float(ours(logits, y, weights)) == pytest.approx(expected, rel=1e-12)
    assert float(ours(logits, y, weights, torch.float32)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_torch_in_value_and_gradient(seed):
    logits, y = example(seed)
    weights = torch.tensor(class_weights(y, 4))
    one = torch.tensor(logits, requires_grad=True)
    other = torch.tensor(logits, requires_grad=True)
    target = torch.tensor(y)
    task_loss(one, target, weights).backward()
    nn.functional.cross_entropy(other, target, weight=weights).backward()
    torch.testing.assert_close(one.grad, other.grad, rtol=1e-12, atol=1e-15)


def test_class_weights_by_hand():
    weights = class_weights(np.repeat([0, 1, 2], [30, 10, 60]), 3)
    np.testing.assert_allclose(weights, [2 / 9, 2 / 3, 1 / 9], rtol=1e-15)


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=8))
def test_class_weights_are_those_of_scikit_learn_up_to_a_factor(counts):
    y = np.repeat(np.arange(len(counts)), counts)
    weights = class_weights(y, len(counts))
    balanced = compute_class_weight("balanced", classes=np.arange(len(counts)), y=y)
    np.testing.assert_allclose(weights, balanced / balanced.sum(), rtol=1e-12)
    assert weights.sum() == pytest.approx(1)


def test_a_class_without_trials_has_no_weight():
    weights = class_weights(np.array([0, 0, 2, 2, 2, 2]), 4)
    np.testing.assert_allclose(weights, [2 / 3, 0, 1 / 3, 0], rtol=1e-15)
    logits, _ = example(0)
    # Trials of classes that nobody trained on say nothing, rather than NaN.
    assert float(ours(logits[:3], [1, 3, 1], weights)) == 0.0
    alone = float(ours(logits[:1], [0], weights))
    assert float(ours(logits[:2], [0, 3], weights)) == pytest.approx(alone)


@given(st.lists(st.tuples(*3 * [st.integers(0, 4)]), min_size=1, max_size=5))
def test_weights_are_of_the_score_that_a_run_tells(trials):
    """The loss of probabilities, weighted so, is the mean over people of their classes' means.

    Where a class's trials all have the same loss: then it does not matter whose they are.
    """
    trials = [counts for counts in trials if sum(counts)] or [(1, 2, 0)]
    y = np.concatenate([np.repeat(np.arange(3), counts) for counts in trials])
    who = np.repeat(np.arange(len(trials)), [sum(counts) for counts in trials])
    losses = np.array([0.3, 2.0, 5.0])
    weights = class_weights(y, 3, who)
    people = [losses[np.array(counts) > 0].mean() for counts in trials]
    found = (weights[y] * losses[y]).sum() / weights[y].sum()
    assert found == pytest.approx(np.mean(people), rel=1e-12)


@given(st.lists(st.integers(1, 50), min_size=2, max_size=5), st.integers(1, 4))
def test_where_everybody_has_all_classes_trials_alone_count(counts, people):
    y = np.tile(np.repeat(np.arange(len(counts)), counts), people)
    who = np.repeat(np.arange(people), sum(counts)).astype(str)
    found = class_weights(y, len(counts), who)
    np.testing.assert_allclose(found, class_weights(y, len(counts)), rtol=1e-12)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_the_scale_does_not_depend_on_weights_or_batch_size(factor):
    logits, y = example(1)
    weights = class_weights(y, 4)
    expected = float(ours(logits, y, weights))
    assert float(ours(logits, y, weights * factor)) == pytest.approx(expected)
    twice = ours(np.tile(logits, (2, 1)), np.tile(y, 2), weights)
    assert float(twice) == pytest.approx(expected)
