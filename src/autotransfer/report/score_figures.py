"""The paper's two pictures, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from autotransfer.leakage.result import Estimate
from autotransfer.report.formatting import short
from autotransfer.report.theme import Theme, new_figure

MOST_NAMES = 45
"""Most people that are named in a picture."""


@dataclass(frozen=True)
class Row:
    """Scores of a method.

    Parameters
    ----------
    name : str
        The method.
    scores : sequence of float
        One for each person.
    role : {"chosen", "baseline", ""}
        What it is.
    mark : str
        The same in the words of the picture.
    """

    name: str
    scores: Sequence[float]
    role: str = ""
    mark: str = ""


def methods_figure(rows: Sequence[Row], chance: float, theme: Theme, stamp: str = "") -> Figure:
    """Draw the test score of every person with every method, and the means."""
    figure, (ax,) = new_figure(0.9 + 0.46 * len(rows) + 0.2 * bool(stamp), theme, stamp)
    rng = np.random.default_rng(0)
    colours = {"chosen": theme.chosen, "baseline": theme.baseline}
    for place, row in enumerate(rows):
        colour = colours.get(row.role, theme.quiet)
        scores = 100 * np.asarray(row.scores, np.float64)
        spread = rng.uniform(-0.12, 0.12, len(scores))
        ax.scatter(scores, place + spread, s=17, color=colour, alpha=0.55, linewidth=0)
        mean = float(scores.mean())
        marker = "s" if row.role == "chosen" else "D"
        ax.plot(
            mean,
            place,
            marker,
            ms=7,
            color=colour,
            markeredgecolor=theme.paper,
            markeredgewidth=1.2,
        )
        bold = "bold" if row.role else "normal"
        along = ax.get_yaxis_transform()
        words = short(row.name, 46) + (f" ({row.mark})" if row.mark else "")
        ax.text(0.0, place - 0.24, words, transform=along, va="bottom", fontweight=bold, fontsize=8)
        ax.text(
            1.0,
            place - 0.24,
            f"mean {mean:.1f}",
            transform=along,
            va="bottom",
            ha="right",
            fontweight=bold,
            fontsize=8,
        )
    _mark_chance(ax, chance, theme)
    ax.set_ylim(len(rows) - 0.6, -0.75)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.set_xlabel("balanced accuracy on unseen people, %")
    return figure


def people_figure(
    baseline: Mapping[str, float],
    chosen: Mapping[str, float] | None,
    chance: float,
    theme: Theme,
    stamp: str = "",
    before_is: str = "uncensored",
) -> Figure:
    """Draw each person's test score without and with what was chosen, sorted by the former."""
    people = sorted(baseline, key=lambda person: baseline[person])
    before = 100 * np.array([baseline[person] for person in people])
    after = None
    if chosen is not None:
        after = 100 * np.array([chosen.get(person, np.nan) for person in people])
    named = len(people) <= MOST_NAMES
    height = 1.2 + 0.2 * len(people) if named else 3.4
    figure, (ax,) = new_figure(height, theme, stamp)
    place = np.arange(len(people))
    if after is not None:
        gain = after - before
        for colour, rows in ((theme.chosen, gain > 1e-7), (theme.placebo, gain < -1e-7)):
            (ax.hlines if named else ax.vlines)(
                place[rows], before[rows], after[rows], color=colour, linewidth=1.8, alpha=0.75
            )
    _dots(ax, before, place, named, "o", theme.paper, theme.baseline, before_is)
    if after is not None:
        _dots(ax, after, place, named, "s", theme.chosen, theme.chosen, "chosen")
    if named:
        ax.set_yticks(place, [short(person) for person in people])
        ax.tick_params(axis="y", length=0, labelsize=8)
        ax.set_ylim(-0.7, len(people) - 0.3)
        ax.set_ylabel("person")
        ax.set_xlabel("balanced accuracy, %")
    else:
        ax.set_xlabel(f"{len(people)} people, sorted by the {before_is} score")
        ax.set_ylabel("balanced accuracy, %")
    ax.grid(axis="x" if named else "y", linewidth=0.6)
    ax.set_axisbelow(True)
    _mark_chance(ax, chance, theme, upright=named)
    if after is not None:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return figure


