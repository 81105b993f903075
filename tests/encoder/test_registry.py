"""Encoders made from a name, a module or a function."""

import copy

import pytest
import torch
from torch import nn

from autotransfer.encoder import ENCODERS, EEGNet, LatentOf, make_encoder
from autotransfer.errors import KernelLengthWarning, SettingError


def small(n_channels, n_times, width=7):
    return nn.Sequential(nn.Flatten(), nn.Linear(n_channels * n_times, width), nn.Linear(width, 2))


@pytest.mark.parametrize("name", ENCODERS)
def test_every_name_makes_an_encoder(name):
    encoder = make_encoder(name, 4, 128, sfreq=128)
    assert encoder(torch.zeros(3, 4, 128)).shape == (3, encoder.n_latent)


def test_options_and_rate_arrive():
    encoder = make_encoder("eegnet", 4, 500, 250.0, {"kernel_seconds": 0.5, "F1": 3})
    assert isinstance(encoder, EEGNet)
    assert encoder.conv_temporal.weight.shape == (3, 1, 1, 125)
    with pytest.warns(KernelLengthWarning):
        make_encoder("eegnet", 4, 500, 1000.0)


def test_a_new_name(monkeypatch):
    monkeypatch.setitem(
        ENCODERS, "tiny", lambda n_channels, n_times: EEGNet(n_channels, n_times, F1=1)
    )
    assert make_encoder("tiny", 4, 128, sfreq=1000).options["F1"] == 1
    with pytest.raises(SettingError, match="Choose one of eegnet, covariance, tiny"):
        make_encoder("huge", 4, 128)


def test_wrong_name_lists_the_right_ones():
    with pytest.raises(SettingError, match=r"no encoder 'EEGnett'. Did you mean 'eegnet'\? Choose"):
        make_encoder("EEGnett", 4, 128)


def test_unknown_options_list_the_known_ones():
    with pytest.raises(SettingError, match=r"option f1, depth. It knows: D, F1, F2.*pool2") as e:
        make_encoder("eegnet", 4, 128, options={"f1": 4, "depth": 2, "pool1": 2})
    assert "n_channels" not in str(e.value)
    assert "sfreq" not in str(e.value)


def test_an_encoder_as_it_is_but_a_copy():
    net = EEGNet(4, 128)
    before = copy.deepcopy(net.state_dict())
    encoder = make_encoder(net, 4, 128)
    assert isinstance(encoder, EEGNet)
    assert encoder is not net
    encoder(torch.randn(3, 4, 128))
    assert all(torch.equal(before[name], t) for name, t in net.state_dict().items())


def test_an_encoder_for_other_signals():
    with pytest.raises(SettingError, match="trials of 5 channels x 128"):
        make_encoder(EEGNet(4, 128), 5, 128)


def test_a_module_that_says_a_wrong_length():
    net = small(4, 10)
    net.n_latent = 9
    with pytest.raises(SettingError, match="says n_latent=9, but gives latents of length 2"):
        make_encoder(net, 4, 10)


class Own(nn.Module):
    def __init__(self, n_latent):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.LazyLinear(n_latent))

    def forward(self, x):
        return self.layers(x)


def test_a_class_that_cannot_be_called_with_a_shape():
    with pytest.raises(SettingError, match=r"encoder=Own is called as Own\(n_channels, n_times\)"):
        make_encoder(Own, 4, 10)


def test_any_module_is_wrapped():
    encoder = make_encoder(small(4, 10), 4, 10)
    assert isinstance(encoder, LatentOf)
    assert encoder.n_latent == 7
    assert make_encoder(small(4, 10), 4, 10, options={"latent": "output"}).n_latent == 2
    assert make_encoder(encoder, 4, 10).n_latent == 7
    with pytest.raises(SettingError, match=r"option width. It knows: latent"):
        make_encoder(small(4, 10), 4, 10, options={"width": 3})


def test_functions():
    assert make_encoder(small, 4, 10).n_latent == 7
    assert make_encoder(small, 4, 10, options={"width": 5}).n_latent == 5
    assert make_encoder(small, 4, 10, options={"width": 5, "latent": "output"}).n_latent == 2
    assert isinstance(make_encoder(EEGNet, 4, 128, options={"F1": 2}), EEGNet)
    assert make_encoder(lambda c, t, **any_: small(c, t, **any_), 4, 10).n_latent == 7
    with pytest.raises(SettingError, match=r"option depth. It knows: latent, width"):
        make_encoder(small, 4, 10, options={"depth": 5})


@pytest.mark.parametrize(
    ("spec", "message"), [(3, "not a int"), (lambda c, t: t, "returned a int")]
)
def test_no_encoder_at_all(spec, message):
    with pytest.raises(SettingError, match=message):
        make_encoder(spec, 4, 10)
