"""Weights exchanged with braindecode's EEGNet give the same network. Run by run.sh, beside this."""

import warnings

import pytest
import torch
from torch import nn

from autotransfer.encoder import EEGNet, from_braindecode, make_encoder, to_braindecode, wrap

models = pytest.importorskip("braindecode.models")

# trials, channels, times, F1, D, F2, kernel, second kernel, pools, classes
SHAPES = {
    "the paper's": (6, 8, 128, 8, 2, 16, 64, 16, 4, 8, 4),
    "odd": (5, 3, 101, 4, 3, 5, 31, 7, 3, 5, 3),
    "kernel longer than the window": (4, 5, 52, 4, 2, 8, 70, 16, 4, 3, 2),
    "long window": (3, 4, 700, 2, 2, 4, 65, 16, 4, 8, 2),
}
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
every_dtype = pytest.mark.parametrize("dtype", TOLERANCE, ids=["float32", "float64"])
both_modes = pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])


def theirs(shape, dtype, **options):
    _, c, t, F1, D, F2, k, k2, pool1, pool2, n = shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about final_layer_with_constraint, either way
        model = models.EEGNet(
            n_chans=c, n_outputs=n, n_times=t, F1=F1, D=D, F2=F2, kernel_length=k,
            depthwise_kernel_length=k2, pool1_kernel_size=pool1, pool2_kernel_size=pool2,
            drop_prob=0.0, **options,
        )  # fmt: skip
    return model.to(dtype)


def ours(shape, dtype):
    _, c, t, F1, D, F2, k, k2, pool1, pool2, n = shape
    encoder = EEGNet(
        c, t, F1=F1, D=D, F2=F2, kernel_length=k, depthwise_kernel_length=k2, pool1=pool1,
        pool2=pool2, drop_prob=0.0, batch_norm_momentum=0.01,
    )  # fmt: skip
    return nn.Sequential(encoder, nn.Linear(encoder.n_latent, n)).to(dtype)


def stir(model, seed):
    """Give every weight and statistic a value that is not its starting one."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if tensor.is_floating_point():
                noise = torch.rand(tensor.shape, generator=g, dtype=torch.float64)
                tensor.add_(noise.to(tensor.dtype) - (0 if "var" in name else 0.5))
    return model


def signals(shape, dtype):
    g = torch.Generator().manual_seed(5)
    return torch.randn(*shape[:3], generator=g, dtype=torch.float64).to(dtype)


def assert_same(model, pair, x, training):
    """Same outputs, gradients of x and of every weight, and statistics afterwards."""
    tolerance = TOLERANCE[x.dtype]
    model.train(training), pair.train(training)
    results = []
    for net in (model, pair):
        net.zero_grad()
        inputs = x.clone().requires_grad_()
        logits = net(inputs)
        logits.square().sum().backward()
        results.append((logits.detach(), inputs.grad))
    for found, wanted in zip(results[1], results[0], strict=True):
        close(found, wanted, tolerance)
    with torch.no_grad():
        close(pair(x), model(x), tolerance)
    gradients = {name: p.grad for name, p in pair[0].named_parameters()}
    for name, p in model.named_parameters():
        if not name.startswith("final_layer"):
            close(gradients[name], p.grad, tolerance, name)
    head = model.final_layer.conv_classifier
    close(pair[1].weight.grad, head.weight.grad.flatten(1), tolerance, "head")
    close(pair[1].bias.grad, head.bias.grad, tolerance, "head")
    statistics = dict(pair[0].named_buffers())
    for name, buffer in model.named_buffers():
        close(statistics[name], buffer, tolerance, name)


def close(found, wanted, tolerance, name=""):
    # Gradients of weights are sums over trials and times: relative to their largest.
    error = (found - wanted).abs().max().item()
    assert error <= tolerance * (1 + wanted.abs().max().item()), f"{name}: {error:.2e}"


@every_shape
@every_dtype
@both_modes
def test_from_braindecode(shape, dtype, training):
    torch.manual_seed(0)
    model, pair = stir(theirs(shape, dtype), 1), ours(shape, dtype)
    encoder, head = from_braindecode(model.state_dict())
    pair[0].load_state_dict(encoder)
    pair[1].load_state_dict(head)
    assert_same(model, pair, signals(shape, dtype), training)


@every_shape
@every_dtype
@both_modes
def test_to_braindecode(shape, dtype, training):
    torch.manual_seed(0)
    model, pair = theirs(shape, dtype), stir(ours(shape, dtype), 2)
    model.load_state_dict(to_braindecode(pair[0].state_dict(), pair[1].state_dict()))
    back = from_braindecode(model.state_dict())
    for state, net in zip(back, pair, strict=True):
        assert all(torch.equal(state[name], t) for name, t in net.state_dict().items())
    assert_same(model, pair, signals(shape, dtype), training)


@every_dtype
def test_constrained_final_layer(dtype):
    shape = SHAPES["odd"]
    x = signals(shape, dtype)
    model = stir(theirs(shape, dtype, final_layer_with_constraint=True, norm_rate=0.5), 3).eval()
    pair = ours(shape, dtype).eval()
    encoder, head = from_braindecode(model.state_dict(), norm_rate=0.5)
    pair[0].load_state_dict(encoder)
    pair[1].load_state_dict(head)
    with torch.no_grad():
        close(pair(x), model(x), TOLERANCE[dtype])
        other = theirs(shape, dtype, final_layer_with_constraint=True, norm_rate=0.5).eval()
        other.load_state_dict(to_braindecode(encoder, head, norm_rate=0.5))
        close(other(x), model(x), TOLERANCE[dtype])


@pytest.mark.parametrize("name", ["ShallowFBCSPNet", "Deep4Net"])
def test_any_braindecode_model_as_encoder(name):
    torch.manual_seed(0)
    model = getattr(models, name)(n_chans=4, n_outputs=3, n_times=600)
    model.eval()
    encoder = wrap(model, n_channels=4, n_times=600)
    assert encoder.latent == "final_layer"
    x = torch.randn(2, 4, 600)
    z = encoder(x)
    assert z.shape == (2, encoder.n_latent)
    # The last layer applied to the latent is the model.
    head = model.final_layer
    weight = head.conv_classifier.weight.flatten(1)
    close(z @ weight.T + head.conv_classifier.bias, model(x), 1e-5)
    assert make_encoder(model, 4, 600).n_latent == encoder.n_latent
    z.sum().backward()
    assert head.conv_classifier.weight.grad is None
    assert next(model.parameters()).grad.abs().max() > 0
