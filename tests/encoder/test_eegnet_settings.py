"""EEGNet's lengths, what it warns of and what it refuses."""

import warnings

import pytest
import torch
from eegnet_cases import CASES, network, signals

from autotransfer.encoder import EEGNet
from autotransfer.errors import (
    AutoTransferError,
    KernelLengthWarning,
    SettingError,
    ShapeError,
    WindowTooShortError,
)


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize(
    ("sfreq", "seconds", "kernel", "pool"),
    [(128, 0.5, 64, 4), (250, 0.5, 125, 8), (1000, 0.5, 500, 31), (1000, 0.1, 100, 31),
     (100, 0.25, 25, 3), (16, 0.01, 1, 1)],
)  # fmt: skip
def test_lengths_from_seconds(sfreq, seconds, kernel, pool):
    net = EEGNet(4, 2 * sfreq + 50, sfreq=sfreq, kernel_seconds=seconds)
    assert net.conv_temporal.weight.shape == (8, 1, 1, kernel)
    assert net.options["pool1"] == pool
    x = torch.zeros(2, 4, 2 * sfreq + 50)
    assert net(x).shape == (2, net.n_latent)
    assert net.literal()(x).shape == (2, net.n_latent)


@pytest.mark.parametrize("name", CASES)
def test_n_latent(name):
    case = CASES[name]
    net = network(case)
    assert net(signals(case)).shape == (case.B, net.n_latent)


def test_default_lengths_at_another_rate_warn():
    with pytest.warns(KernelLengthWarning, match=r"0\.064 s at your 1000 Hz.*kernel_seconds=0\.5"):
        EEGNet(8, 1000, sfreq=1000)


def test_default_filter_longer_than_the_window_warns():
    with pytest.warns(KernelLengthWarning, match=r"longer than the trials \(52 time points\)"):
        EEGNet(8, 52)


@pytest.mark.parametrize(
    ("n_times", "options"),
    [(128, {}), (64, {}), (128, {"sfreq": 128}), (256, {"sfreq": 160}), (256, {"sfreq": 100}),
     (1000, {"sfreq": 1000, "kernel_seconds": 0.5}), (1000, {"sfreq": 1000, "kernel_length": 200}),
     (52, {"kernel_length": 32})],
)  # fmt: skip
def test_no_warning_where_lengths_fit_or_were_chosen(n_times, options):
    EEGNet(8, n_times, **options)


LENGTHS = ["F1", "D", "F2", "kernel_length", "depthwise_kernel_length", "pool1", "pool2"]


@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("value", [0, -3, 2.5, True, "8"])
def test_lengths_that_are_no_lengths(name, value):
    with pytest.raises(SettingError, match=f"{name} must be a whole number"):
        EEGNet(8, 128, **{name: value})


@pytest.mark.parametrize(
    ("options", "message"),
    [({"drop_prob": 1.0}, "drop_prob"), ({"drop_prob": -0.1}, "drop_prob"),
     ({"kernel_seconds": 0.5}, "give sfreq"),
     ({"kernel_seconds": 0.0, "sfreq": 128}, "must be positive")],
)  # fmt: skip
def test_other_settings_that_cannot_be(options, message):
    with pytest.raises(SettingError, match=message):
        EEGNet(8, 128, **options)


@pytest.mark.parametrize("n_times", [1, 5, 26])
def test_window_too_short(n_times):
    with pytest.raises(WindowTooShortError, match=rf"{n_times} time points.*smaller pool1") as e:
        EEGNet(8, n_times, kernel_length=8)
    assert isinstance(e.value, AutoTransferError)
    assert isinstance(e.value, ValueError)


def test_nothing_left_after_the_first_pooling():
    with pytest.raises(WindowTooShortError, match="3 time points"):
        EEGNet(8, 3, kernel_length=5, pool1=4, pool2=1)


def test_shortest_window():
    # Even kernels lengthen their signal by one: 27 -> 28 -> 7 -> 8 -> 1.
    net = EEGNet(8, 27, kernel_length=8)
    assert net.n_latent == 16


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(3, 5, 64), (3, 4, 60), (3, 4, 70), (4, 64), (0, 4, 64)])
def test_signals_of_another_shape(shape, training):
    # A shorter window once went through the buffers of the right length and gave nonsense.
    net = EEGNet(4, 64).train(training)
    with torch.no_grad(), pytest.raises(ShapeError, match="4 channels x 64 time points"):
        net(torch.zeros(shape))


def test_statistics_of_other_trials():
    net = EEGNet(4, 64)
    with pytest.raises(ShapeError, match="same 3 trials"):
        net(torch.zeros(3, 4, 64), net.prepare(torch.zeros(5, 4, 64)))
