"""Pictures of scores: of methods, of people, and of what is known of a new person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from autotransfer.leakage.result import Estimate
from autotransfer.report.figures.theme import Sheet, Theme, figure_of
from autotransfer.text import short, short_names

MOST_NAMES = 45
"""Most people that are named in a picture."""

_ENDS = (np.nanmin, np.nanmax)


@dataclass(frozen=True)
class Row:
    """Scores of a method, or of a class.

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


def draw_rows(
    rows: Sequence[Row],
    chance: float,
    sheet: Sheet,
    of: str = "balanced accuracy on unseen people, %",
) -> Axes:
    """Draw the score of every person in every row, and the means."""
    (ax,) = sheet.axes(0.9 + 0.46 * len(rows) + 0.2 * bool(sheet.stamp))
    rng = np.random.default_rng(0)
    theme = sheet.theme
    colours = {"chosen": theme.chosen, "baseline": theme.baseline}
    for place, row in enumerate(rows):
        colour = colours.get(row.role, theme.quiet)
        scores = 100 * np.asarray(row.scores, np.float64)
        spread = rng.uniform(-0.12, 0.12, len(scores))
        ax.scatter(scores, place + spread, s=17, color=colour, alpha=0.55, linewidth=0)
        mean = float(scores.mean())
        marker = "s" if row.role == "chosen" else "D"
        edge = {"markeredgecolor": theme.paper, "markeredgewidth": 1.2}
        ax.plot(mean, place, marker, ms=7, color=colour, **edge)  # type: ignore[arg-type]
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
    ax.set_xlabel(of)
    return ax


def draw_people(
    scores: Mapping[str, Mapping[str, float]], chance: float | None, sheet: Sheet
) -> Axes:
    """Draw each person's scores as marks on a line, sorted by the first of them.

    Parameters
    ----------
    scores : mapping of str to mapping of str to float
        What they are of, from the least to the most that is known or done -> person -> balanced
        accuracy. Of two, gains and losses are coloured.
    chance : float or None
        What guessing gives.
    sheet : Sheet
        Where to draw.
    """
    theme = sheet.theme
    first, *others = scores.items()
    before = dict(first[1])
    people = sorted(before, key=lambda person: before[person])
    values = {
        name: 100 * np.array([own.get(person, np.nan) for person in people])
        for name, own in (first, *others)
    }
    named = len(people) <= MOST_NAMES
    (ax,) = sheet.axes(1.2 + 0.2 * len(people) if named else 3.4)
    place = np.arange(len(people))
    lines = ax.hlines if named else ax.vlines
    columns = list(values.values())
    if len(columns) == 2:
        gain = columns[1] - columns[0]
        for colour, rows in ((theme.chosen, gain > 1e-7), (theme.placebo, gain < -1e-7)):
            ends = columns[0][rows], columns[1][rows]
            lines(place[rows], *ends, color=colour, linewidth=1.8, alpha=0.75)
    elif len(columns) > 2:
        low, high = (end(np.array(columns), axis=0) for end in _ENDS)
        lines(place, low, high, color=theme.faint, linewidth=2.2, zorder=1)
    looks = [
        ("o", theme.paper, theme.baseline),
        ("s", theme.chosen, theme.chosen),
        ("D", theme.placebo, theme.placebo),
        ("^", theme.many[2], theme.many[2]),
    ]
    for (name, own), look in zip(values.items(), looks, strict=False):
        _dots(ax, own, place, named, *look, name)
    if named:
        ax.set_yticks(place, short_names(people))
        ax.tick_params(axis="y", length=0, labelsize=8)
        ax.set_ylim(-0.7, len(people) - 0.3)
        ax.set_ylabel("person")
        ax.set_xlabel("balanced accuracy, %")
    else:
        ax.set_xlabel(f"{len(people)} people, sorted by the score: {first[0]}")
        ax.set_ylabel("balanced accuracy, %")
    ax.grid(axis="x" if named else "y", linewidth=0.6)
    ax.set_axisbelow(True)
    if chance is not None and _is_near(chance, *(f(list(values.values())) for f in _ENDS)):
        _mark_chance(ax, chance, theme, upright=named)
    columns_of_names = 3 if len(ax.get_legend_handles_labels()[0]) <= 3 else 2
    if others and sheet.on is not None:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns_of_names)
    elif others:  # of the figure: beside long names axes are narrower than the legend
        figure_of(ax).legend(loc="outside upper center", ncols=columns_of_names)
    return ax


def draw_levels(
    curves: Mapping[str, Mapping[int | None, Estimate]],
    reference: float | None,
    chance: float,
    sheet: Sheet,
    uncensored: Mapping[str, Mapping[int | None, Estimate]] | None = None,
) -> list[Axes]:
    """Draw accuracy against what is known of a new person.

    Parameters
    ----------
    curves : mapping
        "recording" and "labels" -> amount -> mean over people with its interval; amount 0 is
        nothing, None is all there is. "stream" has one amount.
    reference : float or None
        Mean of the classical pipeline, with nothing.
    chance : float
        What guessing gives.
    sheet : Sheet
        Where to draw.
    uncensored : mapping, optional
        The same curves without the censor of the answer.
    """
    sides = {"recording": "trials without labels", "labels": "labels of each class"}
    shown = {level: words for level, words in sides.items() if len(curves.get(level, {})) > 1}
    axes = sheet.axes(3.1, columns=max(len(shown), 1))
    theme = sheet.theme
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
    near = _is_near(chance, bottom, max(highs))
    for ax in axes:
        if near:
            _mark_chance(ax, chance, theme, upright=False)
        ax.set_ylim(100 * chance - 2 if near else bottom - 2, min(max(highs) + 2, 101))
    for ax in axes[1:]:
        ax.tick_params(labelleft=False)
    axes[0].set_ylabel("balanced accuracy, %")
    named = [pair for ax in axes for pair in zip(*ax.get_legend_handles_labels(), strict=True)]
    first = {name: handle for handle, name in reversed(named)}
    figure_of(axes).legend(
        first.values(), first.keys(), loc="outside lower center", ncols=len(first), fontsize=7.5
    )
    return axes


def _is_near(chance: float, low: float, high: float) -> bool:
    """Tell whether guessing can be drawn without pressing all scores, in percent, together."""
    return bool(low - 100 * chance < 0.6 * (high - low))


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
