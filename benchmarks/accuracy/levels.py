"""What is known of the new person, and what it is worth: levels x amounts x methods.

On nine data sets the network that a run begins with (`recipe_space`'s default recipe) is trained
without a group of people, who are then new: with nothing, a recording, a stream, or labels
(`autotransfer.search.levels`). At each level and amount the method is chosen by the scores of all
other people, who also give the bounds of the guard, as at the end of a run. The guard is judged on
recordings cut to half of the classes and to one. Beside it, of one seed, networks trained on each
person's own statistics, which is what a run tries for people of whom there will be a recording.
Three seeds, whose scores are averaged; differences are paired over people. Finished trainings are
kept in --keep FILE: the same command goes on. Where one lacks a case, because methods have changed
since, it is trained again and that case alone is scored; of a method that does something else under
its name, the cases have to be taken out of FILE.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import autotransfer as at
from autotransfer.adaptation.registry import FEW
from autotransfer.data.info import is_ring
from autotransfer.data.problem import Problem
from autotransfer.data.splits import Fold
from autotransfer.errors import AutoTransferWarning
from autotransfer.report.statistics import paired
from autotransfer.search.levels.cases import (
    AMOUNTS,
    HALF,
    LABELS,
    N_LABELS,
    ONE,
    OTHER,
    RECORDING,
    SAME,
    TUNED,
    WITH_LABELS,
    Case,
)
from autotransfer.search.levels.person import people_held_out, score_cases, seen_of
from autotransfer.search.levels.worth import Levels
from autotransfer.search.settings.recipe_space import recipe_space
from benchmarks.common import pool, report
from benchmarks.common.recordings import SETS, arguments, load_set

FEW_PEOPLE, GROUPS = 20, 5
"""Of up to so many people each is held out alone, of more in five groups."""

DEFAULT = "default"
RECIPES: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "person": {"normalise": "person"},
    "person_norm": {"encoder_options": {"person_norm": True}},
    "euclidean": {"normalise": "euclidean"},
    "riemannian": {"normalise": "riemannian"},
}
"""What differs from the recipe that a run begins with."""


@dataclass(frozen=True)
class Job(pool.Job):
    """One training, and all levels of the people it was not trained on."""

    dataset: str
    groups: int
    group: int
    seed: int
    n_steps: int | None = None
    """Fewer, for a try."""
    quick: bool = False
    """Whether only the quickest methods are tried."""
    recipe: str = DEFAULT
    """A name in `RECIPES`."""


def n_groups(data: at.SubjectDataset) -> int:
    """Count the groups of people, each of which is held out once."""
    people = len(data.subject_ids)
    return people if people <= FEW_PEOPLE else GROUPS


def groups(data: at.SubjectDataset, n: int) -> list[Fold]:
    """Hold out each group of people once: they test, all others train."""
    folds = at.SubjectFolds(n).held_out(data.subject)
    return [Fold(f.subject, f.train, f.validation[:0], f.validation) for f in folds]


def cases(ring: bool, quick: bool = False, default: bool = True) -> list[Case]:
    """List all levels, amounts and methods; of a recipe that is not the default, the main ones."""
    nothing = [Case("nothing"), Case("nothing", tested=SAME)]
    ways = [*RECORDING, FEW, *(f"ring+{way}" for way in RECORDING if ring)]
    ways = ["statistics"] if quick else ways
    whole = [Case("recording", None, way, tested) for tested in (OTHER, SAME) for way in ways]
    if quick:
        return [*nothing, *whole, Case("recording", 4, "statistics"), Case("labels", 1, "head")]
    if not default:
        return [*nothing, *whole, Case("labels", N_LABELS, WITH_LABELS[0])]
    beside = [n for n in LABELS if n != N_LABELS]
    return [
        *nothing,
        *(Case("recording", n, way) for way in RECORDING for n in AMOUNTS),
        *whole,
        *(Case("stream", None, way) for way in RECORDING),
        *(Case("labels", n, way) for way in (WITH_LABELS[0], "statistics+head") for n in beside),
        *(Case("labels", N_LABELS, way) for way in (*WITH_LABELS, TUNED[1])),
    ]


def trained(
    problem: Problem, fold: Fold, seed: int, n_steps: int | None, recipe: str = DEFAULT
) -> at.CensoredClassifier:
    """Train the network that a run begins with, or another by a name in `RECIPES`."""
    base = at.CensoredClassifier(validation=None, device="cpu", verbose=False, random_state=seed)
    options = recipe_space(problem, base.options).default.applied({"encoder_options": None})
    own = RECIPES[recipe]
    encoder = {**(options["encoder_options"] or {}), **own.get("encoder_options", {})}
    options |= own | {"encoder_options": encoder}
    options |= {} if n_steps is None else {"n_steps": n_steps}
    base.set_params(**options)
    return base.fit_fold(problem, fold, seed)


def wanted(job: Job) -> list[Case]:
    """List the cases of a job."""
    ring = is_ring(load_set(job.dataset).info.channels)
    return cases(ring, job.quick, job.recipe == DEFAULT)


def whole(job: Job, result: Mapping[str, Any]) -> bool:
    """Whether a kept result has all cases of its job: methods change, and trainings do not."""
    there = {Case.from_json(one) for one in result["cases"]}
    return there >= set(wanted(job))


def run(job: Job, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Train without a group of people, and score each of them in every case.

    Of a result of before only the cases that it lacks are scored.
    """
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", AutoTransferWarning)
    data = load_set(job.dataset)
    problem = Problem.of(data)
    fold = groups(data, job.groups)[job.group]
    clf = trained(problem, fold, job.seed, job.n_steps, job.recipe)
    people = people_held_out(problem, fold.test, clf, job.seed)
    default, todo = job.recipe == DEFAULT, wanted(job)
    if before is not None:
        there = {Case.from_json(one): one for one in before["cases"]}
        lacking = [case for case in todo if case not in there]
        there |= dict(zip(lacking, score_cases(people, lacking), strict=True))
        return {**before, "cases": [there[case] for case in todo]}
    found = score_cases(people, todo)
    # Learned as in a run, by statistics; judged by what is done.
    guard = seen_of(people, job.seed)
    judged: dict[str, dict[str, list[list[float]]]] = {}
    for who, known in people.items() if default else ():
        way = "statistics" if job.quick else RECORDING[0]
        for cut, seen in known.seen(way, job.seed, most=2, tried=0 if job.quick else 2).items():
            judged.setdefault(cut, {})[who] = [[one.gain, one.otherwise or 0.0] for one in seen]
    return {"cases": found, "guard": guard, "judged": judged}


