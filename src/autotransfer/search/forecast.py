"""What a run will cost on this machine: trials, hours and memory, before any trial is run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from autotransfer.errors import BudgetError
from autotransfer.search import budget as budgets
from autotransfer.search.budget import Costs, Plan
from autotransfer.search.engines.base import Engine, Handle
from autotransfer.search.options import RunOptions, describe, n_trials, plan_for
from autotransfer.search.procedures.plan import (
    AutoPlan,
    first_cost,
    fixed_groups,
    most_trainings,
    plan_of,
)
from autotransfer.search.procedures.plan import describe as describe_auto
from autotransfer.search.progress import RunProgress
from autotransfer.search.settings.setting import BASELINE, Setting
from autotransfer.search.settings.trial import Trial
from autotransfer.search.shared import WORKER_MEMORY, Shared, Starter
from autotransfer.search.tasks import cost

CALIBRATION_STEPS = 24


@dataclass(frozen=True)
class Forecast:
    """What a run would be.

    Parameters
    ----------
    budget : float or None
        Seconds it may take.
    plan : Plan, AutoPlan or None
        What would be done; None if nothing sensible fits the budget.
    trials : int
        Trials at most.
    workers : int
        Trials at once.
    memory : int
        Bytes, about.
    words : str
        The plan in words, or why there is none.
    seconds : float
        What all of it takes, about.
    recipes : dict, optional
        Recipes that it would try: what is changed -> values.
    """

    budget: float | None
    plan: Plan | AutoPlan | None
    trials: int
    workers: int
    memory: int
    words: str
    seconds: float = 0.0
    recipes: dict[str, Any] | None = None

    def __str__(self) -> str:
        if self.plan is None:
            return self.words
        size = f"{self.memory / 2**30:.1f} GB of memory"
        return f"{self.words} with {self.workers} worker(s) and {size}"

    def to_json(self) -> dict[str, Any]:
        """Give what JSON can hold."""
        return vars(self) | {"plan": None if self.plan is None else self.plan.to_json()}


def forecast(
    shared: Shared,
    options: RunOptions,
    starter: Starter,
    progress: RunProgress,
    times: Sequence[float | None],
) -> list[Forecast]:
    """Measure what training costs here, once, and plan runs with it.

    Parameters
    ----------
    shared, options
        The data and what to do with them.
    starter : Starter
        Starts the engine.
    progress : RunProgress
        Tells a person.
    times : sequence of float or None
        Budgets in seconds; None for a run without one.
    """
    began = time.monotonic()
    if options.recipes is not None:
        return _auto_forecast(shared, options, starter, progress, times)
    with progress, starter as start:
        engine, handle = start()
        costs = measure_costs(options, engine, handle, progress)
        workers = engine.n_workers
    costs = replace(costs, seconds=time.monotonic() - began)
    size = memory(shared, workers)
    forecasts = []
    for budget in times:
        try:
            if budget is None:
                plan = whole_plan(options, costs, workers)
            else:
                plan = plan_for(options, costs, budget, workers)
        except BudgetError as error:
            forecasts.append(Forecast(budget, None, 0, workers, size, str(error)))
            continue
        words = describe(plan, options)
        n = n_trials(plan, options)
        forecasts.append(Forecast(budget, plan, n, workers, size, words, plan.seconds))
    return forecasts


def _auto_forecast(
    shared: Shared,
    options: RunOptions,
    starter: Starter,
    progress: RunProgress,
    times: Sequence[float | None],
) -> list[Forecast]:
    """Measure a training of the default recipe, and say what runs with it would be."""
    began = time.monotonic()
    with progress, starter as start:
        engine, handle = start()
        shortest = min((budget for budget in times if budget is not None), default=None)
        one = first_cost(options, shared.problem, engine, handle, progress, budget=shortest)
        workers = engine.n_workers
    spent = time.monotonic() - began
    size = memory(shared, workers)
    assert options.recipes is not None
    recipes = options.recipes.to_json()
    forecasts = []
    for budget in times:
        asked = replace(options, budget=budget)
        plan = fixed_groups(asked)
        try:
            if plan is None:
                assert budget is not None
                plan = plan_of(asked, budget, workers, one, spent)
        except BudgetError as error:
            forecasts.append(Forecast(budget, None, 0, workers, size, str(error)))
            continue
        plan = replace(plan, seconds=one, spent=spent)
        n = most_trainings(plan, asked)
        if budget is not None:
            n = min(n, int((budget - spent) * workers / one))
        words = describe_auto(plan, asked, workers)
        seconds = spent + n * one / workers
        forecasts.append(Forecast(budget, plan, n, workers, size, words, seconds, recipes))
    return forecasts


def measure_costs(
    options: RunOptions,
    engine: Engine,
    handle: Handle,
    progress: RunProgress,
    result: Callable[[Future[Any]], Any] = Future.result,
) -> Costs:
    """Measure a few training steps of every kind of setting, as many at once as trials will be."""
    kinds: dict[str, Setting] = {}
    for setting in options.settings(None):
        kinds.setdefault(budgets.kind_of(setting), setting)
    progress.stage("cost", len(kinds), ())
    # The first trial of each worker imports torch: that is not part of any trial's cost.
    first = Trial(BASELINE, 0, options.n_folds, 0, 1)
    for warm in [engine.submit(cost, handle, first, 2) for _ in range(engine.n_workers)]:
        result(warm)
    futures = {}
    for kind, setting in kinds.items():
        trial = Trial(setting, 0, options.n_folds, 0, 1)
        futures[kind] = engine.submit(cost, handle, trial, CALIBRATION_STEPS)
    costs = {}
    for kind, future in futures.items():
        costs[kind] = result(future)
        progress.step()
    return Costs(
        {kind: one["epoch"] for kind, one in costs.items()},
        {kind: one["fixed"] for kind, one in costs.items()},
        n_folds=options.n_folds,
    )


def whole_plan(options: RunOptions, costs: Costs, workers: int) -> Plan:
    """Estimate a run without a budget."""
    plan = options.plan()
    settings = options.settings(plan.n_settings)
    candidates = budgets.candidates_guess(settings, plan.keep, costs)
    work = budgets.search_seconds(settings, plan.rungs, costs, plan.keep, plan.search_folds)
    work += budgets.crossval_seconds(candidates, plan.epochs, plan.n_folds, plan.n_seeds, costs)
    longest = max(costs.trial(c, plan.epochs) for c in candidates)
    work += budgets.afterwards_seconds(longest, workers)
    return replace(plan, seconds=work / workers)


def memory(shared: Shared, workers: int) -> int:
    """Estimate the memory of a run: each worker keeps its signals, if they fit its budget."""
    n, channels, times = shared.problem.X.shape
    signals = min(4 * n * channels * times, int(shared.options.get("memory_budget", 2**62)))
    # Statistics that EEGNet prepares take up to as much again.
    return workers * (WORKER_MEMORY + 2 * signals)
