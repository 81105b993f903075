"""Any torch module as encoder."""

import copy
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from eegnet_cases import CASES, assert_same, network, outcome, signals
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from autotransfer.encoder import EEGNet, LatentOf, wrap
from autotransfer.encoder.wrap import latent_source
from autotransfer.errors import SettingError


def plain():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv1d(4, 6, 5), nn.BatchNorm1d(6), nn.ELU(), nn.Dropout(0.5), nn.AdaptiveAvgPool1d(3),
        nn.Flatten(), nn.Linear(18, 2),
    )  # fmt: skip


class WithFeatures(nn.Module):
    """A network in the manner of timm's."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(20, 5), nn.Linear(20, 3)

    def forward_features(self, x):
        return self.body(x)

    def forward(self, x):
        return self.head(self.forward_features(x).flatten(1))


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Flatten(), nn.Linear(80, 8), nn.Tanh())
        self.final_layer = nn.Sequential()
        self.final_layer.add_module("conv_classifier", nn.Conv1d(8, 3, 1))
        self.final_layer.add_module("squeeze", nn.Flatten())
        self.unused = nn.Identity()

    def forward(self, x):
        return self.final_layer(input=self.stem(x)[..., None])


X = torch.randn(5, 4, 20, generator=torch.Generator().manual_seed(1))


def test_last_layer_is_found():
    net = plain().eval()
    encoder = wrap(net, n_channels=4, n_times=20)
    assert isinstance(encoder, LatentOf)
    assert (encoder.latent, encoder.n_latent) == ("6", 18)
    assert torch.equal(encoder(X), net[:6](X))


def pooled():
    """A network that gives latents, as users write it: nothing in it classifies."""
    return nn.Sequential(nn.Conv1d(4, 6, 5), nn.ReLU(), nn.AdaptiveAvgPool1d(2), nn.Flatten())


@pytest.mark.parametrize(
    ("module", "source", "n_latent"),
    [(pooled(), "the output of the module", 12),
     (nn.Sequential(nn.Flatten(), nn.Linear(80, 9)), "the output of the module", 9),
     (plain(), "the input of the layer '6'", 18),
     (Nested(), "the input of the layer 'final_layer'", 8),
     (WithFeatures(), "what forward_features returns", 20),
     (nn.Sequential(nn.Conv1d(4, 6, 1), nn.Flatten(), weight_norm(nn.Linear(120, 2))),
      "the input of the layer '2'", 120)],
)  # fmt: skip
def test_what_the_latent_is_by_default(module, source, n_latent):
    encoder = wrap(module, n_channels=4, n_times=20)
    assert (latent_source(encoder), encoder.n_latent) == (source, n_latent)


def test_an_encoder_of_convolutions_is_not_bypassed():
    net = pooled()
    encoder = wrap(net, n_channels=4, n_times=20)
    assert torch.equal(encoder(X), net(X))
    encoder(X).square().sum().backward()
    assert net[0].weight.grad.abs().max() > 0


@pytest.mark.parametrize(
    ("module", "latent"),
    [(nn.Identity(), None), (nn.Flatten(), None), (pooled(), "0")],
)
def test_a_latent_that_is_the_signal_is_refused(module, latent):
    with pytest.raises(SettingError, match="would be the raw signal itself"):
        wrap(module, latent, n_channels=4, n_times=20)


def test_forward_features_come_first_and_are_flattened():
    net = WithFeatures()
    encoder = wrap(net, n_channels=4, n_times=20)
    assert encoder.n_latent == 20
    assert torch.equal(encoder(X), net.body(X).flatten(1))


def test_named_layers_and_the_output():
    net = Nested()
    assert torch.equal(wrap(net)(X), net.stem(X))  # called by keyword
    assert torch.equal(wrap(net, "final_layer.conv_classifier")(X), net.stem(X))
    assert torch.equal(wrap(net, "stem.2")(X), net.stem[:2](X))
    assert torch.equal(wrap(net, "output")(X), net(X))
    assert wrap(net).n_latent is None


def test_our_own_layers():
    case = CASES["odd everything"]
    net, x = network(case), signals(case)
    encoder = wrap(net.literal(), "output", n_channels=case.C, n_times=case.T)
    assert encoder.n_latent == net.n_latent
    found = outcome(encoder, x)
    wanted = {key.replace("module.", ""): value for key, value in found.items()}
    assert_same(outcome(net, x), wanted)


def test_gradients_reach_the_body_only():
    net = plain()
    wrap(net)(X).square().sum().backward()
    assert net[0].weight.grad.abs().max() > 0
    assert net[6].weight.grad is None


def test_measuring_changes_nothing():
    class Noise(nn.Module):
        def forward(self, x):
            return x + torch.randn_like(x)  # in evaluation mode too

    net = plain()
    net[2] = Noise()
    net[3].eval()  # a part that is kept frozen
    before = copy.deepcopy(net.state_dict())
    random = torch.get_rng_state()
    wrap(net, n_channels=4, n_times=20)
    assert torch.equal(random, torch.get_rng_state())
    assert_same(net.state_dict(), before, tolerance=0)
    assert [m.training for m in net] == [True, True, True, False, True, True, True]
    assert net.training


def test_nothing_is_kept_between_calls():
    net = plain()
    encoder = wrap(net)
    z = encoder(X)
    kept = weakref.ref(z)
    del z
    gc.collect()
    assert kept() is None
    assert not net[6]._forward_pre_hooks


def test_hook_is_removed_after_an_error():
    encoder = wrap(plain())
    with pytest.raises(RuntimeError):
        encoder(torch.zeros(5, 3, 20))
    assert not encoder.module[6]._forward_pre_hooks


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies(duplicate):
    encoder = wrap(plain(), n_channels=4, n_times=20).eval()
    other = duplicate(encoder)
    assert other.n_latent == 18
    assert torch.equal(other(X), encoder(X))
    with torch.no_grad():
        other.module[0].weight.zero_()
    assert not torch.equal(other(X), encoder(X))


def test_two_threads_in_one_module():
    encoder = wrap(plain()).eval()
    xs = [X + i for i in range(40)]
    with torch.no_grad():
        wanted = [encoder(x) for x in xs]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: encoder(x).detach(), xs))
    assert all(torch.allclose(a, b) for a, b in zip(found, wanted, strict=True))


def test_wrong_names_are_answered_with_near_ones():
    with pytest.raises(SettingError, match=r"no layer 'final_layer.conv'.*final_layer.conv_classi"):
        wrap(Nested(), "final_layer.conv")


def test_a_layer_called_output_is_ambiguous():
    net = nn.Sequential()
    net.add_module("output", nn.Linear(20, 3))
    with pytest.raises(SettingError, match=r"'0.output'"):
        wrap(net, "output")
    assert wrap(nn.Sequential(net), "0.output")(X).shape == (5, 80)
    assert wrap(nn.Sequential(net), "output")(X).shape == (5, 12)


class Turned(nn.Module):
    def forward(self, x):
        return x.transpose(0, 1)


@pytest.mark.parametrize(
    ("module", "latent", "message"),
    [(Nested(), "unused", "was not called"),
     (nn.LSTM(20, 3), "output", "is a tuple"), (Turned(), "output", "trials first"),
     (plain(), None, "could not encode trials of 3 channels x 20")],
)  # fmt: skip
def test_what_cannot_be_a_latent(module, latent, message):
    channels = 3 if latent is None else 4
    with pytest.raises(SettingError, match=message):
        wrap(module, latent, n_channels=channels, n_times=20)


def test_whole_numbers_are_no_latent():
    class Whole(nn.Module):
        def forward(self, x):
            return x.argmax(-1)

    with pytest.raises(SettingError, match=r"torch.int64.*name of the layer"):
        wrap(Whole(), "output")(X)


def test_not_a_module():
    with pytest.raises(SettingError, match=r"nn.Module, not a type"):
        wrap(EEGNet)