Scores = dict[str, float]


def by_seed(results: Mapping[Job, Mapping[str, Any]]) -> dict[int, Levels]:
    """Put the groups of each seed together."""
    seeds: dict[int, list[Mapping[str, Any]]] = {}
    for job, result in results.items():
        seeds.setdefault(job.seed, []).append(result)
    return {seed: Levels.of(mine, len(mine)) for seed, mine in seeds.items()}


def mean_over(parts: Iterable[Scores]) -> Scores:
    """Score of each person, the mean over seeds."""
    found: dict[str, list[float]] = {}
    for part in parts:
        for who, score in part.items():
            found.setdefault(who, []).append(score)
    return {who: float(np.mean(scores)) for who, scores in found.items()}


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
SURE = f"{CHOSEN}, all classes known"
"""As `CHOSEN`, by somebody who knows that all classes are in the recording: without the guard."""


def rows_of(name: str, levels: Sequence[Levels]) -> list[dict[str, Any]]:
    """Make the rows of a data set."""
    todo = list(levels[0].scores)
    scores = {case: mean_over(one.scores.get(case, {}) for one in levels) for case in todo}
    nothing = {tested: scores[Case("nothing", tested=tested)] for tested in (OTHER, SAME)}
    made = [row(name, case, case.method, scores[case], nothing[case.tested]) for case in todo]
    asked = dict.fromkeys((c.level, c.amount, c.tested) for c in todo if c.method)
    for level, amount, tested in sorted(
        asked, key=lambda one: (one[0] == "labels", one[2] != OTHER, one[1] or np.inf)
    ):
        best = mean_over(one.chosen(level, amount, tested) for one in levels)
        if best:
            made.append(row(name, Case(level, amount, "", tested), CHOSEN, best, nothing[tested]))
        if best and (level, amount) == ("recording", None):
            sure = mean_over(one.chosen(level, amount, tested, all_classes=True) for one in levels)
            made.append(row(name, Case(level, amount, "", tested), SURE, sure, nothing[tested]))
    return [one | {"seeds": len(levels)} for one in made]


