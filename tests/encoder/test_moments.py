"""Window moments, judged by unfolding every window."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autotransfer.encoder.moments import WindowMoments


def by_windows(x, kernel_length):
    """Mean and covariance of xp[t + k] over trials, channels and t, from all windows."""
    p = kernel_length // 2
    xp = torch.nn.functional.pad(x.double(), (p, p))
    windows = xp.unfold(-1, kernel_length, 1).reshape(-1, kernel_length)
    mean = windows.mean(0)
    return mean, (windows - mean).mT @ (windows - mean) / len(windows)


def signals(b, c, t, seed=0, offset=0.5):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(b, c, t, generator=g, dtype=torch.float64) + offset


def check(x, kernel_length, tolerance=1e-11):
    b, c, t = x.shape
    moments = WindowMoments(kernel_length, t)
    share = moments.per_trial(x)
    assert share.shape == (b, moments.size)
    wanted = by_windows(x, kernel_length)
    for found in (
        moments.combine(share.sum(0), b * c),
        moments.combine(share.numpy().sum(0), b * c),
    ):
        for value, right in zip(found, wanted, strict=True):
            np.testing.assert_allclose(
                value, right, rtol=0, atol=tolerance * (1 + abs(right).max())
            )


@settings(max_examples=120, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 60), st.integers(1, 48))
def test_any_lengths(b, c, t, kernel_length):
    check(signals(b, c, t), kernel_length)


@pytest.mark.parametrize("kernel_length", [63, 64, 65])
@pytest.mark.parametrize("t", [20, 52, 128, 501])
def test_eegnets_lengths(t, kernel_length):
    check(signals(3, 5, t), kernel_length)


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_an_offset_does_not_swallow_the_variance(offset):
    # Zero padding makes part of the variance of an offset signal real; a filter that sums to zero
    # sees only the signal in the middle and the steps at both ends.
    x = signals(2, 3, 200, offset=offset)
    moments = WindowMoments(16, 200)
    _, covariance = moments.combine(moments.per_trial(x).sum(0), 6)
    _, wanted = by_windows(x, 16)
    error = (covariance - wanted).abs().max() / wanted.abs().max()
    assert error < 1e-11


def test_float32_signals_are_summed_in_float64():
    x = (signals(4, 3, 100) + 1000).float()
    share = WindowMoments(32, 100).per_trial(x)
    assert share.dtype == torch.float64
    torch.testing.assert_close(share, WindowMoments(32, 100).per_trial(x.double()), rtol=0, atol=0)


def test_shares_add_up():
    x = signals(6, 4, 50)
    moments = WindowMoments(20, 50)
    share = moments.per_trial(x)
    together = moments.per_trial(x.reshape(1, 24, 50))[0]
    torch.testing.assert_close(share.sum(0), together, rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(share[2:3], moments.per_trial(x[2:3]), rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize(("t", "kernel_length"), [(7, 4), (7, 5), (3, 8), (6, 1)])
def test_gradient_by_finite_differences(t, kernel_length):
    moments = WindowMoments(kernel_length, t)

    def function(x):
        return moments.combine(moments.per_trial(x).sum(0), x.shape[0] * x.shape[1])

    assert torch.autograd.gradcheck(function, (signals(2, 2, t).requires_grad_(),))
