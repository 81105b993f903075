"""Batch norm, ELU and pooling in one, judged by torch's own and its autograd."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import avg_pool1d, batch_norm, elu

from autotransfer.encoder.norm_pool import NormEluPool

F = 3


def draw(b, n_in, seed=0, offset=0.0, dtype=torch.float64):
    g = torch.Generator().manual_seed(seed)
    u = torch.randn(F, b, n_in, generator=g, dtype=torch.float64) * 2 + offset
    gain, weight = (torch.randn(F, generator=g, dtype=torch.float64) for _ in range(2))
    bias = torch.randn(F, generator=g, dtype=torch.float64)
    return [tensor.to(dtype) for tensor in (u, gain, weight, bias)]


def by_torch(u, gain, weight, bias, pool, eps, constant=0.0):
    """From (F, b, n_in) to (F, b, n_out); batch norm wants (b, F, n_in)."""
    x = (gain[:, None, None] * u + constant).transpose(0, 1)
    x = elu(batch_norm(x, None, None, weight, bias, training=True, eps=eps))
    return avg_pool1d(x, pool).transpose(0, 1)


def ours(tensors, pool, eps, grad):
    u, *vectors = (t.detach().clone().numpy() for t in tensors)
    b, n_in = u.shape[1:]
    layer = NormEluPool(n_in, pool, eps)
    u = u.reshape(F, -1)
    q, passing = np.empty_like(u), np.empty_like(u)
    mean, var, state = layer.forward(u, q, passing, *vectors)
    out = torch.empty(F, b, layer.n_out, dtype=grad.dtype)
    layer.pool(torch.from_numpy(passing).view(F * b, n_in), out.view(F * b, -1))
    out -= 1
    spread = torch.full((F * b, n_in), torch.nan, dtype=grad.dtype)
    layer.spread(grad.reshape(F * b, -1), spread)
    g = spread.view(F, -1).numpy()
    vector_grads = layer.backward(g, u, q, passing, state)
    return out, mean, var, [g.reshape(F, b, n_in), *vector_grads]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4), st.integers(2, 1300), st.integers(1, 9), st.sampled_from([1e-5, 1e-3, 0.5])
)
def test_agrees_with_torch(b, n_in, pool, eps):
    pool = min(pool, n_in)
    tensors = [tensor.requires_grad_() for tensor in draw(b, n_in)]
    wanted = by_torch(*tensors, pool, eps)
    grad = torch.randn(
        wanted.shape, generator=torch.Generator().manual_seed(4), dtype=torch.float64
    )
    wanted.backward(grad)
    out, mean, var, grads = ours(tensors, pool, eps, grad)
    np.testing.assert_allclose(out, wanted.detach(), rtol=1e-11, atol=1e-11)
    u = tensors[0].detach().reshape(F, -1)
    np.testing.assert_allclose(mean, u.mean(1), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(var, u.var(1, correction=0), rtol=1e-11)
    for found, tensor in zip(grads, tensors, strict=True):
        np.testing.assert_allclose(found, tensor.grad, rtol=1e-8, atol=1e-9)


def test_a_constant_makes_no_difference():
    tensors = draw(3, 12)
    plain = by_torch(*tensors, 4, 1e-3)
    torch.testing.assert_close(by_torch(*tensors, 4, 1e-3, constant=17.0), plain)
    out, *_ = ours(tensors, 4, 1e-3, torch.zeros_like(plain))
    torch.testing.assert_close(out, plain)


@pytest.mark.parametrize(("n_in", "pool"), [(11, 4), (512, 1), (1543, 4), (2000, 700)])
def test_pooling_and_its_gradient(n_in, pool):
    layer = NormEluPool(n_in, pool, 1e-3)
    x = torch.randn(3, n_in, dtype=torch.float64, requires_grad=True)
    wanted = avg_pool1d(x, pool)
    out = torch.empty_like(wanted)
    layer.pool(x.detach(), out)
    torch.testing.assert_close(out, wanted)
    grad = torch.randn_like(wanted)
    wanted.backward(grad)
    spread = torch.full_like(x, torch.nan)
    layer.spread(grad, spread)
    torch.testing.assert_close(spread, x.grad)


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_float32(offset):
    tensors = draw(4, 40, offset=offset, dtype=torch.float32)
    grad = torch.ones(F, 4, 10)
    out, *_ = ours(tensors, 4, 1e-3, grad)
    wanted = by_torch(*(t.double() for t in tensors), 4, 1e-3)
    # float32 holds an offset of 1,000 to 6e-5 / 2 of the signal's standard deviation.
    np.testing.assert_allclose(out, wanted, atol=2e-6 if offset == 0 else 2e-4)


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_large_values_do_not_overflow(size):
    tensors = draw(2, 16)
    tensors[2] *= size
    with np.errstate(all="raise", under="ignore"):
        out, *_, grads = ours(tensors, 4, 1e-3, torch.ones(F, 2, 4, dtype=torch.float64))
    assert out.isfinite().all()
    assert all(np.isfinite(g).all() for g in grads)
