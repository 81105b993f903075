"""Augmentations: training trials changed as they might have been recorded from somebody else.

Each is a function of a batch of normalised signals that gives signals of the same shape, dtype and
layout; it is told classes and subjects, which it cannot change, and never writes into its input. It
is at work in training steps only. To add one: the function, a line in `AUGMENTATIONS`, a row in the
table of laws (tests/training/test_augment.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor
from torch.nn import functional

from autotransfer.errors import SettingError
from autotransfer.registry import lookup

MASKED = 0.1
"""Share of the channels that `mask` takes away."""

SHIFTED = 0.05
"""Largest shift of `shift`, as a share of the trial: 50 ms of a second."""

NOISE = 0.3
"""Deviation of the noise beside the mean absolute amplitude of the trial."""

LOWEST = 4.0
"""Least frequency of the noise in Hz; in cycles of a trial where the rate is unknown."""

MIXED = 0.5
"""Largest share of the other person's trial in a mixture."""


def mask(
    x: Tensor,
    y: Tensor,
    subject: Tensor,
    generator: Generator,
    sfreq: float | None = None,
    *,
    share: float = MASKED,
) -> Tensor:
    """Set channels to zero, each with the same probability, as if an electrode had come off.

    One channel of a trial stays in any case: a trial of zeros would teach nothing but how often
    its class comes.

    Parameters
    ----------
    x : Tensor of shape (B, C, T)
        Normalised signals.
    y, subject : Tensor of int64 of shape (B,)
        Class and subject of each trial, on the CPU.
    generator : Generator
        Source of all that is drawn, on the CPU.
    sfreq : float, optional
        Sampling rate in Hz.
    share : float
        Probability of a channel to be set to zero.

    Returns
    -------
    Tensor of shape (B, C, T)
    """
    draw = torch.rand(x.shape[:2], generator=generator)
    stays = (draw >= share) | (draw == draw.amax(1, keepdim=True))
    return x * stays[:, :, None].to(x)


def ring(
    x: Tensor, y: Tensor, subject: Tensor, generator: Generator, sfreq: float | None = None
) -> Tensor:
    """Turn the ring of electrodes of each trial by one place either way, or leave it as it is.

    As if an armband had been put on a little turned. Channels must stand in their order around the
    arm; the last is then beside the first.

    Parameters
    ----------
    x, y, subject, generator, sfreq
        As for `mask`.

    Returns
    -------
    Tensor of shape (B, C, T)
    """
    trials, channels, _ = x.shape
    turn = torch.randint(-1, 2, (trials,), generator=generator)
    source = (torch.arange(channels)[:, None] - turn) % channels
    by_channel = x.transpose(0, 1)
    return by_channel[source.to(x.device), torch.arange(trials, device=x.device)].transpose(0, 1)


def shift(
    x: Tensor,
    y: Tensor,
    subject: Tensor,
    generator: Generator,
    sfreq: float | None = None,
    *,
    largest: float = SHIFTED,
) -> Tensor:
    """Shift each trial in time, its channels together, as if it had been cut earlier or later.

    What is missing at an edge is the signal reflected there: no jump, and the same amplitude.

    Parameters
    ----------
    x, y, subject, generator, sfreq
        As for `mask`.
    largest : float
        Largest shift, as a share of the trial.

    Returns
    -------
    Tensor of shape (B, C, T)
    """
    trials, _, times = x.shape
    most = int(largest * times)
    start = torch.randint(0, 2 * most + 1, (trials,), generator=generator).to(x.device)
    longer = functional.pad(x.transpose(0, 1), (most, most), mode="reflect")
    windows = longer.unfold(2, times, 1)  # (C, B, 2 most + 1, T), a view
    return windows[:, torch.arange(trials, device=x.device), start].transpose(0, 1)


