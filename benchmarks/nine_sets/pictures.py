"""Pictures of the nine data sets: who is how good in how many minutes, by whom, at what price."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from autotransfer.report.figures.theme import LIGHT, MARKERS
from autotransfer.search.levels.cases import OTHER
from benchmarks.accuracy.levels import CHOSEN
from benchmarks.censors.evidence_tables import UNCENSORED
from benchmarks.common.recordings import SETS, SHOWN
from benchmarks.nine_sets.censoring import ALL, EEGNET
from benchmarks.nine_sets.today import ONE_COMMAND
from benchmarks.peers.methods import NOTHING

WIDE = 8.4
"""Inches: the width of a page."""


def new_people(rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw what one command gives of somebody new, by what is known of them: a line of each set.

    Parameters
    ----------
    rows : sequence of dict
        The table in short of ``accuracy/hands_off.py``.
    """
    found = {row["data"]: row for row in rows}
    names = [name for name in sorted(SETS, key=SHOWN.__getitem__) if name in found]
    made = Figure((WIDE, 0.37 * len(names) + 1.1), layout="constrained")
    ax = made.subplots()
    ways = (
        ("guessing", LIGHT.quiet, "|", 7.0),
        ("classical pipeline", LIGHT.quiet, "s", 5.0),
        ("nothing of the new person", LIGHT.chosen, "o", 8.0),
        ("a recording, no labels", LIGHT.many[2], "^", 8.0),
        ("five labels of each class", LIGHT.placebo, "D", 7.0),
    )
    for place, name in enumerate(names):
        row = found[name]
        levels = [row["nothing"], row["recording"], row["5 labels"]]
        shares = [1 / row["classes"], row["classical pipeline"], *levels]
        reached = [100 * share for share in levels if share is not None]
        ax.plot([min(reached), max(reached)], [place] * 2, color=LIGHT.faint, lw=4, zorder=1)
        for (words, color, marker, size), share in zip(ways, shares, strict=True):
            if share is not None:
                ax.plot(
                    100 * share,
                    place,
                    color=color,
                    marker=marker,
                    markersize=size,
                    linestyle="",
                    label=words,
                )
    shown = [f"{SHOWN[name]}: {found[name]['classes']} classes" for name in names]
    ax.set_yticks(range(len(names)), shown)
    ax.set(xlim=(0, 101), ylim=(-0.5, len(names) - 0.5))
    ax.set_xlabel("balanced accuracy of new people, %", fontsize="medium")
    ax.grid(axis="x")
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    _legend(made, columns=5)
    return made


def minutes(rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw accuracy against the computing time of each method: a panel for each data set."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    others = list(
        dict.fromkeys(
            row["method"]
            for row in rows
            if row["CPU min"] and not row["method"].startswith(ONE_COMMAND)
        )
    )
    made, axes = panels(len(names), columns=3, each=2.1, more=0.9)
    for ax, name in zip(axes, names, strict=True):
        mine = [row for row in rows if row["data"] == name and row["CPU min"]]
        runs = [row for row in mine if row["method"].startswith(ONE_COMMAND)]
        ax.plot(
            [row["CPU min"] for row in runs],
            [row["mean"] for row in runs],
            color=LIGHT.chosen,
            marker="o",
            label="one command, budget by budget",
        )
        for k, method in enumerate(others, 1):
            for row in mine:
                if row["method"] == method:
                    uses = "" if row["of the new person"] == NOTHING else " *"
                    ax.plot(
                        row["CPU min"],
                        row["mean"],
                        color=LIGHT.many[k % len(LIGHT.many)],
                        marker=MARKERS[k % len(MARKERS)],
                        linestyle="",
                        label=method + uses,
                    )
        ax.set(xscale="log", title=SHOWN.get(name, name))
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.margins(0.12, 0.2)
        span_at_least(ax, 0.15)
    words = "minutes of one core, all groups of people"
    if any(row["CPU min"] and row["of the new person"] != NOTHING for row in rows):
        words += " (* with unlabelled trials of the new person)"
    made.supxlabel(words, fontsize="medium")
    made.supylabel("balanced accuracy of new people", fontsize="medium")
    _legend(made)
    return made


