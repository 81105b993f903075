"""What a user would pick instead, on the same folds: pyRiemann, alignment, skada, DomainBed's.

Folds are those of ``accuracy/erm.py``: each validates on one subject (or group) and tests on the
next. A method with several settings is first trained with each of them at seed 0; the setting with
the best lower quartile of validation subjects (AutoTransfer's own rule) is taken, ties go to the
default, and only that one is trained with the other seeds. Test scores choose nothing. Finished
trainings are kept in --keep FILE: the same command goes on where it was stopped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autotransfer.search.settings.selection import RULES
from benchmarks.common import pool, report
from benchmarks.common.recordings import RECORDINGS, arguments, network_options, read_options
from benchmarks.peers.methods import METHODS, NOTHING
from benchmarks.peers.peer_work import Job, run

RULE = RULES["lower_quartile"]

Results = dict[Job, dict[str, Any]]


def jobs(
    name: str, method: str, setting: Mapping[str, Any], seed: int, options: str, n_folds: int
) -> list[Job]:
    """All folds of a data set for a method with a setting."""
    text = json.dumps(setting, sort_keys=True)
    return [Job(name, method, text, fold, seed, options) for fold in range(n_folds)]


def judge(results: Sequence[Mapping[str, Any]]) -> float:
    """Judge a setting by its validation subjects; one that failed somewhere is the worst."""
    if any("error" in result for result in results):
        return -np.inf
    scores = [s for result in results for s in result["validation_subjects"].values()]
    return RULE.judge(np.array(scores))


def choose(done: Results, settings: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Choose a method's setting from its trainings at seed 0; ties go to the first, the default."""

    def value(setting: Mapping[str, Any]) -> float:
        text = json.dumps(setting, sort_keys=True)
        return judge([result for job, result in done.items() if job.setting == text])

    return max(settings, key=value)


def describe(job: Job, result: Mapping[str, Any]) -> str:
    """Tell of a finished training."""
    words = f"{job.dataset} {job.method} {job.setting} fold {job.fold} seed {job.seed}: "
    if "error" in result:
        return words + str(result["error"])
    return words + f"{np.mean(list(result['test'].values())):.3f}, {result['seconds']:.0f} s"


def row(name: str, method: str, setting: Mapping[str, Any], done: Results) -> dict[str, Any]:
    """Summarise a method: over subjects, each with the mean of its seeds."""
    whole = [result for result in done.values() if "error" not in result]
    scores: dict[str, list[float]] = {}
    for result in whole:
        for who, score in result["test"].items():
            scores.setdefault(who, []).append(score)
    test = np.array([float(np.mean(values)) for values in scores.values()] or [np.nan])
    held = [s for result in whole for s in result["validation_subjects"].values()]
    return {
        "data": name,
        "method": method,
        "uses": METHODS[method].uses,
        "setting": " ".join(f"{k} {v}" for k, v in setting.items()) or "-",
        "subjects": len(scores),
        "seeds": len({job.seed for job in done}),
        "mean": float(test.mean()),
        "sd": float(test.std(ddof=1)) if len(test) > 1 else float("nan"),
        "lower quartile": float(np.percentile(test, 25)),
        "worst": float(test.min()),
        "validation quartile": float(np.percentile(held or [np.nan], 25)),
        "failed": len(done) - len(whole),
        "CPU min": sum(result["seconds"] for result in done.values()) / 60,
    }


