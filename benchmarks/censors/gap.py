"""What there is to gain: the same trials of the same people, as known people's and as new ones'.

People are put into parts as in `strengths.py`. Each part in turn is new to a model of
the others; of these, who are known to it, the last third of the trials of each class (by whole
recordings where there are any) is kept out of training. So everybody's last trials are predicted
once by a model that never met the person, and once or more by one that learnt from the person's
earlier trials. What lies between is all that a method against differences of people can win.

Then the same with censors, to see whose accuracy they move; and how far a person's latent is from
the training people's mean, in units of the spread within people: does a censor bring the new
people nearer, or only those whom it knows? Finished trainings are kept in --keep FILE.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import autotransfer as at
from autotransfer.censoring import MEASURES
from benchmarks.censors import evidence_tables
from benchmarks.censors.strength_tables import strengths
from benchmarks.common import pool, report
from benchmarks.common.censors import name_of
from benchmarks.common.parts_of_people import beside, by_cell, jobs, parts, parts_parser
from benchmarks.common.recordings import arguments, at_work, units_of_people

SEEDS = 3
"""Trainings of the uncensored baseline; a censor has one."""
OF_A_CLASS = 1 / 3
"""Share of a person's trials of a class, the last ones, that nobody learns from."""


@dataclass(frozen=True)
class Job(pool.Job):
    """One training."""

    dataset: str
    measure: str | None
    strength: float
    parts: int
    part: int
    seed: int
    options: str
    """Of the classifier, as JSON."""

    @property
    def cell(self) -> tuple[str | None, float]:
        """What was trained, on whatever part."""
        return self.measure, self.strength


def cells() -> list[tuple[tuple[str | None, float], int]]:
    """Everything to train for a part, with its seed; censors are marginal, middle and strong."""
    plain: list[tuple[tuple[str | None, float], int]] = [((None, 0.0), s) for s in range(SEEDS)]
    return plain + [((m, strength), 0) for m in MEASURES for strength in strengths(m)[1:]]


def last_trials(data: at.SubjectDataset) -> np.ndarray:
    """Mark the last third of every person's trials of every class, by whole recordings."""
    marked = np.zeros(len(data.y), bool)
    for units in units_of_people(data).values():
        n = max(1, int(OF_A_CLASS * len(units)))
        marked[np.concatenate(units[-n:])] = True
    return marked


def run(job: Job) -> dict[str, Any]:
    """Train on the earlier trials of a part's known people; score everybody's last ones."""
    _, data = at_work(job.dataset)
    fold = parts(data.subject, job.parts)[job.part]
    last = last_trials(data)
    train = data.select(trials=fold.train[~last[fold.train]])
    clf = at.CensoredClassifier(
        job.measure,
        strength=job.strength if job.measure else None,
        sfreq=data.sfreq,
        validation=None,
        random_state=job.seed,
        device="cpu",
        verbose=False,
        **json.loads(job.options),
    )
    clf.fit(train.X, train.y, subject=train.subject)
    centre, spread = frame(clf.transform(train.X), train.subject)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for side, trials in (("known", fold.train), ("test", fold.test)):
        there = data.select(trials=trials[last[trials]])
        found[side] = {}
        for who in there.subject_ids:
            one = there.select(subjects=[who])
            away = (clf.transform(one.X).mean(0) - centre) / spread
            found[side][one.subject_names[0]] = {
                "score": clf.score(one.X, one.y),
                "distance": float(np.sqrt(np.mean(away**2))),
            }
    return found


def frame(z: np.ndarray, subject: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the mean over people of a latent (N, K), and its deviation within people: (K,) each."""
    groups = [z[subject == who] for who in np.unique(subject)]
    within = np.mean([group.var(0) for group in groups], 0)
    # A dead unit has no spread, and is nowhere away either.
    return np.mean([group.mean(0) for group in groups], 0), np.sqrt(within + 1e-12)


def of_people(results: Sequence[Mapping[str, Any]], side: str, what: str) -> dict[str, float]:
    """Give a figure of every person, a mean over the models that have it."""
    found: dict[str, list[float]] = {}
    for result in results:
        for who, figures in result[side].items():
            found.setdefault(who, []).append(figures[what])
    return {who: float(np.mean(values)) for who, values in found.items()}


def rows_of(name: str, results: Mapping[Job, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Make a row for everything that was trained on a data set."""
    of = by_cell(results, name)
    made = []
    for (measure, strength), mine in of.items():
        known, new = (of_people(mine, side, "score") for side in ("known", "test"))
        gap = evidence_tables.row(name, "", new, known)
        plain = beside(results, name, (measure, strength), (None, 0.0))
        base = {s: of_people(plain, s, "score") for s in ("known", "test")}
        away = {s: list(of_people(mine, s, "distance").values()) for s in ("known", "test")}
        made.append(
            {
                "data": name,
                "censor": name_of((measure, "marginal")),
                "strength": strength,
                "people": len(new),
                "known": float(np.mean(list(known.values()))),
                "new": gap["mean"],
                "gap": gap["difference"],
                "95 % interval": gap["95 % interval"],
                "p": gap["p"],
                "known change": float(np.mean([known[w] - base["known"][w] for w in known])),
                "new change": float(np.mean([new[w] - base["test"][w] for w in new])),
                "known distance": float(np.mean(away["known"])),
                "new distance": float(np.mean(away["test"])),
            }
        )
    return made


def describe(job: Job, result: dict[str, Any]) -> str:
    """Tell of a finished training."""
    known, new = (
        np.mean([one["score"] for one in result[side].values()]) for side in ("known", "test")
    )
    what = name_of((job.measure, "marginal"))
    return f"{job.dataset} part {job.part} {what} {job.strength:g}: {known:.3f} -> {new:.3f}"


def main() -> None:
    args = arguments(parts_parser(__doc__), dataset=["ssvep"], max_epochs=1, parts=2)
    every = cells()
    todo = jobs(args, Job, [every[0], every[-1]] if args.smoke else every)
    results = pool.run_all(run, todo, args.keep, args.workers, describe)
    report.finish(
        args,
        "The same people, known and new",
        [row for name in args.dataset for row in rows_of(name, results)],
        trainings=[{**job.__dict__, **result} for job, result in results.items()],
    )


if __name__ == "__main__":
    main()
