"""Temporal convolution by banded matrices, judged by torch and scipy."""

import numpy as np
import pytest
import scipy.signal
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import conv1d

from autotransfer.encoder.temporal import BLOCK, TemporalConv


def draw(n_filters, n_signals, n_times, kernel_length, dtype=torch.float64, seed=0):
    g = torch.Generator().manual_seed(seed)
    v = torch.randn(n_filters, n_signals, n_times, generator=g, dtype=torch.float64)
    filters = torch.randn(n_filters, kernel_length, generator=g, dtype=torch.float64)
    return v.to(dtype), filters.to(dtype)


def by_torch(v, filters):
    """The same through a grouped convolution: (F, n, T) as (n, F, T)."""
    k = filters.shape[1]
    out = conv1d(v.transpose(0, 1), filters[:, None], padding=k // 2, groups=len(filters))
    return out.transpose(0, 1)


def check(conv, v, filters, rtol=1e-12):
    v, filters = v.clone().requires_grad_(), filters.clone().requires_grad_()
    wanted = by_torch(v, filters)
    grad = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(9)).to(v.dtype)
    wanted.backward(grad)
    out, grad_v = torch.full_like(wanted, torch.nan), torch.full_like(v, torch.nan)
    conv.forward(v.detach(), filters.detach().numpy(), out)
    conv.signal_gradient(grad, filters.detach().numpy(), grad_v)
    grad_filters = torch.from_numpy(conv.filter_gradient(grad, v.detach()))
    pairs = ((out, wanted), (grad_v, v.grad), (grad_filters, filters.grad))
    for found, right in pairs:
        torch.testing.assert_close(
            found, right.detach(), rtol=rtol, atol=rtol * (1 + right.abs().max().item())
        )


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 40), st.integers(1, 50))
def test_any_lengths(n_filters, n_signals, n_times, kernel_length):
    conv = TemporalConv(n_filters, n_times, kernel_length)
    check(conv, *draw(n_filters, n_signals, n_times, kernel_length))


@pytest.mark.parametrize("kernel_length", [1, 2, 63, 64, 65, 500])
@pytest.mark.parametrize("n_times", [2 * BLOCK, 2 * BLOCK + 1, 3 * BLOCK - 1, 512, 777, 1100])
def test_several_blocks(n_times, kernel_length):
    conv = TemporalConv(2, n_times, kernel_length)
    assert len(conv.blocks) == conv.n_out // BLOCK > 1
    check(conv, *draw(2, 3, n_times, kernel_length))


@pytest.mark.parametrize("n_times", [20, 600])
def test_kept_matrices_do_not_remember(n_times):
    conv = TemporalConv(2, n_times, 9)
    for seed, dtype in enumerate([torch.float64, torch.float32, torch.float64, torch.float32]):
        check(
            conv,
            *draw(2, 1 + seed, n_times, 9, dtype, seed),
            rtol={8: 1e-12, 4: 1e-5}[dtype.itemsize],
        )


@pytest.mark.parametrize(("n_times", "kernel_length"), [(30, 7), (30, 8), (20, 33), (700, 64)])
def test_scipy_agrees(n_times, kernel_length):
    v, filters = draw(2, 3, n_times, kernel_length)
    conv = TemporalConv(2, n_times, kernel_length)
    out = torch.empty(2, 3, conv.n_out, dtype=torch.float64)
    conv.forward(v, filters.numpy(), out)
    half = kernel_length // 2
    padded = np.pad(v.numpy(), ((0, 0), (0, 0), (half, half)))
    for f in range(2):
        for n in range(3):
            # scipy's "valid" swaps its inputs when the second is the longer: here it never is.
            wanted = scipy.signal.correlate(padded[f, n], filters[f].numpy(), "valid")
            np.testing.assert_allclose(out[f, n].numpy(), wanted, rtol=1e-11, atol=1e-11)
