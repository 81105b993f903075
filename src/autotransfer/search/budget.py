"""Time as people write it, what trials cost, and what fits a budget."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import cache
from itertools import product
from math import ceil, inf
from typing import Any

from autotransfer.errors import BudgetError
from autotransfer.search.settings.setting import Setting
from autotransfer.text import duration

UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
SLACK = 0.06
"""Share of a budget that no plan uses: trials of other folds may be longer than those measured."""

LEAST_EPOCHS, GOOD_EPOCHS = 15, 60

REFIT = 1.3
"""Cost of the refit in trials: it trains on everybody."""

PORTRAITS, PROBING = 3, 20.0
"""Portraits of latents at the end: how many trainings, and seconds of probing after each."""


def parse_budget(time: Any, name: str = "budget") -> float:
    """Turn a time with its unit into seconds.

    Parameters
    ----------
    time : str or timedelta
        A bare number is refused: one means minutes by it, another one seconds.
    name : str
        Of the option, for messages.

    Examples
    --------
    >>> parse_budget("1h"), parse_budget("1h30m"), parse_budget("20 min"), parse_budget("90s")
    (3600.0, 5400.0, 1200.0, 90.0)
    """
    if isinstance(time, timedelta):
        seconds = time.total_seconds()
    else:
        text = str(time).strip().lower().replace(" ", "")
        if re.fullmatch(r"\d+(\.\d+)?", text) and float(text) > 0:
            raise BudgetError(
                f"{name}={time!r} has no unit. Write '{text}m' for minutes or '{text}s' for "
                "seconds."
            )
        parts = re.findall(r"(\d+(?:\.\d+)?)(min|[smhd])", text)
        if not parts or "".join(n + u for n, u in parts) != text:
            raise BudgetError(
                f"{name}={time!r} is not a time. Write it like '20m', '1h', '1h30m', '2d'."
            )
        seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    if not 0 < seconds < inf:
        raise BudgetError(f"{name}={time!r} must be a time above 0.")
    return seconds


def kind_of(setting: Setting) -> str:
    """Name what the cost of a setting depends on: everything but numbers."""
    words = [v for _, v in setting.options if isinstance(v, str)]
    return " ".join([setting.family, setting.mode if setting.measure else "", *words]).strip()


def _train_share(n_folds: int) -> float:
    """Share of the people who train: one group validates, another one tests."""
    return (n_folds - 2) / n_folds


@dataclass(frozen=True)
class Costs:
    """Seconds of an epoch, and of the rest of a trial, for every kind of setting.

    Parameters
    ----------
    epoch, fixed : mapping
        Kind of setting -> seconds.
    seconds : float
        What it took to find out.
    n_folds : int
        Folds of the trials measured: with fewer, fewer people train.
    """

    epoch: Mapping[str, float]
    fixed: Mapping[str, float]
    seconds: float = 0.0
    n_folds: int = 3

    def at(self, n_folds: int) -> Costs:
        """Give the costs with another number of folds, of which all but two train.

        Examples
        --------
        >>> Costs({"mmd": 6.0}, {"mmd": 1.0}, n_folds=4).at(3).epoch["mmd"]
        4.0
        """
        factor = _train_share(n_folds) / _train_share(self.n_folds)
        epoch = {kind: factor * seconds for kind, seconds in self.epoch.items()}
        return replace(self, epoch=epoch, n_folds=n_folds)

    def trial(self, setting: Setting, epochs: int) -> float:
        """Seconds of a trial that uses all its epochs."""
        kind = kind_of(setting)
        return self.fixed[kind] + self.epoch[kind] * epochs

    def to_json(self) -> dict[str, Any]:
        """Give what JSON can hold."""
        return asdict(self)


@dataclass(frozen=True)
class Plan:
    """What a run will do.

    Parameters
    ----------
    n_settings : int
        Settings to try in the search, without the baseline.
    rungs : tuple of int
        Epochs after which the worse settings are dropped, and the most epochs, last.
    keep : int
        Settings of each measure that are cross-validated.
    n_folds, n_seeds : int
        Folds and repetitions of the cross-validation.
    seconds : float
        Estimate for all of it, or 0 if nothing was measured.
    search_folds : int
        Folds on which the search tries every setting.
    n_baselines : int
        Uncensored settings: one, or two where conditional censors have batches of their own.
    """

    n_settings: int
    rungs: tuple[int, ...]
    keep: int
    n_folds: int
    n_seeds: int
    seconds: float = 0.0
    search_folds: int = 1
    n_baselines: int = 1

    @property
    def epochs(self) -> int:
        """Most epochs of a trial."""
        return self.rungs[-1]

    @property
    def searched(self) -> int:
        """Trials of the search, with the baselines'."""
        return (self.n_settings + self.n_baselines) * self.search_folds

    def to_json(self) -> dict[str, Any]:
        """Give what JSON can hold."""
        return asdict(self) | {"rungs": list(self.rungs)}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Plan:
        """Make a plan from what `to_json` gave."""
        return cls(
            **{k: given[k] for k in cls.__dataclass_fields__} | {"rungs": tuple(given["rungs"])}
        )


