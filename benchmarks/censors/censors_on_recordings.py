"""The fifteen censors on real recordings: accuracy on people never seen, and what the latent leaks.

EMG and SSVEP (without rest) in 5 grouped folds; each validates on one group and tests on the next.
Every setting trains at its default strength and options, with a learning rate of 0.001 (a third of
the default) and for at most the same number of epochs. Leakage probes judge
the latent of the training subjects, with whole recordings held out: of z in marginal mode, of z
beyond the label in conditional mode, of z1 and z2 in complementary mode, always against the same
probe of the uncensored latent. Finished trainings are kept in --keep FILE.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import autotransfer as at
from autotransfer.encoder.split import split_latent
from autotransfer.errors import LatentCollapseWarning, LatentExplosionWarning
from benchmarks.common import pool, report
from benchmarks.common.censors import CENSORS, name_of
from benchmarks.common.recordings import arguments, at_work, tested

N_FOLDS = 5
EPOCHS = {"emg": 8, "ssvep": 40}
"""Most epochs: some 700 to 800 steps in both sets."""
PROBED = {"marginal": ("z",), "conditional": ("z given y",), "complementary": ("z1", "z2")}
"""What of the latent each mode is about."""


@dataclass(frozen=True)
class Job(pool.Job):
    """One training."""

    dataset: str
    measure: str | None
    mode: str
    fold: int


def run(job: Job) -> dict[str, Any]:
    """Train a fold, score its test subjects, probe the latent of its training subjects."""
    recording, data = at_work(job.dataset)
    folds = at.SubjectFolds(N_FOLDS, shuffle=True, random_state=0)
    fold = list(folds.folds(data.subject))[job.fold]
    clf = at.CensoredClassifier(
        job.measure,
        job.mode,
        sfreq=data.sfreq,
        normalise=recording.normalisers[0],
        validation=fold.subjects("validation"),
        encoder_options=recording.encoder_options,
        max_epochs=EPOCHS[job.dataset],
        patience=30,
        learning_rate=1e-3,
        random_state=0,
        device="cpu",
        verbose=False,
    )
    fitted = data.select(trials=np.union1d(fold.train, fold.validation))
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", at.AutoTransferWarning)
        clf.fit(fitted.X, fitted.y, subject=fitted.subject)
    trained = time.process_time() - start
    test = tested(clf, data, fold)
    train = data.select(trials=fold.train)
    z = clf.transform(train.X)
    start = time.process_time()
    return {
        "test": test,
        "validation": clf.provenance_["scores"]["validation_balanced_accuracy"],
        "best_epoch": clf.best_epoch_,
        "seconds": trained,
        "warnings": sorted({type(w.message).__name__ for w in caught}),
        "leakage": probe(z, train, job.measure, job.mode),
        "probe seconds": time.process_time() - start,
    }


def probe(
    z: np.ndarray, train: at.SubjectDataset, measure: str | None, mode: str
) -> dict[str, dict[str, float]]:
    """Leakage of what the mode is about; of everything for the uncensored baseline."""
    z1, z2 = (half.numpy() for half in split_latent(torch.from_numpy(z)))
    parts = {"z": (z, None), "z given y": (z, train.y), "z1": (z1, None), "z2": (z2, None)}
    names = tuple(parts) if measure is None else PROBED[mode]
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", at.AutoTransferWarning)
        for name in names:
            latent, label = parts[name]
            result = at.measure_leakage(
                latent,
                train.subject,
                recording=train.recording,
                label=label,
                probes=("linear", "gaussian"),
                max_trials_per_subject=100,
            )
            found[name] = {
                "accuracy": result.best.accuracy.value,
                "nats": result.best.bound.value,
                "chance": result.chance,
            }
    return found


def describe(job: Job, result: dict[str, Any]) -> str:
    """Tell of a finished training."""
    score = np.mean(list(result["test"].values()))
    leaks = ", ".join(f"{n} {v['accuracy']:.2f}" for n, v in result["leakage"].items())
    warned = f" [{', '.join(result['warnings'])}]" if result["warnings"] else ""
    name = name_of((job.measure, job.mode))
    return f"{job.dataset} {name} fold {job.fold}: {score:.3f}, leaks {leaks}{warned}"


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=list(EPOCHS), nargs="*", default=list(EPOCHS))
    pool.add_options(parser)
    args = arguments(parser, dataset=["ssvep"])
    # The uncensored, and with --smoke one censor of each mode.
    settings = [(None, "marginal"), *(CENSORS[1::6] if args.smoke else CENSORS)]
    # Folds outside, settings inside: a run that is stopped has whole folds of everything.
    todo = [
        Job(name, *setting, fold)
        for fold in range(1 if args.smoke else N_FOLDS)
        for name in args.dataset
        for setting in settings
    ]
    results = pool.run_all(run, todo, args.keep, args.workers, describe)
    rows, goals = [], []
    for dataset in args.dataset:
        base = [r for j, r in results.items() if (j.dataset, j.measure) == (dataset, None)]
        for setting in settings:
            mine = [
                r
                for j, r in results.items()
                if (j.dataset, j.measure, j.mode) == (dataset, *setting)
            ]
            scores = np.array([s for r in mine for s in r["test"].values()])
            probed = "z" if setting[0] is None else next(iter(mine[0]["leakage"]))
            leak, was = leaks(mine, probed), leaks(base, probed)
            both = setting[1] == "complementary"
            rows.append(
                {
                    "data": dataset,
                    "censor": name_of(setting),
                    "accuracy": float(scores.mean()),
                    "sd": float(scores.std(ddof=1)),
                    "lower quartile": float(np.quantile(scores, 0.25)),
                    "probed": probed,
                    "probe": float(np.mean(leak)),
                    "uncensored": float(np.mean(was)),
                    "nats": float(np.mean([r["leakage"][probed]["nats"] for r in mine])),
                    "z2": float(np.mean(leaks(mine, "z2"))) if both else float("nan"),
                    "best epoch": float(np.mean([r["best_epoch"] for r in mine])),
                    "s": float(np.mean([r["seconds"] for r in mine])),
                }
            )
            name = f"{dataset} {name_of(setting)}"
            if setting[0] is not None:
                fall = float(np.mean(was) - np.mean(leak))
                goals.append(report.Goal(f"{name}: probe below the uncensored by", fall, 0.0))
            bad = {LatentCollapseWarning.__name__, LatentExplosionWarning.__name__}
            warned = sum(bool(bad & set(r["warnings"])) for r in mine)
            goals.append(report.Goal(f"{name}: folds with collapse", warned, 0, at_least=False))
    minutes = (
        sum(r["seconds"] + r["probe seconds"] for r in results.values()) / 60 / max(args.workers, 1)
    )
    goals.append(report.Goal("minutes on the workers", minutes, 90, at_least=False))
    report.finish(
        args,
        "Censors at their defaults on real recordings: people never seen, and leakage",
        rows,
        goals,
        trainings=[{**job.__dict__, **result} for job, result in results.items()],
    )


def leaks(results: list[dict[str, Any]], name: str) -> list[float]:
    """Accuracy of the probe in every fold."""
    return [r["leakage"][name]["accuracy"] for r in results]


if __name__ == "__main__":
    main()
