"""Rules of choice replayed on scores that are on record: how often, and how much, do they harm.

From benchmarks/results/evidence.csv (the paper's procedure: a baseline and censors, three seeds)
and benchmarks/results/hands_off.json (recipes and censors of hands-off runs, held-out scores). Half
of the people, drawn at random many times, choose by a rule; the other half, whose scores had no
part in it, say what the choice is worth against the first candidate (the baseline, the default
recipe). A rule harms where they lose. Scores of seeds are taken one by one: a run has one.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from autotransfer.search.settings.recipe import Recipe
from autotransfer.search.settings.selection import RULES, Rule, best_by
from autotransfer.search.settings.setting import Setting
from benchmarks.common import report

RESULTS = Path(__file__).parents[1] / "results"
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
HARM = 0.002
"""Most that the default rule may cost in the mean over draws, on any record."""
BEHIND = 0.001
"""Most by which the default rule may be behind the best one, in the mean gain over records."""

Scores = dict[str, dict[str, float]]
"""Candidate -> person -> balanced accuracy, the first candidate being the simplest."""


def rules() -> dict[str, Rule]:
    """Every rule that may be asked for, and the safe one with the same level for everything."""
    mean = RULES["mean"]
    careful = {
        f"all at {level:.0%}": Rule(mean.judge, "", levels=(level, level)) for level in LEVELS
    }
    names = ("safe", "mean", "lower_quartile", "worst_subject")
    return {name: RULES[name] for name in names} | careful


def on_record() -> Iterator[tuple[str, Scores, Scores]]:
    """Walk over what was tried: name, scores to choose by, scores to judge the choice by."""
    tables: dict[tuple[str, str], dict[str, Scores]] = {}
    with (RESULTS / "evidence.csv").open() as file:
        for row in csv.DictReader(file):
            table = tables.setdefault((row["data"], row["seed"]), {"validation": {}, "test": {}})
            people = table[row["side"]].setdefault(row["setting"], {})
            people[row["person"]] = float(row["balanced_accuracy"])
    for (name, seed), table in tables.items():
        yield f"{name}, censors, seed {seed}", table["validation"], table["test"]
    runs = RESULTS / "hands_off.json"
    if runs.exists():
        for case, tried in json.loads(runs.read_text())["tried"].items():
            yield f"{case}, recipes", tried, tried


def replay(choose_by: Scores, judge_by: Scores, rule: Rule, n: int, seed: int) -> list[float]:
    """Choose with half of the people, score with the others, many times: gains over the first."""
    names = list(choose_by)
    # What a rule knows of a candidate: whether it has a censor, and that it is not another.
    settings = [
        Setting(None if name.startswith("uncensored") else "mmd", recipe=Recipe.of(n_steps=1 + i))
        for i, name in enumerate(names)
    ]
    people = sorted(set.intersection(*(set(one) for one in choose_by.values())))
    rng = np.random.default_rng(seed)
    gains = []
    for _ in range(n):
        half = set(rng.permutation(people)[: len(people) // 2].tolist())
        sides = {
            setting: {p: choose_by[name][p] for p in people if p in half}
            for setting, name in zip(settings, names, strict=True)
        }
        chosen = names[settings.index(best_by(rule, sides))]
        others = [p for p in people if p not in half and p in judge_by[chosen]]
        gains.append(float(np.mean([judge_by[chosen][p] - judge_by[names[0]][p] for p in others])))
    return gains


def _is(row: dict[str, Any], rule: str, kind: str) -> bool:
    return bool(row["rule"] == rule and kind in row["record"])


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--draws", type=int, default=400, help="halves of people")
    args = report.arguments(parser, draws=3)
    rows: list[dict[str, Any]] = []
    harm: dict[str, list[float]] = {}
    for name, choose_by, judge_by in on_record():
        for word, rule in rules().items():
            gains = np.array(replay(choose_by, judge_by, rule, args.draws, seed=0))
            worse = gains[gains < 0]
            rows.append(
                {
                    "record": name,
                    "rule": word,
                    "changed": float(np.mean(gains != 0)),
                    "worse": float(np.mean(gains < 0)),
                    "by": float(worse.mean()) if len(worse) else 0.0,
                    "gain in the mean": float(gains.mean()),
                }
            )
            harm.setdefault(word, []).append(float(gains.mean()))
    summary = [
        {
            "rule": word,
            "gain, mean of records": float(np.mean(values)),
            **{
                f"of {kind}": float(
                    np.mean([r["gain in the mean"] for r in rows if _is(r, word, kind)])
                )
                for kind in ("recipes", "censors")
            },
            "gain on the worst record": float(np.min(values)),
            "worse in": float(np.mean([r["worse"] for r in rows if r["rule"] == word])),
            "changed in": float(np.mean([r["changed"] for r in rows if r["rule"] == word])),
        }
        for word, values in harm.items()
    ]
    means = {word: float(np.mean(values)) for word, values in harm.items()}
    goals = [
        report.Goal("safe: gain on the worst record", min(harm["safe"]), -HARM),
        report.Goal(
            "safe: mean gain beside that of the rule of largest mean gain",
            means["safe"] - max(means.values()),
            -BEHIND,
        ),
    ]
    report.show("Rules replayed, all records", summary)
    report.finish(args, "Rules replayed", rows, goals, summary=summary)


if __name__ == "__main__":
    main()
