"""The fifteen censors where the leak is known: do they censor, and do they look at the subject.

`make_leak` puts the class and the subject into different dimensions, so that a latent can hold all
of one and nothing of the other. Every censor trains at its default strength and options, as many
steps (at a learning rate of 0.001) as the uncensored baseline; leakage probes judge the latents of
other trials of the same people. In conditional mode the label tells something about the subject,
and what it alone tells is the level to reach. The placebo is the same training with the subject
labels shuffled: a censor that uses them must then leave the probe where the uncensored baseline
leaves it; one that lowers it all the same only compresses the latent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

import autotransfer as at
from autotransfer.censoring import MODES
from benchmarks.common import pool, report
from benchmarks.common.censors import CENSORS, name_of

LATENT = 8
PEOPLE = 6


@dataclass(frozen=True)
class Job(pool.Job):
    """One training."""

    measure: str | None
    mode: str
    seed: int
    placebo: bool = False
    options: str = "{}"
    """Further options of the classifier, as JSON."""
    n_trials: int = 5000
    """Of each person, to train on."""


def encoder(n_channels: int, n_times: int) -> nn.Module:
    """Make a network of two hidden layers, for vectors."""
    made = nn.Sequential(
        nn.Flatten(),
        nn.Linear(n_channels * n_times, 64),
        nn.ELU(),
        nn.Linear(64, 64),
        nn.ELU(),
        nn.Linear(64, LATENT),
    )
    made.n_latent = LATENT  # type: ignore[assignment]
    return made


def run(job: Job) -> dict[str, Any]:
    """Train, then probe the latents of other trials."""
    torch.set_num_threads(1)
    confounding = 0.7 if job.mode == "conditional" else 0.0
    data, other = (
        at.make_leak(PEOPLE, n_trials, confounding, random_state=job.seed, draw=draw)
        for draw, n_trials in enumerate((job.n_trials, min(job.n_trials, 400)))
    )
    subject = data.subject
    if job.placebo:
        subject = np.random.default_rng(job.seed).permutation(subject)
    options = {
        "encoder": encoder,
        "normalise": "none",
        "validation": None,
        "max_epochs": 12,
        "learning_rate": 1e-3,
        "subjects_per_batch": PEOPLE,
        "trials_per_subject": 40,
        "random_state": job.seed,
        "verbose": False,
        **json.loads(job.options),
    }
    clf = at.CensoredClassifier(job.measure, job.mode, **options)
    clf.fit(data.X, data.y, subject=subject)
    z = clf.transform(other.X)
    label = other.y if job.mode == "conditional" else None
    latents = {"z": z, "z1": z[:, : LATENT // 2], "z2": z[:, LATENT // 2 :]}
    wanted = ("z1", "z2") if job.mode == "complementary" else ("z",)
    found = {
        name: at.measure_leakage(latents[name], other.subject, label=label, random_state=job.seed)
        for name in wanted
    }
    return {
        "task": clf.score(other.X, other.y),
        "seconds": sum(entry["seconds"] for entry in clf.history_),
        "scale": float(z.std(0).mean()),
        **{name: score.best.accuracy.value for name, score in found.items()},
        **{f"{name} bound": score.best.bound.value for name, score in found.items()},
        "chance": next(iter(found.values())).chance,
    }


def describe(job: Job, result: dict[str, Any]) -> str:
    """Tell of a finished training."""
    placebo = " placebo" if job.placebo else ""
    probes = ", ".join(f"{n} {result[n]:.3f}" for n in ("z", "z1", "z2") if n in result)
    name = name_of((job.measure, job.mode))
    return f"{name}{placebo} seed {job.seed}: task {result['task']:.3f}, {probes}"


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    pool.add_options(parser)
    parser.add_argument("--measure", nargs="*", help="only these")
    parser.add_argument("--mode", nargs="*", default=list(MODES), help="only these")
    parser.add_argument("--options", type=json.loads, default={}, help="classifier options, JSON")
    args = report.arguments(parser, seeds=1, workers=0, measure=["mmd"], mode=["complementary"])
    n_trials = 10 if args.smoke else Job.n_trials
    settings = [
        (measure, mode)
        for measure, mode in CENSORS
        if mode in args.mode and (args.measure is None or measure in args.measure)
    ]
    options = json.dumps(args.options, sort_keys=True)
    todo = [
        Job(None, mode, seed, n_trials=n_trials) for mode in args.mode for seed in range(args.seeds)
    ]
    todo += [
        Job(*setting, seed, placebo, options, n_trials)
        for setting in settings
        for seed in range(args.seeds)
        for placebo in (False, True)
    ]
    results = pool.run_all(run, todo, args.keep, args.workers, describe)
    rows, goals = [], []
    for mode in args.mode:
        first = "z1" if mode == "complementary" else "z"
        uncensored = pick(results, (None, mode), False)
        for setting in [(None, mode), *(s for s in settings if s[1] == mode)]:
            true = pick(results, setting, False)
            placebo = uncensored if setting[0] is None else pick(results, setting, True)
            name = name_of(setting) + (f" ({mode})" if setting[0] is None else "")
            rows.append(
                {
                    "censor": name,
                    "task": mean(true, "task"),
                    "task sd": spread(true, "task"),
                    "probe": mean(true, first),
                    "probe sd": spread(true, first),
                    "chance": mean(true, "chance"),
                    "z2": mean(true, "z2") if mode == "complementary" else float("nan"),
                    "placebo": mean(placebo, first),
                    "placebo sd": spread(placebo, first),
                    "seconds": mean(true, "seconds"),
                }
            )
            if setting[0] is None:
                continue
            above = mean(true, first) - mean(true, "chance")
            lost = mean(uncensored, "task") - mean(true, "task")
            moved = abs(mean(placebo, first) - mean(uncensored, first))
            goals += [
                report.Goal(f"{name}: probe above chance", above, 0.05, at_least=False),
                report.Goal(f"{name}: task accuracy lost", lost, 0.02, at_least=False),
                report.Goal(f"{name}: probe moved by the placebo", moved, 0.05, at_least=False),
            ]
            if mode == "complementary":
                gained = mean(true, "z2") - mean(uncensored, "z2")
                goals.append(report.Goal(f"{name}: probe of z2 above the uncensored", gained, 0.0))
    report.finish(
        args,
        f"Censors at their defaults on a known leak, mean over {args.seeds} seeds",
        rows,
        goals,
        trainings=[{**job.__dict__, **result} for job, result in results.items()],
    )


def pick(
    results: dict[Job, dict[str, Any]], setting: tuple[str | None, str], placebo: bool
) -> list[dict[str, Any]]:
    """Results of a setting, one for each seed."""
    return [
        r for j, r in results.items() if (j.measure, j.mode) == setting and j.placebo == placebo
    ]


def mean(results: list[dict[str, Any]], name: str) -> float:
    """Mean over seeds."""
    return float(np.mean([result[name] for result in results]))


def spread(results: list[dict[str, Any]], name: str) -> float:
    """Return the standard deviation over seeds."""
    return float(np.std([result[name] for result in results], ddof=1)) if len(results) > 1 else 0.0


if __name__ == "__main__":
    main()
