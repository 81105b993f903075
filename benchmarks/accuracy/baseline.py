"""Find the uncensored baseline of each data set: normalisation and encoder, by validation alone.

Censoring a weak baseline proves nothing, so the baseline comes first. Options are chosen one after
the other, in a fixed order, each from a short list, by the mean validation balanced accuracy over
all folds; the same options then serve every method (`evidence.py`). Test scores of every
training stand beside it for the reader and take no part. Finished trainings are kept in --keep
FILE: the same command goes on where it was stopped.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from autotransfer.report.statistics import paired
from benchmarks.accuracy import erm
from benchmarks.common import pool, report
from benchmarks.common.recordings import RECORDINGS, arguments, network_options

Steps = tuple[tuple[str, tuple[Any, ...]], ...]
"""Options, and the values of each."""

# What is tried, in this order; the first value of each is where the search starts.
STEPS: dict[str, Steps] = {
    "ssvep": (
        ("batch", ((10, 8, 4e-3), (8, 8, 1e-3))),
        ("normalise", ("channel", "trial")),
        ("kernel_seconds", (0.5, 0.25, 1.0)),
        ("F1", (8, 16)),
        ("drop_prob", (0.25, 0.5)),
        ("max_epochs", (80,)),
    ),
    "erp": (
        ("batch", ((18, 8, 4e-3), (8, 8, 4e-3))),
        ("normalise", ("trial", "channel")),
        ("kernel_seconds", (0.5, 0.25)),
        ("F1", (8, 16)),
        ("drop_prob", (0.25, 0.5)),
        ("max_epochs", (50,)),
    ),
    "emg": (
        # 32 x 8 would do as well, but leaves a penalty one trial of a person in each class.
        ("batch", ((16, 16, 3e-3), (8, 32, 3e-3))),
        ("normalise", ("train", "trial")),
        ("kernel_seconds", (0.16, 0.08)),
        ("F1", (8, 16)),
        ("drop_prob", (0.25, 0.5)),
        ("max_epochs", (25,)),
    ),
}
# Who validates chooses options and methods, not the epoch: the score by which they choose would
# be the best of many on that very person. The same options with early stopping stand beside it.
PATIENCE = {"patience": None}
EARLY, LONGER = {"patience": 30}, 4
# What "batch" stands for; the learning rate goes with the size of a batch.
OF_THE_BATCH = ("subjects_per_batch", "trials_per_subject", "learning_rate")


def spelt_out(chosen: dict[str, Any]) -> dict[str, Any]:
    """Give "batch" by the names of the options that it stands for."""
    rest = {option: value for option, value in chosen.items() if option != "batch"}
    return PATIENCE | rest | dict(zip(OF_THE_BATCH, chosen["batch"], strict=True))


def jobs(name: str, chosen: dict[str, Any]) -> list[erm.Job]:
    """All folds of a data set with some options."""
    options = network_options(name, spelt_out(chosen))
    del options["normalise"]
    given = json.dumps(options, sort_keys=True)
    n = RECORDINGS[name].count_folds()
    return [erm.Job(name, chosen["normalise"], fold, 0, given) for fold in range(n)]


def scores(results: list[dict[str, Any]]) -> dict[str, float]:
    """Spread over folds of validation, over subjects of test."""
    validation = np.array([r["validation"] for r in results])
    test = np.array([score for r in results for score in r["test"].values()])
    return {
        "validation": float(validation.mean()),
        "validation quartile": float(np.percentile(validation, 25)),
        "test": float(test.mean()),
        "test sd": float(test.std(ddof=1)),
        "test quartile": float(np.percentile(test, 25)),
        "epochs": float(np.mean([r["epochs"] for r in results])),
        "CPU min": sum(r["seconds"] for r in results) / 60,
    }


def few(steps: Steps) -> Steps:
    """Leave one option to choose, and one epoch to train: for --smoke."""
    tiny: Steps = (("max_epochs", (1,)),)
    return tuple((o, values[: 1 + (o == "F1")]) for o, values in steps if o != "max_epochs") + tiny


def find(
    name: str, keep: Path | None, workers: int, early: bool = False, smoke: bool = False
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Choose the options of a data set one by one; `early` adds early stopping for comparison."""
    steps = few(STEPS[name]) if smoke else STEPS[name]
    chosen = {option: values[0] for option, values in steps}
    tried: dict[str, dict[str, Any]] = {}
    people: dict[str, dict[str, float]] = {}

    def value(options: dict[str, Any]) -> float:
        key = json.dumps(options, sort_keys=True)
        if key not in tried:
            done = erm.run_all(jobs(name, options), keep, workers)
            people[key] = {who: s for r in done.values() for who, s in r["test"].items()}
            tried[key] = {
                "data": name,
                **spelt_out(options),
                **scores(list(done.values())),
                "simple pipeline": RECORDINGS[name].simple_pipeline,
            }
            print(json.dumps(tried[key]), flush=True)
        return float(tried[key]["validation"])

    for option, values in steps:
        chosen[option] = max(values, key=lambda v, o=option: value(chosen | {o: v}))  # type: ignore[misc]
    key = json.dumps(chosen, sort_keys=True)
    if early:
        value(chosen | EARLY | {"max_epochs": LONGER * chosen["max_epochs"]})
    rows = []
    for k, row in tried.items():
        beside = paired(people[k], people[key])
        assert beside is not None
        more = {"from the chosen": beside.difference.value, "p": beside.p}
        rows.append({**row, **more, "chosen": "*" if k == key else ""})
    return spelt_out(chosen), rows


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=list(STEPS), nargs="*", default=list(STEPS))
    pool.add_options(parser)
    parser.add_argument("--early", action="store_true", help="compare with early stopping, too")
    args = arguments(parser, dataset=["ssvep"])
    rows, chosen, goals = [], {}, []
    for name in args.dataset:
        chosen[name], found = find(name, args.keep, args.workers, args.early, args.smoke)
        rows += found
        test = next(row["test"] for row in found if row["chosen"])
        words = f"{name}: mean test accuracy of the chosen baseline, against the simple pipeline"
        goals.append(report.Goal(words, test, RECORDINGS[name].simple_pipeline))
    report.finish(
        args, "Uncensored EEGNet, options chosen by validation", rows, goals, chosen=chosen
    )


if __name__ == "__main__":
    main()
