"""Budgets, costs and plans."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import drive
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotransfer.errors import BudgetError
from autotransfer.search import BASELINE, Setting, Space
from autotransfer.search.budget import (
    GOOD_EPOCHS,
    LEAST_EPOCHS,
    Costs,
    Plan,
    candidates_guess,
    crossval_seconds,
    fit_budget,
    kind_of,
    parse_budget,
    rungs_of,
    search_seconds,
)

SPACE = Space()
KINDS = {kind_of(s) for s in [BASELINE, *SPACE.grid()]}
COSTS = Costs(dict.fromkeys(KINDS, 0.1), dict.fromkeys(KINDS, 0.5), n_folds=12)
MOST = Plan(270, (500,), 3, 12, 3)


def ordered(n):
    return [BASELINE, *SPACE.spread(n, 0)]


def fit(budget, workers=2, most=MOST, costs=COSTS, **more):
    return fit_budget(budget, workers, ordered, costs, most, 15, **more)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("20m", 1200), ("1h", 3600), ("1.5h", 5400), ("2d", 172800), ("90s", 90), ("1h 30min", 5400)],
)
def test_times(text, seconds):
    assert parse_budget(text) == seconds
    assert parse_budget(timedelta(seconds=seconds)) == seconds


@pytest.mark.parametrize(
    "bad", ["", "soon", "5 parsecs", "h", "-5m", 0, -1, float("nan"), "1h!", "0m", True]
)
def test_what_is_no_time(bad):
    with pytest.raises(BudgetError, match="budget="):
        parse_budget(bad)


@pytest.mark.parametrize("bare", [5, 5.0, "5", " 5 "])
@pytest.mark.parametrize("name", ["budget", "time_limit"])
def test_a_number_without_a_unit_is_refused(bare, name, tmp_path):
    data = drive.data()
    auto = drive.auto(tmp_path / "run", **{name: bare})
    with pytest.raises(
        BudgetError, match=rf"{name}=.* has no unit. Write '5(.0)?m' for minutes or"
    ):
        auto.fit(data.X, data.y, subject=data.subject)
    assert not (tmp_path / "run" / "ledger.jsonl").exists()


@settings(max_examples=30)
@given(st.floats(600, 1e6), st.integers(1, 64), st.booleans(), st.integers(1, 5))
def test_a_plan_fits_its_budget(budget, workers, prune, search_folds):
    try:
        plan = fit(budget, workers, replace(MOST, search_folds=search_folds), prune=prune)
    except BudgetError:
        return
    assert 0 < plan.seconds <= budget
    assert plan.epochs >= LEAST_EPOCHS
    assert 15 <= plan.n_settings <= 270
    assert 3 <= plan.n_folds <= 12
    assert 1 <= plan.search_folds <= min(search_folds, plan.n_folds)
    # And what it says is what its parts cost.
    candidates = candidates_guess(ordered(15), plan.keep, COSTS)
    costs = COSTS.at(plan.n_folds)
    tried = ordered(plan.n_settings)
    work = search_seconds(tried, plan.rungs, costs, plan.keep) * plan.search_folds
    work += crossval_seconds(candidates, plan.epochs, plan.n_folds, plan.n_seeds, costs)
    assert work / workers <= plan.seconds


def test_more_time_does_more():
    plans = [fit(60.0 * m) for m in (5, 10, 20, 40, 80, 160, 320, 2000, 100000)]
    work = [p.seconds for p in plans]
    assert work == sorted(work)
    assert plans[-1] == Plan(270, (500,), 3, 12, 3, plans[-1].seconds)
    assert [p.n_folds for p in plans] == sorted(p.n_folds for p in plans)


def test_folds_of_the_search_are_cut_before_those_of_the_cross_validation():
    most = replace(MOST, search_folds=3)
    assert fit(100000, most=most).search_folds == 3
    plans = [fit(60.0 * m, most=most) for m in (5, 10, 20, 40, 80)]
    assert plans[0].search_folds == 1
    assert all(p.search_folds == 1 for p in plans if p.n_folds < 12)


def test_enough_epochs_come_before_more_settings():
    plan = fit(1800)
    assert plan.n_settings == 15 or plan.epochs >= GOOD_EPOCHS


def test_enough_epochs_come_before_more_candidates():
    plan = fit(900)
    assert plan.keep == 1 or plan.epochs >= GOOD_EPOCHS
    assert fit(100000).keep == 3


def test_too_short_says_what_is_needed():
    with pytest.raises(BudgetError, match=r"too short.*takes about .* with 2 worker"):
        fit(10)


def test_measuring_is_paid_from_the_budget():
    costs = replace(COSTS, seconds=60.0)
    assert fit(660, costs=costs) == fit(600)
    # However fast a machine trains, a budget that measuring has used up is refused.
    instant = Costs(dict.fromkeys(KINDS, 1e-9), dict.fromkeys(KINDS, 1e-9), 60.0, n_folds=12)
    with pytest.raises(BudgetError, match=r"A budget of 59 s is too short.* of which 60 s"):
        fit(59, costs=instant)


def test_rungs():
    assert rungs_of(500, False) == (500,)
    assert rungs_of(90, True) == (10, 30, 90)
    assert rungs_of(8, True) == (8,)


def test_pruning_costs_less():
    tried = ordered(200)
    full = search_seconds(tried, (90,), COSTS, 3)
    assert search_seconds(tried, rungs_of(90, True), COSTS, 3) < 0.5 * full


def test_kinds_tell_apart_what_costs_differently():
    assert len(KINDS) == 1 + 4 * 3 + 8 * 3
    assert kind_of(Setting.of("mmd", "marginal", 1)) == kind_of(Setting.of("mmd", "marginal", 30))
