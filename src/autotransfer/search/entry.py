"""What is on record of one trial, and the Optuna trial that holds it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from autotransfer.errors import LedgerError

# A study of Optuna compares ranges, so every number has the same one; the squares that its
# evaluators take of it must stay finite.
ANY_NUMBER = FloatDistribution(-1e12, 1e12)
STATES = {"done": TrialState.COMPLETE, "failed": TrialState.FAIL}


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


def encode(entry: Entry, ranges: Mapping[str, BaseDistribution]) -> FrozenTrial:
    """Make the Optuna trial that holds an entry."""
    what = f"Trial {entry.id} of {entry.stage}"
    if entry.state not in STATES:
        raise LedgerError(f"{what} is {entry.state!r}; only done and failed are kept.")
    done, value = entry.state == "done", entry.value
    if value is not None and not (done and math.isfinite(value)):
        raise LedgerError(
            f"{what} is {entry.state} with value {value!r}. The value of a trial is a finite "
            "number or None; if it failed, None."
        )
    attributes = {
        "id": entry.id,
        "definition": to_json(entry.definition, f"The definition of {what}"),
        "result": to_json(entry.result, f"The result of {what}"),
        "error": entry.error,
        "attempts": entry.attempts,
        "params": to_json(entry.params, f"The parameters of {what}", sort=False),
        "curves": to_json(entry.curves, f"The curves of {what}"),
    }
    params, distributions = {}, {}
    for name, given in entry.params.items():
        distribution = _range(given, ranges.get(name))
        if distribution is None:
            attributes[f"param:{name}"] = given
        else:
            params[name], distributions[name] = given, distribution
    if done:
        value = -math.inf if value is None else float(value)
    return create_trial(
        state=STATES[entry.state],
        value=value,
        params=params,
        distributions=distributions,
        user_attrs=attributes,
    )


def decode(
    stage: str, done: bool, value: float | None, attributes: Mapping[str, Any], curves: bool
) -> Entry:
    """Return the entry that an Optuna trial holds, with or without its curves."""
    return Entry(
        id=attributes["id"],
        stage=stage,
        state="done" if done else "failed",
        definition=json.loads(attributes["definition"]),
        result=json.loads(attributes["result"]),
        error=attributes["error"],
        attempts=attributes["attempts"],
        value=None if value is None or math.isinf(value) else value,
        params=json.loads(attributes["params"]),
        curves=json.loads(attributes["curves"]) if curves else {},
    )


def to_json(obj: dict[str, Any], what: str, sort: bool = True) -> str:
    """Write JSON; sorted, equal plans have equal texts."""
    try:
        return json.dumps(obj, sort_keys=sort, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise LedgerError(f"{what} cannot be kept as JSON: {error}.") from error


def _range(value: Any, choices: BaseDistribution | None) -> BaseDistribution | None:
    """Return the range that a value is kept with as an Optuna parameter, None if it cannot be."""
    if choices is not None:
        try:
            choices.to_internal_repr(value)
        except ValueError:
            return None
        return choices
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return ANY_NUMBER if number and abs(value) <= ANY_NUMBER.high else None
