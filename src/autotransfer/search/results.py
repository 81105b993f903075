"""What a run results, in tables and in words."""

from __future__ import annotations

from typing import Any

import pandas as pd

from autotransfer.search.budget import Plan
from autotransfer.search.ledger import Entry
from autotransfer.search.settings.selection import (
    Choice,
    TrialScores,
    by_subject,
    describe,
    lookup_rule,
)
from autotransfer.search.settings.setting import Setting


def candidate_table(choice: Choice, scores: list[TrialScores]) -> pd.DataFrame:
    """Make the table of candidates: spread of validation and test scores over subjects."""
    rows = []
    for setting in dict.fromkeys(one.setting for one in scores):
        own = [one for one in scores if one.setting == setting]
        row: dict[str, Any] = {
            "setting": str(setting),
            "measure": setting.family,
            "mode": setting.mode if setting.measure else "",
            "chosen": setting == choice.setting,
            "failed": choice.failed.get(setting, 0),
        }
        for side in ("validation", "test"):
            spread = describe(by_subject(own, side))
            row |= {f"{side}_{name}": value for name, value in spread.items()}
        rows.append(row)
    return pd.DataFrame(rows)


def summary(
    choice: Choice, scores: list[TrialScores], plan: Plan, entries: list[Entry]
) -> dict[str, Any]:
    """Sum up a whole run, as JSON."""

    def of(setting: Setting) -> dict[str, Any]:
        own = [one for one in scores if one.setting == setting]
        return {
            "setting": setting.to_json(),
            "name": str(setting),
            **{side: describe(by_subject(own, side)) for side in ("validation", "test")},
            "test_subjects": by_subject(own, "test"),
            "adapted": describe(by_subject(own, "adapted")),
        }

    rule = lookup_rule(choice.rule)
    return {
        "complete": True,
        "rule": {"name": choice.rule, "is": rule.words, "for_study_only": rule.for_study_only},
        "chosen": of(choice.setting),
        "baseline": of(choice.setting.baseline),
        "censors": choice.censors,
        "plan": plan.to_json() | {"seconds": None},
        "trials": len(entries),
        "failed": [
            {"setting": str(entry.trial.setting), "id": entry.id, "error": entry.error}
            for entry in entries
            if entry.state == "failed"
        ],
    }


def verdict(results: dict[str, Any]) -> str:
    """Say in two or three sentences what came of it."""
    chosen, baseline = results["chosen"], results["baseline"]
    mark = " (chosen by TEST scores: for study only)" if results["rule"]["for_study_only"] else ""
    if not results["censors"]:
        words = (
            "No censor did better than the uncensored baseline in cross-validation, so that is "
            f"what you get: {_score(baseline)} on unseen subjects"
        )
    else:
        words = (
            f"Chosen: {chosen['name']}{mark}: {_score(chosen)} on unseen subjects, against "
            f"{_score(baseline)} uncensored"
        )
    if chosen.get("adapted", {}).get("mean") is not None:
        words += f". Adapted to each of them without labels: {_score(chosen, 'adapted')}"
    failed = len(results["failed"])
    return words + (f". {failed} trials failed." if failed else ".")


def _score(one: dict[str, Any], side: str = "test") -> str:
    spread = one[side]
    if spread["mean"] is None:
        return "no score"
    return f"balanced accuracy {spread['mean']:.3f} (lower quartile {spread['lower_quartile']:.3f})"
