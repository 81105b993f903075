"""What a run is asked to do: options of `AutoTransfer`, checked, and plans of how to do it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from autotransfer.adaptation.registry import LEVELS
from autotransfer.censoring.registry import make_censor
from autotransfer.data.problem import Problem
from autotransfer.data.splits import SubjectFolds
from autotransfer.data.validate import as_count
from autotransfer.errors import SettingError, SmallCellWarning, join_some
from autotransfer.registry import lookup
from autotransfer.search import budget as budgets
from autotransfer.search.budget import Costs, Plan, parse_budget
from autotransfer.search.levels.cases import N_LABELS
from autotransfer.search.settings import selection
from autotransfer.search.settings.recipe import RecipeSpace
from autotransfer.search.settings.recipe_space import recipe_space
from autotransfer.search.settings.setting import Setting
from autotransfer.search.settings.space import Space, default_space
from autotransfer.search.settings.trial import PROTOCOL, digest
from autotransfer.search.shared import Shared
from autotransfer.text import duration
from autotransfer.training import CensoredClassifier
from autotransfer.training.options import TrainingOptions, as_random_seed, find_device
from autotransfer.training.schedule import SCHEDULES


@dataclass(frozen=True)
class RunOptions:
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
    training : TrainingOptions
        What all trials share.
    recipes : RecipeSpace, optional
        Recipes to search; None in the paper's procedure.
    n_folds_given : bool
        Whether somebody asked for so many folds.
    n_jobs : int
        Trials at once.
    new_person : {"nothing", "recording", "stream", "labels"}
        What will be known of a new person.
    n_labels : int
        Labels of each class, at level labels.
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
    training: TrainingOptions
    recipes: RecipeSpace | None = None
    n_folds_given: bool = False
    n_jobs: int = 1
    new_person: str = "nothing"
    n_labels: int = N_LABELS

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


def plan_for(options: RunOptions, costs: Costs, budget: float, workers: int) -> Plan:
    """Find the most thorough plan that fits a budget in seconds, measuring included."""
    return budgets.fit_budget(
        budget, workers, options.settings, costs, options.plan(), options.least, options.prune
    )


def most_candidates(plan: Plan, options: RunOptions) -> int:
    """Count the settings that are cross-validated at most, with the baselines."""
    return len(options.space.measures) * plan.keep + plan.n_baselines


def n_trials(plan: Plan, options: RunOptions) -> int:
    """Count the trials of a plan at most."""
    # The search has trained the candidates on the first folds already.
    again = plan.n_folds * plan.n_seeds - plan.search_folds
    return plan.searched + most_candidates(plan, options) * again


def describe(plan: Plan, options: RunOptions) -> str:
    """Say what a plan does, in words."""
    n = most_candidates(plan, options)
    pruned = f" (rungs at {', '.join(map(str, plan.rungs))})" if len(plan.rungs) > 1 else ""
    where = f" on {plan.search_folds} folds" if plan.search_folds > 1 else ""
    several = f"{plan.n_baselines} uncensored baselines"
    baselines = several if plan.n_baselines > 1 else "the uncensored baseline"
    words = (
        f"plan: search of {plan.n_settings} settings and {baselines}{where}, at most "
        f"{plan.epochs} epochs{pruned}; then at most {n} candidates on {plan.n_folds} folds"
    )
    if plan.n_seeds > 1:
        words += f" with {plan.n_seeds} seeds"
    words += f": {n_trials(plan, options)} trials"
    return words + (f", about {duration(plan.seconds)}" if plan.seconds else "")


def describe_crossval(plan: Plan, candidates: list[Setting]) -> str:
    """Say what the cross-validation does."""
    return (
        f"cross-validation of {len(candidates)} candidates on {plan.n_folds} folds, "
        f"{plan.n_seeds} seed(s), at most {plan.epochs} epochs, about {duration(plan.seconds)}"
    )


STRATEGIES = ("grid", "tpe")
PROCEDURES = ("auto", "paper")
OF_THE_PAPER = {
    **{"strategy": "grid", "n_settings": None, "prune": False},
    **{"keep": 3, "n_seeds": 1, "search_folds": 1},
}
OF_AUTO = {"recipes": None, "signal": None, "new_person": "nothing", "n_labels": N_LABELS}
"""Options of one procedure only, with their defaults."""

# Options of a classifier that settings, trials or the run decide.
_DECIDED = {"measure", "mode", "strength", "measure_options", "validation", "max_epochs"}
_DECIDED |= {"random_state", "checkpoint", "checkpoint_every", "verbose", "log"}


def shared_of(estimator: Any, X: Any, y: Any, subject: Any) -> Shared:
    """Check the data and the options that all trials share."""
    base = _classifier(estimator)
    options = base.options.check()
    problem = Problem.of(X, y, subject)
    options = options.at_rate(problem.info.sfreq)
    seed = as_random_seed(estimator.random_state)
    given = {k: v for k, v in base.get_params(deep=False).items() if k not in _DECIDED}
    given["sfreq"] = options.sfreq
    given["device"] = str(find_device(base.device))
    training = options.hash(problem.fingerprint, np.zeros(0, np.intp), seed)
    level, n_labels = estimator.new_person, as_count(estimator.n_labels, "n_labels")
    lookup("level of what is known of a new person", level, LEVELS)
    parts: list[Any] = [PROTOCOL, training]
    if level != "nothing":
        # The same training has other scores then.
        recording = None if problem.recording is None else problem.recording.tolist()
        parts += [level, n_labels if level == "labels" else None, recording]
    known = {"new_person": level, "n_labels": n_labels}
    return Shared(problem, given, digest(parts), **known)


_DECIDED_BY = {
    **dict.fromkeys(
        ("measure", "mode", "strength", "measure_options"),
        "Which censors are tried is said by space, such as "
        'Space(["mmd"], ["marginal"], {"mmd": [1.0, 3.0]}).',
    ),
    "random_state": "Give it to AutoTransfer, whose trials have seeds of their own.",
    "validation": "Who validates is said by n_folds.",
    "checkpoint": "A run goes on by itself where it was.",
}
"""Options that a classifier of a run may not have, because they would do nothing, and what does."""


def _classifier(estimator: Any) -> CensoredClassifier:
    classifier = CensoredClassifier() if estimator.classifier is None else estimator.classifier
    if not isinstance(classifier, CensoredClassifier):
        word = classifier if isinstance(classifier, str) else "eegnet"
        raise SettingError(
            f"classifier must be a CensoredClassifier, whose options all trials share, not "
            f"{classifier!r}. For an encoder: classifier=CensoredClassifier(encoder={word!r})."
        )
    for name in _set_options(estimator.classifier):
        if name in _DECIDED_BY:
            value = getattr(classifier, name)
            raise SettingError(
                f"{name}={value!r} of the classifier would be ignored by a run. {_DECIDED_BY[name]}"
            )
    if estimator.procedure == "auto" and classifier.patience is not None:
        # Those of a fold who validate are those whom its score is about: nobody else is held out.
        raise SettingError(
            f"patience={classifier.patience} would let people decide when to stop the very "
            "training that they score. Leave it out: a run of procedure='auto' tries shorter and "
            "longer trainings (n_steps). procedure='paper' has people who validate and others who "
            "test."
        )
    return classifier


def _refuse_others(estimator: Any, names: Mapping[str, Any], procedure: str) -> None:
    """Refuse options that belong to another procedure: they would do nothing."""
    others = [name for name, default in names.items() if getattr(estimator, name) != default]
    if others:
        raise SettingError(
            f"{join_some(others)} belongs to procedure={procedure!r}, and this run has "
            f"procedure={estimator.procedure!r}. Leave it out, or give procedure={procedure!r}."
        )


def _set_options(classifier: CensoredClassifier | None) -> list[str]:
    """Name the options of a classifier that somebody set: they are not searched."""
    if classifier is None:
        return []
    defaults = CensoredClassifier().get_params(deep=False)
    params = classifier.get_params(deep=False)
    return [name for name, value in params.items() if repr(value) != repr(defaults[name])]


def run_options_of(estimator: Any, problem: Problem) -> RunOptions:
    """Check what the run is asked to do."""
    rule = estimator.rule or ("safe" if estimator.procedure == "auto" else "lower_quartile")
    selection.lookup_rule(rule)
    if estimator.strategy not in STRATEGIES:
        raise SettingError(
            f"strategy={estimator.strategy!r} is not known. Choose one of {join_some(STRATEGIES)}."
        )
    if estimator.space is not None and not isinstance(estimator.space, Space):
        raise SettingError(f"space must be a Space, not {estimator.space!r}.")
    if estimator.procedure not in PROCEDURES:
        raise SettingError(
            f"procedure={estimator.procedure!r} is not known. Choose one of "
            f"{join_some(PROCEDURES)}."
        )
    if estimator.procedure == "auto":
        _refuse_others(estimator, OF_THE_PAPER, "paper")
    else:
        _refuse_others(estimator, OF_AUTO, "auto")
    for name in ("keep", "n_seeds", "search_folds"):
        as_count(getattr(estimator, name), name)
    if estimator.n_settings is not None:
        as_count(estimator.n_settings, "n_settings")
    n_subjects = len(np.unique(problem.subject))
    n_folds = estimator.n_folds or (20 if n_subjects > 40 else n_subjects)
    folds = SubjectFolds(n_folds)
    n_folds = len(folds.groups(problem.subject))
    if estimator.search_folds > n_folds:
        raise SettingError(
            f"search_folds={estimator.search_folds}, but there are {n_folds} folds. Give "
            f"search_folds={n_folds} or fewer."
        )
    options = _classifier(estimator).options.at_rate(problem.info.sfreq)
    space = estimator.space or default_space(estimator.procedure)
    if estimator.prune and SCHEDULES[options.schedule].knows_end:
        raise SettingError(
            f"prune goes on with trainings that were stopped early, which "
            f"schedule={options.schedule!r} does not allow: it depends on where they end. Leave "
            "one of them out."
        )
    if estimator.procedure == "paper" and not space.measures:
        raise SettingError("The paper's procedure needs a measure to search: the space has none.")
    recipes = None
    if estimator.procedure == "auto":
        recipes = estimator.recipes or recipe_space(
            problem,
            options,
            [*_set_options(estimator.classifier), *estimator.fixed],
            estimator.signal,
            estimator.new_person,
        )
    else:
        warn_small_batches(options, space, len(problem.classes))
    return RunOptions(
        space=space,
        strategy=estimator.strategy,
        n_settings=estimator.n_settings,
        prune=bool(estimator.prune),
        keep=estimator.keep,
        n_folds=n_folds,
        n_seeds=estimator.n_seeds,
        max_epochs=options.epochs(len(problem.folds(n_folds)[0].train)),
        n_subjects=n_subjects,
        rule=rule,
        search_folds=estimator.search_folds,
        budget=None if estimator.budget is None else parse_budget(estimator.budget),
        seed=as_random_seed(estimator.random_state),
        training=options,
        recipes=recipes,
        n_folds_given=estimator.n_folds is not None,
        n_jobs=estimator.n_jobs if estimator.n_jobs > 0 else (os.cpu_count() or 1),
        new_person=estimator.new_person,
        n_labels=estimator.n_labels,
    )


def warn_small_batches(options: TrainingOptions, space: Space, n_classes: int) -> None:
    """Warn of measures and modes that would find few trials to censor in the batches asked for.

    Such a setting is little but the uncensored baseline, and could be chosen under another name.
    """
    for measure, mode in product(space.measures, space.modes):
        _, trials = replace(options, measure=measure, mode=mode).batch_shape(n_classes)
        cell = trials // n_classes if mode == "conditional" else trials
        sizes = {"n_latent": 2, "n_subjects": 2, "n_classes": n_classes}
        first = space.options_of(measure)[0]
        least = make_censor(measure, mode, **sizes, options=first).measure.smallest_cell
        if cell < least:
            whose = "each class of a person" if mode == "conditional" else "a person"
            warnings.warn(
                f"{measure} {mode} would censor little or nothing: with trials_per_subject={trials}"
                f" a batch has about {cell} trials of {whose}, and it needs {least}. Raise "
                "trials_per_subject, or leave that mode or measure out of the space.",
                SmallCellWarning,
                stacklevel=3,
            )


def run_definition(shared: Shared, options: RunOptions) -> dict[str, Any]:
    """Say what may not differ when the folder of a run is used again."""
    same = (
        *("strategy", "n_settings", "prune", "keep", "n_folds", "n_seeds", "search_folds"),
        *("max_epochs", "seed"),
    )
    return {
        "data": shared.problem.fingerprint,
        "classifier": shared.hash,
        "space": options.space.to_json(),
        "budget": options.budget,
        **{name: getattr(options, name) for name in same},
        **({} if options.recipes is None else {"recipes": options.recipes.to_json()}),
        # Groups that nobody asked for are as many as the budget carries.
        **({"n_folds_given": True} if options.recipes and options.n_folds_given else {}),
        **({} if options.new_person == "nothing" else {"new_person": options.new_person}),
        **({} if options.n_labels == N_LABELS else {"n_labels": options.n_labels}),
    }
