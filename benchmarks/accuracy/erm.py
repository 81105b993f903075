"""Leave-one-subject-out accuracy of the uncensored baseline (ERM) on real recordings.

EMG in 10 grouped folds, SSVEP without rest and ERP by subject; each fold validates on one subject
(or group) and tests on the next, which nothing in training sees. Every data set with the
normalisation that suits it and with others, so that the difference shows. Results of finished
folds are kept in --keep FILE: the same command goes on where it was stopped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import autotransfer as at
from benchmarks.common import pool, report
from benchmarks.common.recordings import RECORDINGS, arguments, at_work, tested


@dataclass(frozen=True)
class Job(pool.Job):
    """One training: a fold of a data set with some options."""

    dataset: str
    normalise: str
    fold: int
    seed: int
    options: str = "{}"
    """Further options of the classifier, as JSON; "encoder_options" are added to the data set's."""


def jobs(names: list[str], seed: int, options: dict[str, Any], all_kinds: bool) -> Iterator[Job]:
    """All trainings of some data sets."""
    for name in names:
        recording = RECORDINGS[name]
        n = recording.count_folds()
        for kind in recording.normalisers if all_kinds else recording.normalisers[:1]:
            for fold in range(n):
                yield Job(name, kind, fold, seed, json.dumps(options, sort_keys=True))


def run(job: Job) -> dict[str, Any]:
    """Train one fold and score each of its test subjects."""
    recording, data = at_work(job.dataset)
    fold = recording.folds(data)[job.fold]
    options = {**recording.options, **json.loads(job.options)}
    encoder_options = {**recording.encoder_options, **options.pop("encoder_options", {})}
    clf = at.CensoredClassifier(
        sfreq=data.sfreq,
        normalise=job.normalise,
        validation=fold.subjects("validation"),
        random_state=job.seed,
        device="cpu",
        encoder_options=encoder_options,
        verbose=False,
        **options,
    )
    fitted = data.select(trials=np.union1d(fold.train, fold.validation))
    start = time.perf_counter()
    clf.fit(fitted.X, fitted.y, subject=fitted.subject)
    seconds = time.perf_counter() - start
    return {
        "test": tested(clf, data, fold),
        "validation": clf.provenance_["scores"]["validation_balanced_accuracy"],
        "epochs": len(clf.history_),
        "best_epoch": clf.best_epoch_,
        "seconds": seconds,
    }


def describe(job: Job, result: dict[str, Any]) -> str:
    """Tell of a finished fold."""
    score = np.mean(list(result["test"].values()))
    return (
        f"{job.dataset} {job.normalise} fold {job.fold}: {score:.3f} after {result['epochs']} "
        "epochs"
    )


def run_all(todo: list[Job], keep: Path | None, workers: int) -> dict[Job, dict[str, Any]]:
    """Run jobs in processes; what is finished is kept at once."""
    return pool.run_all(run, todo, keep, workers, describe)


def summarise(results: dict[Job, dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each data set and normalisation."""
    rows = []
    for name, kind in dict.fromkeys((job.dataset, job.normalise) for job in results):
        mine = [r for job, r in results.items() if (job.dataset, job.normalise) == (name, kind)]
        scores = np.array([score for r in mine for score in r["test"].values()])
        low, median, high = np.quantile(scores, [0.25, 0.5, 0.75])
        rows.append(
            {
                "data": name,
                "normalise": kind,
                "subjects": len(scores),
                "mean": float(scores.mean()),
                "sd": float(scores.std(ddof=1)),
                "lower quartile": float(low),
                "median": float(median),
                "upper quartile": float(high),
                "worst": float(scores.min()),
                "simple pipeline": RECORDINGS[name].simple_pipeline,
                "epochs": float(np.mean([r["epochs"] for r in mine])),
                "CPU min": sum(r["seconds"] for r in mine) / 60,
            }
        )
    return rows


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=list(RECORDINGS), nargs="*", default=list(RECORDINGS))
    parser.add_argument("--seed", type=int, default=0)
    pool.add_options(parser)
    parser.add_argument("--options", type=json.loads, default={}, help="classifier options, JSON")
    parser.add_argument("--best-only", action="store_true", help="only the suiting normalisation")
    args = arguments(parser, dataset=["ssvep"], options={"max_epochs": 1}, best_only=True)
    todo = list(jobs(args.dataset, args.seed, args.options, not args.best_only))
    results = run_all(todo, args.keep, args.workers)
    rows = summarise(results)
    # Of all folds, also those kept from an earlier start of the same command.
    minutes = sum(result["seconds"] for result in results.values()) / 60 / max(args.workers, 1)
    for row in rows:
        mine = [
            r["test"]
            for j, r in results.items()
            if j.dataset == row["data"] and j.normalise == row["normalise"]
        ]
        people = sorted((s, who) for test in mine for who, s in test.items())
        print(f"{row['data']} {row['normalise']}: " + ", ".join(f"{w} {s:.3f}" for s, w in people))
    per_subject = [{**job.__dict__, **result} for job, result in results.items()]
    goals = [
        report.Goal("minutes of all folds, shared by the workers", minutes, 60, at_least=False)
    ]
    report.finish(
        args, "ERM, balanced accuracy on people never seen", rows, goals, trainings=per_subject
    )


if __name__ == "__main__":
    main()
