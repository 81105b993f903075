"""The fused EEGNet is the literal network: output, every gradient, running statistics."""

import copy

import pytest
import torch
from eegnet_cases import CASES, assert_same, network, outcome, signals, state

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


@every_case
def test_training_equals_literal(case):
    net, x = network(case), signals(case)
    wanted = outcome(net.literal(), x)
    assert_same(outcome(copy.deepcopy(net), x), wanted)
    assert_same(outcome(net, x, net.prepare(x)), wanted)
    assert net.bnorm_1.num_batches_tracked == 1


@every_case
def test_gradient_of_the_signals_equals_literal(case):
    net, x = network(case), signals(case)
    wanted = outcome(net.literal(), x, grad_x=True)
    assert wanted["gradient of x"].abs().max() > 1e-4
    assert_same(outcome(net, x, grad_x=True), wanted)


@every_case
def test_evaluation_equals_literal(case):
    net, x = network(case).eval(), signals(case)
    before = state(net)
    literal = net.literal()
    wanted = outcome(literal, x, grad_x=True)
    assert_same(outcome(net, x, grad_x=True), wanted)  # layer by layer
    with torch.no_grad():
        z = net(x)  # the fast path
    assert not z.requires_grad
    assert_same({"output": z}, {"output": wanted["output"]})
    assert_same(state(net), before, tolerance=0)


@every_case
def test_statistics_are_used_in_evaluation(case):
    # A network whose running statistics were moved by the fused step, then used.
    net, x = network(case), signals(case)
    literal = net.literal()
    for seed in range(3):
        batch = signals(case, seed=seed)
        net(batch), literal(batch)
    with torch.no_grad():
        assert_same({"z": net.eval()(x)}, {"z": literal.eval()(x)})


@pytest.mark.parametrize("name", ["the paper's", "odd everything", "two blocks of time"])
def test_training_goes_the_same_way(name):
    case = CASES[name]
    net = network(case)
    literal = net.literal()
    start = state(net)
    for network_ in (net, literal):
        optimiser = torch.optim.SGD(network_.parameters(), 0.05, momentum=0.9, weight_decay=1e-3)
        for step in range(8):
            x = signals(case, seed=step)
            target = torch.arange(case.B * net.n_latent, dtype=x.dtype).sin().view(case.B, -1)
            loss = (network_(x) - target).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    assert_same(state(net), state(literal))
    moved = (net.conv_temporal.weight - start["conv_temporal.weight"]).abs().max()
    assert moved > 1e-4


@pytest.mark.parametrize("max_norm", [0.1, 1.0, 100.0])
def test_max_norm_all_above_some_and_none(max_norm):
    case = CASES["odd everything"]
    net, x = network(case, max_norm=max_norm), signals(case)
    norms = net.conv_spatial.parametrizations.weight.original.flatten(1).norm(dim=1)
    above = (norms > max_norm).sum()
    assert {0.1: above == len(norms), 1.0: 0 < above < len(norms), 100.0: above == 0}[max_norm]
    literal = net.literal()
    assert_same(outcome(net, x, grad_x=True), outcome(literal, x, grad_x=True))


@pytest.mark.parametrize("momentum", [0.01, 0.5, 1.0])
def test_momentum_and_eps(momentum):
    case = CASES["the paper's"]
    net = network(case, batch_norm_momentum=momentum, batch_norm_eps=0.3)
    literal, x = net.literal(), signals(case)
    assert_same(outcome(net, x), outcome(literal, x))


# Measured over these cases, error relative to the literal network in float64 (norm of the
# difference over norm), fused / literal in float32: output 7e-7 / 2e-6, gradients 3e-5 / 5e-5,
# statistics 4e-8 / 1e-7 with an offset of 1,000; at worst 2.7 times the literal network's error in
# a single tensor. Means are compared on the scale of the standard deviation: they may be zero.
FLOAT32 = 1e-4
NO_WORSE = 6.0


@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("name", ["the paper's", "odd everything", "two blocks of time"])
def test_float32_with_an_offset(name, offset):
    case = CASES[name]
    fused = network(case, dtype=torch.float32)
    plain, truth = fused.literal(), fused.literal().double()
    x = (signals(case) + offset).float()
    wanted = outcome(truth, x.double())
    found, literal = outcome(fused, x), outcome(plain, x)
    for key, value in wanted.items():
        if "num_batches" in key:
            continue
        scale = value.norm()
        if "running_mean" in key:
            scale = wanted[key.replace("mean", "var")].sqrt().norm() + scale
        if key == "gradient of bnorm_temporal.bias":
            scale = torch.tensor(1.0)  # zero in exact arithmetic
        error, other = ((r[key].double() - value).norm() / scale for r in (found, literal))
        assert error < FLOAT32, f"{key}: {error:.1e}"
        assert error < NO_WORSE * max(other, 5e-7), f"{key}: {error:.1e}, literal {other:.1e}"


def test_signals_by_channel_or_by_trial():
    case = CASES["the paper's"]
    net, x = network(case), signals(case)
    by_channel = x.transpose(0, 1).contiguous().transpose(0, 1)
    assert not by_channel.is_contiguous()
    again = copy.deepcopy(net)
    for a, b in ((x, by_channel), (x, x.flip(-1).flip(-1)), (x, x.repeat(1, 1, 2)[..., : case.T])):
        z, other = net(a), again(b)
        assert_same({"z": z}, {"z": other}, tolerance=1e-13)
        z.sum().backward(), other.sum().backward()
    grads = [{n: p.grad for n, p in m.named_parameters()} for m in (net, again)]
    assert_same(*grads, tolerance=1e-12)
    with torch.no_grad():
        assert_same({"z": net.eval()(x)}, {"z": net(by_channel)}, tolerance=1e-13)


def test_prepared_rows_can_be_picked_with_their_trials():
    case = CASES["the paper's"]
    net, x = network(case), signals(case)
    stats = net.prepare(x)
    assert stats.shape == (case.B, net.stats_size)
    assert stats.dtype == torch.float64
    rows = torch.tensor([4, 1, 1, 0])
    wanted = outcome(net.literal(), x[rows])
    assert_same(outcome(net, x[rows], stats[rows]), wanted)
