"""EEGNet keeps buffers between steps; nobody may notice."""

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
import torch
from eegnet_cases import CASES, assert_same, encode, network, outcome, signals, state

CASE = CASES["odd everything"]


def test_batches_of_varying_size():
    net = network(CASE)
    literal = net.literal()
    for seed, b in enumerate([4, 9, 1, 4, 2, 9, 12, 3]):
        x = signals(CASE._replace(B=b), seed=seed)
        assert_same(outcome(net, x), outcome(literal, x))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_forwards_before_a_backward(order):
    net = network(CASE)
    literal = net.literal()
    xs = [signals(CASE._replace(B=b), seed=b) for b in (3, 5)]
    for each in (net, literal):
        outputs = [each(x).square().sum() for x in xs]
        for i in order:
            outputs[i].backward()
    grads = [{n: p.grad for n, p in m.named_parameters()} for m in (net, literal)]
    assert_same(*grads)


def test_backward_twice_with_a_retained_graph():
    net, x = network(CASE), signals(CASE)
    z = net(x).square().sum()
    z.backward(retain_graph=True)
    first = {name: p.grad.clone() for name, p in net.named_parameters()}
    net(2 * x).sum()  # must not use the first step's buffers
    z.backward()
    assert_same(
        {n: p.grad for n, p in net.named_parameters()}, {n: 2 * g for n, g in first.items()}
    )


def test_backward_twice_without_a_retained_graph_raises():
    z = network(CASE)(signals(CASE)).sum()
    z.backward()
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()


NAMES = [name for name, _ in network(CASE).named_parameters() if "bias" not in name]


@pytest.mark.parametrize("name", NAMES)
def test_a_weight_changed_before_backward_raises(name):
    net = network(CASE)
    z = net(signals(CASE)).sum()
    with torch.no_grad():
        dict(net.named_parameters())[name].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@pytest.mark.parametrize("by_channel", [False, True])
def test_signals_changed_before_backward_raise(by_channel):
    x = signals(CASE)
    x = x.transpose(0, 1).contiguous().transpose(0, 1) if by_channel else x
    z = network(CASE)(x).sum()
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_second_derivatives_are_refused_not_wrong():
    net, x = network(CASE), signals(CASE).requires_grad_()
    (gradient,) = torch.autograd.grad(net(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.square().sum().backward()


@pytest.mark.parametrize("case", [CASE, CASE._replace(B=1), CASE._replace(F2=1)])
@pytest.mark.parametrize("grad", [True, False])
def test_an_output_stays_as_it_was(case, grad):
    # With one trial or one filter, a reshape of the last buffer would be a view of it.
    net = network(case)
    with torch.set_grad_enabled(grad):
        z = net(signals(case)).detach()
        kept = z.clone()
        for seed in range(3):
            net(signals(case, seed=seed)).detach()
    assert torch.equal(z, kept)


def test_inference_mode_leaves_nothing_behind():
    net, x = network(CASE), signals(CASE)
    literal = net.literal()
    for training in (True, False):
        with torch.inference_mode():
            net.train(training)(x), literal.train(training)(x)
    assert_same(outcome(net.train(), x), outcome(literal.train(), x))


def pickled(net):
    return pickle.loads(pickle.dumps(net))


def loaded(net):
    other = network(CASE, seed=99)
    other.load_state_dict(net.state_dict())
    return other


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled, loaded])
def test_copies_are_equal_and_independent(duplicate):
    net, x = network(CASE), signals(CASE)
    net(x)  # buffers exist
    z = net(x)  # and a graph that is still alive
    other, before = duplicate(net), state(net)
    assert_same(state(other), before, tolerance=0)
    result = outcome(other, 3 * x)
    assert_same(state(net), before, tolerance=0)
    assert_same(result, outcome(net, 3 * x), tolerance=0)
    assert z.requires_grad


def test_encoding_in_another_process():
    net, x = network(CASE).eval(), signals(CASE)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        z = pool.submit(encode, net, x.numpy()).result(timeout=120)
    np.testing.assert_allclose(z, encode(net, x.numpy()), rtol=1e-12)


def train(net):
    optimiser = torch.optim.SGD(net.parameters(), 0.05)
    for step in range(15):
        loss = net(signals(CASE, seed=step)).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return state(net)


def test_two_threads_each_with_its_network():
    nets = [network(CASE, seed=seed) for seed in (0, 1)]
    alone = [train(copy.deepcopy(net)) for net in nets]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(train, nets))
    for found, wanted in zip(together, alone, strict=True):
        assert_same(found, wanted, tolerance=1e-12)
