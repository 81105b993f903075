"""What an `AutoTransfer` was asked, checked, in the form that a run works on."""

from __future__ import annotations

import warnings
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from autotransfer.censoring.registry import make_censor
from autotransfer.data.splits import SubjectFolds
from autotransfer.data.validate import as_count
from autotransfer.errors import SettingError, SmallCellWarning, some
from autotransfer.search import selection
from autotransfer.search.budget import parse_budget
from autotransfer.search.problem import Problem
from autotransfer.search.space import Space
from autotransfer.search.trial import PROTOCOL, digest
from autotransfer.search.wishes import Wishes
from autotransfer.training import CensoredClassifier, settings
from autotransfer.training.given import check_given

STRATEGIES = ("grid", "tpe")

# Options of a classifier that settings, trials or the run decide.
_DECIDED = {"measure", "mode", "strength", "measure_options", "validation", "max_epochs"}
_DECIDED |= {"random_state", "checkpoint", "checkpoint_every", "verbose", "log"}


def problem_of(estimator: Any, X: Any, y: Any, subject: Any) -> Problem:
    """Check the data and the options that all trials share."""
    base = CensoredClassifier() if estimator.classifier is None else estimator.classifier
    settings.check(base)
    given = check_given(X, y, subject)
    data = given.fingerprint()
    options = {k: v for k, v in base.get_params(deep=False).items() if k not in _DECIDED}
    options["device"] = str(settings.device(base.device))
    seed = settings.seed(estimator.random_state)
    shared = settings.identity(base, data, np.zeros(0, np.intp), seed)
    return Problem(
        given.X.base,
        given.X.index,
        given.X.scale,
        given.codes,
        given.subject,
        given.classes,
        data,
        digest([PROTOCOL, shared]),
        options,
    )


def wishes_of(estimator: Any, problem: Problem) -> Wishes:
    """Check what the run is asked to do."""
    selection.lookup_rule(estimator.rule)
    if estimator.strategy not in STRATEGIES:
        raise SettingError(
            f"strategy={estimator.strategy!r} is not known. Choose one of {some(STRATEGIES)}."
        )
    if estimator.space is not None and not isinstance(estimator.space, Space):
        raise SettingError(f"space must be a Space, not {estimator.space!r}.")
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
    base = CensoredClassifier() if estimator.classifier is None else estimator.classifier
    space = estimator.space or Space()
    warn_idle(base, space, len(problem.classes))
    return Wishes(
        space=space,
        strategy=estimator.strategy,
        n_settings=estimator.n_settings,
        prune=bool(estimator.prune),
        keep=estimator.keep,
        n_folds=n_folds,
        n_seeds=estimator.n_seeds,
        max_epochs=settings.epochs(base, len(next(iter(folds.folds(problem.subject))).train)),
        n_subjects=n_subjects,
        rule=estimator.rule,
        search_folds=estimator.search_folds,
        budget=None if estimator.budget is None else parse_budget(estimator.budget),
        seed=settings.seed(estimator.random_state),
    )


def warn_idle(base: CensoredClassifier, space: Space, n_classes: int) -> None:
    """Warn of measures and modes that would find few trials to censor in the batches asked for.

    Such a setting is little but the uncensored baseline, and could be chosen under another name.
    """
    for measure, mode in product(space.measures, space.modes):
        given = {name: getattr(base, name) for name in ("subjects_per_batch", "trials_per_subject")}
        asked = SimpleNamespace(measure=measure, mode=mode, **given)
        _, trials = settings.batch_shape(asked, n_classes)
        cell = trials // n_classes if mode == "conditional" else trials
        sizes = {"n_latent": 2, "n_subjects": 2, "n_classes": n_classes}
        options = space.options_of(measure)[0]
        least = make_censor(measure, mode, **sizes, options=options).measure.smallest_cell
        if cell < least:
            whose = "each class of a person" if mode == "conditional" else "a person"
            warnings.warn(
                f"{measure} {mode} would censor little or nothing: with trials_per_subject={trials}"
                f" a batch has about {cell} trials of {whose}, and it needs {least}. Raise "
                "trials_per_subject, or leave that mode or measure out of the space.",
                SmallCellWarning,
                stacklevel=3,
            )


def identity_of(problem: Problem, wishes: Wishes) -> dict[str, Any]:
    """Say what may not differ when the folder of a run is used again."""
    same = (
        *("strategy", "n_settings", "prune", "keep", "n_folds", "n_seeds", "search_folds"),
        *("max_epochs", "seed"),
    )
    return {
        "data": problem.fingerprint,
        "classifier": problem.identity,
        "space": wishes.space.to_json(),
        "budget": wishes.budget,
        **{name: getattr(wishes, name) for name in same},
    }