def rungs_of(epochs: int, prune: bool, factor: int = 3, least: int = 5) -> tuple[int, ...]:
    """Epochs of the rungs of successive halving.

    Examples
    --------
    >>> rungs_of(90, True), rungs_of(90, False)
    ((10, 30, 90), (90,))
    """
    found = [epochs]
    while prune and found[0] // factor >= least and len(found) < 3:
        found.insert(0, found[0] // factor)
    return tuple(found)


def search_seconds(
    settings: Sequence[Setting],
    rungs: Sequence[int],
    costs: Costs,
    keep: int,
    n_folds: int = 1,
    factor: int = 3,
) -> float:
    """Work of the search on some folds, in seconds of one worker."""
    total, n, before = 0.0, float(len(settings)), 0
    families = len({s.family for s in settings})
    for rung in rungs:
        each = sum(costs.trial(s, rung - before) for s in settings) / len(settings)
        total += n * each
        n, before = max(n / factor, min(n, families * keep)), rung
    return total * n_folds


def crossval_seconds(
    settings: Iterable[Setting], epochs: int, n_folds: int, n_seeds: int, costs: Costs
) -> float:
    """Work of the cross-validation, in seconds of one worker."""
    return n_folds * n_seeds * sum(costs.trial(setting, epochs) for setting in settings)


def afterwards_seconds(trial: float, workers: int) -> float:
    """Work after the cross-validation: the refit, which runs alone, and the portraits.

    Parameters
    ----------
    trial : float
        Seconds of a trial.
    workers : int
        Trials at once.
    """
    # Probing small data takes as little time as training on them.
    each = trial + min(PROBING, 2 * trial)
    return workers * (REFIT * trial + ceil(PORTRAITS / workers) * each)


def candidates_guess(settings: Sequence[Setting], keep: int, costs: Costs) -> list[Setting]:
    """Stand in for the settings that a search will keep: those of middle cost in each measure."""
    chosen: list[Setting] = []
    for family in dict.fromkeys(s.family for s in settings):
        mine = sorted((s for s in settings if s.family == family), key=lambda s: costs.trial(s, 10))
        n = len(mine) if family == "uncensored" else min(keep, len(mine))
        middle = mine[len(mine) // 2]
        chosen += [middle] * n
    return chosen


def fit_budget(
    budget: float,
    workers: int,
    ordered: Callable[[int], list[Setting]],
    costs: Costs,
    most: Plan,
    least_settings: int,
    prune: bool = False,
) -> Plan:
    """Find the most thorough plan that fits a budget.

    Cuts, in this order: seeds, epochs down to `GOOD_EPOCHS`, settings of the search down to
    `least_settings`, settings kept of each measure, folds of the search, epochs down to
    `LEAST_EPOCHS`, folds. Few settings that were trained come before many that were not.

    Parameters
    ----------
    budget : float
        Seconds, those that measuring the costs took included.
    workers : int
        Trials at once.
    ordered : callable
        n -> the n settings a search would try, with the baselines first.
    costs : Costs
        Measured.
    most : Plan
        What would be done without a budget.
    least_settings : int
        Settings that the search must try.
    prune : bool
        Whether the search drops settings on the way.
    """
    ordered = cache(ordered)  # asked for the same numbers many times
    work = (budget - costs.seconds) * workers * (1 - SLACK)
    folds = [most.n_folds, *(n for n in (10, 5, 3) if n < most.n_folds)]
    good, least = min(most.epochs, GOOD_EPOCHS), min(most.epochs, LEAST_EPOCHS)
    kept = [(keep, good, most.search_folds) for keep in range(most.keep, 0, -1)]
    smallest = inf
    for n_folds, (keep, first, tried) in product(folds, [*kept, (1, good, 1), (1, least, 1)]):
        search_folds = min(tried, n_folds)
        costs = costs.at(n_folds)
        candidates = candidates_guess(ordered(least_settings), keep, costs)

        def seconds(
            n: int,
            epochs: int,
            seeds: int = 1,
            n_folds: int = n_folds,
            keep: int = keep,
            candidates: list[Setting] = candidates,
            costs: Costs = costs,
            search_folds: int = search_folds,
        ) -> float:
            rungs = rungs_of(epochs, prune)
            searched = search_seconds(ordered(n), rungs, costs, keep, search_folds)
            last = afterwards_seconds(max(costs.trial(c, epochs) for c in candidates), workers)
            return searched + last + crossval_seconds(candidates, epochs, n_folds, seeds, costs)

        n, epochs = least_settings, first
        smallest = min(smallest, seconds(n, epochs))
        if seconds(n, epochs) > work:
            continue
        epochs = _most(lambda e, n=n: seconds(n, e) <= work, epochs, good)  # type: ignore[misc]
        n = _most(lambda n, e=epochs: seconds(n, e) <= work, n, most.n_settings)  # type: ignore[misc]
        epochs = _most(lambda e, n=n: seconds(n, e) <= work, epochs, most.epochs)  # type: ignore[misc]
        seeds = _most(lambda s, n=n, e=epochs: seconds(n, e, s) <= work, 1, most.n_seeds)  # type: ignore[misc]
        wall = seconds(n, epochs, seeds) / workers
        rungs = rungs_of(epochs, prune)
        return Plan(n, rungs, keep, n_folds, seeds, wall, search_folds, most.n_baselines)
    takes = costs.seconds + smallest / workers / (1 - SLACK)
    raise BudgetError(
        f"A budget of {duration(budget)} is too short for these data: the least that makes sense "
        f"({least_settings} settings, {least} epochs, {folds[-1]} folds) takes about "
        f"{duration(takes)} with {workers} worker(s), of which {duration(costs.seconds)} to "
        "measure what training costs here. Give more time or workers, or fewer measures or modes."
    )


def _most(fits: Callable[[int], bool], low: int, high: int) -> int:
    """Largest number in a range that fits; `low` is known to."""
    if high <= low or fits(high):
        return max(low, high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
