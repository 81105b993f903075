"""EEGNet, covariances in tangent space, the mean of both, and schedules, on nine data sets.

The network that a run begins with, and the other encoders that it tries (`recipe_space`), trained
without a group of people who are then predicted; beside each of them alone the mean of its
probabilities and EEGNet's. And that network with the other schedules of the learning rate. People
are held out as in ``accuracy/levels.py``. One seed by default; differences from EEGNet are paired
over people. How credible should it be that people gain before the best other encoder joins EEGNet
in a mean? A second table has the score of people by what the others would have chosen
(``search/settings/comparison.out_of_bag``), as a run is scored. Finished trainings are kept in
--keep FILE: the same command goes on.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import autotransfer as at
from autotransfer.data.problem import Problem
from autotransfer.errors import AutoTransferWarning
from autotransfer.report.statistics import paired
from autotransfer.search.levels.cases import mean_recall
from autotransfer.search.settings.comparison import credible_gain, differences, out_of_bag
from autotransfer.search.settings.recipe import ENCODER
from autotransfer.search.settings.recipe_space import recipe_space
from benchmarks.accuracy.hands_off import MIXED
from benchmarks.accuracy.levels import groups, mean_over, n_groups
from benchmarks.common import pool, report
from benchmarks.common.recordings import SETS, arguments, load_set

FIRST = "eegnet"


@dataclass(frozen=True)
class Job(pool.Job):
    """All encoders, trained without one group of people."""

    dataset: str
    groups: int
    group: int
    seed: int
    n_steps: int | None = None
    """Fewer, for a try."""


def run(job: Job) -> dict[str, Any]:
    """Train every encoder, and score the people held out by each and by the mean with EEGNet's."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", AutoTransferWarning)
    data = load_set(job.dataset)
    problem, fold = Problem.of(data), groups(data, job.groups)[job.group]
    base = at.CensoredClassifier(validation=None, device="cpu", verbose=False)
    space = recipe_space(problem, base.options)
    recipes = {FIRST: space.default}
    for recipe in space.neighbours(space.default, "schedule"):
        recipes[f"{FIRST}, {dict(recipe.options)['schedule']}"] = recipe
    others = {}
    for recipe in space.neighbours(space.default, ENCODER):
        bands = dict(recipe.options)["bands"]
        others[recipe.encoder + (", bands" if bands else "")] = recipe
    test = problem.X.take(fold.test)
    probabilities, seconds = {}, {}
    for name, recipe in (recipes | others).items():
        options = recipe.applied({ENCODER: FIRST, "encoder_options": None})
        options |= {} if job.n_steps is None else {"n_steps": job.n_steps}
        clf = at.CensoredClassifier(
            validation=None, device="cpu", verbose=False, random_state=job.seed, **options
        )
        start = time.process_time()
        clf.fit_fold(problem, fold, job.seed)
        seconds[name] = time.process_time() - start
        probabilities[name] = clf.probabilities(test)
    for name in others:
        probabilities[f"{FIRST} and {name}"] = probabilities[FIRST] + probabilities[name]
    codes, subject = problem.codes[fold.test], problem.subject[fold.test]
    people = {str(who): subject == who for who in np.unique(subject)}
    scores = {
        name: {who: mean_recall(codes[mine], found[mine].argmax(1)) for who, mine in people.items()}
        for name, found in probabilities.items()
    }
    return {"scores": scores, "seconds": seconds}


def rows_of(name: str, results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Compare every encoder with EEGNet, person by person."""
    means = {
        encoder: mean_over(result["scores"][encoder] for result in results)
        for encoder in results[0]["scores"]
    }
    rows = []
    for encoder, scores in means.items():
        change = paired(scores, means[FIRST])
        assert change is not None
        values = list(scores.values())
        took = [result["seconds"].get(encoder, np.nan) for result in results]
        rows.append(
            {
                "data": name,
                "encoder": encoder,
                "people": len(values),
                "mean": float(np.mean(values)),
                "lower quartile": float(np.percentile(values, 25)),
                "difference": change.difference.value,
                "95 % interval": f"{change.difference.low:+.3f} to {change.difference.high:+.3f}",
                "p": change.p,
                "CPU s a training": float(np.mean(took)),
            }
        )
    return rows


def joined(name: str, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Score people by what others choose, EEGNet or a mean with it, more or less carefully."""
    means = {
        encoder: mean_over(result["scores"][encoder] for result in results)
        for encoder in results[0]["scores"]
    }
    others = [encoder for encoder in means if FIRST not in encoder]
    row: dict[str, Any] = {"data": name, FIRST: float(np.mean(list(means[FIRST].values())))}
    for level in MIXED:

        def choose(some: Sequence[str], level: float = level) -> Mapping[str, float]:
            best = max(others, key=lambda other: np.mean([means[other][who] for who in some]))
            wider = means[f"{FIRST} and {best}"]
            gain = credible_gain(differences(wider, means[FIRST], some), level)
            return wider if gain > 0 else means[FIRST]

        nested, _ = out_of_bag(sorted(means[FIRST]), choose)
        row[f"{level:g}"] = float(np.mean(list(nested.values())))
    return row


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=list(SETS), nargs="*", default=list(SETS))
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

    def words(job: Job, result: Mapping[str, Any]) -> str:
        means = {e: np.mean(list(scores.values())) for e, scores in result["scores"].items()}
        told = ", ".join(f"{encoder} {mean:.3f}" for encoder, mean in means.items())
        return f"{job.dataset} group {job.group} seed {job.seed}: {told}"

    results = pool.run_all(run, todo, args.keep, args.workers, words)
    rows, careful = [], []
    for name in args.dataset:
        mine = [r for job, r in results.items() if job.dataset == name]
        rows += rows_of(name, mine)
        careful.append(joined(name, mine))
    title = "Encoders, and the mean of two, on people never seen"
    report.finish(args, title, rows, [], joined=careful)


if __name__ == "__main__":
    main()
