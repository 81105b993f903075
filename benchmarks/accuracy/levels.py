"""What is known of the new person, and what it is worth: levels x amounts x methods.

On nine data sets the network that a run begins with (`recipe_space`'s default recipe) is trained
without a group of people, who are then new: with nothing, a recording, a stream, or labels
(`autotransfer.search.levels`). At each level and amount the method is chosen by the scores of all
other people. The guard is judged on recordings cut to half of the classes and to one. Three seeds,
whose scores are averaged; differences are paired over people. Finished trainings are kept in
--keep FILE: the same command goes on.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import autotransfer as at
from autotransfer.adaptation.registry import AUTO
from autotransfer.data.info import is_ring
from autotransfer.data.problem import Problem
from autotransfer.data.splits import Fold
from autotransfer.errors import AutoTransferWarning
from autotransfer.report.statistics import paired
from autotransfer.search.levels import AMOUNTS, LABELS, LATER, SAME, Case, score_person
from autotransfer.search.settings.recipe_space import recipe_space
from autotransfer.training.estimator import balanced_accuracy
from benchmarks.common import pool, report
from benchmarks.common.recordings import RECORDINGS, arguments, data_folder

SETS = {
    "emg": "myo_emg",
    "ssvep": "ssvep_exoskeleton",
    "erp": "uci_eeg_objects",
    "ciil": "ciil_emg",
    "3dc": "threedc_emg",
    "myodisco": "myodisco_emg",
    "ecg": "mitbih_ecg",
    "arithmetic": "eegmat_eeg",
    "stress": "sam40_eeg",
}
FEW_PEOPLE, GROUPS = 20, 5
"""Up to so many people are in four groups, more in five."""

RECORDING = ("statistics", "statistics+information")
WITH_LABELS = ("head", "statistics+head", "statistics+information+head", "statistics+tuning")
HALF, ONE = "half of the classes", "one class"


@dataclass(frozen=True)
class Job(pool.Job):
    """One training, and all levels of the people it was not trained on."""

    dataset: str
    group: int
    seed: int
    n_steps: int | None = None
    """Fewer, for a try."""
    quick: bool = False
    """Whether only the quickest methods are tried."""


@functools.cache
def opened(name: str) -> at.SubjectDataset:
    """Open a data set."""
    if name in RECORDINGS:
        return RECORDINGS[name].load()
    return at.load(data_folder() / SETS[name] / f"{SETS[name]}.npz")


def groups(data: at.SubjectDataset) -> list[Fold]:
    """Hold out each group of people once: they test, all others train."""
    n = 4 if len(data.subject_ids) <= FEW_PEOPLE else GROUPS
    folds = at.SubjectFolds(min(n, len(data.subject_ids))).held_out(data.subject)
    return [Fold(f.subject, f.train, f.validation[:0], f.validation) for f in folds]


def cases(ring: bool, quick: bool = False) -> list[Case]:
    """List all levels, amounts and methods."""
    if quick:
        nothing = [Case("nothing", tested=tested) for tested in (LATER, SAME)]
        whole = [Case("recording", None, way, SAME) for way in ("statistics", AUTO)]
        return [*nothing, *whole, Case("recording", 4, "statistics"), Case("labels", 1, "head")]
    many = [n for n in AMOUNTS if n >= 16]
    turned = [f"ring+{way}" for way in RECORDING if ring]
    return [
        Case("nothing"),
        Case("nothing", tested=SAME),
        *(Case("recording", n, "statistics") for n in AMOUNTS),
        *(Case("recording", n, "statistics+information") for n in many),
        *(Case("recording", None, way, LATER) for way in (*RECORDING, *turned, AUTO)),
        *(Case("recording", None, way, SAME) for way in (*RECORDING, *turned, AUTO)),
        Case("stream"),
        *(Case("labels", n, way) for way in WITH_LABELS for n in LABELS),
        Case("labels", 5, AUTO),
    ]


def trained(problem: Problem, fold: Fold, seed: int, n_steps: int | None) -> at.CensoredClassifier:
    """Train the network that a run begins with."""
    base = at.CensoredClassifier(validation=None, device="cpu", verbose=False, random_state=seed)
    recipe = recipe_space(problem, base.options).default
    options = recipe.applied({"encoder_options": None})
    options |= {} if n_steps is None else {"n_steps": n_steps}
    base.set_params(**options)
    return base.fit_fold(problem, fold, seed)


def run(job: Job) -> dict[str, Any]:
    """Train without a group of people, and score each of them in every case."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", AutoTransferWarning)
    data = opened(job.dataset)
    problem = Problem.of(data)
    fold = groups(data)[job.group]
    clf = trained(problem, fold, job.seed, job.n_steps)
    todo = cases(is_ring(data.info.channels), job.quick)
    unit = np.arange(data.n_trials) if data.recording is None else data.recording
    found: dict[str, Any] = {}
    for who in np.unique(problem.subject[fold.test]):
        mine = np.flatnonzero(problem.subject == who)
        X, codes = problem.X.take(mine), problem.codes[mine]
        scores = score_person(clf, X, codes, unit[mine], todo, job.seed)
        found[str(who)] = {
            "cases": {key(case): score for case, score in zip(todo, scores, strict=True)},
            "guard": guarded(clf, X, codes, job.seed),
        }
    return found


