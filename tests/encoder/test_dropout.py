"""Dropout of the fused EEGNet: repeatable, of the right rate and scale, without pattern."""

import numpy as np
import pytest
import scipy.stats
import torch
from eegnet_cases import CASES, Case, assert_same, network, outcome, signals
from torch.nn.functional import elu

from autotransfer.encoder.fused import DropoutBits

CASE = CASES["odd everything"]
ALPHA = 1e-6  # chance that a right generator fails one of these tests; seeds are fixed besides


def masks(p, *shapes, seed=0, times=1):
    torch.manual_seed(seed)
    bits, drawn = DropoutBits(), [np.empty(shape) for shape in shapes]
    for _ in range(times):
        bits.fill(p, *drawn)
    return drawn


def test_the_seed_decides():
    net, x = network(CASE, drop_prob=0.5), signals(CASE)
    results = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        net.load_state_dict(network(CASE).state_dict())
        torch.manual_seed(seed)
        results.append(outcome(net, x))
    assert_same(results[0], results[1], tolerance=0)
    assert not torch.equal(results[0]["output"], results[2]["output"])


def test_successive_steps_differ():
    net, x = network(CASE, drop_prob=0.5), signals(CASE)
    assert not torch.equal(net(x) == 0, net(x) == 0)


def test_a_global_seed_does_not_repeat_within_a_run():
    # Every fill reseeds from torch's generator: the states must not come back.
    torch.manual_seed(0)
    bits, seen = DropoutBits(), set()
    mask = np.empty((8, 32))
    for _ in range(500):
        bits.fill(0.5, mask)
        seen.add(mask.tobytes())
    assert len(seen) == 500


def test_no_dropout_in_evaluation_or_at_zero():
    x = signals(CASE)
    dropping, plain = network(CASE, drop_prob=0.5), network(CASE)
    with torch.no_grad():
        assert torch.equal(dropping.eval()(x), plain.eval()(x))
    assert torch.equal(plain.train()(x), plain(x))


@pytest.mark.parametrize("p", [0.1, 0.25, 0.5, 0.9])
def test_rate_and_scale_seen_from_outside(p):
    # Without second filters the latent before dropout is ELU(bias), the same in every trial.
    case = Case(200, 2, 64, 2, 2, 4, 9, 3, 4, 4)
    net = network(case, drop_prob=p)
    with torch.no_grad():
        net.conv_separable_depth.weight.zero_()
    z = net(signals(case)).detach().view(case.B, case.F2, -1)
    kept = z != 0
    assert scipy.stats.binomtest(int(kept.sum()), kept.numel(), 1 - p).pvalue > ALPHA
    wanted = (elu(net.bnorm_2.bias.detach()) / (1 - p))[None, :, None].expand_as(z)
    # The rate is a multiple of 2**-16, and the scale is that rate's.
    torch.testing.assert_close(z[kept], wanted[kept], rtol=2**-16 / (1 - p), atol=0)


@pytest.mark.parametrize("p", [0.001, 0.25, 0.5, 0.75])
def test_masks_keep_the_mean(p):
    first, second = masks(p, (64, 512), (16, 33))
    for mask in (first, second):
        values = np.unique(mask)
        assert values[0] == 0 or p == 0.001
        assert values[-1] == pytest.approx(1 / (1 - p), rel=1e-4)
        kept = int((mask > 0).sum())
        assert scipy.stats.binomtest(kept, mask.size, 1 - p).pvalue > ALPHA


def test_masks_are_independent_between_trials_filters_and_masks():
    p = 0.25
    a, b = masks(p, (16, 50, 32), (16, 50, 32))
    for axis in range(3):
        counts = (a > 0).sum(tuple(i for i in range(3) if i != axis))
        n = a.size // a.shape[axis]
        chi2 = ((counts - n * (1 - p)) ** 2 / (n * p * (1 - p))).sum()
        tails = scipy.stats.chi2.sf(chi2, len(counts)), scipy.stats.chi2.cdf(chi2, len(counts))
        assert min(tails) > ALPHA
    centred = [(mask > 0) - (1 - p) for mask in (a, b)]
    pairs = [(centred[0], centred[1])]
    for axis in range(3):
        pairs += [(centred[0], np.roll(centred[0], lag, axis)) for lag in (1, 2, 4)]
    for left, right in pairs:
        z = (left * right).sum() / (p * (1 - p) * np.sqrt(left.size))
        assert abs(z) < scipy.stats.norm.isf(ALPHA / 2)


def test_gradients_by_finite_differences_under_one_mask():
    case = Case(3, 2, 24, 2, 2, 3, 6, 3, 2, 3)
    net = network(case, drop_prob=0.4)
    names = [name for name, _ in net.named_parameters()]

    def function(x, *parameters):
        torch.manual_seed(7)
        return torch.func.functional_call(net, dict(zip(names, parameters, strict=True)), (x,))

    inputs = [signals(case).requires_grad_(), *net.parameters()]
    assert torch.autograd.gradcheck(function, inputs, eps=1e-6, atol=1e-6, rtol=1e-5)
