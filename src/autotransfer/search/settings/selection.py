"""The choice among settings that were tried on all folds.

Rules are made of validation scores. Test scores are kept beside them for the report and reach no
rule but ``oracle``, which is for study only and says so wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.errors import IncompleteResultsError, join_some
from autotransfer.registry import lookup
from autotransfer.search.settings.comparison import (
    CENSOR_LEVEL,
    RECIPE_LEVEL,
    credible_gain,
    differences,
)
from autotransfer.search.settings.setting import Setting

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """How a setting is judged by its scores, one for each subject.

    Parameters
    ----------
    judge : callable
        Scores of subjects -> number; the largest is chosen.
    words : str
        What it is, for people.
    side : {"validation", "test"}
        Whose scores it sees.
    levels : tuple of float, optional
        How credible it must be that people gain, for a candidate to replace one that stands before
        it: for another recipe, and for a censor. Without them the best is chosen, however little
        better it is.
    """

    judge: Callable[[Floats], float]
    words: str
    side: str = "validation"
    levels: tuple[float, float] | None = None

    def replaces(self, new: Setting, gains: Floats) -> bool:
        """Whether a setting takes the place of the best before it, by the gains of people."""
        assert self.levels is not None
        return credible_gain(gains, self.levels[new.measure is not None]) > 0

    @property
    def for_study_only(self) -> bool:
        """Whether it looks at what a user does not have when choosing."""
        return self.side == "test"


def _lower_quartile(scores: Floats) -> float:
    return float(np.percentile(scores, 25))


RULES: dict[str, Rule] = {
    "safe": Rule(
        lambda s: float(s.mean()),
        "mean validation balanced accuracy; a censor only where people gain by it with a "
        f"credibility of {CENSOR_LEVEL:.0%}",
        levels=(RECIPE_LEVEL, CENSOR_LEVEL),
    ),
    "lower_quartile": Rule(_lower_quartile, "25th percentile of validation balanced accuracy"),
    "mean": Rule(lambda s: float(s.mean()), "mean validation balanced accuracy"),
    "worst_subject": Rule(lambda s: float(s.min()), "worst validation balanced accuracy"),
    "oracle": Rule(
        _lower_quartile, "25th percentile of TEST balanced accuracy (for study only)", "test"
    ),
}
"""Rules by name."""


def lookup_rule(rule: str) -> Rule:
    """Find a rule by name."""
    return lookup("rule", rule, RULES)


@dataclass(frozen=True)
class TrialScores:
    """Scores of one trial.

    Parameters
    ----------
    setting : Setting
        What was tried.
    fold, seed : int
        Where.
    validation, test : mapping of str to float
        Balanced accuracy of each subject; empty where the trial failed.
    error : str
        Why it failed, or "".
    adapted : mapping of str to float
        Balanced accuracy of each test subject, by a model adapted to that subject; may be empty.
    small_cells : bool
        Whether most trials could not be censored, too few of a cell being in a batch.
    """

    setting: Setting
    fold: int
    seed: int
    validation: Mapping[str, float] = field(default_factory=dict)
    test: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    adapted: Mapping[str, float] = field(default_factory=dict)
    small_cells: bool = False


@dataclass(frozen=True)
class Choice:
    """What a rule chose.

    Parameters
    ----------
    setting : Setting
        The chosen one.
    rule : str
        By which rule.
    judged : dict
        Setting -> number that the rule gave it; failed candidates are missing.
    failed : dict
        Candidates that failed somewhere and could not be chosen: Setting -> how many trials.
    without : dict
        Subject -> the setting that the rule chooses without that subject's score.
    nested : dict
        Subject -> test score of that setting: no score of the subject was part of the choice.
    """

    setting: Setting
    rule: str
    judged: dict[Setting, float]
    failed: dict[Setting, int]
    without: dict[str, Setting] = field(default_factory=dict)
    # Made of test scores, so it is no part of what was chosen.
    nested: dict[str, float] = field(default_factory=dict, compare=False)

    @property
    def censors(self) -> bool:
        """Whether a censor was chosen, or none helped."""
        return self.setting.measure is not None


def by_subject(scores: Iterable[TrialScores], side: str) -> dict[str, float]:
    """Average the scores of each subject over seeds (and folds, if it stood there twice)."""
    subjects: dict[str, list[float]] = {}
    for one in scores:
        for person, value in getattr(one, side).items():
            subjects.setdefault(person, []).append(value)
    return {person: float(np.mean(values)) for person, values in subjects.items()}


def choose(
    candidates: Sequence[Setting],
    scores: Iterable[TrialScores],
    n_folds: int,
    n_seeds: int,
    rule: str = "lower_quartile",
) -> Choice:
    """Choose the setting whose scores the rule likes best.

    Ties go to the candidate that stands first: put the baseline there.

    Parameters
    ----------
    candidates : sequence of Setting
        In order of preference among equals.
    scores : iterable of TrialScores
        All trials.
    n_folds, n_seeds : int
        What makes the results whole.
    rule : str
        A name in `RULES`.

    Raises
    ------
    IncompleteResultsError
        If a candidate has no record on some fold and seed, or all candidates failed.
    """
    chosen_by = lookup_rule(rule)
    results: dict[Setting, dict[tuple[int, int], TrialScores]] = {c: {} for c in candidates}
    for one in scores:
        if one.setting in results:
            results[one.setting][one.fold, one.seed] = one
    wanted = {(fold, seed) for fold in range(n_folds) for seed in range(n_seeds)}
    judged: dict[Setting, float] = {}
    sides: dict[Setting, dict[str, float]] = {}
    failed: dict[Setting, int] = {}
    for setting, trials in results.items():
        missing = sorted(wanted - set(trials))
        if missing:
            where = join_some([f"fold {fold + 1}, seed {seed}" for fold, seed in missing], 4)
            raise IncompleteResultsError(
                f"{setting} was not tried on every fold: {where} is missing. Run the same command "
                "again to complete the run; nothing is chosen from part of the results."
            )
        broken = [key for key in wanted if trials[key].error]
        if broken:
            failed[setting] = len(broken)
            continue
        # Only one side of the scores goes any further.
        values = by_subject((trials[key] for key in sorted(wanted)), chosen_by.side)
        sides[setting] = values
        judged[setting] = _judge(chosen_by, values)
    if not judged:
        raise IncompleteResultsError(
            f"All {len(failed)} candidates failed on some fold, so there is nothing to choose "
            f"from. The first reason: {_first_error(results)}"
        )
    best = best_by(chosen_by, sides)
    people = sorted(sides[best]) if len(sides[best]) > 1 else []  # somebody must be left
    without = {p: best_by(chosen_by, sides, [q for q in people if q != p]) for p in people}
    tests = {s: by_subject(results[s].values(), "test") for s in set(without.values())}
    nested = {p: tests[s][p] for p, s in without.items() if p in tests[s]}
    return Choice(best, rule, judged, failed, without, nested)


def _judge(rule: Rule, values: Mapping[str, float], among: Sequence[str] | None = None) -> float:
    return rule.judge(np.array([values[p] for p in (sorted(values) if among is None else among)]))


def best_by(
    rule: Rule, sides: Mapping[Setting, Mapping[str, float]], among: Sequence[str] | None = None
) -> Setting:
    """Choose by the scores of everybody, or of those given; the first of equals."""
    if rule.levels is not None:
        settings = iter(sides)
        best = next(settings)
        for setting in settings:
            if rule.replaces(setting, differences(sides[setting], sides[best], among)):
                best = setting
        return best
    judged = {setting: _judge(rule, values, among) for setting, values in sides.items()}
    return max(judged, key=lambda s: judged[s])


def _first_error(results: dict[Setting, dict[tuple[int, int], TrialScores]]) -> str:
    errors = [one.error for trials in results.values() for one in trials.values() if one.error]
    return errors[0].strip().splitlines()[-1] if errors else "unknown"


def over_folds(scores: Iterable[TrialScores]) -> list[TrialScores]:
    """Put the trials of each setting on several folds together, in the order of the settings.

    A setting that failed on a fold has failed.
    """
    settings: dict[Setting, list[TrialScores]] = {}
    for one in scores:
        settings.setdefault(one.setting, []).append(one)
    return [
        TrialScores(
            setting,
            trials[0].fold,
            trials[0].seed,
            by_subject(trials, "validation"),
            by_subject(trials, "test"),
            next((one.error for one in trials if one.error), ""),
            small_cells=any(one.small_cells for one in trials),
        )
        for setting, trials in settings.items()
    ]


def best_of_each(scores: Iterable[TrialScores], keep: int) -> list[Setting]:
    """Keep the best settings of each measure by mean validation balanced accuracy.

    Those whose cells were too small are skipped: they are little but the uncensored baseline with
    other batches, and could be chosen under the name of a censor (docs/protocol.md has a case).

    Parameters
    ----------
    scores : iterable of TrialScores
        Trials of the search, in the order of the plan; failed ones are skipped.
    keep : int
        How many of each measure.

    Returns
    -------
    list of Setting
        Measures in the order of their first appearance, best first; equals in the order of the
        plan. The baseline is not among them.
    """
    families: dict[str, list[tuple[float, Setting]]] = {}
    for one in scores:
        if one.setting.measure is not None:
            values = families.setdefault(one.setting.measure, [])
            if not one.error and not one.small_cells:
                values.append((float(np.mean(list(one.validation.values()))), one.setting))
    chosen: list[Setting] = []
    for trials in families.values():
        ranked = sorted(trials, key=lambda pair: -pair[0])  # stable
        chosen += [setting for _, setting in ranked[:keep]]
    return chosen


def promoted(scores: Sequence[TrialScores], factor: int, keep: int) -> list[Setting]:
    """Choose who goes on to the next rung of successive halving: the best 1 / factor.

    Not Optuna's pruner, which judges a trial by those that arrived before it: how many workers
    there are would then change the result. At least `keep` of each measure go on, because that
    many are wanted in the end.
    """
    ranked = sorted(
        (one for one in scores if not one.error and not one.small_cells),
        key=lambda one: -float(np.mean(list(one.validation.values()))),
    )
    chosen = {one.setting for one in ranked[: max(1, len(scores) // factor)]}
    chosen |= set(best_of_each(scores, keep))
    chosen |= {one.setting for one in scores if one.setting.measure is None}
    return [one.setting for one in scores if one.setting in chosen]


def describe(values: Mapping[str, float]) -> dict[str, Any]:
    """Spread of scores over subjects."""
    scores = np.array(list(values.values()))
    if not len(scores):
        return {"mean": None, "sd": None, "lower_quartile": None, "worst": None}
    return {
        "mean": float(scores.mean()),
        "sd": float(scores.std(ddof=1)) if len(scores) > 1 else 0.0,
        "lower_quartile": _lower_quartile(scores),
        "worst": float(scores.min()),
    }
