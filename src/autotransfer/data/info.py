"""What is known of signals beside their numbers, and what a model demands of new ones."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from autotransfer.data.trials import TrialArray
from autotransfer.data.validate import as_channel_names, as_sampling_rate, as_unit, standard_names
from autotransfer.errors import (
    ChannelMismatchError,
    DataWarning,
    SamplingRateError,
    UnitError,
    join_some,
)

VOLTS = {"V": 10**9, "mV": 10**6, "uV": 10**3, "nV": 1}
"""Units between which signals are converted, in nV: whole numbers, whose quotients are exact."""

FAR = 30.0
"""Factor between amplitudes of two recordings from which the unit is in doubt. People, electrodes
and amplifiers differ by less; volts and millivolts, or millivolts and microvolts, by 1000."""

ARMBANDS = (8, 10)
"""Electrodes of known armbands."""

_SCALP = re.compile(r"(N|Fp|AF|F|FC|FT|C|CP|T|TP|P|PO|O|I)(z|\d{1,2})", re.IGNORECASE)

_SAMPLE = 256
"""Number of trials, evenly spaced, by which an amplitude is judged."""


def unit_factor(unit: str | None, wanted: str | None) -> float | None:
    """Factor that turns signals of a unit into another one; None where nobody knows it.

    Examples
    --------
    >>> unit_factor("mV", "uV"), unit_factor("counts", "counts"), unit_factor(None, "uV")
    (1000.0, 1.0, None)
    """
    if unit == wanted:
        return 1.0
    known = unit in VOLTS and wanted in VOLTS
    return VOLTS[str(unit)] / VOLTS[str(wanted)] if known else None


def same_rate(rate: float, other: float) -> bool:
    """Whether two sampling rates are the same but for how they were written down."""
    return math.isclose(rate, other, rel_tol=1e-3)


@dataclass(frozen=True)
class SignalInfo:
    """What is known of signals beside their numbers.

    Parameters
    ----------
    channels : tuple of str or None
        Names of the channels, in order.
    sfreq : float or None
        Sampling rate in Hz.
    unit : str or None
        Such as "uV".
    """

    channels: tuple[str, ...] | None = None
    sfreq: float | None = None
    unit: str | None = None

    @classmethod
    def of(cls, channels: Sequence[str] | None, sfreq: float | None, unit: str | None) -> Self:
        """Take what is known; names such as ch0, ch1 that nobody gave are not known."""
        if channels is None or tuple(channels) == standard_names(len(channels)):
            return cls(None, sfreq, unit)
        return cls(tuple(channels), sfreq, unit)

    @classmethod
    def from_json(cls, document: Mapping[str, Any], n_channels: int) -> Self:
        """Read what `to_json` wrote, trusting nothing in it."""
        channels = document.get("channels")
        names = None if channels is None else tuple(as_channel_names(channels, n_channels))
        return cls(names, as_sampling_rate(document.get("sfreq")), as_unit(document.get("unit")))

    def to_json(self) -> dict[str, Any]:
        """Write it as plain values."""
        return asdict(self)

    def match(self, trials: TrialArray, other: SignalInfo) -> TrialArray:
        """Put new signals into the form of these: the same channels in the same order and unit.

        Parameters
        ----------
        trials : TrialArray of shape (n_trials, n_channels, n_times)
            The new signals.
        other : SignalInfo
            What is known of them.

        Returns
        -------
        TrialArray
            Their channels chosen and ordered by name, in the unit of these.

        Raises
        ------
        SamplingRateError, ChannelMismatchError, UnitError
            The sampling rate is another, channels are missing, or the unit is a foreign one.
        """
        if self.sfreq and other.sfreq and not same_rate(self.sfreq, other.sfreq):
            raise SamplingRateError(
                f"The model was trained on signals at {self.sfreq:g} Hz, but these are at "
                f"{other.sfreq:g} Hz. Resample them to {self.sfreq:g} Hz first; recordings are "
                f"by sfreq={self.sfreq:g} (--sfreq {self.sfreq:g})."
            )
        if self.channels and other.channels and self.channels != other.channels:
            missing = [name for name in self.channels if name not in other.channels]
            if missing:
                raise ChannelMismatchError(
                    f"The model needs the channels {join_some(missing)}, which these signals do "
                    f"not have. They have: {join_some(other.channels, 80)}. Rename the channels "
                    "if they are only called otherwise."
                )
            order = [other.channels.index(name) for name in self.channels]
            trials = trials.pick(np.array(order, np.intp))
        elif self.channels and not other.channels:
            warnings.warn(
                "These signals do not name their channels; they are taken to be those of the "
                f"model, in its order: {join_some(self.channels, 80)}.",
                DataWarning,
                stacklevel=4,
            )
        if self.unit and other.unit and self.unit != other.unit:
            factor = unit_factor(other.unit, self.unit)
            if factor is None:
                raise UnitError(
                    f"The model was trained on signals in {self.unit}, but these are in "
                    f"{other.unit}. Convert them first."
                )
            trials = trials.times(factor)
        return trials


def eeg_channels(channels: Sequence[str] | None) -> list[str]:
    """List the channels whose names are those of electrodes on the scalp (10-20 system).

    Examples
    --------
    >>> eeg_channels(["Oz", "PO7", "fp1", "EMG1"])
    ['Oz', 'PO7', 'fp1']
    """
    return [name for name in channels or () if _SCALP.fullmatch(name.strip(". "))]


def emg_channels(channels: Sequence[str] | None) -> list[str]:
    """List the channels whose names say that they record muscles.

    Examples
    --------
    >>> emg_channels(["EMG1", "Fz", "biceps emg"])
    ['EMG1', 'biceps emg']
    """
    return [name for name in channels or () if "emg" in name.lower()]


def is_ring(channels: Sequence[str] | None) -> bool:
    """Tell whether channels are, by their names, those of an armband in their order around the arm.

    Armbands have 8 electrodes (Myo) or 10 (3DC), which files call EMG1, EMG2 and so on.

    Examples
    --------
    >>> is_ring([f"EMG{number}" for number in range(1, 9)]), is_ring(["EMG1", "EMG2"])
    (True, False)
    """
    names = [re.sub(r"[\s_-]", "", name.lower()) for name in channels or ()]
    return len(names) in ARMBANDS and names == [f"emg{i + 1}" for i in range(len(names))]


def normalisation_doubt(channels: Sequence[str] | None, normalise: str | None) -> str:
    """Say why a normalisation does not suit signals; "" where nothing speaks against it."""
    names = emg_channels(channels)
    if not names or normalise != "channel":
        return ""
    return (
        f"Channels are called {join_some(names)}. In signals of muscles the pattern of amplitude "
        "over the electrodes tells most, and normalise='channel' takes it away: use "
        "normalise='trial' (--normalise trial)."
    )


@dataclass(frozen=True)
class Recording:
    """Trials of one person without labels.

    Parameters
    ----------
    trials : TrialArray of shape (n_trials, n_channels, n_times)
        The signals.
    info : SignalInfo
        What is known of them.
    """

    trials: TrialArray
    info: SignalInfo


def amplitude(trials: TrialArray) -> float:
    """Median over trials and channels of the deviation of a channel within a trial.

    Judged by some trials, evenly spaced, so that it costs little on data of any size.
    """
    with np.errstate(all="ignore"):  # what is not finite is refused elsewhere, by name
        return float(np.median(trials.sample(_SAMPLE).std(axis=2, dtype=np.float64)))


def warn_far(trials: TrialArray, usual: float | None, unit: str | None) -> None:
    """Warn if the amplitude of new signals is far from the usual one, that of training."""
    if not usual:
        return
    value = amplitude(trials)
    if np.isfinite(value) and not usual / FAR < value < usual * FAR:
        word = f" {unit}" if unit else ""
        warnings.warn(
            f"The amplitude of these signals is {value:.3g}{word} (median deviation of a channel), "
            f"that of the training signals was {usual:.3g}{word}. Are they in another unit, such "
            "as volts for microvolts, or filtered otherwise? Predictions may be worthless.",
            DataWarning,
            stacklevel=4,
        )
