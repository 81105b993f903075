"""What a user would do today, on nine data sets: braindecode, pyRiemann, alignment, skada.

People are held out as in ``accuracy/levels.py``: each alone where there are up to 20, otherwise in
five groups. Every competitor is as its own documentation shows it, with one seed and nothing
searched. With five labels of each class of the new person: braindecode's network trained on with
all its weights, and a classical pipeline of those labels alone, on the same labelled and the same
other trials as in ``accuracy/levels.py``. Trainings that would take longer than --minutes for all
groups of a set end earlier, with the best weights so far. Beside them stand what is on record of
AutoTransfer: the runs of one command (``accuracy/hands_off.py``; their minutes are those of both
cores) and the network that such a run begins with, on the same groups, as it is and adapted to all
unlabelled trials of the person, as some competitors are. Finished trainings are kept in --keep
FILE: the same command goes on, and with --on-record makes the table of what is there.
braindecode and skada are needed for theirs, and are left out by name where they are missing.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pyriemann.estimation import Covariances
from pyriemann.tangentspace import TangentSpace
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import autotransfer as at
from autotransfer.data.problem import Problem
from autotransfer.data.splits import Fold
from autotransfer.report.statistics import paired
from autotransfer.search.budget import parse_budget
from autotransfer.search.levels.cases import (
    N_LABELS,
    OTHER,
    SAME,
    cut_in_two,
    few_labels,
    mean_recall,
)
from autotransfer.search.levels.worth import Levels
from autotransfer.search.settings.recipe_space import recipe_space
from benchmarks.accuracy.levels import DEFAULT, groups, n_groups
from benchmarks.common import pool, report
from benchmarks.common.recordings import SETS, arguments, load_set
from benchmarks.peers.known import Array, Known, Model
from benchmarks.peers.methods import METHODS, NOTHING, UNLABELLED

TODAY = (
    "riemann",
    "braindecode",
    "braindecode-people",
    "braindecode-aligned",
    "skada-deepcoral",
)
"""Names in `METHODS`."""

VALIDATED = ("braindecode-people", "skada-deepcoral")
"""Those that keep a fifth of the training people aside for early stopping."""

WITH_LABELS = "braindecode"
"""The one that is trained on with labels."""

WITH_OURS = ("statistics+covariances", "statistics+head")
"""What our network does with labels: today's way, or that of before where it alone is on record."""

ADAPTED = "its first network, adapted to a recording"
"""What stands beside methods that have the unlabelled trials of the new person, too."""

RESULTS = Path(__file__).parents[1] / "results"
ONE_COMMAND = "one command,"
BUDGET = "30m"
"""The run that competitors are compared with."""

CORES = 2
"""That a run on record had for itself."""

Scores = dict[str, float]


@dataclass(frozen=True)
class Job(pool.Job):
    """One training, scored on the people it was not trained on."""

    dataset: str
    method: str
    groups: int
    group: int
    seconds: float
    max_epochs: int | None = None
    """Fewer, for a try."""


