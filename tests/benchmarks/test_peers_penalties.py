"""CORAL, IRM, V-REx and GroupDRO are what their papers say: against loops in numpy and autograd."""

import itertools

import numpy as np
import pytest
import torch
from torch.nn import functional

from autotransfer.censoring import make_censor
from autotransfer.training.loop import task_loss
from benchmarks.peers.coral import CORAL
from benchmarks.peers.objectives import (
    IRM,
    Batch,
    GroupDRO,
    Pooled,
    VREx,
    irm_penalty,
    subject_losses,
)

WEIGHTS = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)


def batch(counts=(6, 4, 5), warm=True, seed=0):
    generator = torch.Generator().manual_seed(seed)
    n = sum(counts)
    logits = 2 * torch.randn(n, 3, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 3, (n,), generator=generator)
    subject = torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts))
    order = torch.randperm(n, generator=generator)
    return Batch(logits.requires_grad_(), y, WEIGHTS, subject[order], warm)


def literal_losses(given):
    """The task loss of each subject, one after the other."""
    logits, found = given.logits.detach().numpy(), []
    for who in np.unique(given.subject):
        total = scale = 0.0
        for i in np.flatnonzero(given.subject.numpy() == who):
            label = int(given.y[i])
            p = np.exp(logits[i]) / np.exp(logits[i]).sum()
            total -= float(WEIGHTS[label]) * np.log(p[label])
            scale += float(WEIGHTS[label])
        found.append(total / scale)
    return np.array(found)


def test_losses_of_subjects_are_their_task_losses():
    given = batch()
    people, losses = subject_losses(given)
    assert people.tolist() == [0, 1, 2]
    np.testing.assert_allclose(losses.detach(), literal_losses(given), rtol=1e-10)


def test_irm_is_the_product_of_slopes_in_a_factor_on_the_logits():
    given = batch()
    products = []
    for who in range(3):
        rows = torch.nonzero(given.subject == who)[:, 0]
        slopes = []
        for half in (rows[::2], rows[1::2]):
            factor = torch.ones((), dtype=torch.float64, requires_grad=True)
            loss = functional.cross_entropy(
                given.logits[half] * factor, given.y[half], weight=WEIGHTS
            )
            slopes.append(torch.autograd.grad(loss, factor, create_graph=True)[0])
        products.append(slopes[0] * slopes[1])
    literal = torch.stack(products).mean()
    torch.testing.assert_close(irm_penalty(given), literal)
    # And so are the gradients by which the network learns.
    ours, theirs = (torch.autograd.grad(p, given.logits)[0] for p in (irm_penalty(given), literal))
    torch.testing.assert_close(ours, theirs)


def test_irm_of_a_subject_with_one_trial_is_zero():
    assert float(irm_penalty(batch((1,))).detach()) == 0


@pytest.mark.parametrize(("warm", "weight"), [(True, 7.0), (False, 1.0)])
def test_the_weight_of_the_penalty_is_one_until_the_warm_up_is_over(warm, weight):
    given = batch(warm=warm)
    losses = literal_losses(given)
    mean = losses.mean()
    np.testing.assert_allclose(
        VREx(7.0)(given).detach(), mean + weight * np.mean((losses - mean) ** 2), rtol=1e-10
    )
    np.testing.assert_allclose(
        IRM(7.0)(given).detach(), mean + weight * float(irm_penalty(given).detach()), rtol=1e-10
    )


def test_group_dro_follows_the_online_algorithm():
    objective = GroupDRO(3, step=0.5)
    q = np.full(3, 1 / 3)
    for seed in range(5):
        given = batch(seed=seed)
        losses = literal_losses(given)
        q = q * np.exp(0.5 * losses)
        q /= q.sum()
        np.testing.assert_allclose(objective(given).detach(), q @ losses, rtol=1e-5)
    np.testing.assert_allclose(objective.weight, q, rtol=1e-5)


def test_group_dro_of_some_subjects_is_on_average_that_of_all():
    given = batch()
    whole = float(GroupDRO(3, step=0.0)(given).detach())
    parts = []
    for pair in itertools.combinations(range(3), 2):
        rows = torch.isin(given.subject, torch.tensor(pair))
        part = Batch(given.logits[rows], given.y[rows], WEIGHTS, given.subject[rows])
        parts.append(float(GroupDRO(3, step=0.0)(part).detach()))
    np.testing.assert_allclose(np.mean(parts), whole, rtol=1e-6)


def test_pooled_is_the_task_loss():
    given = batch()
    assert torch.equal(Pooled()(given), task_loss(given.logits, given.y, WEIGHTS))


def literal_coral(z, subject):
    """Means and covariances (divisor n - 1) of every pair of subjects with two trials or more."""
    people = [s for s in np.unique(subject) if np.sum(subject == s) > 1]
    found = []
    for r, s in itertools.combinations(people, 2):
        a, b = z[subject == r], z[subject == s]
        means = np.mean((a.mean(0) - b.mean(0)) ** 2)
        covariances = np.mean((np.cov(a.T) - np.cov(b.T)) ** 2)
        found.append(means + covariances)
    return np.mean(found)


@pytest.mark.parametrize("counts", [(5, 4, 7), (6, 1, 3, 8)])
def test_coral_is_the_mean_over_pairs(counts):
    rng = np.random.default_rng(0)
    subject = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    z = rng.normal(size=(len(subject), 4)) * (1 + subject[:, None])
    censor = make_censor(CORAL, n_latent=4, n_subjects=len(counts), n_classes=2)
    ours = censor(torch.from_numpy(z), censor.cells(subject))
    np.testing.assert_allclose(float(ours), literal_coral(z, subject), rtol=1e-10)


def test_coral_of_one_subject_is_zero_and_can_be_differentiated():
    z = torch.randn(5, 4, requires_grad=True)
    censor = make_censor(CORAL, n_latent=4, n_subjects=2, n_classes=2)
    penalty = censor(z, censor.cells([0] * 5))
    penalty.backward()
    assert float(penalty.detach()) == 0
    assert float(z.grad.abs().sum()) == 0
