"""What was learned of a person, in another session: another day, another fit of the band.

Levels are scored on other trials of the same sessions (``accuracy/levels.py``). Five data sets have
people who came more than once: after a break of minutes (3DC), with the armband one electrode
further (CIIL), on another day (Myo disco, SSVEP), in tests after a training session (Myo). Here the
second half of a person's last session is predicted, by the network that a run begins with, trained
without a group of people: with nothing of theirs; with the first half of that session, without
labels or with three labels of each class; with the first session instead; and with labels of the
first session followed by the first half of the last one without labels. The method is chosen by the
scores of all other people in the same case. Differences are paired over people. Finished trainings
are kept in --keep FILE: the same command goes on.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

import autotransfer as at
from autotransfer.adaptation.registry import COVARIANCES
from autotransfer.data.info import is_ring
from autotransfer.data.problem import Problem
from autotransfer.data.trials import Array, Index
from autotransfer.errors import AutoTransferWarning
from autotransfer.search.levels.cases import (
    RECORDING,
    WITH_LABELS,
    Case,
    Scores,
    cut_in_two,
    few_labels,
)
from autotransfer.search.levels.person import Known, score_cases
from autotransfer.search.levels.worth import Levels
from benchmarks.accuracy.levels import CHOSEN, groups, mean_over, n_groups, row, trained
from benchmarks.common import pool, report
from benchmarks.common.recordings import arguments, load_set

SETS = ("ssvep", "emg", "ciil", "3dc", "myodisco")
"""Those whose files say which session a trial is of."""

N_LABELS = 3
"""Of each class: half a session of 3DC has four."""

SAME, BEFORE, BOTH = "same session", "session before", "labels before, recording now"


@dataclass(frozen=True)
class Job(pool.Job):
    """One training, and what is known of the people it was not trained on."""

    dataset: str
    groups: int
    group: int
    seed: int
    n_steps: int | None = None
    """Fewer, for a try."""


def sessions(data: at.SubjectDataset) -> Array:
    """Give the session of each trial; made-up people come twice, by turns."""
    if data.session is not None:
        return data.session
    return np.asarray(pd.Series(data.subject).groupby(data.subject).cumcount() % 2)


def cut(codes: Index, unit: Array, came: Array, seed: int) -> tuple[Index, Index, Index]:
    """Cut a person's trials: one half of the last session, its other half, all of the first.

    The first and the last are in an order that the seed draws.
    """
    last, first = np.flatnonzero(came == came[-1]), np.flatnonzero(came == came[0])
    now, tested = (last[some] for some in cut_in_two(codes[last], unit[last], seed))
    return now, tested, np.random.default_rng(seed).permutation(first)


def ways(ring: bool) -> tuple[list[str], list[str]]:
    """List the methods that are tried without labels, and with them."""
    turned = [f"ring+{way}" for way in RECORDING if ring]
    labelled = [*WITH_LABELS, *(f"{way}+{COVARIANCES}" for way in turned)]
    return [*RECORDING, *turned], labelled


def run(job: Job) -> dict[str, Any]:
    """Train without a group of people, and score those of them who came more than once."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", AutoTransferWarning)
    data = load_set(job.dataset)
    problem, session = Problem.of(data), sessions(data)
    fold = groups(data, job.groups)[job.group]
    clf = trained(problem, fold, job.seed, job.n_steps)
    same: dict[str, Known] = {}
    before: dict[str, Known] = {}
    both: dict[str, Known] = {}
    for person in np.unique(problem.subject[fold.test]):
        mine = fold.test[problem.subject[fold.test] == person]
        came = session[mine]
        if came[0] == came[-1]:
            continue
        codes = problem.codes[mine]
        unit = mine if problem.recording is None else problem.recording[mine]
        now, tested, then = cut(codes, unit, came, job.seed)
        who, X = str(person), problem.X.take(mine)
        same[who] = Known(clf, X, codes, now, tested)
        before[who] = replace(same[who], given=then, made={})
        few, _ = few_labels(codes, then, N_LABELS)
        own = clf.adapt(X.take(few), clf.classes_[codes[few]], method=WITH_LABELS[0])
        both[who] = replace(same[who], model=own, made={})
    free, labelled = ways(is_ring(data.info.channels))
    recording = [Case("nothing"), *(Case("recording", None, way) for way in free)]
    everything = [*recording, *(Case("labels", N_LABELS, way) for way in labelled)]
    return {
        SAME: score_cases(same, everything),
        BEFORE: score_cases(before, everything),
        BOTH: score_cases(both, recording),
    }


def rows_of(name: str, seeds: list[list[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Compare all that may be known of a person with nothing, on the same trials."""

    def levels(what: str) -> list[Levels]:
        return [
            Levels.of([{"cases": one[what], "guard": {}} for one in mine], len(mine))
            for mine in seeds
        ]

    def chosen(what: str, level: str, amount: int | None = None) -> Scores:
        return mean_over(one.chosen(level, amount, all_classes=True) for one in levels(what))

    nothing = mean_over(one.scores[Case("nothing")] for one in levels(SAME))
    found = {
        ("nothing", ""): nothing,
        ("recording", SAME): chosen(SAME, "recording"),
        ("recording", BEFORE): chosen(BEFORE, "recording"),
        ("labels", SAME): chosen(SAME, "labels", N_LABELS),
        ("labels", BEFORE): chosen(BEFORE, "labels", N_LABELS),
        ("labels", BOTH): chosen(BOTH, "recording"),
    }
    return [
        {"data": name, "of": of, "seeds": len(seeds)}
        | row(name, Case(level), CHOSEN if of else "", scores, nothing)
        for (level, of), scores in found.items()
        if scores
    ]


def describe(job: Job, result: Mapping[str, Any]) -> str:
    """Tell of a finished training."""
    means = [
        f"{of} {np.mean(list(one['subjects'].values()) or [np.nan]):.3f}"
        for of in (SAME, BEFORE)
        for one in result[of]
        if Case.from_json(one) == Case("recording", None, RECORDING[0])
    ]
    return f"{job.dataset} group {job.group} seed {job.seed}: {', '.join(means)}"


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=SETS, nargs="*", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, help="fewer, for a try")
    pool.add_options(parser)
    args = arguments(parser, dataset=["ssvep"], steps=2)
    parts = {name: 3 if args.smoke else n_groups(load_set(name)) for name in args.dataset}
    todo = [
        Job(name, parts[name], group, seed, args.steps)
        for seed in range(args.seeds)
        for name in args.dataset
        for group in range(parts[name])
    ]
    results = pool.run_all(run, todo, args.keep, args.workers, describe)
    rows: list[dict[str, Any]] = []
    for name in args.dataset:
        mine: dict[int, list[Mapping[str, Any]]] = {}
        for job, result in results.items():
            if job.dataset == name:
                mine.setdefault(job.seed, []).append(result)
        rows += rows_of(name, list(mine.values()))
    report.finish(args, "What was learned of a person, in another session", rows)


if __name__ == "__main__":
    main()
