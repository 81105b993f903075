"""Leave one person out with EEGNet: ours against braindecode's in skorch, the same steps.

Both train networks of the same size for the same number of steps, with batches of the same size, in
one thread, once for each person, who is left out and scored (of ERP three people). Ours is
`CensoredClassifier` as it is, reading included; braindecode's is `EEGClassifier` on trials that are
normalised and in memory before its clock starts. braindecode and skorch are needed: the environment
of tests/exchange/run.sh has them; without them (and with --smoke) ours is timed alone.
"""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.metrics import balanced_accuracy_score

import autotransfer as at
from autotransfer.data.normalise import Normaliser
from autotransfer.data.problem import Problem
from benchmarks.common import pool, report
from benchmarks.common.recordings import arguments, at_work

SETS = {"ssvep": None, "erp": 3}
"""How many people are left out in turn, None for all. Three of ERP's twenty: braindecode takes five
minutes for each of them, and the ratios of these three are 21 to 25."""
BATCH = 64
LEAST = 5.0
"""Times less CPU than braindecode with skorch: at least."""


@dataclass(frozen=True)
class Job(pool.Job):
    """One person left out of a data set."""

    data: str
    who: str
    fold: int
    steps: int


def ours(problem: Problem, train: Any, test: Any, steps: int, seed: int) -> Any:
    """Train with this package; gives the predicted class numbers."""
    clf = at.CensoredClassifier(
        n_steps=steps, validation=None, random_state=seed, device="cpu", verbose=False
    )
    rows = problem.X.take(train)
    clf.fit(rows, problem.codes[train], subject=problem.subject[train])
    return clf.predict_codes(problem.X.take(test))


def theirs(X: Any, y: Any, train: Any, test: Any, steps: int, seed: int) -> Any:
    """Train with braindecode and skorch; gives the predicted class numbers."""
    from braindecode import EEGClassifier
    from braindecode.models import EEGNet

    torch.manual_seed(seed)
    each = len(train) // BATCH
    net = EEGNet(n_chans=X.shape[1], n_outputs=len(np.unique(y)), n_times=X.shape[2])
    clf = EEGClassifier(
        net,
        criterion=torch.nn.CrossEntropyLoss,
        optimizer=torch.optim.AdamW,
        optimizer__lr=3e-3,
        optimizer__weight_decay=0.01,
        iterator_train__drop_last=True,
        iterator_train__shuffle=True,
        batch_size=BATCH,
        max_epochs=max(1, round(steps / each)),
        train_split=None,
        verbose=0,
        device="cpu",
    )
    clf.fit(X[train], y[train])
    return clf.predict(X[test])


def work(job: Job) -> dict[str, Any]:
    """Leave a person out, with one of the two."""
    _, data = at_work(job.data)
    warnings.simplefilter("ignore")
    problem = Problem.of(data)
    person = np.unique(problem.subject)[job.fold]
    test = np.flatnonzero(problem.subject == person)
    train = np.flatnonzero(problem.subject != person)
    X = Normaliser("channel").fit(problem.X, train).transform(problem.X[:])
    y = problem.codes.astype(np.int64)
    wall, cpu = time.perf_counter(), time.process_time()
    if job.who == "autotransfer":
        predicted = ours(problem, train, test, job.steps, job.fold)
    else:
        predicted = theirs(X, y, train, test, job.steps, job.fold)
    return {
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "score": float(balanced_accuracy_score(y[test], predicted)),
    }


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=list(SETS), nargs="*", default=list(SETS))
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--people", type=int, help="the first so many only, for a try")
    pool.add_options(parser)
    parser.set_defaults(workers=1)
    args = arguments(parser, steps=2, people=1, dataset=["ssvep"])
    who = ["autotransfer"]
    if not args.smoke:
        try:
            import braindecode  # noqa: F401

            who.append("braindecode")
        except ImportError:
            print("braindecode is not installed: no ratio. tests/exchange/run.sh installs it.")
    jobs = [
        Job(name, one, fold, args.steps)
        for name in args.dataset
        for fold in range(args.people or SETS[name] or len(at_work(name)[1].subject_ids))
        for one in who
    ]

    def words(job: Job, found: dict[str, Any]) -> str:
        return f"{job.data} {job.who} {job.fold}: {json.dumps(found)}"

    found = pool.run_all(work, jobs, args.keep, args.workers, words)
    rows, goals = [], []
    for name in args.dataset:
        totals = {}
        for one in who:
            mine = [found[job] for job in jobs if (job.data, job.who) == (name, one)]
            totals[one] = {
                "wall s": sum(m["wall"] for m in mine),
                "CPU s": sum(m["cpu"] for m in mine),
                "balanced accuracy": float(np.mean([m["score"] for m in mine])),
            }
            ratio = totals[one]["CPU s"] / totals["autotransfer"]["CPU s"]
            rows.append(
                {"data": name, "people": len(mine), "by": one, **totals[one], "CPU ratio": ratio}
            )
        if len(totals) > 1:
            goals.append(report.Goal(f"{name}: CPU ratio", ratio, LEAST))
    report.finish(args, f"Leave one person out, {args.steps} steps", rows, goals)


if __name__ == "__main__":
    main()
