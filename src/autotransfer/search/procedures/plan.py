"""What a hands-off run decides before its first training: how many groups of people."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from math import ceil
from statistics import median
from typing import Any

from autotransfer.data.problem import Problem
from autotransfer.errors import BudgetError
from autotransfer.search.engines.base import Engine, Handle
from autotransfer.search.options import RunOptions
from autotransfer.search.procedures.answer import MOST_MEMBERS
from autotransfer.search.progress import RunProgress
from autotransfer.search.settings.recipe import Recipe
from autotransfer.search.settings.setting import Setting
from autotransfer.search.settings.trial import Trial
from autotransfer.search.tasks import cost
from autotransfer.text import duration
from autotransfer.training.options import TrainingOptions

LEAST_GROUPS, GOOD_GROUPS, MOST_GROUPS = 3, 10, 20
"""Groups of people: at least, without a budget, at most. With 3, two thirds of the people train.
With 10 nine tenths do: beyond that, trying more recipes is worth more than more groups."""

FIRST_SHARE = 0.12
"""Share of a budget for the first answer. The more groups, the more people train in each, and the
fewer recipes can be tried."""

SEEDS = 2
"""Seeds of the choice that time is kept for while others are tried: each is a network of the
ensemble, and the second gains most. What time is left in the end goes to further ones."""

FINALISTS = 2
"""Settings that get further seeds."""

CALIBRATION_STEPS = 24


@dataclass(frozen=True)
class AutoPlan:
    """What a run decides before its first training.

    Parameters
    ----------
    n_folds : int
        Groups of people: each is held out once.
    seconds : float
        What a training of the default recipe takes, measured; 0 where nobody measured it.
    spent : float
        Seconds that it took to find out.
    instead : mapping
        Options of the first recipe that are cheaper than the default's, where the budget does not
        carry these.
    workers : int
        Trainings at once, where there is a budget: by these the time on record is counted when the
        run goes on, perhaps with others.
    """

    n_folds: int
    seconds: float = 0.0
    spent: float = 0.0
    instead: Mapping[str, Any] = field(default_factory=dict)
    workers: int = 1

    @property
    def half(self) -> int:
        """Groups on which rivals are tried first."""
        return ceil(self.n_folds / 2)

    def to_json(self) -> dict[str, Any]:
        """Give what JSON can hold."""
        return dict(vars(self))


def most_trainings(plan: AutoPlan, options: RunOptions) -> int:
    """Count the trainings of a run that has all the time it needs, about."""
    assert options.recipes is not None
    rest = plan.n_folds - plan.half
    rivals = [len(dimension.values) - 1 for dimension in options.recipes.dimensions]
    recipes = sum(n * plan.half + rest for n in rivals if n)
    censors = (options.least + 1) * plan.half + FINALISTS * rest if options.least else 0
    seeds = (MOST_MEMBERS - 1 + FINALISTS - 1) * plan.n_folds  # a rival has one more
    on_everybody = 2 + MOST_MEMBERS  # the best so far twice, then the answer
    return plan.n_folds + recipes + censors + seeds + on_everybody


def first_setting(options: RunOptions, plan: AutoPlan | None = None) -> Setting:
    """Give the setting that is trained first: the default recipe, or what the plan has instead."""
    assert options.recipes is not None
    instead = {} if plan is None else plan.instead
    return Setting(None, recipe=options.recipes.default.with_options(instead))


def training_of(setting: Setting, options: RunOptions) -> TrainingOptions:
    """Options of a training, but for its censor."""
    return replace(options.training, **setting.recipe.applied(vars(options.training)))


def trial_of(
    setting: Setting, options: RunOptions, problem: Problem, n_folds: int, fold: int, seed: int = 0
) -> Trial:
    """Make the trial that holds out a group, with as many epochs as make the recipe's steps."""
    trains = len(problem.groups(n_folds)[fold].train)
    epochs = training_of(setting, options).epochs(trains)
    return Trial(setting, fold, n_folds, seed, epochs, grouped=True)


def fixed_groups(options: RunOptions) -> AutoPlan | None:
    """Give the plan where it hangs on no budget: groups as asked for, or ten."""
    if options.n_folds_given:
        return AutoPlan(options.n_folds)
    return AutoPlan(min(options.n_subjects, GOOD_GROUPS)) if options.budget is None else None