def subject_rows(
    done: Results, picked: Mapping[tuple[str, str], Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """One entry for each subject, method, setting and seed."""
    return [
        {
            "data": job.dataset,
            "method": job.method,
            "uses": METHODS[job.method].uses,
            "setting": job.setting,
            "chosen": json.loads(job.setting) == picked[job.dataset, job.method],
            "seed": job.seed,
            "fold": job.fold,
            "subject": who,
            "test": score,
        }
        for job, result in done.items()
        for who, score in result.get("test", {}).items()
    ]


def methods_to_smoke() -> list[str]:
    """Name the methods that can run here; where run.sh has installed everything, all."""
    if os.environ.get("AUTOTRANSFER_NEED_PEERS"):
        return [name for name, one in METHODS.items() if one.package != "braindecode"]
    return [name for name, method in METHODS.items() if method.installed]


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=list(RECORDINGS), nargs="*", default=list(RECORDINGS))
    usual = [name for name, one in METHODS.items() if one.package != "braindecode"]
    parser.add_argument("--method", choices=list(METHODS), nargs="*", default=usual)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--settings", type=int, help="most settings of a method, the default first")
    pool.add_options(parser)
    parser.add_argument(
        "--options", type=Path, metavar="FILE", help="options of the networks, JSON"
    )
    parser.add_argument("--folds", type=int, help="only the first folds, for a try")
    parser.add_argument("--max-epochs", type=int, help="fewer epochs, for a try")
    tiny = {"seeds": 1, "settings": 1, "folds": 1, "max_epochs": 1, "method": methods_to_smoke()}
    args = arguments(parser, dataset=["ssvep"], **tiny)
    if args.smoke:
        print("Not tried:", ", ".join(n for n in METHODS if n not in args.method) or "none")
    chosen = read_options(args.options)
    plans: dict[tuple[str, str], tuple[str, int]] = {}
    first: list[Job] = []
    for name in args.dataset:
        options = network_options(name, chosen.get(name), args.max_epochs)
        n_folds = RECORDINGS[name].count_folds()
        n_folds = min(n_folds, args.folds or n_folds)
        for method in args.method:
            plans[name, method] = (json.dumps(options, sort_keys=True), n_folds)
            for setting in METHODS[method].settings[: args.settings]:
                first += jobs(name, method, setting, 0, *plans[name, method])
    tried = pool.run_all(run, first, args.keep, args.workers, describe)

    picked: dict[tuple[str, str], Mapping[str, Any]] = {}
    second: list[Job] = []
    for (name, method), plan in plans.items():
        mine = {job: r for job, r in tried.items() if (job.dataset, job.method) == (name, method)}
        picked[name, method] = choose(mine, METHODS[method].settings[: args.settings])
        for seed in range(args.seeds if METHODS[method].random else 1):
            second += jobs(name, method, picked[name, method], seed, *plan)
    repeated = pool.run_all(
        run, [job for job in second if job.seed], args.keep, args.workers, describe
    )
    everything = {**tried, **repeated}

    rows, all_tried, goals = [], [], []
    for (name, method), best in picked.items():
        text = json.dumps(best, sort_keys=True)
        mine = {j: r for j, r in everything.items() if (j.dataset, j.method) == (name, method)}
        rows.append(row(name, method, best, {j: r for j, r in mine.items() if j.setting == text}))
        for i, other in enumerate(METHODS[method].settings[: args.settings]):
            words = json.dumps(other, sort_keys=True)
            at_first = {j: r for j, r in mine.items() if j.setting == words and j.seed == 0}
            marks = {"default": i == 0, "chosen": words == text}
            all_tried.append({**row(name, method, other, at_first), **marks})
        # A competitor that does not learn would flatter everything beside it.
        chance = 1 / len(RECORDINGS[name].load().labels)
        goals.append(
            report.Goal(f"{name}, {method}: above chance", rows[-1]["mean"], chance + 0.05)
        )
    rows.sort(key=lambda r: (args.dataset.index(r["data"]), r["uses"] != NOTHING))
    report.finish(
        args,
        "Competitors, balanced accuracy on people never seen",
        rows,
        goals,
        rule=RULE.words,
        tried=all_tried,
        subjects=subject_rows(everything, picked),
        options={name: json.loads(text) for (name, _), (text, _) in plans.items()},
    )


if __name__ == "__main__":
    main()
