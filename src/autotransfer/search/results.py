"""What a run found, in tables and in words."""

from __future__ import annotations

from typing import Any

import pandas as pd

from autotransfer.search.budget import Plan
from autotransfer.search.ledger import Entry
from autotransfer.search.settings.selection import Choice, Scored, by_subject, describe, lookup_rule
from autotransfer.search.settings.setting import Setting


def candidate_table(choice: Choice, scored: list[Scored]) -> pd.DataFrame:
    """Make the table of candidates: spread of validation and test scores over subjects."""
    rows = []
    for setting in dict.fromkeys(one.setting for one in scored):
        mine = [one for one in scored if one.setting == setting]
        row: dict[str, Any] = {
            "setting": str(setting),
            "measure": setting.family,
            "mode": setting.mode if setting.measure else "",
            "chosen": setting == choice.setting,
            "failed": choice.failed.get(setting, 0),
        }
        for side in ("validation", "test"):
            spread = describe(by_subject(mine, side))
            row |= {f"{side}_{name}": value for name, value in spread.items()}
        rows.append(row)
    return pd.DataFrame(rows)


def summary(
    choice: Choice, scored: list[Scored], plan: Plan, entries: list[Entry]
) -> dict[str, Any]:
    """Sum up a whole run, as JSON."""

    def of(setting: Setting) -> dict[str, Any]:
        mine = [one for one in scored if one.setting == setting]
        return {
            "setting": setting.to_json(),
            "name": str(setting),
            **{side: describe(by_subject(mine, side)) for side in ("validation", "test")},
            "test_subjects": by_subject(mine, "test"),
            "adapted": describe(by_subject(mine, "adapted")),
        }

    rule = lookup_rule(choice.rule)
    failed = [e for e in entries if e.state == "failed"]
    return {
        "complete": True,
        "rule": {"name": choice.rule, "is": rule.words, "for_study_only": rule.for_study_only},
        "chosen": of(choice.setting),
        "baseline": of(choice.setting.baseline),
        "censors": choice.censors,
        "plan": plan.to_json() | {"seconds": None},
        "trials": len(entries),
        "failed": [
            {
                "setting": str(Setting.from_json(e.definition["setting"])),
                "id": e.id,
                "error": e.error,
            }
            for e in failed
        ],
    }


def verdict(found: dict[str, Any]) -> str:
    """Say in two or three sentences what came of it."""
    chosen, baseline = found["chosen"], found["baseline"]
    mark = " (chosen by TEST scores: for study only)" if found["rule"]["for_study_only"] else ""
    if not found["censors"]:
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
    failed = len(found["failed"])
    return words + (f". {failed} trials failed." if failed else ".")


def _score(one: dict[str, Any], side: str = "test") -> str:
    spread = one[side]
    if spread["mean"] is None:
        return "no score"
    return f"balanced accuracy {spread['mean']:.3f} (lower quartile {spread['lower_quartile']:.3f})"