def first_cost(
    options: RunOptions,
    problem: Problem,
    engine: Engine,
    handle: Handle,
    progress: RunProgress,
    result: Callable[[Future[Any]], Any] = Future.result,
    budget: float | None = None,
) -> float:
    """Measure the seconds of a training of the default recipe, with all workers busy.

    Where a budget would not carry the first answer it is measured once more, and the shorter time
    counts: a machine that was busy for a moment must not refuse a run or shrink its network.
    """
    least = min(LEAST_GROUPS, options.n_subjects)
    trial = trial_of(first_setting(options), options, problem, least, 0)
    began = time.monotonic()
    progress.stage("cost", 1, ())
    # The first task of each worker imports torch: that is not part of any trial's cost.
    for warm in [engine.submit(cost, handle, trial, 2) for _ in range(engine.n_workers)]:
        result(warm)

    def measure() -> float:
        # Two for each worker and their median: who is first may take two of the tasks above, and
        # leave the imports to another's first measurement, which would count several times over.
        n = 2 * engine.n_workers
        futures = [engine.submit(cost, handle, trial, CALIBRATION_STEPS) for _ in range(n)]
        measured = [result(future) for future in futures]
        return median(float(one["fixed"] + one["epoch"] * trial.epochs) for one in measured)

    one = measure()
    if budget is not None:
        spent = time.monotonic() - began
        if first_answer(options.n_subjects, engine.n_workers, one) + spent > budget:
            one = min(one, measure())
    progress.step()
    return one


def first_answer(people: int, workers: int, one: float) -> float:
    """Tell the seconds of the least first answer: its groups, and a training on everybody."""
    return one * min(LEAST_GROUPS, people) / workers + 2 * one


def fit_groups(
    people: int,
    budget: float,
    workers: int,
    one: float,
    spent: float,
    cheaper: Iterable[tuple[Mapping[str, Any], float]] = (),
    trainings: Callable[[int], int] = int,
) -> AutoPlan:
    """Find how many groups a budget carries: more than ten only where all can be tried with them.

    Parameters
    ----------
    people : int
        In the data.
    budget : float
        Seconds.
    workers : int
        Trials at once.
    one : float
        Seconds of a training. It has the same number of steps, however many people train.
    spent : float
        Seconds that are gone.
    cheaper : iterable of (mapping, float)
        Cheaper recipes, where the budget does not carry the default one: options, and the cost
        beside it (`RecipeSpace.cheaper`).
    trainings : callable
        Groups -> all trainings that are worth a try.
    """
    least = min(LEAST_GROUPS, people)

    def takes(factor: float = 1.0) -> float:
        return factor * first_answer(people, workers, one) + spent

    if takes() > budget:
        for options, factor in cheaper:
            if takes(factor) <= budget:
                return AutoPlan(least, one, spent, dict(options))
        raise BudgetError(
            f"A budget of {duration(budget)} is too short for these data: the first answer "
            f"({least} trainings of the default recipe and one on everybody) takes about "
            f"{duration(takes())} with {workers} worker(s). Give more time or workers."
        )
    fitting = [
        n
        for n in range(least, min(people, MOST_GROUPS) + 1)
        if one * n / workers <= FIRST_SHARE * budget
        and (n <= GOOD_GROUPS or one * trainings(n) / workers <= budget)
    ]
    return AutoPlan(fitting[-1] if fitting else least, one, spent)


def plan_of(options: RunOptions, budget: float, workers: int, one: float, spent: float) -> AutoPlan:
    """Fit the groups of a run into a budget (`fit_groups`)."""
    assert options.recipes is not None
    return fit_groups(
        *(options.n_subjects, budget, workers, one, spent, options.recipes.cheaper()),
        trainings=lambda n: most_trainings(AutoPlan(n), options),
    )


def describe(plan: AutoPlan, options: RunOptions, workers: int) -> str:
    """Say in words what a run will be."""
    words = f"{options.n_subjects} people in {plan.n_folds} groups, each held out once"
    if plan.instead:
        less = Recipe.of(**plan.instead)
        return f"{words}; the budget does not carry the default recipe, so it begins with {less}"
    if plan.seconds:
        first = plan.seconds * (plan.n_folds + 1) / workers
        words += f"; a training takes about {duration(plan.seconds)}, the first answer about "
        words += duration(first)
    if plan.seconds and options.budget is not None:
        n = int((options.budget - plan.spent) * workers / plan.seconds)
        most = most_trainings(plan, options)
        words += f"; {n} trainings fit into {duration(options.budget)}"
        words += ", which is all there is to try" if n >= most else f", of {most} worth a try"
    return words
