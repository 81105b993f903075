"""The tables of a report, as data frames: for the page and as CSV files."""

from __future__ import annotations

from typing import Any

import pandas as pd

from autotransfer.report.record import Method, Record
from autotransfer.report.summary import rule_score
from autotransfer.search.settings.selection import describe


def settings_table(record: Record) -> pd.DataFrame:
    """Every setting tried: trials, and the spread of its scores over people.

    Cross-validated ones come first, the one that the rule likes best on top; then those of the
    search, by their validation score on its folds. Of a hands-off run: those that were tried on all
    groups of people, then the others.
    """
    whole, part = ("all groups", "some groups") if record.auto else ("cross-validation", "search")
    rows, first = [], record.baseline
    for method in ranked_methods(record):
        setting = method.setting
        more = {
            "recipe": str(setting.recipe),
            "changes": "" if first is None else str(setting.recipe.changes(first.setting.recipe)),
            "first answer": method is first,
        }
        row: dict[str, Any] = {
            "setting": _censor(method) if record.auto else method.name,
            **(more if record.auto else {}),
            "measure": setting.family,
            "mode": setting.mode if setting.measure else "",
            "strength": setting.strength if setting.measure else None,
            "options": ", ".join(f"{name}={value}" for name, value in setting.options),
            "tried in": whole if method.candidate else part,
            "chosen": record.chosen is method,
            "trials": method.done,
            "missing": method.planned - method.done - method.failed,
            "failed": method.failed,
            "people": len(method.test),
        }
        for side in ("validation", "test"):
            spread = describe(getattr(method, side))
            row |= {f"{side} {name.replace('_', ' ')}": value for name, value in spread.items()}
        rows.append(row)
    return pd.DataFrame(rows)


def _censor(method: Method) -> str:
    """Name a setting without its recipe."""
    several = f", mean of {method.networks} networks" if method.networks > 1 else ""
    return f"{method.setting.censor}{several}"


def ranked_methods(record: Record) -> list[Method]:
    """Sort methods: chosen, cross-validated, searched; each by what the choice went by."""

    def place(method: Method) -> tuple[bool, bool, float]:
        value = rule_score(record, method) if method.candidate else None
        if value is None:
            mean = describe(method.validation)["mean"]
            value = -1.0 if mean is None else mean
        return record.chosen is not method, not method.candidate, -value

    return sorted(record.methods, key=place)


def people_table(record: Record) -> pd.DataFrame:
    """Each person's test score: of what the choice is compared with, of it, and the difference."""
    baseline, chosen = record.baseline, record.chosen
    if baseline is None:
        return pd.DataFrame()
    before = record.first_name if record.auto else "uncensored"
    rows = []
    for person, score in sorted(baseline.test.items(), key=lambda pair: pair[1]):
        row: dict[str, Any] = {"subject": person, before: score}
        if person in record.nested:
            row["chosen without this person"] = record.nested[person]
        if chosen is not None and chosen is not baseline and person in chosen.test:
            row |= {chosen.name: chosen.test[person], "difference": chosen.test[person] - score}
        rows.append(row)
    return pd.DataFrame(rows)


def scores_table(record: Record) -> pd.DataFrame:
    """List the validation and test score of every candidate for every person."""
    rows = [
        {"setting": method.name, "side": side, "subject": person, "balanced accuracy": score}
        for method in record.candidates
        for side in ("validation", "test")
        for person, score in getattr(method, side).items()
    ]
    return pd.DataFrame(rows)


def leakage_table(record: Record) -> pd.DataFrame:
    """How well a fresh probe recognises the person from each part of each latent."""
    rows = []
    for portrait in record.portraits:
        for part, leakage in portrait.leakage.items():
            row: dict[str, Any] = {
                "setting": str(portrait.setting),
                "placebo": portrait.placebo,
                "part": part,
                "error": leakage.get("error", ""),
            }
            if "best" in leakage:
                accuracy = leakage["best"]["accuracy"]
                row |= {
                    "accuracy": accuracy["value"],
                    "low": accuracy["low"],
                    "high": accuracy["high"],
                    "chance": leakage["chance"],
                    "subjects": len(leakage["subjects"]),
                    "trials": leakage["n_trials"],
                }
            rows.append(row)
    return pd.DataFrame(rows)


def confusion_table(record: Record) -> pd.DataFrame:
    """Trials of test people by true and predicted class."""
    if record.confusion is None:
        return pd.DataFrame()
    names = record.about["classes"]
    table = pd.DataFrame(record.confusion, columns=names)
    table.insert(0, "true \\ predicted", names, allow_duplicates=True)
    return table


def failures_table(record: Record) -> pd.DataFrame:
    """Trials that failed: where, how often they were tried, and the last line of the error."""
    rows = []
    for entry in record.failures:
        trial = entry.trial
        lines = entry.error.strip().splitlines()
        rows.append(
            {
                "stage": entry.stage,
                "setting": str(trial.setting),
                "fold": trial.fold + 1,
                "seed": trial.seed,
                "attempts": entry.attempts,
                "error": lines[-1] if lines else "unknown",
            }
        )
    return pd.DataFrame(rows)


TABLES = {
    "settings": settings_table,
    "people": people_table,
    "people_by_setting": scores_table,
    "leakage": leakage_table,
    "confusion": confusion_table,
    "failures": failures_table,
}
"""Tables by the name of their CSV file."""