def more_people(rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw what more people to train on are worth, beside more of the new one."""
    made = Figure((WIDE, 3.4), layout="constrained")
    axes = made.subplots(1, 2, sharey=True)
    for (words, level, method), color, marker in zip(
        (
            ("nothing of the new person", "nothing", ""),
            ("a recording", "recording", CHOSEN),
            ("five labels of each gesture", "labels", CHOSEN),
        ),
        (LIGHT.baseline, LIGHT.chosen, LIGHT.placebo),
        MARKERS,
        strict=False,
    ):
        mine = [
            row
            for row in rows
            if (row["level"], row["tested"], row["method"]) == (level, OTHER, method)
        ]
        mine.sort(key=lambda row: row["trained on"])
        for ax, figure in zip(axes, ("mean", "lower quartile"), strict=True):
            people = [row["trained on"] for row in mine]
            heights = [row[figure] for row in mine]
            ax.plot(people, heights, color=color, marker=marker, label=words)
            ax.set(xscale="log", title=f"{figure} of people")
            ax.set_xticks(people, [str(n) for n in people])
            ax.minorticks_off()
            ax.margins(0.08, 0.15)
            for place, height in zip(people, heights, strict=True):
                write_score(ax, place, height)
    made.supxlabel("people trained on", fontsize="medium")
    made.supylabel("balanced accuracy of new people", fontsize="medium")
    _legend(made)
    return made


def censored(rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw what censors take from the latent against what new people gain by them."""
    cells = [row for row in rows if not row["censor"].startswith(UNCENSORED)]
    names = list(dict.fromkeys(_where(row) for row in cells))
    censors = list(dict.fromkeys(_censor(row) for row in cells))
    made, axes = panels(len(names), columns=4, each=2.0, more=1.2, sharex=True, sharey=True)
    for ax, name in zip(axes, names, strict=True):
        ax.axhline(0, color=LIGHT.faint, zorder=0)
        ax.axvline(0, color=LIGHT.faint, zorder=0)
        for row in cells:
            if _where(row) != name:
                continue
            k = censors.index(_censor(row))
            low, high = (float(end) for end in row["95 % interval"].split(" to "))
            up = row["accuracy up"]
            ax.errorbar(
                row["probe less"],
                up,
                yerr=[[up - low], [high - up]],
                color=LIGHT.many[k % len(LIGHT.many)],
                marker=MARKERS[k % len(MARKERS)],
                mfc="none" if _is_placebo(row) else None,
                markersize=5,
                elinewidth=0.7,
                linestyle="",
                label="_" if _is_placebo(row) else censors[k],  # named once, as what is filled
            )
        ax.set_title(name, fontsize="medium")
    made.supxlabel(
        "how much less a probe finds of the person (hollow: placebo, shuffled people)",
        fontsize="medium",
    )
    made.supylabel("accuracy of new people, up by", fontsize="medium")
    _legend(made)
    return made


def _where(row: dict[str, Any]) -> str:
    """Name a panel: the data set, and what is unusual about its trials or its encoder."""
    words = [SHOWN.get(row["data"], row["data"])]
    words += [row["trials"]] * (row["trials"] != ALL)
    words += [row["encoder"]] * (row["encoder"] != EEGNET)
    return "\n".join(words)


def _censor(row: dict[str, Any]) -> str:
    return str(row["censor"]).removesuffix(" placebo")


def _is_placebo(row: dict[str, Any]) -> bool:
    return str(row["censor"]).endswith(" placebo")


def panels(
    n: int,
    columns: int,
    each: float,
    more: float,
    sharex: bool = False,
    sharey: bool = False,
) -> tuple[Figure, list[Axes]]:
    """Make a figure of n panels as wide as a page, at most so many in a line.

    A line of them is `each` inches high, and what stands around them `more`.
    """
    columns = min(columns, n)
    lines = math.ceil(n / columns)
    made = Figure((WIDE, each * lines + more), layout="constrained")
    axes = made.subplots(lines, columns, squeeze=False, sharex=sharex, sharey=sharey).flat
    for ax in axes[n:]:
        ax.set_axis_off()
    return made, list(axes[:n])


def span_at_least(ax: Axes, span: float) -> None:
    """Widen the scale of the scores: a panel of small differences shall look like one."""
    low, high = ax.get_ylim()
    more = max(0.0, span - (high - low)) / 2
    ax.set_ylim(low - more, high + more)


def write_score(ax: Axes, place: float, height: float) -> None:
    """Write a score above its point."""
    words = f"{height:.2f}".lstrip("0")
    ax.annotate(
        words, (place, height), (0, 5), textcoords="offset points", ha="center", fontsize="small"
    )


def _legend(made: Figure, columns: int = 3) -> None:
    """Name what is drawn, each thing once, whichever panel it is in."""
    found: dict[Any, Any] = {}
    for ax in made.axes:
        handles, labels = ax.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    made.legend(list(found.values()), list(found), loc="outside upper center", ncols=columns)