def known_of(job: Job, data: at.SubjectDataset, fold: Fold, seed: int = 0) -> Known:
    """Take what a method may learn from: nothing of the people who are held out."""
    options: Mapping[str, Any] = {}
    if job.method.startswith("skada"):
        problem = Problem.of(data)
        base = at.CensoredClassifier(validation=None, device="cpu", verbose=False)
        options = recipe_space(problem, base.options).default.applied({"encoder_options": None})
        if job.max_epochs is not None:
            options = {**options, "n_steps": None, "max_epochs": job.max_epochs}
    people = np.unique(data.subject[fold.train])
    held = np.random.default_rng(seed).permutation(people)[: max(1, len(people) // 5)]
    aside = np.isin(data.subject[fold.train], held) & (job.method in VALIDATED)
    parts = fold.train[~aside], fold.train[aside]
    return Known.of(job.dataset, data, Fold(fold.subject, *parts, fold.test), options, seed)


def fit(job: Job, data: at.SubjectDataset, fold: Fold) -> Model:
    """Fit the method of a job; of the people held out it is handed at most their signals."""
    method = METHODS[job.method]
    new = None
    if method.needs_new:
        new = [data.select(subjects=[who]).trials[:] for who in fold.subjects("test")]
    setting: dict[str, Any] = dict(method.settings[0])
    if method.package == "braindecode":
        setting["seconds"] = job.seconds
        if job.max_epochs is not None:
            setting["max_epochs"] = job.max_epochs
    return method.fit(known_of(job, data, fold), new, **setting)


def own_model(X: Array, y: Array) -> Model:
    """Fit covariances in tangent space and a logistic regression on a few labelled trials.

    Of somebody who has a single class, as some in the set of ECG, it knows that one.
    """
    if len(np.unique(y)) == 1:
        return lambda X: np.repeat(y[:1], len(X))
    scale = X.std()
    matrices = Covariances("oas")
    pipeline = make_pipeline(matrices, TangentSpace(), LogisticRegression(max_iter=2000))
    pipeline.fit(np.asarray(X, np.float64) / scale, y)

    def predict(X: Array) -> Array:
        predicted: Array = pipeline.predict(np.asarray(X, np.float64) / scale)
        return predicted

    return predict


def run(job: Job) -> dict[str, Any]:
    """Fit a job's method and score the people it was not trained on.

    Returns
    -------
    dict
        "same" and "other" (person -> balanced accuracy), of all trials and of those that the levels
        call other; with labels also "tuned" and "own"; "seconds" of fitting and scoring, of the
        processor.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    data = load_set(job.dataset)
    fold = groups(data, job.groups)[job.group]
    start = time.process_time()
    model = fit(job, data, fold)
    seconds = time.process_time() - start
    found: dict[str, Scores] = {SAME: {}, OTHER: {}}
    for person in fold.subjects("test"):
        mine = np.flatnonzero(data.subject == person)
        X, y, who = data.trials[mine], data.y[mine], str(person)
        # Class numbers, and the same halves and labels as of the levels.
        codes = np.searchsorted(data.labels, y)
        unit = mine if data.recording is None else data.recording[mine]
        given, other = cut_in_two(codes, unit, 0)
        predicted = model(X)
        found[SAME][who] = mean_recall(y, predicted)
        if not len(other):
            continue
        found[OTHER][who] = mean_recall(y[other], predicted[other])
        few, _ = few_labels(codes, given, N_LABELS)
        if job.method != WITH_LABELS or len(few) < N_LABELS * len(np.unique(codes)):
            continue
        for name, personal in (
            ("tuned", model.tuned(X[few], y[few], 0)),  # type: ignore[attr-defined]
            ("own", own_model(X[few], y[few])),
        ):
            found.setdefault(name, {})[who] = mean_recall(y[other], personal(X[other]))
    return {**found, "seconds": seconds}


def runs_on_record(dataset: str) -> dict[str, tuple[Scores, float | None]]:
    """Read the runs of one command: budget -> person -> score, and seconds of all cores."""
    found = {}
    for row in _lines(RESULTS / "hands_off.jsonl"):
        name, budget, *busy = row["case"].split()
        if name == dataset and not busy:
            seconds = None if row["seconds"] is None else row["seconds"] * CORES
            found[budget] = row["people"], seconds
    return dict(sorted(found.items(), key=lambda run: parse_budget(run[0])))


def network_on_record(dataset: str, groups: int) -> dict[str, Scores]:
    """Read what is on record of the first network: trials, or level -> person -> score."""
    parts: dict[str, Scores] = {}
    results = []
    for line in _lines(RESULTS / "levels.jsonl"):
        job = json.loads(line["key"])
        wanted = dataset, DEFAULT, 0, groups
        if (job["dataset"], job["recipe"], job["seed"], job["groups"]) != wanted:
            continue
        results.append(line["result"])
        for case in line["result"]["cases"]:
            if case["level"] == "nothing":
                parts.setdefault(case["tested"], {}).update(case["subjects"])
            elif (case["level"], case["amount"]) == ("labels", N_LABELS):
                parts.setdefault(f"labels, {case['method']}", {}).update(case["subjects"])
    if results:
        levels = Levels.of(results, len(results))
        parts[UNLABELLED] = levels.chosen("recording", None, SAME)
    return parts


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


WORDS = {"tuned": "braindecode, tuned with labels", "own": "pyRiemann, of the labels alone"}


def rows_of(dataset: str, results: Mapping[Job, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Make the rows of a data set."""
    runs, network = runs_on_record(dataset), network_on_record(dataset, next(iter(results)).groups)
    best = runs[BUDGET][0] if BUDGET in runs else network.get(SAME, {})
    made = []
    for budget, (scores, seconds) in runs.items():
        made.append(row(dataset, f"{ONE_COMMAND} {budget}", NOTHING, scores, best, seconds))
    if network:
        made.append(row(dataset, "its first network", NOTHING, network[SAME], best, None))
    # All trials of a person are there for those who adapt, and all are predicted.
    adapted = network.get(UNLABELLED, {})
    if adapted:
        made.append(row(dataset, ADAPTED, UNLABELLED, adapted, adapted, None))
    for method in dict.fromkeys(job.method for job in results):
        mine = [result for job, result in results.items() if job.method == method]
        seconds = sum(result["seconds"] for result in mine)
        scores = _together(mine, SAME)
        uses = METHODS[method].uses
        beside = adapted if uses == UNLABELLED and adapted else best
        made.append(row(dataset, method, uses, scores, beside, seconds))
    mine = [result for job, result in results.items() if job.method == WITH_LABELS]
    way = next((one for one in WITH_OURS if f"labels, {one}" in network), "")
    best = network.get(f"labels, {way}", {})
    if best:
        made.append(row(dataset, way, "labels", best, best, None))
    for name, words in WORDS.items() if mine else ():
        if scores := _together(mine, name):
            made.append(row(dataset, words, "labels", scores, best, None))
    return made


def _together(results: list[Mapping[str, Any]], name: str) -> Scores:
    return {who: score for one in results for who, score in one.get(name, {}).items()}


def row(
    dataset: str, name: str, uses: str, scores: Scores, best: Scores, seconds: float | None
) -> dict[str, Any]:
    """Compare a method with ours, person by person."""
    both = sorted(set(scores) & set(best))
    change = paired({who: best[who] for who in both}, {who: scores[who] for who in both})
    values = list(scores.values())
    made = {
        "data": dataset,
        "method": name,
        "of the new person": uses,
        "people": len(values),
        "mean": float(np.mean(values)),
        "lower quartile": float(np.percentile(values, 25)),
        "CPU min": np.nan if seconds is None else seconds / 60,
        "ours is above by": np.nan,
        "95 % interval": "",
        "p": np.nan,
    }
    if change is not None and scores is not best:
        made["ours is above by"] = change.difference.value
        made["95 % interval"] = f"{change.difference.low:+.3f} to {change.difference.high:+.3f}"
        made["p"] = change.p
    return made


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=list(SETS), nargs="*", default=list(SETS))
    parser.add_argument("--method", choices=TODAY, nargs="*", default=list(TODAY))
    parser.add_argument(
        "--minutes", type=float, default=60.0, help="most for a method on a data set"
    )
    parser.add_argument("--epochs", type=int, help="fewer, for a try")
    words = "train nothing: only what --keep has finished on a whole data set"
    parser.add_argument("--on-record", action="store_true", help=words)
    pool.add_options(parser)
    args = arguments(parser, dataset=["ssvep"], epochs=1)
    there = [name for name in args.method if args.on_record or METHODS[name].installed]
    if left_out := [name for name in args.method if name not in there]:
        print("Not installed, and left out:", ", ".join(left_out))
    todo = []
    for name in args.dataset:
        n = 3 if args.smoke else n_groups(load_set(name))
        limit = args.minutes * 60 / n
        todo += [Job(name, one, n, i, limit, args.epochs) for one in there for i in range(n)]
    if args.on_record:
        have = pool.kept(args.keep)
        missing = {(job.dataset, job.method) for job in todo if job.key not in have}
        todo = [job for job in todo if (job.dataset, job.method) not in missing]

    def describe(job: Job, result: Mapping[str, Any]) -> str:
        mean = np.mean(list(result[SAME].values()))
        return f"{job.dataset} {job.method} {job.group}: {mean:.3f}, {result['seconds']:.0f} s"

    results = pool.run_all(run, todo, args.keep, args.workers, describe)
    rows = [
        one
        for name in dict.fromkeys(job.dataset for job in todo)
        for one in rows_of(name, {job: r for job, r in results.items() if job.dataset == name})
    ]
    report.finish(args, "What a user would do today, balanced accuracy of new people", rows, [])


if __name__ == "__main__":
    main()
