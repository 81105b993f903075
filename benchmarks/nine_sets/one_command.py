"""One command on nine data sets, beside what a user would have done otherwise.

Nothing is trained here. The runs of 30 minutes that ``accuracy/hands_off.py`` has kept stand beside
their own classical pipeline and beside braindecode's EEGNet with its defaults, kept by
``nine_sets/today.py``; then what each level is worth in the same runs, by the first network of the
answer on other trials. That is one training; so the lower quartile is also followed through the
levels in the tables of three seeds that ``accuracy/levels.py`` has made. Differences are paired
over people, with a bootstrap interval and the Wilcoxon test, corrected after Holm for the number of
data sets. A data set whose run, or whose competitor, is missing counts as not met.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autotransfer.report.statistics import paired
from autotransfer.search.levels.cases import OTHER, SAME
from benchmarks.accuracy.levels import CHOSEN
from benchmarks.censors.evidence_tables import holm
from benchmarks.common import report
from benchmarks.common.recordings import SETS
from benchmarks.common.report import Goal

RESULTS = Path(__file__).parents[1] / "results"
BUDGET = "30m"
ALPHA = 0.05
BRAINDECODE = "braindecode"
BESIDE = ("classical", BRAINDECODE)
"""What one command has to be above."""

Scores = Mapping[str, float]


def runs(file: Path) -> dict[str, dict[str, Scores]]:
    """Read the runs: data set -> "one command", "classical" and levels -> person -> score."""
    found = {}
    for row in map(json.loads, file.read_text().splitlines() if file.exists() else ()):
        name, _, budget = row["case"].partition(" ")
        if budget == BUDGET:
            found[name] = {"one command": row["people"], **row["beside"]}
    return found


def competitors(file: Path) -> dict[str, dict[str, Scores]]:
    """Read what a user would do today: data set -> method -> person -> score.

    A method that is not finished on all groups of a data set is left out of it.
    """
    parts: dict[tuple[str, str, int], dict[int, Scores]] = {}
    for line in map(json.loads, file.read_text().splitlines() if file.exists() else ()):
        job = json.loads(line["key"])
        mine = parts.setdefault((job["dataset"], job["method"], job["groups"]), {})
        mine[job["group"]] = line["result"][SAME]
    found: dict[str, dict[str, Scores]] = {}
    for (name, method, n), groups in parts.items():
        if len(groups) == n:
            together = {who: score for one in groups.values() for who, score in one.items()}
            found.setdefault(name, {})[method] = together
    return found


def mean(scores: Scores) -> float:
    return float(np.mean(list(scores.values()))) if scores else np.nan


def quartile(scores: Scores) -> float:
    return float(np.percentile(list(scores.values()), 25)) if scores else np.nan


def compared(ours: Mapping[str, Scores], others: Mapping[str, Scores]) -> dict[str, Any]:
    """Compare two methods on every data set that both have.

    Returns
    -------
    dict
        Data set -> "above by", "95 % interval", and "p" after Holm.
    """
    found: dict[str, Any] = {}
    for name in ours:
        if name in others and (change := paired(ours[name], others[name])) is not None:
            low, high = change.difference.low, change.difference.high
            interval = f"{low:+.3f} to {high:+.3f}"
            found[name] = {
                "above by": change.difference.value,
                "95 % interval": interval,
                "p": change.p,
            }
    for one, p in zip(found.values(), holm([one["p"] for one in found.values()]), strict=True):
        one["p"] = p
    return found


def above(changes: Mapping[str, Any]) -> tuple[int, int, int]:
    """Count data sets: above in the mean, significantly above, significantly below."""
    sure = [one["above by"] for one in changes.values() if one["p"] < ALPHA]
    return (
        sum(one["above by"] > 0 for one in changes.values()),
        sum(value > 0 for value in sure),
        sum(value < 0 for value in sure),
    )


def pick(found: Mapping[str, Mapping[str, Scores]], method: str) -> dict[str, Scores]:
    """Take one method on every data set that has it."""
    return {name: methods[method] for name, methods in found.items() if method in methods}


LEVELS = ("nothing", "recording", "stream", "labels")
"""What is known of a new person, in the order of the table."""

NONE = {"above by": np.nan, "95 % interval": "", "p": np.nan}


def table(
    found: Mapping[str, Mapping[str, Scores]], changes: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Make the table of level nothing: a row of each data set that has a run."""
    rows = []
    for name in SETS:
        if "one command" not in found.get(name, {}):
            continue
        ours = found[name]["one command"]
        row = {
            "data": name,
            "people": len(ours),
            "one command": mean(ours),
            "lower quartile": quartile(ours),
        }
        for other in BESIDE:
            row[other] = mean(found[name].get(other, {}))
            change = changes[other].get(name, NONE)
            row |= {f"{key}, {other}": value for key, value in change.items()}
        rows.append(row | {"pyRiemann": mean(found[name].get("riemann", {}))})
    return rows


