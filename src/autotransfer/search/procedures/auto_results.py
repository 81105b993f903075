"""What a hands-off run results, in tables and in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from autotransfer.data.problem import Problem
from autotransfer.search.ledger import Entry
from autotransfer.search.levels.worth import Levels
from autotransfer.search.procedures.answer import MIXED_LEVEL
from autotransfer.search.procedures.outcome import Outcome
from autotransfer.search.results import (
    by_setting,
    done_trials,
    first_name,
    run_summary,
    setting_summary,
    settings_table,
    tidy_scores,
)
from autotransfer.search.settings.selection import TrialScores, describe
from autotransfer.search.settings.setting import Setting


def candidate_table(outcome: Outcome) -> pd.DataFrame:
    """Make the table of settings that were tried on everybody: spread of scores over people.

    `name` calls each by what it changes in the recipe of the first answer.
    """
    whole = _whole(outcome)
    table = settings_table(whole, outcome.answer.setting, {})
    first, called = next(iter(whole)).recipe, first_name(outcome.plan.instead)
    table.insert(1, "name", [setting.beside(first, called) for setting in whole])
    return table


def levels_table(outcome: Outcome) -> pd.DataFrame:
    """Make the table of levels: person, level, amount, tested, method, score."""
    columns = ["person", "level", "amount", "tested", "method", "score"]
    return pd.DataFrame(outcome.levels.rows(), columns=columns).astype({"amount": "Int64"})


def scores_table(outcome: Outcome) -> pd.DataFrame:
    """List the score of everybody held out: person, level, method, seed, score.

    Every setting that was tried on all groups with every seed; the answer, chosen by everybody and
    without the person; the classical pipeline; and what each level was worth, by the first network
    of the answer on other trials of theirs. What is of no single seed has none.
    """
    answer, level = outcome.answer, outcome.new_person
    first = f"first network of the answer, {answer.members[0].setting}"
    parts = [
        *((level, str(t.setting), t.seed, t.test) for own in _whole(outcome).values() for t in own),
        (level, "answer", None, answer.scores),
        (level, "answer chosen without this person", None, answer.nested),
        ("nothing", "classical pipeline", None, outcome.reference),
        *(
            (known, first, answer.members[0].seed, found)
            for known, found in outcome.levels.answers(outcome.n_labels).items()
        ),
    ]
    return tidy_scores(parts)


def _levels(levels: Levels, n_labels: int) -> dict[str, Any]:
    """Sum up what each level was worth, on the same people and by the same network."""
    answers = levels.answers(n_labels)
    nothing = answers.pop("nothing", {})
    return {
        level: {
            **describe(scores),
            "nothing": float(np.mean([nothing[person] for person in scores])),
        }
        for level, scores in answers.items()
    }


def _whole(outcome: Outcome) -> dict[Setting, list[TrialScores]]:
    """Trials of each setting that was tried on all groups."""
    trials = by_setting(one for one in outcome.tried if not one.error)
    n = outcome.plan.n_folds
    return {s: own for s, own in trials.items() if len({t.fold for t in own}) == n}


def _longer_tried(chosen: Setting, tried: Iterable[TrialScores]) -> bool:
    """Whether trainings with more steps than the chosen ones were among what was tried."""

    def steps(setting: Setting) -> float:
        return float(dict(setting.recipe.options).get("n_steps") or 0)

    return any(
        steps(one.setting) > steps(chosen) and one.setting.recipe.encoder == chosen.recipe.encoder
        for one in tried
        if not one.error
    )


def summary(outcome: Outcome, entries: list[Entry], problem: Problem) -> dict[str, Any]:
    """Sum up a run as far as it is, as JSON."""
    answer, n_folds = outcome.answer, outcome.plan.n_folds
    trials = _whole(outcome)
    first = next(iter(trials))
    baseline = answer.setting.baseline if answer.setting.baseline in trials else first
    own = done_trials(entries, answer.setting)
    return {
        "complete": outcome.complete,
        "procedure": "auto",
        "nested": describe(answer.nested),
        "nested_subjects": dict(answer.nested),
        "nested_error": answer.nested_error if answer.nested else None,
        "chosen": setting_summary(answer.setting, trials[answer.setting]),
        "baseline": setting_summary(baseline, trials[baseline]),
        "first": setting_summary(first, trials[first]),
        "reference": describe(outcome.reference),
        "reference_subjects": outcome.reference,
        "members": [
            {"setting": m.setting.to_json(), "name": str(m.setting), "seed": m.seed}
            for m in answer.members
        ],
        "together": describe(answer.scores),
        "together_subjects": dict(answer.scores),
        "held_out": None if outcome.held_out is None else outcome.held_out.to_json(),
        "mixed_level": MIXED_LEVEL,
        "plan": {
            "n_folds": n_folds,
            "n_seeds": len({t.seed for t in trials[answer.setting]}),
            "rungs": [own[0].trial.epochs],
            "keep": len(trials),
        },
        "new_person": outcome.new_person,
        "n_labels": outcome.n_labels,
        "levels": _levels(outcome.levels, outcome.n_labels),
        "not_tried": list(outcome.missed),
        "instead": dict(outcome.plan.instead),
        "longer_tried": _longer_tried(answer.setting, outcome.tried),
        **run_summary(outcome.rule, answer.setting, entries, own, problem.groups(n_folds)),
    }