def recipe_rows(name: str, by_recipe: Mapping[str, Levels]) -> list[dict[str, Any]]:
    """Compare networks trained on each person's own statistics with the usual one."""
    made: list[dict[str, Any]] = []
    if len(by_recipe) < 2:
        return made
    for level, amount, tested in (
        ("nothing", None, OTHER),
        ("recording", None, OTHER),
        ("recording", None, SAME),
        ("labels", N_LABELS, OTHER),
    ):

        def at_level(levels: Levels, case: Case) -> Scores:
            if case.level == "nothing":
                return levels.scores[case]
            return levels.chosen(case.level, case.amount, case.tested)

        case = Case(level, amount, "", tested)
        scores = {recipe: at_level(levels, case) for recipe, levels in by_recipe.items()}
        if not all(scores.values()):
            continue
        best = {who: _of_others(scores, who) for who in scores[DEFAULT]}
        for recipe, mine in (scores | {CHOSEN: best}).items():
            made.append({"trained": recipe} | row(name, case, recipe, mine, scores[DEFAULT]))
    return [{k: v for k, v in one.items() if k not in ("method", "nothing")} for one in made]


def _of_others(scores: Mapping[str, Scores], who: str) -> float:
    """Score of somebody by the recipe that is best for all others in the mean."""
    means = {
        recipe: np.mean([score for other, score in mine.items() if other != who])
        for recipe, mine in scores.items()
    }
    return scores[max(means, key=lambda recipe: means[recipe])][who]


def guard_rows(name: str, pairs: Iterable[tuple[Levels, Any]]) -> list[dict[str, Any]]:
    """Say what recordings of few classes lose under a guard learned on all other people."""
    gains: dict[str, dict[str, list[float]]] = {}
    passed: dict[str, list[bool]] = {}
    for levels, judged in pairs:
        for cut, people in judged.items():
            everybody = sorted(levels.seen[cut])
            for who, changes in people.items():
                guard = levels.lessons.guard([other for other in everybody if other != who])
                for seen, change in zip(levels.seen[cut][who], changes, strict=False):
                    passes = seen.passes(guard)
                    refused = change[1] if guard.certainty else 0.0
                    gain = change[0] if passes else refused
                    gains.setdefault(cut, {}).setdefault(who, []).append(gain)
                    passed.setdefault(cut, []).append(passes)
    return [
        {"data": name, "cut to": CUTS[cut], "people": len(gains[cut])}
        | {"adapted to": float(np.mean(passed[cut]))}
        | {"difference": float(np.mean([np.mean(some) for some in gains[cut].values()]))}
        for cut in (HALF, ONE)
        if cut in gains
    ]


CUTS = {HALF: "half of the classes", ONE: "one class"}


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
        ("emg", "labels", "5", OTHER, "mean", 0.955),
        ("3dc", "labels", "5", OTHER, "mean", 0.73),
    ]
    found = []
    for data, level, amount, tested, figure, bound in wanted:
        value = of(data, level, amount, tested, figure)
        if value is not None:
            where = f"{data} {level} {amount} {tested}"
            found.append(report.Goal(f"{where}: {figure}", value, bound))
    found += of_all_sets(rows)
    for one in guards:
        name = f"{one['data']} cut to {one['cut to']}: adapted less un-adapted"
        found.append(report.Goal(name, one["difference"], -0.01))
    return found


