"""Pictures of filters: where on the body and at which frequencies a network listens."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from autotransfer.report.figures.theme import Sheet
from autotransfer.text import short_names

Floats = npt.NDArray[np.float64]

MOST_FILTERS = 4
"""Filters in a picture."""

PLACES = ("colin27_1005", "standard_1005")
"""MNE's names of the places of electrodes."""

MOST_CHANNELS = 16
"""Most channels whose bars are named."""


def draw_filters(
    spatial: Floats,
    response: Floats,
    frequencies: Floats,
    channels: Sequence[str],
    sheet: Sheet,
    in_hertz: bool = True,
) -> list[Axes]:
    """Draw spatial filters, each beside the gain of its temporal filter.

    Where all channels have a known place on the head, and MNE is installed, as topographies;
    otherwise as bars.

    Parameters
    ----------
    spatial : ndarray of float of shape (n_filters, n_channels)
        Weights of channels; the first few filters are drawn.
    response : ndarray of float of shape (n_filters, n_frequencies)
        Gains.
    frequencies : ndarray of float of shape (n_frequencies,)
        Of these.
    channels : sequence of str
        Names.
    sheet : Sheet
        Where to draw.
    in_hertz : bool
        Whether frequencies are in Hz, and not in cycles per sample.
    """
    n = min(MOST_FILTERS, len(spatial))
    axes = sheet.axes(0.5 + 1.15 * n, n, 2)
    theme, places = sheet.theme, places_of(channels)
    for i in range(n):
        where, spectrum = axes[2 * i], axes[2 * i + 1]
        if places is not None:
            _topography(where, spatial[i], places, sheet)
        else:
            colours = [theme.chosen if value > 0 else theme.placebo for value in spatial[i]]
            where.bar(range(len(channels)), spatial[i], color=colours)
            where.axhline(0, color=theme.quiet, linewidth=0.8)
            where.set_ylim(-1.1, 1.1)
            where.set_yticks([])
            named = len(channels) <= MOST_CHANNELS
            where.set_xticks(
                range(len(channels)) if named and i == n - 1 else [],
                short_names(channels, 8) if named and i == n - 1 else [],
                rotation=60 if max(map(len, channels)) > 2 else 0,
                fontsize=7,
            )
        spectrum.fill_between(frequencies, 0, response[i], color=theme.chosen, alpha=0.25)
        spectrum.plot(frequencies, response[i], color=theme.chosen, linewidth=1.2)
        spectrum.set_yticks([])
        spectrum.set_ylim(0, 1.08)
        spectrum.set_xlim(0, frequencies[-1])
        if i < n - 1:
            spectrum.tick_params(labelbottom=False)
    axes[0].set_title("weight of channels")
    axes[1].set_title("gain of frequencies")
    axes[2 * n - 1].set_xlabel("frequency, Hz" if in_hertz else "frequency, cycles per sample")
    return axes


def places_of(channels: Sequence[str]) -> Any:
    """Give MNE's description of channels that all have a known place on the head, or None."""
    if find_spec("mne") is None or len(set(channels)) < max(4, len(channels)):
        return None
    import mne

    # MNE 1.13 gave the extended 10-20 system another name.
    name = next(n for n in PLACES if n in mne.channels.get_builtin_montages())
    montage = mne.channels.make_standard_montage(name)
    known = {name.lower(): name for name in montage.ch_names}
    if not all(name.lower() in known for name in channels):
        return None
    info = mne.create_info([known[name.lower()] for name in channels], 1.0, "eeg", verbose="error")
    return info.set_montage(montage, verbose="error")


def _topography(ax: Axes, weights: Floats, places: Any, sheet: Sheet) -> None:
    import mne

    mne.viz.plot_topomap(
        weights,
        places,
        axes=ax,
        show=False,
        contours=0,
        cmap="RdBu_r",
        vlim=(-1.0, 1.0),
        sensors=True,
        extrapolate="local",  # nothing is known far from electrodes
    )
    # MNE draws the head in black, which nobody sees on dark paper.
    for line in ax.lines:
        line.set_color(sheet.theme.ink)