def levels_figure(
    curves: Mapping[str, Mapping[int | None, Estimate]],
    reference: float | None,
    chance: float,
    theme: Theme,
    stamp: str = "",
    uncensored: Mapping[str, Mapping[int | None, Estimate]] | None = None,
) -> Figure:
    """Draw accuracy against what is known of a new person.

    Parameters
    ----------
    curves : mapping
        "recording" and "labels" -> amount -> mean over people with its interval; amount 0 is
        nothing, None is all there is. "stream" has one amount.
    reference : float or None
        Mean of the classical pipeline, with nothing.
    chance, theme, stamp
        As for the other pictures.
    uncensored : mapping, optional
        The same curves without the censor of the answer.
    """
    sides = {"recording": "trials without labels", "labels": "labels of each class"}
    shown = {level: words for level, words in sides.items() if len(curves.get(level, {})) > 1}
    figure, axes = new_figure(3.1, theme, stamp, columns=max(len(shown), 1))
    colours = {"recording": theme.chosen, "labels": theme.placebo}
    for ax, (level, words) in zip(axes, shown.items(), strict=False):
        curve = curves[level]
        place = np.arange(len(curve))
        mean, low, high = (
            100 * np.array([getattr(one, name) for one in curve.values()])
            for name in ("value", "low", "high")
        )
        ax.fill_between(place, low, high, color=colours[level], alpha=0.18, linewidth=0)
        marker = "o" if level == "recording" else "s"
        ax.plot(place, mean, marker=marker, ms=4.5, color=colours[level], label=level)
        other = (uncensored or {}).get(level, {})
        shared = [(i, other[amount]) for i, amount in enumerate(curve) if amount in other]
        if shared:
            means = [100 * one.value for _, one in shared]
            ax.plot([i for i, _ in shared], means, ":", color=theme.baseline, label="uncensored")
        names = ["all" if amount is None else str(amount) for amount in curve]
        ax.set_xticks(place, names)
        ax.set_xlabel(words)
        if level == "recording":
            for one in curves.get("stream", {}).values():
                ax.plot(
                    place[-1] + 0.35,
                    100 * one.value,
                    "D",
                    ms=5,
                    color=theme.many[2],
                    label="stream",
                    linestyle="none",
                )
        if reference is not None:
            ax.axhline(100 * reference, color=theme.quiet, linewidth=1, label="classical pipeline")
        ax.grid(axis="y", linewidth=0.6)
        ax.set_axisbelow(True)
    drawn = [one for level in shown for one in curves[level].values()]
    points = [one.value for one in curves.get("stream", {}).values()]
    points += [] if reference is None else [reference]
    lows = [100 * value for value in [*(one.low for one in drawn), *points]]
    highs = [100 * value for value in [*(one.high for one in drawn), *points]]
    bottom = min(lows)
    near = bottom - 100 * chance < 0.6 * (max(highs) - bottom)
    for ax in axes:
        if near:  # else it would press all lines together
            _mark_chance(ax, chance, theme, upright=False)
        ax.set_ylim(100 * chance - 2 if near else bottom - 2, min(max(highs) + 2, 101))
    for ax in axes[1:]:
        ax.tick_params(labelleft=False)
    axes[0].set_ylabel("balanced accuracy, %")
    named = [pair for ax in axes for pair in zip(*ax.get_legend_handles_labels(), strict=True)]
    first = {name: handle for handle, name in reversed(named)}
    figure.legend(
        first.values(), first.keys(), loc="outside lower center", ncols=len(first), fontsize=7.5
    )
    return figure


def confusion_figure(
    counts: npt.NDArray[np.int64], names: Sequence[str], theme: Theme, stamp: str = ""
) -> Figure:
    """Draw shares of each true class that were taken for each class, with counts."""
    n = len(counts)
    total = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, total, out=np.zeros(counts.shape), where=total > 0)
    figure, (ax,) = new_figure(min(5.2, 1.5 + 0.7 * n), theme, stamp)
    shades = theme.shades
    ax.imshow(shares, cmap=shades, vmin=0, vmax=1, aspect="auto")
    if n <= 12:
        for i, j in np.ndindex(n, n):
            red, green, blue, _ = shades(float(shares[i, j]))
            bright = 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
            ax.text(
                j,
                i,
                f"{100 * shares[i, j]:.0f} %\n{counts[i, j]}",
                ha="center",
                va="center",
                color="#10161c" if bright else "#ffffff",
                fontsize=9 if n <= 6 else 7,
            )
    labels = [short(name) for name in names]
    ax.set_xticks(
        range(n), labels, rotation=0 if n <= 5 else 60, ha="center" if n <= 5 else "right"
    )
    ax.set_yticks(range(n), labels)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("class that the model said")
    ax.set_ylabel("true class")
    return figure


def _dots(
    ax: Axes,
    scores: npt.NDArray[np.float64],
    place: npt.NDArray[np.intp],
    named: bool,
    marker: str,
    face: str,
    edge: str,
    label: str,
) -> None:
    x, y = (scores, place) if named else (place, scores)
    size = 5.5 if named else 3.0
    ax.plot(
        x,
        y,
        marker,
        ms=size,
        color=edge,
        markerfacecolor=face,
        markeredgewidth=1.3,
        label=label,
        linestyle="none",
    )


def _mark_chance(ax: Axes, chance: float, theme: Theme, upright: bool = True) -> None:
    mark = ax.axvline if upright else ax.axhline
    mark(100 * chance, color=theme.quiet, linestyle="--", linewidth=1, label="guessing", zorder=0)
