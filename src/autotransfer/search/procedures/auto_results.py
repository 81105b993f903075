"""What a hands-off run results, in tables and in words."""

from __future__ import annotations

from typing import Any

import pandas as pd

from autotransfer.data.problem import Problem
from autotransfer.search.ledger import Entry
from autotransfer.search.procedures.auto import Outcome
from autotransfer.search.settings.selection import TrialScores, by_subject, describe, lookup_rule
from autotransfer.search.settings.setting import Setting


def candidate_table(outcome: Outcome) -> pd.DataFrame:
    """Make the table of settings that were tried on everybody: spread of scores over people."""
    rows = []
    for setting, own in _whole(outcome).items():
        row: dict[str, Any] = {
            "setting": str(setting),
            "measure": setting.family,
            "mode": setting.mode if setting.measure else "",
            "chosen": setting == outcome.answer.setting,
            "failed": 0,
        }
        for side in ("validation", "test"):
            spread = describe(by_subject(own, side))
            row |= {f"{side}_{name}": value for name, value in spread.items()}
        rows.append(row)
    return pd.DataFrame(rows)


def _whole(outcome: Outcome) -> dict[Setting, list[TrialScores]]:
    """Trials of each setting that was tried on all groups."""
    trials: dict[Setting, list[TrialScores]] = {}
    for one in outcome.tried:
        if not one.error:
            trials.setdefault(one.setting, []).append(one)
    n = outcome.plan.n_folds
    return {s: own for s, own in trials.items() if len({t.fold for t in own}) == n}


def summary(outcome: Outcome, entries: list[Entry], problem: Problem) -> dict[str, Any]:
    """Sum up a run as far as it is, as JSON."""
    answer = outcome.answer
    trials = _whole(outcome)

    def of(setting: Setting) -> dict[str, Any]:
        own = trials[setting]
        return {
            "setting": setting.to_json(),
            "name": str(setting),
            **{side: describe(by_subject(own, side)) for side in ("validation", "test")},
            "test_subjects": by_subject(own, "test"),
            "adapted": describe(by_subject(own, "adapted")),
        }

    own = [e for e in entries if e.state == "done" and e.trial.setting == answer.setting]
    first = next(iter(trials))
    folds = problem.groups(outcome.plan.n_folds)
    seeds = {s: sorted({t.seed for t in own}) for s, own in trials.items()}
    return {
        "complete": outcome.complete,
        "procedure": "auto",
        "nested": describe(answer.nested),
        "nested_subjects": dict(answer.nested),
        "rule": _rule(outcome.rule),
        "chosen": of(answer.setting),
        "baseline": of(answer.setting.baseline) if answer.setting.baseline in trials else of(first),
        "first": of(first),
        "reference": describe(outcome.reference),
        "reference_subjects": outcome.reference,
        "members": [
            {"setting": m.setting.to_json(), "name": str(m.setting), "seed": m.seed}
            for m in answer.members
        ],
        "together": describe(answer.scores),
        "together_subjects": dict(answer.scores),
        "censors": answer.setting.measure is not None,
        "plan": {
            "n_folds": outcome.plan.n_folds,
            "n_seeds": len(seeds[answer.setting]),
            "rungs": [own[0].trial.epochs],
            "keep": len(trials),
        },
        "people_in_a_fold": {
            side: sorted({len(fold.subjects(side)) for fold in folds})
            for side in ("train", "validation", "test")
        },
        "not_tried": list(outcome.missed),
        "still_falling": sum(entry.result["still_falling"] for entry in own),
        "trainings": len(own),
        "trials": len(entries),
        "failed": [
            {"setting": str(entry.trial.setting), "id": entry.id, "error": entry.error}
            for entry in entries
            if entry.state == "failed"
        ],
    }


def _rule(name: str) -> dict[str, Any]:
    rule = lookup_rule(name)
    return {"name": name, "is": rule.words, "for_study_only": rule.for_study_only}
