"""Conditional candidates beside a baseline that has their batches.

A conditional censor has batches in which every person's trials have their share of the classes, the
baseline of AutoTransfer's run has not: what they differ by is of penalty and batches together. Here
the uncensored network is trained with these batches, on the folds and with the random numbers of
the run (`evidence.py`), so that a conditional candidate differs from it by the penalty
alone. Scores of candidates are read from --csv FILE. The run's own baseline is trained once more
on the first fold: if it does not come out as it did, these are not the run's random numbers, and a
goal is missed. Finished trainings are kept in --keep FILE: the same command goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import autotransfer as at
from autotransfer.search.options import shared_of
from autotransfer.search.settings.selection import TrialScores
from autotransfer.search.settings.setting import BASELINE, Setting
from autotransfer.search.settings.trial import Trial
from benchmarks.accuracy import erm
from benchmarks.censors.evidence import classifier_of, csv_rows, names_of, put
from benchmarks.censors.evidence_tables import UNCENSORED, Scores, Table, row
from benchmarks.censors.strength_tables import people
from benchmarks.common import report
from benchmarks.common.recordings import (
    RECORDINGS,
    arguments,
    network_options,
    read_options,
    temporary_folder,
    training_parser,
)

BY_CLASS = f"{UNCENSORED}, by class"
RANDOM, OWN = "marginal", "conditional"
"""Modes: the run's baseline has the batches of the one, conditional censors those of the other."""


def random_states(
    name: str, options: Mapping[str, Any], seeds: Sequence[int]
) -> dict[tuple[int, int], int]:
    """Give the random number that the run had on each (fold, seed)."""
    recording = RECORDINGS[name]
    data, n_folds = recording.load(), recording.count_folds()
    auto = at.AutoTransfer(classifier=classifier_of(data, options))
    shared = shared_of(auto, data.X, data.y, data.subject)
    return {
        (fold, seed): Trial(BASELINE, fold, n_folds, seed, 1).random_state(shared.hash)
        for fold in range(n_folds)
        for seed in seeds
    }


def job(name: str, options: Mapping[str, Any], mode: str, fold: int, random_state: int) -> erm.Job:
    """Make a training of the uncensored network with the batches of a mode."""
    rest = {option: value for option, value in options.items() if option != "normalise"}
    text = json.dumps(rest | {"mode": mode}, sort_keys=True)
    return erm.Job(name, options["normalise"], fold, random_state, text)


def is_conditional(setting: str) -> bool:
    """Whether a candidate has batches of its own."""
    return setting.split()[1:2] == [OWN]


def rows_of(table: Table, by_class: Scores) -> list[dict[str, Any]]:
    """Compare the batches with the run's, and the conditional candidates with these batches."""
    chosen, base = table.chosen(), table.of(UNCENSORED, "test")
    own = [setting for setting in table.settings if is_conditional(setting)]
    pairs = [
        (BY_CLASS, by_class, UNCENSORED, base),
        *((setting, table.of(setting, "test"), BY_CLASS, by_class) for setting in own),
    ]
    made = []
    for method, scores, beside, level in pairs:
        found = row(table.name, method, scores, level)
        quartile = found["lower quartile"] - float(np.percentile(list(level.values()), 25))
        columns = ("people", "mean", "lower quartile", "difference", "95 % interval", "p")
        made.append(
            {"data": table.name, "method": method, "chosen": "*" if method == chosen else ""}
            | {"beside": beside, "seeds": len(table.seeds)}
            | {column: found[column] for column in columns}
            | {"of quartiles": quartile, "gained / lost": found["gained / lost"]}
        )
    return made


def once_more(table: Table, test: Scores) -> report.Goal:
    """Tell how far the run's baseline is from itself, trained once more on the first fold."""
    before = table.scores
    first = (before["fold"] == 0) & (before["seed"] == 0) & (before["side"] == "test")
    mine = before[first & (before["setting"] == UNCENSORED)].set_index("person")
    largest = max(abs(mine["balanced_accuracy"][who] - score) for who, score in test.items())
    words = f"{table.name}: the run's baseline, trained once more, differs by"
    return report.Goal(words, float(largest), 1e-9, at_least=False)


def invent_scores(names: Sequence[str]) -> Path:
    """Write random scores of two candidates, in the form of a run's, for --smoke."""
    file, rng = temporary_folder() / "scores.csv", np.random.default_rng(0)
    for name in names:
        recording = RECORDINGS[name]
        data = recording.load()
        scores = {
            setting: [
                TrialScores(
                    setting,
                    i,
                    0,
                    {str(who): rng.random() for who in fold.subjects("validation")},
                    {str(who): rng.random() for who in fold.subjects("test")},
                )
                for i, fold in enumerate(recording.folds(data))
            ]
            for setting in (BASELINE, Setting.of("mmd", OWN, 1))
        }
        put(file, name, csv_rows(name, scores, names_of(data)))
    return file


def main() -> None:
    parser = training_parser(__doc__)
    parser.add_argument("--csv", type=Path, help="what benchmarks.censors.evidence wrote")
    args = arguments(parser, dataset=["ssvep"], max_epochs=1)
    if args.smoke:
        args.csv = invent_scores(args.dataset)
    if args.csv is None:
        parser.error("--csv FILE is missing: the scores of benchmarks.censors.evidence.")
    todo: dict[str, list[erm.Job]] = {}
    tables = {name: Table.read(args.csv, name) for name in args.dataset}
    chosen = read_options(args.options)
    for name in args.dataset:
        # Not by way of sorted JSON: the order of options is part of what names random numbers.
        options = network_options(name, chosen.get(name), args.max_epochs)
        states = random_states(name, options, tables[name].seeds)
        own = [job(name, options, OWN, fold, state) for (fold, _), state in states.items()]
        todo[name] = [job(name, options, RANDOM, 0, states[0, 0]), *own]
    every = [one for mine in todo.values() for one in mine]
    results = erm.run_all(every, args.keep, args.workers)
    rows, goals = [], []
    for name, (again, *own) in todo.items():
        rows += rows_of(tables[name], people([results[one] for one in own]))
        goals.append(once_more(tables[name], results[again]["test"]))
    report.finish(
        args,
        "Conditional candidates beside the uncensored network with their batches",
        rows,
        goals,
        trainings=[{**one.__dict__, **result} for one, result in results.items()],
    )


if __name__ == "__main__":
    main()
