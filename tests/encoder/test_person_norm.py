"""EEGNet trained with each person's statistics: against its layers, applied to one at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.modules.batchnorm import _BatchNorm

import autotransfer as at
from autotransfer.adaptation.statistics import batch_norms
from autotransfer.encoder import EEGNet

SHAPES = [
    (3, 77, {"F1": 4, "kernel_length": 9, "pool1": 3, "pool2": 5}),
    (8, 200, {"F1": 2, "D": 3, "kernel_length": 100}),
    (2, 130, {"F1": 3, "D": 1, "F2": 5, "kernel_length": 64, "depthwise_kernel_length": 7}),
]
each = pytest.mark.parametrize(("n_channels", "n_times", "options"), SHAPES)
PEOPLE = torch.tensor([7, 2, 2, 7, 7, 5, 2, 7])


def made(n_channels, n_times, options, **more):
    torch.manual_seed(0)
    net = EEGNet(n_channels, n_times, person_norm=True, **options, **more).double()
    with torch.no_grad():
        for name, value in net.named_parameters():
            if not name.startswith("bnorm_temporal"):
                value.add_(0.1 * torch.randn_like(value))
    return net


def signals(n_channels, n_times):
    g = torch.Generator().manual_seed(1)
    x = torch.randn(len(PEOPLE), n_channels, n_times, generator=g, dtype=torch.float64)
    return x * (1 + PEOPLE[:, None, None]) + 0.3 * PEOPLE[:, None, None]


@each
def test_a_step_is_that_of_the_layers_for_one_person_at_a_time(n_channels, n_times, options):
    net = made(n_channels, n_times, options, drop_prob=0.0)
    literal = net.literal()
    # The first norm does nothing, also in training.
    literal.bnorm_temporal.eval()
    norms = [m for m in literal.modules() if isinstance(m, _BatchNorm) and m.training]
    x = signals(n_channels, n_times)
    along = torch.randn(len(x), net.n_latent, dtype=torch.float64)

    latent = net(x, people=PEOPLE)
    (latent * along).sum().backward()

    wanted, moments = torch.empty_like(latent.detach()), {norm: [] for norm in norms}
    for person in PEOPLE.unique():
        mine = person == PEOPLE
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = 1.0
        theirs = literal(x[mine]).flatten(1)
        (theirs * along[mine]).sum().backward()
        wanted[mine] = theirs.detach()
        for norm in norms:
            moments[norm].append((norm.running_mean.clone(), norm.running_var.clone()))
    torch.testing.assert_close(latent, wanted, rtol=1e-7, atol=1e-7)
    slow = dict(literal.named_parameters())
    for name, value in net.named_parameters():
        if not name.startswith("bnorm_temporal"):
            torch.testing.assert_close(value.grad, slow[name].grad, rtol=1e-6, atol=1e-6)
    # Running statistics are those of people in the mean, each person counting once.
    for ours, norm in zip((net.bnorm_1, net.bnorm_2), norms, strict=True):
        share = ours.momentum
        mean = torch.stack([m for m, _ in moments[norm]]).mean(0)
        torch.testing.assert_close(ours.running_mean, share * mean, rtol=1e-6, atol=1e-7)
        var = torch.stack([v for _, v in moments[norm]]).mean(0)  # torch's have n / (n - 1)
        assert torch.allclose(ours.running_var, share * var + 1 - share, rtol=0.15)


@each
def test_off_the_processor_it_is_the_same_layer_by_layer(n_channels, n_times, options):
    # Called here on a processor, because this machine has nothing else.
    net, slow = (made(n_channels, n_times, options, drop_prob=0.0) for _ in range(2))
    order = torch.argsort(PEOPLE, stable=True)
    x = signals(n_channels, n_times)[order]
    fast = net(x, people=PEOPLE[order])
    layers = slow._layers_by_person(x, PEOPLE.unique(return_counts=True)[1].tolist())
    torch.testing.assert_close(fast, layers, rtol=1e-7, atol=1e-7)
    for name in ("bnorm_1", "bnorm_2"):
        ours, theirs = getattr(net, name), getattr(slow, name)
        assert theirs.momentum == ours.momentum
        torch.testing.assert_close(ours.running_mean, theirs.running_mean, rtol=0.2, atol=0.05)
        torch.testing.assert_close(ours.running_var, theirs.running_var, rtol=0.2, atol=0.05)


@each
def test_in_use_it_is_its_layers_and_the_first_norm_does_nothing(n_channels, n_times, options):
    net = made(n_channels, n_times, options)
    x = signals(n_channels, n_times)
    for _ in range(3):
        net(x, people=PEOPLE)
    net.eval()
    literal = net.literal()
    torch.testing.assert_close(net(x), literal(x).flatten(1), rtol=1e-8, atol=1e-10)
    filtered = literal.conv_temporal(literal.add_plane(x))
    torch.testing.assert_close(literal.bnorm_temporal(filtered), filtered, rtol=1e-6, atol=1e-9)
    latent, seen = net.observe(x)
    torch.testing.assert_close(latent, net(x), rtol=1e-8, atol=1e-10)
    assert len(seen) == len(batch_norms(net)) == len(batch_norms(literal)) == 2


def test_order_and_names_of_people_do_not_matter():
    net = made(*SHAPES[0][:2], SHAPES[0][2], drop_prob=0.0)
    x, order = signals(*SHAPES[0][:2]), torch.randperm(len(PEOPLE))
    names = torch.tensor([0, 0, 30, 0, 0, 20, 0, 10])  # of numbers 2, 5, 7
    here = net(x, people=PEOPLE)
    there = net(x[order], people=names[PEOPLE[order]])
    torch.testing.assert_close(there, here[order], rtol=1e-9, atol=1e-11)


def test_a_person_of_another_scale_gives_the_same_latents():
    net = made(*SHAPES[0][:2], SHAPES[0][2], drop_prob=0.0, batch_norm_eps=1e-12)
    x = signals(*SHAPES[0][:2])
    louder = torch.where((PEOPLE == 7)[:, None, None], 40 * x, x)
    here, there = (net(one, people=PEOPLE) for one in (x, louder))
    torch.testing.assert_close(there, here, rtol=1e-6, atol=1e-6)


def test_wrong_people_and_options_are_refused_by_name():
    with pytest.raises(at.AutoTransferError, match="person_norm must be True or False"):
        EEGNet(3, 77, kernel_length=9, person_norm="yes")
    net = made(*SHAPES[0][:2], SHAPES[0][2])
    with pytest.raises(at.AutoTransferError, match="people must name the person of each of 8"):
        net(signals(*SHAPES[0][:2]), people=PEOPLE[:3])


def test_a_classifier_is_trained_so_saved_and_adapted(tmp_path):
    data = at.make_subjects(n_subjects=4, n_trials=24, random_state=0)
    clf = at.CensoredClassifier(
        encoder_options={"person_norm": True, "kernel_length": 16},
        max_epochs=3,
        random_state=0,
        verbose=False,
    ).fit(data)
    usual = at.CensoredClassifier(
        encoder_options={"kernel_length": 16}, max_epochs=3, random_state=0, verbose=False
    ).fit(data)
    assert not np.array_equal(clf.predict_proba(data.X), usual.predict_proba(data.X))
    again = at.load_model(clf.save(tmp_path / "model"))
    assert np.array_equal(again.predict_proba(data.X), clf.predict_proba(data.X))
    mine = data.select(subjects=data.subject_ids[:1])
    personal = again.adapt(mine, method="statistics")
    first = [one.network_.encoder.bnorm_temporal for one in (again, personal)]
    assert torch.equal(first[0].running_var, first[1].running_var)
    moved = [one.network_.encoder.bnorm_1.running_var for one in (again, personal)]
    assert not torch.equal(*moved)
    live = clf.live()
    assert live.predict(mine.X[:6]).shape == (6,)
