"""Two choices of ours that docs/corrections.md measures, each against the form it replaces.

Batches: MIGE, marginal, with shuffled subject labels, and chunks of a subject that are drawn at
random or that have their share of the classes. A censor that looks at the subject leaves the probe
where the uncensored training leaves it. Length scales: MMD, marginal, with three or with one, true
labels. Data, network, training and probe are those of `censors_on_synthetic.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

from autotransfer.data.batches import SubjectBatches
from autotransfer.training import fit
from benchmarks.common import pool, report
from benchmarks.synthetic import censors_on_synthetic as synthetic


@dataclass(frozen=True)
class Job(synthetic.Job):
    """One training, its batches perhaps of chunks with their share of the classes."""

    balanced: bool = False


ONE_SCALE = json.dumps({"measure_options": {"scales": [1.0]}})

# Name in the table: measure, placebo, options, balanced chunks.
FORMS: dict[str, tuple[str | None, bool, str, bool]] = {
    "uncensored": (None, False, "{}", False),
    "mige, placebo, random chunks (ours)": ("mige", True, "{}", False),
    "mige, placebo, class-balanced chunks": ("mige", True, "{}", True),
    "mmd, three length scales (ours)": ("mmd", False, "{}", False),
    "mmd, one length scale": ("mmd", False, ONE_SCALE, False),
}


class Balanced(SubjectBatches):
    """Batches whose chunks have their share of the classes, whatever the mode asks for."""

    def __init__(self, *data: Any, **options: Any) -> None:
        super().__init__(*data, **{**options, "by_class": True})


def run(job: Job) -> dict[str, Any]:
    """Train and probe."""
    # The mode decides on the chunks and no option does: nobody should want the other ones.
    with mock.patch.object(fit, "SubjectBatches", Balanced if job.balanced else SubjectBatches):
        return synthetic.run(job)


def describe(job: Job, result: dict[str, Any]) -> str:
    """Tell of a finished training."""
    chunks = " balanced" if job.balanced else ""
    return f"{synthetic.describe(job, result)}{chunks} {job.options}"


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    pool.add_options(parser)
    args = report.arguments(parser, seeds=1, workers=0)
    n_trials = 10 if args.smoke else Job.n_trials
    jobs = {
        name: [Job(measure, "marginal", seed, placebo, options, n_trials, balanced)
               for seed in range(args.seeds)]
        for name, (measure, placebo, options, balanced) in FORMS.items()
    }  # fmt: skip
    todo = [job for of_form in jobs.values() for job in of_form]
    results = pool.run_all(run, todo, args.keep, args.workers, describe)
    found = {name: [results[job] for job in of_form] for name, of_form in jobs.items()}
    rows = [
        {
            "form": name,
            "task": synthetic.mean(of_form, "task"),
            "probe": synthetic.mean(of_form, "z"),
            "probe sd": synthetic.spread(of_form, "z"),
            "chance": synthetic.mean(of_form, "chance"),
        }
        for name, of_form in found.items()
    ]
    probe = partial(synthetic.mean, name="z")
    uncensored, drawn, balanced, three, one = (probe(of_form) for of_form in found.values())
    goals = [
        report.Goal("probe moved by random chunks", abs(drawn - uncensored), 0.05, at_least=False),
        report.Goal("probe lowered by class-balanced chunks", uncensored - balanced, 0.05),
        report.Goal("probe lowered more by three scales than by one", one - three, 0.0),
    ]
    report.finish(
        args,
        f"What two corrections do on a known leak, mean over {args.seeds} seeds",
        rows,
        goals,
        trainings=[{**job.__dict__, **result} for job, result in results.items()],
    )


if __name__ == "__main__":
    main()