def of_all_sets(rows: list[dict[str, Any]]) -> list[report.Goal]:
    """Give the goals that count sets, if all were run."""

    def told(level: str, amount: str, tested: str) -> dict[str, dict[str, Any]]:
        key = level, amount, tested, CHOSEN
        return {
            r["data"]: r for r in rows if (r["level"], r["amount"], r["tested"], r["method"]) == key
        }

    whole, other, labels = (
        told("recording", "all", SAME),
        told("recording", "all", OTHER),
        told("labels", "5", OTHER),
    )
    if len(whole) < len(SETS):
        return []
    gains = sum(r["p"] < 0.05 and r["difference"] > 0 for r in whole.values())
    losses = sum(r["p"] < 0.05 and r["difference"] < 0 for r in whole.values())
    above = sum(labels[name]["mean"] > other[name]["mean"] for name in labels)
    return [
        report.Goal("sets on which a recording gains (p < 0.05)", gains, 6),
        report.Goal("sets on which a recording loses (p < 0.05)", losses, 0, at_least=False),
        report.Goal("sets on which 5 labels are above a recording", above, 7),
    ]


def describe(job: Job, result: dict[str, Any]) -> str:
    """Tell of a finished training."""
    levels = Levels.of([result], 1)
    wanted = [Case("nothing", tested=SAME), Case("recording", None, "statistics", SAME)]
    means = [np.mean(list(levels.scores[case].values())) for case in wanted]
    where = f"{job.dataset} {job.recipe} group {job.group} seed {job.seed}"
    return f"{where}: {means[0]:.3f} -> {means[1]:.3f}"


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=list(SETS), nargs="*", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--recipe", choices=list(RECIPES), nargs="*", default=list(RECIPES))
    parser.add_argument("--steps", type=int, help="fewer, for a try")
    pool.add_options(parser)
    args = arguments(parser, dataset=["ssvep"], seeds=1, steps=2, recipe=["person"])
    recipes = [DEFAULT, *(one for one in args.recipe if one != DEFAULT)]
    # The first seed of all before the others, so that there is something of every set early.
    parts = {name: 3 if args.smoke else n_groups(load_set(name)) for name in args.dataset}
    todo = [
        Job(name, parts[name], group, seed, args.steps, args.smoke, recipe)
        for seed in range(args.seeds)
        for recipe in (recipes if seed == 0 else recipes[:1])
        for name in args.dataset
        for group in range(parts[name])
    ]
    results = pool.run_all(run, todo, args.keep, args.workers, describe, whole)
    rows, guards, trainings = [], [], []
    for name in args.dataset:
        of_set = {job: result for job, result in results.items() if job.dataset == name}
        mine = {job: result for job, result in of_set.items() if job.recipe == DEFAULT}
        levels = by_seed(mine)
        by_recipe = {
            recipe: by_seed(
                {job: one for job, one in of_set.items() if (job.recipe, job.seed) == (recipe, 0)}
            )[0]
            for recipe in recipes
        }
        trainings += recipe_rows(name, by_recipe)
        rows += rows_of(name, list(levels.values()))
        guards += guard_rows(name, ((levels[job.seed], one["judged"]) for job, one in mine.items()))
    if trainings:
        report.show("Trained on each person's own statistics, one seed", trainings)
    report.show("Recordings of few classes: those adapted to, and what adapt changes", guards)
    report.finish(
        args,
        "Balanced accuracy of new people by what is known of them",
        rows,
        goals(rows, guards),
        guard=guards,
        trainings=trainings,
        short=[
            r | {"level": r["level"] + r["method"].removeprefix(CHOSEN)}
            for r in rows
            if r["method"] in (CHOSEN, SURE)
        ],
    )


if __name__ == "__main__":
    main()
