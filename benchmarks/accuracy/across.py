"""Another armband: trained on the people of one Myo data set, tested on those of another.

Three data sets share electrodes, sampling rate and five gestures (rest, close, open, flexion,
extension), but the bands sit turned. The network that a run begins with is trained on everybody of
one set; who is in another is then new, with nothing, a recording or five labels of each gesture,
with the turn of the ring and without it (`autotransfer.adaptation.ring`). The method is chosen by
all other people of the set that is tested. Three seeds, whose scores are averaged; differences are
paired over people. Finished trainings are kept in --keep FILE: the same command goes on.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import autotransfer as at
from autotransfer.data.problem import Problem
from autotransfer.data.splits import hold_out
from autotransfer.errors import AutoTransferWarning
from autotransfer.search.levels.cases import OTHER, SAME, Case
from autotransfer.search.levels.person import people_held_out, score_cases
from autotransfer.search.levels.worth import Levels
from benchmarks.accuracy.levels import CHOSEN, mean_over, row, trained
from benchmarks.common import pool, report
from benchmarks.common.recordings import data_folder

SETS = ("myo_emg", "ciil_emg", "myodisco_emg")
COMMON = (0, 2, 4, 5, 6)
"""Codes of the gestures that all of them have."""

RECORDING = (
    *("ring", "statistics", "statistics+information"),
    *("ring+statistics", "ring+statistics+information"),
)
WITH_LABELS = ("statistics+head", "statistics+covariances", "ring+statistics+covariances")
N_LABELS = 5


@dataclass(frozen=True)
class Job(pool.Job):
    """One training on everybody of a set, and all levels of the people of the others."""

    source: str
    targets: tuple[str, ...]
    seed: int
    n_steps: int | None = None
    """Fewer, for a try."""
    made_up: bool = False
    """Whether people are made up, of the shape of the recordings."""


@functools.cache
def opened(name: str, made_up: bool) -> at.SubjectDataset:
    """Open the common gestures of a data set."""
    if made_up:
        options = {"n_subjects": 3, "n_trials": 20, "n_channels": 8, "n_times": 200}
        return at.make_subjects(**options, n_classes=5, random_state=SETS.index(name))
    return at.load(data_folder() / name / f"{name}.npz").select(labels=COMMON)


def cases() -> list[Case]:
    """List all levels and methods."""
    return [
        Case("nothing"),
        Case("nothing", tested=SAME),
        *(Case("recording", None, way, tested) for way in RECORDING for tested in (OTHER, SAME)),
        *(Case("labels", N_LABELS, way) for way in WITH_LABELS),
    ]


def run(job: Job) -> dict[str, Any]:
    """Train on a set, and score everybody of the others in every case."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", AutoTransferWarning)
    known = Problem.of(opened(job.source, job.made_up))
    clf = trained(known, hold_out(known.subject, None, job.seed), job.seed, job.n_steps)
    found: dict[str, Any] = {}
    for target in job.targets:
        problem = Problem.of(opened(target, job.made_up))
        everybody = np.arange(len(problem.codes))
        people = people_held_out(problem, everybody, clf, job.seed)
        found[target] = {"cases": score_cases(people, cases()), "guard": {}}
    return found


def rows_of(name: str, levels: Sequence[Levels]) -> list[dict[str, Any]]:
    """Make the rows of a direction: each case, and the method chosen by others."""
    scores = {case: mean_over(one.scores.get(case, {}) for one in levels) for case in cases()}
    nothing = {tested: scores[Case("nothing", tested=tested)] for tested in (OTHER, SAME)}
    made = [
        row(name, case, case.method, found, nothing[case.tested])
        for case, found in scores.items()
        if found
    ]
    for level, amount, tested in (
        *(("recording", None, tested) for tested in (OTHER, SAME)),
        ("labels", N_LABELS, OTHER),
    ):
        best = mean_over(one.chosen(level, amount, tested) for one in levels)
        if best:
            made.append(row(name, Case(level, amount, "", tested), CHOSEN, best, nothing[tested]))
    return [one | {"seeds": len(levels)} for one in made]


GOALS = {"myo_emg -> ciil_emg": 0.70, "myo_emg -> myodisco_emg": 0.75}
"""At level recording, of all trials of a person."""


def describe(job: Job, result: dict[str, Any]) -> str:
    """Tell of a finished training."""
    words = []
    for target, told in result.items():
        scores = Levels.of([told], 1).scores
        few = Case("nothing", tested=SAME), Case("recording", None, "ring+statistics", SAME)
        means = " to ".join(f"{np.mean(list(scores[case].values())):.3f}" for case in few)
        words.append(f"{target} {means}")
    return f"{job.source} seed {job.seed}: {', '.join(words)}"


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--source", choices=SETS, nargs="*", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="fewer, for a try")
    pool.add_options(parser)
    args = report.arguments(parser, source=["myo_emg"], seeds=1, steps=2, workers=0)
    todo = [
        Job(source, tuple(name for name in SETS if name != source), seed, args.steps, args.smoke)
        for seed in range(args.seeds)
        for source in args.source
    ]
    results = pool.run_all(run, todo, args.keep, args.workers, describe)
    rows: list[dict[str, Any]] = []
    for source in args.source:
        for target in (name for name in SETS if name != source):
            mine = [result[target] for job, result in results.items() if job.source == source]
            levels = [Levels.of([one], 1) for one in mine]
            rows += rows_of(f"{source} -> {target}", levels)
    chosen = {
        r["data"]: r["mean"]
        for r in rows
        if (r["level"], r["tested"], r["method"]) == ("recording", SAME, CHOSEN)
    }
    goals = [
        report.Goal(f"{name}: recording of all trials", chosen[name], bound)
        for name, bound in GOALS.items()
        if name in chosen
    ]
    report.finish(args, "Balanced accuracy of people of another data set", rows, goals)


if __name__ == "__main__":
    main()
