"""What unlabelled trials of the new person are worth: `CensoredClassifier.adapt`, trial by trial.

The uncensored baseline is trained on every fold with the options that `baseline.py`
chose (`--options`). Then some trials of each person it has not seen, drawn at random and without
labels, give the batch-norm statistics; the person's other trials are predicted with and without.
"all" takes the statistics from the very trials that are predicted. Drawn anew several times. The
prior (how many trials the statistics of training count for) is chosen by the people who validate;
the table is of those who test. Finished trainings are kept in --keep FILE.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import autotransfer as at
from autotransfer.adaptation.statistics import PRIOR
from autotransfer.training.estimator import balanced_accuracy
from benchmarks.censors import evidence_tables
from benchmarks.common import pool, report
from benchmarks.common.recordings import RECORDINGS, arguments, at_work, networks, training_parser

TRIALS = (4, 8, 16, 32, 64)
PRIORS = (0, 8, 32)
DRAWS = 5
ALL = "all"


@dataclass(frozen=True)
class Job(pool.Job):
    """One training."""

    dataset: str
    fold: int
    options: str
    """Of the classifier, as JSON."""


def run(job: Job) -> dict[str, Any]:
    """Train a fold; score those who validate and those who test, before and after."""
    recording, data = at_work(job.dataset)
    fold = recording.folds(data)[job.fold]
    clf = at.CensoredClassifier(
        sfreq=data.sfreq,
        validation=None,
        random_state=0,
        device="cpu",
        verbose=False,
        **json.loads(job.options),
    )
    train = data.select(trials=fold.train)
    clf.fit(train.X, train.y, subject=train.subject)
    return {
        side: {
            one.subject_names[0]: before_and_after(clf, one)
            for one in (data.select(subjects=[who]) for who in fold.subjects(side))
        }
        for side in ("validation", "test")
    }


def before_and_after(
    clf: at.CensoredClassifier, person: at.SubjectDataset
) -> dict[str, tuple[float, float]]:
    """Score a person's trials as they are, and after some others of them gave their statistics.

    Returns
    -------
    dict
        "trials prior" -> balanced accuracy before and after, means over the draws.
    """
    X, y = np.asarray(person.X), person.y
    plain = clf.predict(X)
    own = clf.adapt(X, method="statistics", prior=0).predict(X)
    found = {ALL: (balanced_accuracy(y, plain), balanced_accuracy(y, own))}
    rng = np.random.default_rng(0)

    def predicted(few: Any, rest: Any, prior: int) -> Any:
        return clf.adapt(X[few], method="statistics", prior=prior).predict(X[rest])

    for n in TRIALS:
        if n > len(y) // 2:
            continue
        drawn = [rng.permutation(len(y)) for _ in range(DRAWS)]
        for prior in PRIORS:
            pairs = [
                (
                    balanced_accuracy(y[rest], plain[rest]),
                    balanced_accuracy(y[rest], predicted(few, rest, prior)),
                )
                for few, rest in ((order[:n], order[n:]) for order in drawn)
            ]
            before, after = np.mean(pairs, 0)
            found[f"{n} {prior}"] = (float(before), float(after))
    return found


def of_people(results: Iterable[Mapping[str, Any]], side: str, way: str) -> Any:
    """Scores of all people before and after: two dicts, person -> score."""
    people = {who: scores for one in results for who, scores in one[side].items()}
    there = {who: scores[way] for who, scores in people.items() if way in scores}
    return [{who: pair[i] for who, pair in there.items()} for i in (0, 1)]


def best_prior(results: Sequence[Mapping[str, Any]]) -> int:
    """Choose the prior by the mean over numbers of trials of what validation people gain."""

    def gain(prior: int) -> float:
        gained = []
        for n in TRIALS:
            before, after = of_people(results, "validation", f"{n} {prior}")
            gained += [np.mean([after[who] - before[who] for who in before])] if before else []
        return float(np.mean(gained))

    return max(PRIORS, key=gain)


def row(name: str, results: Sequence[Mapping[str, Any]], n: Any, prior: Any) -> dict[str, Any]:
    """Compare the test people before and after."""
    before, after = of_people(results, "test", ALL if n == ALL else f"{n} {prior}")
    made = evidence_tables.row(name, "adapted", after, before)
    kept = ("difference", "95 % interval", "p", "gained / lost")
    return {
        "data": name,
        "trials": str(n),
        "prior": prior,
        "people": len(before),
        "before": float(np.mean(list(before.values()))),
        "after": made["mean"],
        "quartile before": float(np.percentile(list(before.values()), 25)),
        "quartile after": made["lower quartile"],
        **{column: made[column] for column in kept},
    }


def describe(job: Job, result: dict[str, Any]) -> str:
    """Tell of a finished training."""
    before, after = (np.mean(list(one.values())) for one in of_people([result], "test", ALL))
    return f"{job.dataset} fold {job.fold}: {before:.3f} -> {after:.3f}"


def main() -> None:
    args = arguments(training_parser(__doc__), dataset=["ssvep"], max_epochs=1)
    todo = []
    for name, options in networks(args).items():
        todo += [Job(name, fold, options) for fold in range(RECORDINGS[name].count_folds())]
    results = pool.run_all(run, todo, args.keep, args.workers, describe)
    rows = []
    for name in args.dataset:
        mine = [result for job, result in results.items() if job.dataset == name]
        prior = best_prior(mine)
        # Numbers of which most people have twice as many.
        everybody = len(of_people(mine, "test", ALL)[0])
        there = [
            n for n in TRIALS if len(of_people(mine, "test", f"{n} {prior}")[0]) > everybody / 2
        ]
        shown = sorted({0, PRIOR, prior})
        rows += [
            {**row(name, mine, n, p), "chosen": "*" if p == prior else ""}
            for n in there
            for p in shown
        ]
        rows.append({**row(name, mine, ALL, 0), "chosen": ""})
    report.finish(
        args,
        "Unlabelled trials of the new person",
        rows,
        trainings=[{**job.__dict__, **result} for job, result in results.items()],
    )


if __name__ == "__main__":
    main()
