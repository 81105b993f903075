"""AutoTransfer against the uncensored baseline, and against competitors, on people never seen.

Runs AutoTransfer on each data set with the options that `accuracy/baseline.py` chose, and
compares the chosen method with the baseline of the same run, person by person (protocol:
docs/protocol.md). Killed, the same command goes on. `--csv FILE` gets every score (data set,
setting, seed, fold, side, person), and all tables are made from that file. `--no-run` makes them
without a training: from the seeds that are complete of a run that was stopped, else from the file
alone; the table says how many seeds that were. `--peers FILE ...` takes the competitors' scores
from what `benchmarks.peers.peers --json` wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

import autotransfer as at
from autotransfer import atomic
from autotransfer.search.driver import scores_of
from autotransfer.search.settings.selection import TrialScores
from autotransfer.search.settings.setting import Setting
from autotransfer.search.status import crossval_trials, open_run
from benchmarks.censors.evidence_tables import (
    RULE,
    Table,
    candidates,
    compare,
    goals,
    in_short,
    rules,
)
from benchmarks.common import pool, report
from benchmarks.common.recordings import (
    RECORDINGS,
    arguments,
    network_options,
    read_options,
    temporary_folder,
)


def classifier_of(data: at.SubjectDataset, options: Mapping[str, Any]) -> at.CensoredClassifier:
    """Make the classifier of a run, which names its random numbers, too."""
    return at.CensoredClassifier(sfreq=data.sfreq, device="cpu", **options)


def run(name: str, args: Any, chosen: Mapping[str, Any] | None) -> at.AutoTransfer:
    """Run AutoTransfer on a data set, or go on with it."""
    recording = RECORDINGS[name]
    data = recording.load()
    options = network_options(name, chosen, args.max_epochs)
    auto = at.AutoTransfer(
        args.budget,
        procedure="paper",
        n_settings=args.settings,
        keep=args.keep,
        out=args.out / name,
        classifier=classifier_of(data, options),
        n_folds=recording.n_folds,
        n_seeds=args.seeds,
        search_folds=args.search_folds,
        rule=RULE,
        portraits=False,
        engine="local" if args.workers else pool.executor(0),
        n_jobs=args.workers,
    )
    return auto.fit(data.X, data.y, subject=data.subject)


def cross_validated(folder: Path) -> dict[Setting, list[TrialScores]]:
    """Scores of every candidate on every fold, with the seeds that are complete."""
    _, ledger = open_run(folder)
    with ledger:
        seeds = {key(trial.to_json()): trial.seed for trial in crossval_trials(ledger) or ()}
        entries = [e for stage in ("search", "crossval") for e in ledger.entries(stage)]
    done = {key(e.definition): scores_of(e) for e in entries if e.state == "done"}
    return of_whole_seeds(seeds, done)


def key(definition: Mapping[str, Any]) -> str:
    """Identity of a training."""
    return json.dumps(definition, sort_keys=True)


def of_whole_seeds(
    seeds: Mapping[str, int], done: Mapping[str, TrialScores]
) -> dict[Setting, list[TrialScores]]:
    """Leave out the seeds that miss a training: half a seed would compare different people."""
    parts = {seed for training, seed in seeds.items() if training not in done}
    found: dict[Setting, list[TrialScores]] = {}
    for training, seed in seeds.items():
        if seed not in parts:
            found.setdefault(done[training].setting, []).append(done[training])
    return found


def names_of(data: at.SubjectDataset) -> dict[str, str]:
    """Give the names of people, as the competitors' scores have them, by what a run calls them."""
    return dict(zip(map(str, data.subject_ids), data.subject_names, strict=True))


def csv_rows(
    name: str, found: Mapping[Setting, list[TrialScores]], people: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Every score of a data set."""
    return [
        {"data": name, "setting": str(setting), "seed": one.seed, "fold": one.fold}
        | {"side": side, "person": people[person], "balanced_accuracy": value}
        for setting, mine in found.items()
        for one in mine
        for side in ("validation", "test")
        for person, value in getattr(one, side).items()
    ]


def put(file: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """Write the scores of a data set to the file, in the place of those it had."""
    new = pd.DataFrame(rows)
    if file.exists():
        old = pd.read_csv(file, dtype={"person": str})
        new = pd.concat([old[old["data"] != name], new])
    atomic.write_bytes(file, new.to_csv(index=False).encode())


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=list(RECORDINGS), nargs="*", default=list(RECORDINGS))
    parser.add_argument("--budget", help="time for each data set; what fits is planned")
    parser.add_argument("--settings", type=int, default=30, help="most settings that are tried")
    parser.add_argument("--keep", type=int, default=1, help="cross-validated of each measure")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--search-folds", type=int, default=3, help="on which settings are tried")
    parser.add_argument("--workers", type=int, default=2, help=pool.WORKERS)
    parser.add_argument("--out", type=Path, default=Path("runs") / "evidence")
    parser.add_argument("--options", type=Path, help="what benchmarks.accuracy.baseline wrote")
    parser.add_argument(
        "--peers",
        type=Path,
        nargs="*",
        default=[],
        help="what benchmarks.peers.peers --json wrote",
    )
    parser.add_argument("--max-epochs", type=int, help="for a try")
    parser.add_argument("--csv", type=Path, help="file of all scores")
    parser.add_argument("--no-run", action="store_true", help="make the tables, train nothing")
    tiny = {"settings": 2, "seeds": 1, "search_folds": 1, "max_epochs": 1, "dataset": ["ssvep"]}
    args = arguments(parser, **tiny)
    if args.smoke:
        args.out = temporary_folder()
    args.csv = args.csv or args.out / "scores.csv"
    chosen = read_options(args.options)
    for name in args.dataset:
        auto = None if args.no_run else run(name, args, chosen.get(name))
        found = cross_validated(args.out / name) if (args.out / name).is_dir() else {}
        if found:
            people = names_of(RECORDINGS[name].load())
            put(args.csv, name, csv_rows(name, found, people))
        if auto is not None:
            mine = Table.read(args.csv, name).chosen()
            assert mine == str(auto.choice_.setting), "the tables choose as AutoTransfer did"
    there = pd.read_csv(args.csv)["data"].unique() if args.csv.exists() else ()
    tables = [Table.read(args.csv, name) for name in args.dataset if name in there]
    if not tables:
        parser.error(
            f"{args.csv} has no scores of {', '.join(args.dataset)}, and {args.out} no run with a "
            "whole seed. Run without --no-run, or give --csv a file of scores."
        )
    peers = [one for file in args.peers for one in json.loads(file.read_text())["subjects"]]
    rows = compare(tables, peers)
    tried = rules(tables)
    report.show("What other rules, or fewer seeds, would have chosen", tried)
    report.finish(
        args,
        "AutoTransfer against the uncensored baseline",
        rows,
        goals(rows),
        short=in_short(rows),
        candidates=candidates(tables),
        rules=tried,
        gains=[{"data": table.name, **table.where_gained()} for table in tables],
    )


if __name__ == "__main__":
    main()
