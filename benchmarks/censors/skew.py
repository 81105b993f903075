"""When people differ in what they do: class proportions that tell who it is.

In the recordings everybody does everything equally often, so that knowing the person says nothing
about the class, and a network gains nothing by learning who it is. Here the training people are
thinned out: each keeps all trials of one class, another class for another person, and a fifth of
the others (whole recordings where there are any). Now the person is a shortcut to the class, for
known people only. For comparison the same number of trials of each person, evenly over classes.
Everybody new is scored on all trials. People are put into parts as in `strengths.py`;
epochs are as many more as there are fewer trials. Finished trainings are kept in --keep FILE.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import autotransfer as at
from autotransfer.censoring import MEASURES
from benchmarks.censors import evidence_tables
from benchmarks.censors.strength_tables import people, strengths
from benchmarks.common import pool, report
from benchmarks.common.censors import name_of
from benchmarks.common.parts_of_people import beside, by_cell, jobs, parts, parts_parser
from benchmarks.common.recordings import arguments, at_work, tested, units_of_people

SEEDS = 3
"""Trainings of the uncensored baseline; a censor has one."""
OTHERS = 0.2
"""Share of the trials of a class that is not the person's own."""
EVEN, SKEWED = "even", "skewed"
MODES = ("marginal", "conditional")


@dataclass(frozen=True)
class Job(pool.Job):
    """One training."""

    dataset: str
    trials: str
    measure: str | None
    mode: str
    strength: float
    parts: int
    part: int
    seed: int
    options: str
    """Of the classifier, as JSON."""

    @property
    def cell(self) -> tuple[str, str | None, str, float]:
        """What was trained, on whatever part."""
        return self.trials, self.measure, self.mode, self.strength


def cells() -> list[tuple[tuple[str, str | None, str, float], int]]:
    """Everything to train for a part, with its seed."""
    plain = [
        ((trials, None, mode, 0.0), seed)
        for trials, mode in ((EVEN, "marginal"), (SKEWED, "marginal"), (SKEWED, "conditional"))
        for seed in range(SEEDS)
    ]
    censors = ((measure, mode) for mode in MODES for measure in MEASURES)
    return plain + [((SKEWED, m, mode, strengths(m)[1]), 0) for m, mode in censors]


def thinned(data: at.SubjectDataset, trials: str) -> np.ndarray:
    """Choose trials of everybody: most of one class, or as many evenly over classes."""
    units = units_of_people(data)
    order = np.random.default_rng(0).permutation(len(data.subject_ids))
    kept: list[np.ndarray] = []
    for place, who in zip(order, data.subject_ids, strict=True):
        own = data.labels[place % len(data.labels)]
        sizes = {
            label: len(units[who, label]) * (1.0 if label == own else OTHERS)
            for label in data.labels
        }
        if trials == EVEN:
            sizes = dict.fromkeys(sizes, sum(sizes.values()) / len(sizes))
        for label, size in sizes.items():
            # From all of the session, not from its beginning.
            n, there = max(1, round(size)), units[who, label]
            chosen = np.linspace(0, len(there) - 1, min(n, len(there))).round().astype(int)
            kept += [there[i] for i in chosen]
    return np.sort(np.concatenate(kept))


def run(job: Job) -> dict[str, Any]:
    """Train on a part's known people, thinned out; score the new ones on all they have."""
    _, data = at_work(job.dataset)
    fold = parts(data.subject, job.parts)[job.part]
    trials = np.intersect1d(fold.train, thinned(data, job.trials))
    train = data.select(trials=trials)
    options = json.loads(job.options)
    if "max_epochs" in options:  # by default the steps are as many, however few the trials
        options["max_epochs"] = round(options["max_epochs"] * len(fold.train) / len(trials))
    clf = at.CensoredClassifier(
        job.measure,
        job.mode,
        job.strength if job.measure else None,
        sfreq=data.sfreq,
        validation=None,
        random_state=job.seed,
        device="cpu",
        verbose=False,
        **options,
    )
    clf.fit(train.X, train.y, subject=train.subject)
    return {"test": tested(clf, data, fold), "n_train": len(trials)}


def rows_of(name: str, results: Mapping[Job, dict[str, Any]]) -> list[dict[str, Any]]:
    """Make a row for everything that was trained on a data set, beside the skewed baseline.

    Conditional censors have the baseline with their batches beside them.
    """
    made = []
    for cell, mine in by_cell(results, name).items():
        trials, measure, mode, strength = cell
        plain = SKEWED, None, mode if measure else "marginal", 0.0
        base = people(beside(results, name, cell, plain))
        found = evidence_tables.row(name, name_of((measure, mode)), people(mine), base)
        kept = ("mean", "lower quartile", "difference", "95 % interval", "p", "gained / lost")
        made.append(
            {"data": name, "trials": trials, "censor": found["method"], "strength": strength}
            | {"people": found["people"]}
            | {column: found[column] for column in kept}
        )
    return made


def together(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Average the censors of a mode: single rows have the noise of one training in them."""
    of: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        plain = row["censor"].startswith("uncensored")
        kind = row["censor"] if plain else row["censor"].split()[-1]  # the mode
        of.setdefault((row["data"], row["trials"], kind), []).append(row)
    made = []
    for (name, trials, kind), mine in of.items():
        gains = [row["difference"] for row in mine]
        made.append(
            {"data": name, "trials": trials, "censors": kind, "number": len(mine)}
            | {"mean": float(np.mean([row["mean"] for row in mine]))}
            | {"difference": float(np.mean(gains))}
            | {"sd": float(np.std(gains, ddof=1)) if len(gains) > 1 else None}
        )
    return made


def describe(job: Job, result: dict[str, Any]) -> str:
    """Tell of a finished training."""
    what = f"{job.dataset} part {job.part} {job.trials} {name_of((job.measure, job.mode))}"
    return f"{what} {job.strength:g}: {np.mean(list(result['test'].values())):.3f}"


def main() -> None:
    args = arguments(parts_parser(__doc__), dataset=["ssvep"], max_epochs=1, parts=2)
    every = cells()
    few = [one for one in every if one[0][1] in (None, "mmd") and one[1] == 0]
    todo = jobs(args, Job, few if args.smoke else every)
    results = pool.run_all(run, todo, args.keep, args.workers, describe)
    rows = [row for name in args.dataset for row in rows_of(name, results)]
    averages = together(rows)
    report.show("Censors of a mode together", averages)
    report.finish(
        args,
        "People who differ in what they do",
        rows,
        together=averages,
        trainings=[{**job.__dict__, **result} for job, result in results.items()],
    )


if __name__ == "__main__":
    main()