def noise(
    x: Tensor,
    y: Tensor,
    subject: Tensor,
    generator: Generator,
    sfreq: float | None = None,
    *,
    level: float = NOISE,
) -> Tensor:
    """Add noise of one source in a band of one octave, with a gain of its own in each channel.

    As artefacts are: a muscle, the mains, a cable. The band of each trial lies anywhere between
    `LOWEST` and half the sampling rate.

    Parameters
    ----------
    x, y, subject, generator, sfreq
        As for `mask`.
    level : float
        Deviation of the noise beside the mean absolute amplitude of the trial.

    Returns
    -------
    Tensor of shape (B, C, T)
    """
    trials, channels, times = x.shape
    # In cycles of a trial, which are the bins of its spectrum. An octave from 1 on has a bin in it.
    highest = max(times / 4, 1.0)
    lowest = min(max(LOWEST * times / sfreq if sfreq else LOWEST, 1.0), highest)
    low = lowest * (highest / lowest) ** torch.rand(trials, 1, generator=generator)
    bins = torch.arange(times // 2 + 1)
    white = torch.fft.rfft(torch.randn(trials, times, generator=generator))
    source = torch.fft.irfft(white * ((bins >= low) & (bins <= 2 * low)), n=times)
    deviation = source.square().mean(1, keepdim=True).sqrt()
    source = source / deviation.clamp_min(torch.finfo(source.dtype).tiny)
    gain = torch.randn(trials, channels, 1, generator=generator).to(x)
    return torch.addcmul(x, level * _amplitude(x) * gain, source[:, None].to(x))


def mix(
    x: Tensor,
    y: Tensor,
    subject: Tensor,
    generator: Generator,
    sfreq: float | None = None,
    *,
    most: float = MIXED,
) -> Tensor:
    """Mix each trial with one of the same class of another person in the batch.

    The mixture has the amplitude of the trial: that of two unlike signals would be lower. A trial
    without such a partner stays as it is.

    Parameters
    ----------
    x, y, subject, generator, sfreq
        As for `mask`.
    most : float
        Largest share of the other person's trial.

    Returns
    -------
    Tensor of shape (B, C, T)
    """
    trials = len(x)
    suits = (y[:, None] == y) & (subject[:, None] != subject)
    draw = torch.rand(trials, trials, generator=generator).masked_fill(~suits, -1.0)
    other = torch.where(suits.any(1), draw.argmax(1), torch.arange(trials)).to(x.device)
    share = most * torch.rand(trials, 1, 1, generator=generator)
    partner = x.transpose(0, 1).index_select(1, other).transpose(0, 1)
    mixture = torch.lerp(x, partner, share.to(x))
    # Unlike signals lose a factor of at most sqrt(2); signals that cancel out are not blown up.
    small = torch.finfo(x.dtype).tiny
    return mixture * (_amplitude(x) / _amplitude(mixture).clamp_min(small)).clamp_max(2.0)


def _amplitude(x: Tensor) -> Tensor:
    """Mean absolute amplitude (B, 1, 1) of each trial; squares of large values would overflow."""
    return x.abs().mean((1, 2), keepdim=True)


@dataclass(frozen=True)
class Augmentation:
    """A way of changing training trials.

    Parameters
    ----------
    function : callable
        ``function(x, y, subject, generator, sfreq)`` gives the signals that are trained on; see
        `mask`.
    words : str
        What it does, in a line.
    amplitude : (float, float)
        Factors between which it keeps the mean absolute amplitude of a person's trials.
    changes : {"all", "order", "zeros"}
        What it does to channels: anything; they change places; some are set to zero. It decides
        what becomes of statistics that the encoder has prepared (`corrected_statistics`).
    """

    function: Callable[[Tensor, Tensor, Tensor, Generator, float | None], Tensor]
    words: str
    amplitude: tuple[float, float]
    changes: str = "all"


AUGMENTATIONS = {
    "mask": Augmentation(mask, "channels set to zero, one in ten", (0.8, 1.0), "zeros"),
    "ring": Augmentation(ring, "electrodes of an armband turned by one place", (1.0, 1.0), "order"),
    "shift": Augmentation(shift, "shift in time by up to 5 % of the trial", (0.95, 1.05)),
    "noise": Augmentation(noise, "noise of one source in a band of one octave", (1.0, 1.1)),
    "mix": Augmentation(mix, "mixture with a trial of another person, same class", (0.95, 1.0)),
}
"""Augmentations by name."""


def keeps_statistics(augmentations: Sequence[Augmentation]) -> bool:
    """Whether statistics that an encoder prepared can be put right after all of them."""
    return all(one.changes != "all" for one in augmentations)


def corrected_statistics(
    stats: Tensor, x: Tensor, changed: Tensor, how: Augmentation, prepare: Callable[..., Tensor]
) -> Tensor:
    """Put statistics of a batch right, of which an encoder looks at the sum only.

    They add up over channels. So a new order changes nothing, and of channels that are zero now
    those are taken away that they had: of one in ten, a tenth of what all of them would take.

    Parameters
    ----------
    stats : Tensor of shape (B, S)
        What `prepare` gave of `x`.
    x, changed : Tensor of shape (B, C, T)
        Signals before and after an augmentation.
    how : Augmentation
        Which one.
    prepare : callable
        The encoder's, of signals (B, C, T).
    """
    if how.changes == "zeros":
        gone = changed.abs().amax(-1) == 0
        if gone.any():
            stats = stats.clone()
            stats[0] -= prepare(x[gone][None])[0]
    return stats


def lookup_augmentations(names: str | None) -> list[Augmentation]:
    """Find augmentations by their names, "mask" or "mask+shift"; none for None.

    Examples
    --------
    >>> [one.words for one in lookup_augmentations("mask")]
    ['channels set to zero, one in ten']
    """
    if names is None:
        return []
    parts = names.split("+") if isinstance(names, str) else [names]
    if len(set(map(str, parts))) < len(parts):
        raise SettingError(f"augment={names!r} has an augmentation twice. Name each of them once.")
    otherwise = 'several, such as "mask+shift", or None'
    return [lookup("augmentation", name, AUGMENTATIONS, otherwise) for name in parts]
