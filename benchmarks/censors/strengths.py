"""What drives the result: accuracy and leakage against strength, for every measure in every mode.

Each censor is trained at several strengths, and at all but the weakest once more with the subject
labels of the training trials shuffled (the placebo: what the penalty does by merely being there).
Options are those that `accuracy/baseline.py` chose (`--options`). People are put into two or
three parts, and each part is tested by a model of the others: with a model for each person, as in
`evidence.py`, the same time would show two people instead of all. So fewer people train
here than there. Nobody validates: all trainings are equally long, and nothing is chosen.

Scores are compared person by person with those of the uncensored baseline of the same seed, which
began with the same weights and saw the same batches: the luck of a seed, which all censors trained
with it share, is on both sides. How large it is, is shown beside it: the baseline is trained with
further seeds. Conditional censors have batches of their own, and so a baseline of their own; what
the batches do alone is a table, too. Probes look for the person in the latents of the training
subjects. Importances are Optuna's (fANOVA) over these trainings. Finished trainings are kept in
--keep FILE; `--no-run` makes the tables from the parts that are complete there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import autotransfer as at
from autotransfer.censoring import MODES
from autotransfer.search.portrait import shuffled
from benchmarks.censors.censors_on_recordings import probe
from benchmarks.censors.strength_tables import (
    BY_CLASS,
    ESTIMATORS,
    UNCENSORED,
    Cell,
    batches_alone,
    by_censor,
    digest,
    strengths,
    tables,
)
from benchmarks.common import pool, report
from benchmarks.common.censors import CENSORS, name_of
from benchmarks.common.parts_of_people import jobs, parts, parts_parser
from benchmarks.common.recordings import arguments, at_work, tested

BASELINES = 5
"""Seeds of an uncensored baseline."""


@dataclass(frozen=True)
class Job(pool.Job):
    """One training."""

    dataset: str
    measure: str | None
    mode: str
    strength: float
    placebo: bool
    estimator: str
    parts: int
    part: int
    seed: int
    options: str
    """Of the classifier, as JSON."""

    @property
    def cell(self) -> Cell:
        """What was trained, on whatever part."""
        return self.measure, self.mode, self.strength, self.placebo, self.estimator


def cells() -> list[Cell]:
    """Everything to train for a part; the uncensored baselines first."""
    made: list[Cell] = [UNCENSORED, BY_CLASS]
    for placebo in (False, True):
        for measure, mode in CENSORS:
            assert measure is not None
            estimator = ESTIMATORS[0] if measure == "mige" else ""
            # The weakest penalties do next to nothing; so do their placebos.
            tried = strengths(measure)[int(placebo) :]
            made += [(measure, mode, s, placebo, estimator) for s in tried]
    middle = strengths("mige")[1]
    others = (("mige", mode, middle, False, one) for mode in MODES for one in ESTIMATORS)
    return made + [cell for cell in others if cell not in made]


def run(job: Job) -> dict[str, Any]:
    """Train without a part of the people, score these, probe the latent of the others."""
    _, data = at_work(job.dataset)
    fold = parts(data.subject, job.parts)[job.part]
    subject = shuffled(fold, np.random.default_rng(0)).subject if job.placebo else data.subject
    clf = at.CensoredClassifier(
        job.measure,
        job.mode,
        job.strength if job.measure else None,
        measure_options={"estimator": job.estimator} if job.estimator else None,
        sfreq=data.sfreq,
        validation=None,
        random_state=job.seed,
        device="cpu",
        verbose=False,
        **json.loads(job.options),
    )
    start = time.process_time()
    train = data.select(trials=fold.train)
    clf.fit(train.X, train.y, subject=subject[fold.train])
    return {
        "test": tested(clf, data, fold),
        "leakage": probe(clf.transform(train.X), train, job.measure, job.mode),
        "seconds": time.process_time() - start,
    }


def describe(job: Job, result: dict[str, Any]) -> str:
    """Tell of a finished training."""
    score = np.mean(list(result["test"].values()))
    name = f"{name_of((job.measure, job.mode))} {job.strength:g}{' placebo' * job.placebo}"
    return f"{job.dataset} {name} part {job.part}: {score:.3f}"


def whole_parts(todo: Sequence[Job], keep: Path) -> list[Job]:
    """Leave out the parts of the people that miss a training."""
    done = pool.kept(keep)
    missing = {(job.dataset, job.part) for job in todo if job.key not in done}
    return [job for job in todo if (job.dataset, job.part) not in missing]


def main() -> None:
    parser = parts_parser(__doc__)
    parser.add_argument("--no-run", action="store_true", help="make the tables, train nothing")
    args = arguments(parser, dataset=["ssvep"], max_epochs=1, parts=2)
    if args.no_run and (args.keep is None or not args.keep.exists()):
        parser.error("--no-run needs --keep FILE with finished trainings.")
    once, seeds = cells(), BASELINES
    if args.smoke:
        few = ("mige", "marginal", strengths("mige")[1])
        once, seeds = [one for one in once if one[0] is None or one[:3] == few], 1
    again = [(base, s) for base in (UNCENSORED, BY_CLASS) for s in range(1, seeds)]
    todo = jobs(args, Job, [*((cell, 0) for cell in once), *again])
    todo = whole_parts(todo, args.keep) if args.no_run else todo
    results = pool.run_all(run, todo, args.keep, args.workers, describe)
    rows, matters, batches = [], [], []
    for name in dict.fromkeys(job.dataset for job in todo):
        mine, shares = tables(results, name)
        rows += mine
        matters += shares
        batches.append(batches_alone(results, name))
    averages = digest(rows)
    report.show("All censors together, beside their placebos", averages)
    report.show("Importance over these settings (fANOVA)", matters)
    report.show("What the batches do without any penalty", batches)
    report.finish(
        args,
        "Accuracy on people never seen, and leakage, against strength",
        rows,
        importances=matters,
        digest=averages,
        batches=batches,
        censors=by_censor(rows),
        trainings=[{**job.__dict__, **result} for job, result in results.items()],
    )


if __name__ == "__main__":
    main()