def table_of_levels(
    found: Mapping[str, Mapping[str, Scores]], changes: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Make the table of levels: means and lower quartiles on other trials of the same people."""
    rows = []
    for name in SETS:
        mine = found.get(name, {})
        if "nothing" not in mine:
            continue
        # On the same people: not everybody has five trials of each class to label.
        people = sorted(set.intersection(*(set(mine[one]) for one in LEVELS if one in mine)))
        same = {
            level: {who: mine[level][who] for who in people} for level in LEVELS if level in mine
        }
        row: dict[str, Any] = {"data": name, "people": len(people)}
        for level in LEVELS:
            row[level] = mean(same.get(level, {}))
        change = changes.get(name, NONE)
        row |= {f"recording, {key}": value for key, value in change.items()}
        for level in ("nothing", "recording", "labels"):
            row[f"quartile, {level}"] = quartile(same.get(level, {}))
        rows.append(row)
    return rows


def rising(rows: Sequence[Mapping[str, Any]]) -> int:
    """Count data sets whose lower quartile rises from nothing to a recording to five labels.

    Parameters
    ----------
    rows : sequence of dict
        Of ``accuracy/levels.py``; those of other trials, with the method that others choose.
    """
    wanted = [("nothing", "all", ""), ("recording", "all", CHOSEN), ("labels", "5", CHOSEN)]
    found: dict[str, dict[Any, float]] = {}
    for row in rows:
        what = row["level"], row["amount"], row["method"]
        if row["tested"] == OTHER and what in wanted:
            found.setdefault(row["data"], {})[what] = row["lower quartile"]
    whole = [[mine[one] for one in wanted] for mine in found.values() if len(mine) == len(wanted)]
    return sum(a < b < c for a, b, c in whole)


def goals_of(
    changes: Mapping[str, Mapping[str, Any]],
    recording: Mapping[str, Any],
    levels: Sequence[Mapping[str, Any]],
) -> list[Goal]:
    """List the goals of the protocol; what is missing is not met."""
    goals = []
    for other, change in changes.items():
        higher, surely, below = above(change)
        goals += [
            Goal(f"nothing: sets above {other}", higher, 7),
            Goal(f"nothing: sets significantly above {other}", surely, 4),
            Goal(f"nothing: sets significantly below {other}", below, 0, at_least=False),
        ]
    _, surely, below = above(recording)
    more = sum(row["labels"] > row["recording"] for row in levels)
    rising = sum(
        row["quartile, nothing"] < row["quartile, recording"] < row["quartile, labels"]
        for row in levels
    )
    return [
        *goals,
        Goal("recording: sets significantly above nothing", surely, 5),
        Goal("recording: sets significantly below nothing", below, 0, at_least=False),
        Goal("labels: sets above recording", more, 6),
        Goal("lower quartile: sets where it rises with each level", rising, 7),
    ]


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--runs", type=Path, default=RESULTS / "hands_off.jsonl", metavar="FILE")
    parser.add_argument("--levels", type=Path, default=RESULTS / "levels.json", metavar="FILE")
    parser.add_argument("--today", type=Path, default=RESULTS / "today.jsonl", metavar="FILE")
    args = report.arguments(parser)
    found = runs(args.runs)
    for name, methods in competitors(args.today).items():
        found.setdefault(name, {}).update(methods)
    ours = pick(found, "one command")
    changes = {other: compared(ours, pick(found, other)) for other in BESIDE}
    recording = compared(pick(found, "recording"), pick(found, "nothing"))
    levels = table_of_levels(found, recording)
    report.show("What a recording and five labels are worth in the same runs", levels)
    goals = goals_of(changes, recording, levels)
    quartiles = rising(json.loads(args.levels.read_text())["rows"])
    goals.append(Goal("lower quartile, three seeds: sets where it rises", quartiles, 7))
    title = "One command for 30 minutes beside what a user would do"
    report.finish(args, title, table(found, changes), goals, levels=levels)


if __name__ == "__main__":
    main()
