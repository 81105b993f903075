"""Draw the figures of the evidence from the files in `benchmarks/results/`.

    python -m benchmarks.drawings

Each figure names the digest of the file it was drawn from; a test fails when they differ.
"""

from __future__ import annotations

import hashlib
import io
import json
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from autotransfer.censoring import MEASURES, MODES
from autotransfer.report.figures.theme import LIGHT, MARKERS, drawing, to_svg
from autotransfer.search.budget import parse_budget
from autotransfer.search.levels.cases import OTHER
from benchmarks.accuracy.levels import CHOSEN
from benchmarks.censors.evidence_tables import NOTHING, OURS, UNCENSORED, Table
from benchmarks.censors.strength_tables import ESTIMATORS
from benchmarks.common import report
from benchmarks.common.recordings import RECORDINGS, SHOWN
from benchmarks.nine_sets.pictures import (
    WIDE,
    censored,
    minutes,
    more_people,
    new_people,
    panels,
    span_at_least,
    write_score,
)

RESULTS = Path(__file__).resolve().parent / "results"


def curves(
    rows: Sequence[dict[str, Any]], figure: str, of: str, zero: str, noise: str = ""
) -> Figure:
    """Draw a figure against strength: a row for each data set, a column for each mode.

    Parameters
    ----------
    rows : sequence of dict
        Of `benchmarks/censors/strengths.py`.
    figure : str
        Column to draw.
    of : str
        What it is, for the axis.
    zero : str
        Column of the level to compare with, or "" for 0.
    noise : str
        Column of the standard deviation of a training; a band of two of it is drawn.
    """
    names = list(dict.fromkeys(row["data"] for row in rows))
    made = Figure((WIDE, 2.4 * len(names) + 0.5), layout="constrained")
    axes = made.subplots(len(names), len(MODES), squeeze=False, sharey="row")
    for i, name in enumerate(names):
        for j, mode in enumerate(MODES):
            ax = axes[i][j]
            for k, measure in enumerate(MEASURES):
                for placebo in (False, True):
                    mine = [
                        row
                        for row in rows
                        if (row["data"], row["censor"]) == (name, f"{measure} {mode}")
                        and row["placebo"] == placebo
                        and row["estimator"] in ("", ESTIMATORS[0])
                    ]
                    if mine:
                        ax.plot(
                            [row["strength"] for row in mine],
                            [row[figure] for row in mine],
                            color=LIGHT.many[k],
                            marker=MARKERS[k],
                            markersize=4,
                            linestyle=":" if placebo else "-",
                            alpha=0.6 if placebo else 1.0,
                            label="" if placebo else measure,
                        )
            of_mode = [row for row in rows if row["data"] == name and mode in row["censor"]]
            level = of_mode[0][zero] if zero and of_mode else 0
            ax.axhline(level, color=LIGHT.baseline, linewidth=1)
            if noise and of_mode and of_mode[0][noise]:
                wide = 2 * of_mode[0][noise]
                ax.axhspan(level - wide, level + wide, color=LIGHT.faint, alpha=0.5, zorder=0)
            ax.set_xscale("log")
            ticks = sorted({row["strength"] for row in rows if row["strength"] > 0})
            # In words of our own: names of people may hold a $, so nothing is set as mathematics.
            ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            ax.minorticks_off()
            ax.grid(axis="y")
            ax.set_title(f"{name}, {mode}")
        axes[i][0].set_ylabel(of)
    band = "; grey: two SD of one training of the baseline" if noise else ""
    made.supxlabel(f"strength (dotted: placebo, shuffled subject labels{band})", fontsize="medium")
    handles, labels = axes[0][0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside upper center", ncols=len(MEASURES))
    return made


def methods(rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw mean and lower quartile of every method, data set by data set."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    most = max(sum(row["data"] == name for row in rows) for name in names)
    made = Figure((WIDE, 0.3 * most * len(names) + 1.5), layout="constrained")
    axes = made.subplots(len(names), 1, squeeze=False)[:, 0]
    for ax, name in zip(axes, names, strict=True):
        mine = [row for row in rows if row["data"] == name][::-1]
        at = np.arange(len(mine))
        for marker, column in (("o", "mean"), ("<", "lower quartile")):
            for where, row in zip(at, mine, strict=True):
                ours = row["method"].startswith(OURS)
                base = row["method"] == UNCENSORED
                colour = LIGHT.chosen if ours else LIGHT.baseline if base else LIGHT.quiet
                colour = colour if row["uses"] == NOTHING else LIGHT.placebo
                ax.plot(row[column], where, marker, color=colour)
        base = next(row for row in mine if row["method"] == UNCENSORED)
        for column in ("mean", "lower quartile"):
            ax.axvline(base[column], color=LIGHT.faint, zorder=0)
        # Options of a measure are for the table: three lines do not fit beside a point.
        short = [" ".join(w for w in row["method"].split() if "=" not in w) for row in mine]
        stars = ["" if row["uses"] == NOTHING else " *" for row in mine]
        labels = [words + star for words, star in zip(short, stars, strict=True)]
        ax.set_yticks(at, [textwrap.fill(label, 42) for label in labels])
        ax.set_ylim(-0.6, len(mine) - 0.4)
        ax.set_title(name)
    made.suptitle("Mean (circle) and lower quartile (triangle) over people never seen")
    made.supxlabel("balanced accuracy; * uses unlabelled data of the new person")
    return made


def known_and_new(rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw accuracy on new people against that on known ones: where a gap closes, points rise."""
    names = list(dict.fromkeys(row["data"] for row in rows))
    made = Figure((WIDE, 3.4), layout="constrained")
    axes = made.subplots(1, len(names), squeeze=False)[0]
    for ax, name in zip(axes, names, strict=True):
        mine = [row for row in rows if row["data"] == name]
        base = next(row for row in mine if row["censor"] == UNCENSORED)
        for k, measure in enumerate(MEASURES):
            of = [row for row in mine if row["censor"].split()[0] == measure]
            ax.plot(
                [row["known"] for row in of],
                [row["new"] for row in of],
                color=LIGHT.many[k],
                marker=MARKERS[k],
                linewidth=0.7,
                label=measure,
            )
        ax.plot(base["known"], base["new"], "*", color=LIGHT.baseline, markersize=12)
        low = min(min(row["known"], row["new"]) for row in mine) - 0.02
        high = max(max(row["known"], row["new"]) for row in mine) + 0.02
        ax.plot([low, high], [low, high], color=LIGHT.faint, zorder=0)
        ax.plot([low, high], [low + base["gap"], high + base["gap"]], ":", color=LIGHT.baseline)
        ax.set(xlim=(low, high), ylim=(low, high), aspect="equal", title=name)
    axes[0].set_ylabel("accuracy, the same people as new ones")
    made.supxlabel(
        "accuracy, people known to the model (star: uncensored; dotted: the same gap)",
        fontsize="medium",
    )
    handles, labels = axes[0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside upper center", ncols=len(MEASURES))
    return made


def gains(tables: Sequence[Table]) -> Figure:
    """Draw each person's gain with the choice against the baseline's score."""
    made = Figure((WIDE, 3), layout="constrained")
    axes = made.subplots(1, len(tables), squeeze=False)[0]
    for ax, table in zip(axes, tables, strict=True):
        base, mine = (table.of(s, "test") for s in (UNCENSORED, table.chosen()))
        for who, level in base.items():
            gain = mine[who] - level
            ax.plot(level, gain, "o", color=LIGHT.chosen if gain > 0 else LIGHT.placebo)
        ax.axhline(0, color=LIGHT.baseline, linewidth=1)
        ax.set_title(f"{table.name}: {table.chosen()}", wrap=True)
        ax.set_xlabel("uncensored")
    axes[0].set_ylabel("gain of balanced accuracy")
    return made


def anytime(rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw what a budget buys: accuracy on new people against minutes, a panel for each set."""
    quiet = [row for row in rows if len(row["case"].split()) == 2]
    counts = Counter(row["case"].split()[0] for row in quiet)
    names = [name for name, n in counts.items() if n > 1]  # of the others there is no curve
    made = Figure((WIDE, 3), layout="constrained")
    axes = made.subplots(1, len(names), squeeze=False)[0]
    for ax, name in zip(axes, names, strict=True):
        mine = [row for row in quiet if row["case"].split()[0] == name]
        mine.sort(key=lambda row: parse_budget(row["case"].split()[1]))
        minutes = [parse_budget(row["case"].split()[1]) / 60 for row in mine]
        for column, color, marker in (
            ("nested", LIGHT.chosen, "o"),
            ("first answer", LIGHT.baseline, "s"),
            ("classical", LIGHT.placebo, "^"),
        ):
            ax.plot(
                minutes, [row[column] for row in mine], color=color, marker=marker, label=column
            )
        ax.set(xscale="log", title=name, xticks=minutes, xticklabels=[f"{m:g}" for m in minutes])
        ax.minorticks_off()
    axes[0].set_ylabel("balanced accuracy of new people")
    made.supxlabel("budget in minutes, two workers", fontsize="medium")
    handles, labels = axes[0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside upper center", ncols=3)
    return made


def levels(rows: Sequence[dict[str, Any]]) -> Figure:
    """Draw what is known of a new person, and what it is worth: a panel for each data set."""
    shown = {
        "nothing": ("nothing", "all"),
        "recording": ("recording", "all"),
        "1 label": ("labels", "1"),
        "5 labels": ("labels", "5"),
    }
    found = {
        (row["data"], row["level"], row["amount"]): row
        for row in rows
        if row["tested"] == OTHER and row["method"] in ("", CHOSEN)
    }
    names = list(dict.fromkeys(row["data"] for row in rows))
    made, axes = panels(len(names), columns=3, each=1.9, more=0.7, sharex=True)
    for ax, name in zip(axes, names, strict=True):
        mine = {word: found.get((name, *case)) for word, case in shown.items()}
        for figure, color, marker in (
            ("mean", LIGHT.chosen, "o"),
            ("lower quartile", LIGHT.placebo, "v"),
        ):
            heights = [np.nan if row is None else row[figure] for row in mine.values()]
            ax.plot(list(mine), heights, color=color, marker=marker, label=f"{figure} of people")
            for place, height in enumerate(heights):
                if figure == "mean" and np.isfinite(height):
                    write_score(ax, place, height)
        ax.set_title(SHOWN.get(name, name))
        ax.margins(0.12, 0.2)
        span_at_least(ax, 0.4)
    made.supylabel("balanced accuracy of new people", fontsize="medium")
    handles, labels = made.axes[0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside upper center", ncols=2)
    return made


def _rows(text: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(text)["rows"]
    return found


def _tables(text: bytes) -> list[Table]:
    scores = pd.read_csv(io.BytesIO(text), dtype={"person": str})
    found = {str(name): mine for name, mine in scores.groupby("data")}
    return [Table(name, found[name]) for name in RECORDINGS if name in found]


DRAWINGS: dict[str, tuple[str, Callable[[bytes], Figure]]] = {
    "accuracy_and_strength": (
        "strengths.json",
        lambda text: curves(_rows(text), "gain", "gain over the uncensored", "", "noise"),
    ),
    "leakage_and_strength": (
        "strengths.json",
        lambda text: curves(_rows(text), "probe", "accuracy of the probe", "probe uncensored"),
    ),
    "known_and_new": ("gap.json", lambda text: known_and_new(_rows(text))),
    "methods": ("evidence.json", lambda text: methods(_rows(text))),
    "new_people": ("hands_off.json", lambda text: new_people(json.loads(text)["short"])),
    "hands_off": ("hands_off.json", lambda text: anytime(_rows(text))),
    "levels": ("levels.json", lambda text: levels(_rows(text))),
    "today": ("today.json", lambda text: minutes(_rows(text))),
    "more_people": ("more_people.json", lambda text: more_people(_rows(text))),
    "censored": ("censoring.json", lambda text: censored(_rows(text))),
    "gains": ("evidence.csv", lambda text: gains(_tables(text))),
}
"""Figure -> file of results, and how it is drawn."""


def mark(text: bytes) -> str:
    """Give what a figure says about the file that it was drawn from."""
    return f"<!-- drawn from {hashlib.sha256(text).hexdigest()} -->\n"


def main() -> None:
    args = report.arguments(report.parser(__doc__))
    rows = []
    for name, (source, draw) in DRAWINGS.items():
        file = RESULTS / source
        if file.exists():
            text = file.read_bytes()
            with drawing(LIGHT):
                picture = to_svg(draw(text)) + mark(text).encode()
            rows.append({"figure": f"{name}.svg", "from": source, "bytes": len(picture)})
            if not args.smoke:
                (RESULTS / f"{name}.svg").write_bytes(picture)
    report.finish(args, "Figures of the evidence", rows)


if __name__ == "__main__":
    main()