def key(case: Case) -> str:
    """Name a case: "recording 32 statistics later"."""
    amount = "all" if case.amount is None else str(case.amount)
    return " ".join([case.level, amount, case.method or "-", case.tested])


def guarded(
    clf: at.CensoredClassifier, X: Any, codes: Any, seed: int
) -> dict[str, tuple[float, float]]:
    """Score recordings of few classes on themselves, before and after `adapt`."""
    classes = np.random.default_rng(seed).permutation(np.unique(codes))
    cuts = {HALF: classes[: len(classes) // 2], ONE: classes[:1]}
    found = {}
    for name, kept in cuts.items():
        some = np.flatnonzero(np.isin(codes, kept))
        if name == HALF and len(kept) < 2:
            continue
        part, true = X.take(some), codes[some]
        models = (clf, clf.adapt(part))
        before, after = (balanced_accuracy(true, one.predict_codes(part)) for one in models)
        found[name] = (before, after)
    return found


Scores = dict[str, float]


def of_people(results: Sequence[Mapping[str, Any]], case: Case) -> Scores:
    """Score of each person in a case, the mean over seeds."""
    found: dict[str, list[float]] = {}
    for one in results:
        for who, told in one.items():
            score = told["cases"].get(key(case))
            if score is not None:
                found.setdefault(who, []).append(score)
    return {who: float(np.mean(scores)) for who, scores in found.items()}


def chosen(ways: Mapping[str, Scores]) -> Scores:
    """Score everybody by the way that is best for all others."""
    people = set.intersection(*(set(scores) for scores in ways.values()))
    found = {}
    for who in people:
        others = {
            way: [score for person, score in scores.items() if person in people - {who}]
            for way, scores in ways.items()
        }
        means = {way: float(np.mean(scores or [0.0])) for way, scores in others.items()}
        best = max(means, key=lambda way: means[way])
        found[who] = ways[best][who]
    return found


def row(name: str, case: Case, method: str, scores: Scores, nothing: Scores) -> dict[str, Any]:
    """Compare a case with level nothing, on the same trials."""
    change = paired(scores, nothing)
    assert change is not None
    values = [scores[who] for who in scores]
    return {
        "data": name,
        "level": case.level,
        "amount": "all" if case.amount is None else str(case.amount),
        "tested": case.tested,
        "method": method,
        "people": len(values),
        "mean": float(np.mean(values)),
        "lower quartile": float(np.percentile(values, 25)),
        "nothing": float(np.mean([nothing[who] for who in scores])),
        "difference": change.difference.value,
        "95 % interval": f"{change.difference.low:+.3f} to {change.difference.high:+.3f}",
        "p": change.p,
    }


CHOSEN = "chosen by others"


def rows_of(name: str, results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Make the rows of a data set."""
    scores = {c: of_people(results, c) for c in cases(is_ring(opened(name).info.channels))}
    todo = [case for case in scores if scores[case]]
    nothing = {tested: scores[Case("nothing", tested=tested)] for tested in (LATER, SAME)}
    made = [row(name, case, case.method, scores[case], nothing[case.tested]) for case in todo]
    cells = dict.fromkeys((c.level, c.amount, c.tested) for c in todo if c.method)
    for level, amount, tested in cells:
        alike = [c for c in todo if (c.level, c.amount, c.tested) == (level, amount, tested)]
        ways = {c.method: scores[c] for c in alike if c.method != AUTO}
        if ways:
            # To leave the model as it is, is a way, too.
            people = set.intersection(*(set(one) for one in ways.values()))
            ways["none"] = {who: nothing[tested][who] for who in people}
            best = chosen(ways)
            made.append(row(name, Case(level, amount, "", tested), CHOSEN, best, nothing[tested]))
    return made


def guard_rows(name: str, results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Compare recordings of few classes before and after."""
    made = []
    for cut in (HALF, ONE):
        pairs: dict[str, list[Any]] = {}
        for one in results:
            for who, told in one.items():
                if cut in told["guard"]:
                    pairs.setdefault(who, []).append(told["guard"][cut])
        if pairs:
            before, after = np.mean([np.mean(some, 0) for some in pairs.values()], 0)
            made.append(
                {"data": name, "cut to": cut, "people": len(pairs)}
                | {"before": float(before), "after": float(after)}
                | {"difference": float(after - before)}
            )
    return made


def goals(rows: list[dict[str, Any]], guards: list[dict[str, Any]]) -> list[report.Goal]:
    """Give the goals, of the sets that were run."""

    def of(data: str, level: str, amount: str, tested: str, figure: str = "mean") -> float | None:
        for one in rows:
            found = (one["data"], one["level"], one["amount"], one["tested"], one["method"])
            if found == (data, level, amount, tested, CHOSEN):
                return one[figure]  # type: ignore[no-any-return]
        return None

    wanted = [
        ("emg", "recording", "all", SAME, "mean", 0.91),
        ("emg", "recording", "all", SAME, "lower quartile", 0.92),
        ("ssvep", "recording", "all", SAME, "mean", 0.825),
        ("ciil", "recording", "all", SAME, "mean", 0.855),
        ("3dc", "recording", "all", SAME, "difference", 0.10),
        ("emg", "labels", "5", LATER, "mean", 0.955),
        ("3dc", "labels", "5", LATER, "mean", 0.73),
    ]
    found = []
    for data, level, amount, tested, figure, bound in wanted:
        value = of(data, level, amount, tested, figure)
        if value is not None:
            where = f"{data} {level} {amount} {tested}"
            found.append(report.Goal(f"{where}: {figure}", value, bound))
    for one in guards:
        name = f"{one['data']} cut to {one['cut to']}: after less before"
        found.append(report.Goal(name, one["difference"], -0.01))
    return found


def describe(job: Job, result: dict[str, Any]) -> str:
    """Tell of a finished training."""
    names = [key(Case("nothing", tested=SAME)), key(Case("recording", None, AUTO, SAME))]
    means = [np.mean([told["cases"][name] for told in result.values()]) for name in names]
    return f"{job.dataset} group {job.group} seed {job.seed}: {means[0]:.3f} -> {means[1]:.3f}"


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=list(SETS), nargs="*", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="fewer, for a try")
    pool.add_options(parser)
    args = arguments(parser, dataset=["ssvep"], seeds=1, steps=2)
    todo = [
        Job(name, group, seed, args.steps, args.smoke)
        for seed in range(args.seeds)
        for name in args.dataset
        for group in range(len(groups(opened(name))))
    ]
    results = pool.run_all(run, todo, args.keep, args.workers, describe)
    rows, guards = [], []
    for name in args.dataset:
        mine = [result for job, result in results.items() if job.dataset == name]
        rows += rows_of(name, mine)
        guards += guard_rows(name, mine)
    report.show("Recordings of few classes, before and after adapt", guards)
    report.finish(
        args,
        "Balanced accuracy of new people by what is known of them",
        rows,
        goals(rows, guards),
        guard=guards,
    )


if __name__ == "__main__":
    main()
