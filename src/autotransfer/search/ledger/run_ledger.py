"""The ledger of a run, whose entries are trials: what is on record is seen to be that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from autotransfer.documents import checker, misfit
from autotransfer.errors import LedgerError
from autotransfer.search.ledger.entry import Entry
from autotransfer.search.ledger.ledger import Ledger

OPTIONS = {str: (str, bool, float, None)}
SETTING = {
    "measure": (str, None),
    "mode": str,
    "strength": float,
    "options": OPTIONS,
    "recipe": (OPTIONS, ...),
}
_SHARE = slice(0, 1)
_LOSS = slice(-1e39, 1e39)  # of float32
_TIME = slice(0, 1e12)
_TRIAL = {"setting": SETTING, "fold": int, "n_folds": int, "seed": int, "epochs": int}
_GROUPED = _TRIAL | {"grouped": bool}
_SCORES = {
    "balanced_accuracy": _SHARE,
    "subjects": {str: _SHARE},
    "confusion": ([[slice(0, 2**53)]], ...),
}
_RESULT = {
    "validation": _SCORES,
    "test": _SCORES,
    "adapted": {str: _SHARE},
    "epochs": int,
    "best_epoch": int,
    "still_falling": bool,
    "seconds": _TIME,
    "epoch_seconds": _TIME,
    "warnings": ([str], ...),
}
_LEAKAGE = {
    "best": {"accuracy": {"value": _SHARE, "low": _SHARE, "high": _SHARE}},
    "chance": _SHARE,
    "subjects": list,
    "n_trials": int,
}
_PORTRAIT = {
    "leakage": {str: ({"error": str}, _LEAKAGE)},
    "map": {"points": [[_LOSS]], "subject": [str], "label": [str]},
    "seconds": _TIME,
}
_REFERENCE = {
    "subjects": {str: _SHARE},
    "pipeline": str,
    "means": {str: _SHARE},
    "seconds": _TIME,
}
_CASE = {"level": str, "amount": (int, None), "method": str, "tested": str}
_SEEN = {
    **{"spread": slice(-1, 2), "shares": slice(-1, 2), "gain": slice(-1, 1)},
    "otherwise": (slice(-1, 1), None, ...),
}
_LEVELS = {
    "cases": [_CASE | {"subjects": {str: _SHARE}}],
    "guard": {str: {str: [_SEEN, ...]}},
    "seconds": _TIME,
}
_COUNTS = ("n_settings", "keep", "n_folds", "n_seeds", "search_folds", "n_baselines")
_PLAN = dict.fromkeys(_COUNTS, slice(0, 10**6)) | {"rungs": [int, ...], "seconds": _TIME}
_COSTS = {"epoch": {str: _TIME}, "fixed": {str: _TIME}, "seconds": _TIME, "n_folds": int}

# Stage -> what says in what the definition, and the result of a trial that is done, depart.
ENTRIES = {
    stage: (checker(definition), checker(result))
    for stage, definition, result in (
        ("search", _TRIAL, _RESULT),
        ("crossval", _TRIAL, _RESULT),
        *((stage, _GROUPED, _RESULT) for stage in ("first", "recipe", "censor", "confirm")),
        ("refit", _TRIAL | {"grouped": (bool, ...)}, {"best_epoch": int, "seconds": _TIME}),
        ("portrait", _TRIAL | {"placebo": bool, "grouped": (bool, ...)}, _PORTRAIT),
        ("reference", {"n_folds": int}, _REFERENCE),
        ("levels", _GROUPED | {"n_labels": int}, _LEVELS),
    )
}
_CURVES = checker({str: [(_LOSS, None)]})
PLANS: dict[str, Any] = {
    "search": {"plan": _PLAN, "costs": (_COSTS, None)},
    "crossval": {"plan": _PLAN, "candidates": [SETTING, ...]},
    "closing": {
        **{"most": slice(1, 1000), "portraits": bool, "missed": [str]},
        "level_seconds": (_TIME, None, ...),  # not there in a run of an older version
    },
    "auto": {"n_folds": slice(2, 10**6), "seconds": _TIME, "spent": _TIME},
}
MOST_TRIALS = 10**6
"""Most trials of a cross-validation: a plan with more is none that a run made."""

_HALF = re.compile("[\ud800-\udfff]")


class RunLedger(Ledger):
    """A ledger whose entries and plans have the form that a run gives them; parameters as there.

    A checksum tells that a line was changed by accident, not that it was written by us.
    """

    def _see(self, entry: Entry, text: str) -> Entry:
        """Raise a `LedgerError` unless an entry, read from its text, is the record of a trial."""
        if "\\ud" in text or "\\uD" in text:
            # An error may quote the name of a file in another encoding; all else has a form.
            entry = replace(entry, error=entry.error.encode(errors="backslashreplace").decode())
            halves = _HALF.search("".join(_texts([vars(entry)])))
            self._require("it holds half a character" if halves else "", "A trial")
        self._require(departure(entry), f"Trial {entry.id} of {entry.stage}")
        return entry

    def plan(self, stage: str) -> dict[str, Any] | None:
        """Return what was planned for a stage, or None."""
        plan = super().plan(stage)
        if plan is not None and stage in PLANS:
            self._require(misfit(plan, PLANS[stage]), f"The plan of {stage}")
            counts = plan.get("plan", {"n_folds": 1, "n_seeds": 1})
            n = counts["n_folds"] * counts["n_seeds"] * len(plan.get("candidates", "-"))
            if not 0 < n <= MOST_TRIALS:
                self._require(f"it has {n} trials", f"The plan of {stage}")
        return plan

    def _require(self, wrong: str, what: str) -> None:
        if wrong:
            raise LedgerError(
                f"{what} in {self.where} is not as a run records it: {wrong}. Put back a copy of "
                "the ledger, or begin the run anew in another folder."
            )


def departure(entry: Entry) -> str:
    """Say in what an entry is not the record of a trial; "" if it is one."""
    done = entry.state == "done"
    if entry.stage in ENTRIES:
        check_definition, check_result = ENTRIES[entry.stage]
        if wrong := check_definition(entry.definition):
            return f"definition{wrong}"
        if done and (wrong := check_result(entry.result)):
            return f"result{wrong}"
    if done and entry.stage == "portrait":
        drawn = entry.result["map"]
        sizes = {len(drawn["subject"]), len(drawn["label"]), len(drawn["points"])}
        if len(sizes) > 1 or any(len(point) != 2 for point in drawn["points"]):
            return "result.map does not fit together"
    wrong = _CURVES(entry.curves)
    return wrong and f"curves{wrong}"


def _texts(parts: list[Any]) -> Iterator[str]:
    """Yield every text in some JSON."""
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            parts += [*part, *part.values()]
        elif isinstance(part, list):
            parts += part
