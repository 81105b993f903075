"""What a run is asked to do, and plans of how to do it."""

from __future__ import annotations

from dataclasses import dataclass

from autotransfer.search import budget as budgets
from autotransfer.search.budget import Costs, Plan
from autotransfer.search.setting import Setting
from autotransfer.search.space import Space
from autotransfer.training.progress import duration


@dataclass(frozen=True)
class Wishes:
    """What a run is asked to do, before anything is known of its cost.

    Parameters
    ----------
    space : Space
        Settings to search.
    strategy : {"grid", "tpe"}
        How to walk through it.
    n_settings : int, optional
        Settings to try; all of a grid, 60 with TPE.
    prune : bool
        Whether to drop hopeless settings on the way.
    keep : int
        Settings of each measure to cross-validate.
    n_folds, n_seeds, max_epochs, n_subjects : int
        Of the cross-validation; of the classifier; of the data.
    rule : str
        Of selection.
    search_folds : int
        Folds on which the search tries every setting.
    budget : float, optional
        Seconds.
    seed : int
        Of the choice of settings.
    """

    space: Space
    strategy: str
    n_settings: int | None
    prune: bool
    keep: int
    n_folds: int
    n_seeds: int
    max_epochs: int
    n_subjects: int
    rule: str
    search_folds: int
    budget: float | None
    seed: int

    def settings(self, n: int | None) -> list[Setting]:
        """Baselines, and the n settings that a grid search would try."""
        return [*self.space.baselines(), *self.space.spread(n, self.seed)]

    @property
    def most(self) -> int:
        """Settings at most."""
        if self.n_settings is not None:
            return self.n_settings
        return 60 if self.strategy == "tpe" else len(list(self.space.grid()))

    @property
    def least(self) -> int:
        """Settings at least: one for each measure and mode."""
        return min(self.most, len(self.space.measures) * len(self.space.modes))

    def plan(self) -> Plan:
        """Give what is done without a budget."""
        rungs = budgets.rungs_of(self.max_epochs, self.prune)
        return Plan(
            self.most,
            rungs,
            self.keep,
            self.n_folds,
            self.n_seeds,
            search_folds=self.search_folds,
            n_baselines=len(self.space.baselines()),
        )


def plan_for(wishes: Wishes, costs: Costs, budget: float, workers: int) -> Plan:
    """Find the most thorough plan that fits a budget in seconds, measuring included."""
    return budgets.fit_budget(
        budget, workers, wishes.settings, costs, wishes.plan(), wishes.least, wishes.prune
    )


def most_candidates(plan: Plan, wishes: Wishes) -> int:
    """Count the settings that are cross-validated at most, with the baselines."""
    return len(wishes.space.measures) * plan.keep + plan.n_baselines


def n_trials(plan: Plan, wishes: Wishes) -> int:
    """Count the trials of a plan at most."""
    # The search has trained the candidates on the first folds already.
    again = plan.n_folds * plan.n_seeds - plan.search_folds
    return plan.searched + most_candidates(plan, wishes) * again


def describe(plan: Plan, wishes: Wishes) -> str:
    """Say what a plan does, in words."""
    n = most_candidates(plan, wishes)
    pruned = f" (rungs at {', '.join(map(str, plan.rungs))})" if len(plan.rungs) > 1 else ""
    where = f" on {plan.search_folds} folds" if plan.search_folds > 1 else ""
    words = (
        f"plan: search of {plan.n_settings} settings and the uncensored baseline{where}, at most "
        f"{plan.epochs} epochs{pruned}; then at most {n} candidates on {plan.n_folds} folds"
    )
    if plan.n_seeds > 1:
        words += f" with {plan.n_seeds} seeds"
    words += f": {n_trials(plan, wishes)} trials"
    return words + (f", about {duration(plan.seconds)}" if plan.seconds else "")


def describe_crossval(plan: Plan, candidates: list[Setting]) -> str:
    """Say what the cross-validation does."""
    return (
        f"cross-validation of {len(candidates)} candidates on {plan.n_folds} folds, "
        f"{plan.n_seeds} seed(s), at most {plan.epochs} epochs, about {duration(plan.seconds)}"
    )
