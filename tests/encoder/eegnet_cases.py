"""Networks and signals that the tests of EEGNet share, and how two networks are compared."""

from typing import NamedTuple

import torch
from torch import nn

from autotransfer.encoder import EEGNet


class Case(NamedTuple):
    """A shape: trials, channels, times, and EEGNet's options."""

    B: int
    C: int
    T: int
    F1: int
    D: int
    F2: int
    K: int
    K2: int
    pool1: int
    pool2: int

    def __str__(self):
        return "-".join(map(str, self))


CASES = {
    "the paper's": Case(6, 8, 128, 8, 2, 16, 64, 16, 4, 8),
    "odd everything": Case(4, 3, 61, 2, 3, 5, 15, 7, 3, 4),
    "even kernel, odd window": Case(4, 4, 75, 3, 2, 7, 32, 6, 4, 5),
    "odd kernel, even window": Case(4, 4, 76, 3, 2, 7, 31, 5, 4, 5),
    "kernel longer than the window": Case(3, 5, 50, 4, 1, 4, 70, 16, 2, 4),
    "kernel twice the window": Case(4, 3, 5, 2, 2, 2, 11, 3, 1, 2),
    "second kernel longer than what is left": Case(5, 2, 40, 2, 2, 3, 33, 20, 4, 2),
    "one channel": Case(2, 1, 64, 3, 2, 6, 16, 5, 4, 8),
    "kernels of one sample": Case(4, 6, 97, 4, 2, 8, 1, 1, 5, 3),
    "kernels of two samples": Case(4, 6, 97, 4, 2, 8, 2, 2, 5, 3),
    "three samples": Case(4, 6, 96, 2, 2, 4, 3, 3, 5, 3),
    "one trial": Case(1, 4, 80, 2, 2, 4, 24, 8, 4, 4),
    "one of all": Case(1, 1, 96, 1, 1, 1, 8, 3, 4, 8),
    "two blocks of time": Case(3, 4, 700, 2, 2, 4, 64, 16, 4, 8),
    "blocks in both convolutions": Case(2, 2, 1111, 2, 1, 2, 65, 8, 1, 4),
}


def signals(case, dtype=torch.float64, seed=1):
    """Signals (B, C, T) whose channels differ in scale and offset, with some rhythm."""
    g = torch.Generator().manual_seed(seed)
    B, C, T = case.B, case.C, case.T
    noise = torch.randn(B, C, T, generator=g, dtype=torch.float64)
    smooth = noise.cumsum(-1) / 5
    scale = torch.rand(C, 1, generator=g, dtype=torch.float64) + 0.5
    return (scale * (noise + smooth) + 2 * scale).to(dtype)


def network(case, *, dtype=torch.float64, drop_prob=0.0, seed=0, **options):
    """An EEGNet with norms away from their start, and filters on both sides of max_norm."""
    torch.manual_seed(seed)
    net = EEGNet(
        case.C,
        case.T,
        F1=case.F1,
        D=case.D,
        F2=case.F2,
        kernel_length=case.K,
        depthwise_kernel_length=case.K2,
        pool1=case.pool1,
        pool2=case.pool2,
        drop_prob=drop_prob,
        **options,
    ).to(dtype)
    with torch.no_grad():
        for norm in (net.bnorm_temporal, net.bnorm_1, net.bnorm_2):
            norm.weight.uniform_(0.5, 1.5)
            norm.bias.normal_()
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
        spatial = net.conv_spatial.parametrizations.weight.original
        wanted = torch.linspace(0.3, 2.5, len(spatial), dtype=dtype)
        spatial.mul_((wanted / spatial.flatten(1).norm(dim=1))[:, None, None, None])
    return net


def outcome(net, x, stats=None, *, grad_x=False, seed=3):
    """All that a pass leaves: output, gradients of a random functional of it, buffers."""
    net.zero_grad()
    x = x.detach().clone().requires_grad_(grad_x)
    z = net(x) if stats is None else net(x, stats)
    g = torch.Generator().manual_seed(seed)
    direction = torch.randn(z.shape, generator=g, dtype=torch.float64).to(z.dtype)
    (z * direction).sum().backward()
    found = {"output": z.detach()}
    found |= {f"gradient of {name}": p.grad.clone() for name, p in net.named_parameters()}
    found |= {name: buffer.clone() for name, buffer in net.named_buffers()}
    if grad_x:
        found["gradient of x"] = x.grad
    return found


def state(net: nn.Module):
    return {name: tensor.clone() for name, tensor in net.state_dict().items()}


def assert_same(found, wanted, tolerance=1e-10):
    """Every entry equal to `tolerance`, relative to its largest value (or to 1)."""
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert found[name].shape == value.shape, name
        error = (found[name] - value).abs().max().item()
        assert error <= tolerance * (1 + value.abs().max().item()), f"{name}: {error:.2e}"


def encode(net, array):
    """Latents of an array, as an array: for another process."""
    with torch.no_grad():
        return net(torch.from_numpy(array)).numpy()
