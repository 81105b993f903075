"""Pictures of latents and of how they came about: leakage, maps, learning curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from autotransfer.report.figures.theme import MARKERS, Sheet, Theme
from autotransfer.text import short_names

ROLES = {"baseline": "o", "chosen": "s", "placebo": "^"}
"""Methods whose latents are probed, with their markers."""

MOST_IN_LEGEND = 12
"""Most people or classes that a map names."""


@dataclass(frozen=True)
class Leak:
    """How often a probe recognises the person from part of a latent.

    Parameters
    ----------
    role : str
        Whose latent: a name in `ROLES`.
    part : str
        Part of the latent: "z", "z1", "z2", "z given y".
    value, low, high : float
        Balanced accuracy of the probe, and its interval.
    chance : float
        What guessing gives.
    subjects : int
        People among whom it has to tell.
    name : str
        Of the role, as the reader is told it.
    """

    role: str
    part: str
    value: float
    low: float
    high: float
    chance: float
    subjects: int
    name: str


def draw_leakage(leaks: Sequence[Leak], sheet: Sheet) -> Axes:
    """Draw how well the person is recognised from each part of each latent."""
    parts = list(dict.fromkeys(leak.part for leak in leaks))
    roles = [role for role in ROLES if any(leak.role == role for leak in leaks)]
    (ax,) = sheet.axes(1.1 + len(parts) * (0.25 + 0.17 * len(roles)))
    theme = sheet.theme
    for leak in leaks:
        place, nth = parts.index(leak.part), roles.index(leak.role)
        y = place + 0.24 * (nth - (len(roles) - 1) / 2)
        colour = getattr(theme, leak.role)
        ax.plot([100 * leak.low, 100 * leak.high], [y, y], color=colour, linewidth=1.6)
        ax.plot(
            100 * leak.value,
            y,
            ROLES[leak.role],
            ms=7,
            color=colour,
            markeredgecolor=theme.paper,
            label=leak.name,
        )
        ax.plot(
            [100 * leak.chance] * 2,
            [place - 0.45, place + 0.45],
            color=theme.quiet,
            linestyle="--",
            linewidth=1,
            label="guessing",
            zorder=0,
        )
    ax.set_yticks(range(len(parts)), parts)
    ax.set_ylim(len(parts) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.set_xlabel("how often a probe recognises the person, %")
    handles, labels = ax.get_legend_handles_labels()
    handle_of = dict(zip(labels, handles, strict=True))
    names = [*dict.fromkeys(leak.name for leak in leaks), "guessing"]
    ax.legend(
        [handle_of[name] for name in names],
        names,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=4,
        handletextpad=0.4,
        columnspacing=1.2,
    )
    return ax


def draw_maps(maps: Mapping[str, Mapping[str, Any]], sheet: Sheet) -> list[Axes]:
    """Draw trials as points of a plane, coloured by person and by class.

    Parameters
    ----------
    maps : mapping
        Title -> ``points``, ``subject`` and ``label`` of trials; one or two.
    sheet : Sheet
        Where to draw.
    """
    n = len(maps)
    axes = sheet.axes(6.4 if n > 1 else 4.0, 2 if n > 1 else 1, 2)
    for place, (title, trials) in enumerate(maps.items()):
        for nth, (key, by) in enumerate((("subject", "person"), ("label", "class"))):
            ax = axes[nth * n + place] if n > 1 else axes[nth]
            _scatter(ax, np.asarray(trials["points"]), list(trials[key]), sheet.theme)
            ax.set_title(f"{title}, by {by}")
    # The first panel is one by person, the last one by class.
    for ax in (axes[0], axes[-1]):
        handles, labels = ax.get_legend_handles_labels()
        if len(labels) <= MOST_IN_LEGEND:
            ax.legend(
                handles,
                short_names(labels, 16),
                loc="upper center",
                bbox_to_anchor=(0.5, -0.02),
                ncols=2,
                markerscale=1.6,
                handletextpad=0.2,
                columnspacing=0.8,
                fontsize=7.5,
            )
    return axes


def _scatter(ax: Axes, points: npt.NDArray[np.float64], names: Sequence[str], theme: Theme) -> None:
    for nth, name in enumerate(sorted(set(names), key=_natural)):
        of_name = np.array([other == name for other in names])
        ax.scatter(
            points[of_name, 0],
            points[of_name, 1],
            s=11,
            color=theme.many[nth % len(theme.many)],
            # Ten markers and eight colours: eighty people before a pair comes again.
            marker=MARKERS[(nth // len(theme.many) + nth) % len(MARKERS)],
            linewidth=0,
            alpha=0.8,
            label=name,
            rasterized=True,
        )
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(True)
    ax.spines[:].set_color(theme.faint)


def _natural(name: str) -> tuple[int, str]:
    return (len(name), name)


def draw_curves(curves: Sequence[Mapping[str, Any]], sheet: Sheet) -> list[Axes]:
    """Draw losses, and the penalty if there is one, over epochs: thin for trials, thick the mean.

    Parameters
    ----------
    curves : sequence of mapping
        One for each trial: name -> one number for each epoch, and ``best_epoch``.
    sheet : Sheet
        Where to draw.
    """
    censored = any("penalty" in curve for curve in curves)
    axes = sheet.axes(4.4 if censored else 2.9, 2 if censored else 1)
    theme = sheet.theme
    panels = [
        (axes[0], "task_loss", "training people", theme.baseline, "-"),
        (axes[0], "validation_loss", "validation people", theme.chosen, "--"),
    ]
    axes[0].set_ylabel("task loss")
    if censored:
        panels.append((axes[1], "penalty", "penalty", theme.placebo, "-"))
        axes[1].set_ylabel("penalty of the censor")
    for ax, name, label, colour, line in panels:
        lines = [_numbers(curve[name]) for curve in curves if name in curve]
        for each in lines:
            ax.plot(np.arange(1, len(each) + 1), each, line, color=colour, linewidth=0.6, alpha=0.3)
        mean = mean_curve(lines)
        ax.plot(np.arange(1, len(mean) + 1), mean, line, color=colour, linewidth=2.2, label=label)
    epoch = float(np.median([curve["best_epoch"] for curve in curves]))
    for ax in axes:
        ax.axvline(epoch, color=theme.quiet, linestyle=":", label="epoch kept (median)")
        ax.grid(axis="y", linewidth=0.6)
        ax.set_axisbelow(True)
    axes[0].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    axes[-1].set_xlabel("epoch")
    axes[-1].sharex(axes[0])
    axes[0].xaxis.set_major_locator(MaxNLocator(integer=True))
    return axes


def mean_curve(lines: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """Average curves of unequal length, as far as at least half of them go.

    Examples
    --------
    >>> mean_curve([np.array([1.0, 3.0]), np.array([3.0])])
    array([2., 3.])
    """
    if not lines:
        return np.zeros(0)
    longest = max(map(len, lines))
    table = np.full((len(lines), longest), np.nan)
    for row, line in zip(table, lines, strict=True):
        row[: len(line)] = line
    count = np.isfinite(table).sum(axis=0)
    # Where trials have stopped early the rest would be a mean over others.
    enough = count * 2 >= len(lines)
    return np.asarray(np.nanmean(table[:, enough], axis=0), np.float64)


def _numbers(values: Sequence[float | None]) -> npt.NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], np.float64)
