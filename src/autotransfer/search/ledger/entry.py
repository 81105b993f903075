"""What is on record of one trial, and its text."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

from autotransfer.documents import checker
from autotransfer.errors import LedgerError
from autotransfer.search.settings.trial import Trial

STATES = ("done", "failed")
# What the text of an entry holds; a storage keeps id, stage and curves beside it.
FIELDS = ("state", "value", "attempts", "error", "params", "definition", "result")


_check = checker(
    {
        "state": str,
        "value": (float, None),
        "attempts": int,
        "error": str,
        **dict.fromkeys(("params", "definition", "result"), dict),
    }
)
_check_curves = checker({str: list})


@dataclass(frozen=True)
class Entry:
    """What is on record of one trial.

    Parameters
    ----------
    id : str
        Hash of what defines the trial.
    stage : str
        Part of the run: ``"search"``, ``"crossval"``, ``"refit"``.
    state : {"done", "failed"}
        Whether the trial came to its end.
    definition : dict
        What defines the trial, as JSON can hold it: setting, fold, seed.
    result : dict
        Scores, scores of classes, as JSON can hold them; empty if the trial failed.
    error : str, default ""
        The traceback of a trial that failed.
    attempts : int, default 1
        How often the trial was started.
    value : float, optional
        What is maximised; a trial that failed has none.
    params : dict, optional
        Names to single values, for dashboards.
    curves : dict, optional
        Lists by name, one number for each epoch. They are most of an entry, so they are kept apart
        and read only when asked for.

    Notes
    -----
    Numbers come back exactly as they went in, NaN and infinity too. Tuples come back as lists and
    all keys as strings, as always in JSON.
    """

    id: str
    stage: str
    state: str
    definition: dict[str, Any]
    result: dict[str, Any]
    error: str = ""
    attempts: int = 1
    value: float | None = None
    params: dict[str, Any] = field(default_factory=dict)
    curves: dict[str, Any] = field(default_factory=dict)

    @property
    def trial(self) -> Trial:
        """The setting, fold, seed and epochs that define it."""
        return Trial.from_json(self.definition)


def entry_texts(entry: Entry) -> tuple[str, str]:
    """Write the `FIELDS` of an entry, and its curves, as JSON texts."""
    what = f"Trial {entry.id} of {entry.stage}"
    if not entry.id:
        raise LedgerError(f"A trial of {entry.stage} has no id.")
    if entry.state not in STATES:
        raise LedgerError(f"{what} is {entry.state!r}; only done and failed are kept.")
    value = entry.value
    if value is not None and not (entry.state == "done" and math.isfinite(value)):
        raise LedgerError(
            f"{what} is {entry.state} with value {value!r}. The value of a trial is a finite "
            "number or None; if it failed, None."
        )
    parts = {name: getattr(entry, name) for name in FIELDS}
    parts["value"] = None if value is None else float(value)
    texts = [f'"{name}":{to_text(part, f"The {name} of {what}")}' for name, part in parts.items()]
    return f"{{{','.join(texts)}}}", to_text(entry.curves, f"The curves of {what}")


def entry_of(id: str, stage: str, fields: Any, curves: Any) -> Entry:
    """Make an entry from what its texts hold; `ValueError` if that is no trial."""
    wrong = _check(fields) or _check_curves(curves)
    if wrong or fields["state"] not in STATES:
        raise ValueError(f"its fields{wrong or ' have an unknown state'}")
    return Entry(id, stage, **fields, curves=curves)


def to_text(value: Any, what: str, sort: bool = False) -> str:
    """Write JSON in ASCII; sorted, equal plans have equal texts."""
    try:
        return json.dumps(value, sort_keys=sort, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise LedgerError(f"{what} cannot be kept as JSON: {error}.") from error
