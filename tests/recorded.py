"""Small recordings in files, for the tests that read some: the answer is in the signals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

mne = pytest.importorskip("mne")

RATE = 200.0
SECONDS = 40
ONSETS = np.arange(2.0, 38.0, 3.0)
NAMES = np.tile(["left", "right"], len(ONSETS) // 2)


def make_raw(
    his_id: str | None = None,
    names: tuple[str, ...] = ("C3", "Cz", "C4"),
    types: str = "eeg",
    rate: float = RATE,
    annotated: bool = True,
    first: int = 0,
) -> Any:
    """Twelve trials: a channel has a constant of its own, and 10 Hz for a second after "left".

    A sine of 50 Hz lies over everything.
    """
    times = np.arange(int(SECONDS * rate)) / rate
    signals = 1e-5 * (1 + np.arange(len(names)))[:, None] + np.zeros(len(times))
    for onset in ONSETS[::2]:
        during = (times >= onset) & (times < onset + 1)
        signals[:, during] += 1e-5 * np.sin(2 * np.pi * 10 * (times[during] - onset))
    signals += 5e-5 * np.sin(2 * np.pi * 50 * times)
    info = mne.create_info(list(names), rate, types)
    if his_id is not None:
        info["subject_info"] = {"his_id": his_id}
    raw = mne.io.RawArray(signals, info, first_samp=first, verbose="ERROR")
    if annotated:
        raw.set_annotations(mne.Annotations(ONSETS, 1.0, NAMES))
    return raw


def add_stimuli(raw: Any, codes: dict[str, int], samples: int = 5) -> Any:
    """Add a stimulus channel that has a code for some samples from each onset."""
    channel = np.zeros((1, raw.n_times))
    for onset, name in zip(ONSETS, NAMES, strict=True):
        start = round(onset * raw.info["sfreq"])
        channel[0, start : start + samples] = codes[str(name)]
    info = mne.create_info(["STI"], raw.info["sfreq"], "stim")
    stimuli = mne.io.RawArray(channel, info, first_samp=raw.first_samp, verbose="ERROR")
    return raw.add_channels([stimuli], force_update_info=True)


def save(raw: Any, path: Path) -> Path:
    """Write a FIF file as MNE does."""
    raw.save(path, verbose="ERROR")
    return path
