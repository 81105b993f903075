"""EEGNet in evaluation mode, with gradients and watched: against the layers of the literal one."""

from __future__ import annotations

import pytest
import torch

from autotransfer.encoder import EEGNet

SHAPES = [
    (3, 77, {"F1": 4, "kernel_length": 9, "pool1": 3, "pool2": 5}),
    (8, 200, {"F1": 2, "D": 3, "kernel_length": 100}),
    (2, 130, {"F1": 3, "D": 1, "F2": 5, "kernel_length": 64, "depthwise_kernel_length": 7}),
]
each = pytest.mark.parametrize(("n_channels", "n_times", "options"), SHAPES)


def trained(n_channels, n_times, options):
    """Make an encoder in float64 whose norms have statistics of their own."""
    torch.manual_seed(0)
    net = EEGNet(n_channels, n_times, drop_prob=0.3, **options).double()
    with torch.no_grad():
        for value in net.parameters():
            value.add_(0.1 * torch.randn_like(value))
    for _ in range(3):
        net(2 * torch.randn(9, n_channels, n_times, dtype=torch.float64) + 0.5)
    return net.eval()


@each
@pytest.mark.parametrize("n_trials", [1, 6])
def test_gradients_are_those_of_the_layers(n_channels, n_times, options, n_trials):
    net = trained(n_channels, n_times, options)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    literal = net.literal()
    x = torch.randn(n_trials, n_channels, n_times, dtype=torch.float64)
    along = torch.randn(n_trials, net.n_latent, dtype=torch.float64)
    gradients = []
    for model in (net, literal):
        signals = x.clone().requires_grad_()
        latent = model(signals).flatten(1)
        (latent * along).sum().backward()
        own = {name: value.grad for name, value in model.named_parameters()}
        gradients.append({"latent": latent.detach(), "signals": signals.grad, **own})
    assert gradients[0].keys() == gradients[1].keys()
    for name, value in gradients[0].items():
        torch.testing.assert_close(value, gradients[1][name], rtol=1e-8, atol=1e-10)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


@each
def test_gradients_come_again_and_for_part_of_the_weights(n_channels, n_times, options):
    net = trained(n_channels, n_times, options)
    x = torch.randn(4, n_channels, n_times, dtype=torch.float64)
    first = torch.autograd.grad(net(x).square().sum(), list(net.parameters()))
    net.conv_temporal.requires_grad_(False)
    few = [value for value in net.parameters() if value.requires_grad]
    again = torch.autograd.grad(net(x).square().sum(), few)
    kept = [g for g, v in zip(first, net.parameters(), strict=True) if v.requires_grad]
    for one, other in zip(kept, again, strict=True):
        torch.testing.assert_close(one, other)


@each
def test_what_reaches_the_norms_is_what_the_layers_see(n_channels, n_times, options):
    net = trained(n_channels, n_times, options)
    x = torch.randn(5, n_channels, n_times, dtype=torch.float64)
    literal, expected = net.literal(), []

    def see(norm, inputs):
        (h,) = inputs
        expected.append((h.mean((0, 2, 3)), h.square().mean((0, 2, 3))))

    for layer in literal:
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.register_forward_pre_hook(see)
    with torch.no_grad():
        latent = literal(x).flatten(1)
    found, seen = net.observe(x)
    torch.testing.assert_close(found, latent)
    assert len(seen) == len(expected) == 3
    for pair, other in zip(seen, expected, strict=True):
        torch.testing.assert_close(pair, other)
