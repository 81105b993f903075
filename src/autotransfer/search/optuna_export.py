"""The trials of a run as studies of Optuna: for its dashboard, its plots and its importances."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
)
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from autotransfer.atomic import PathLike
from autotransfer.errors import LedgerError
from autotransfer.search.ledger import Entry, Ledger
from autotransfer.search.ledger.connection import SCHEMES, libpq_address
from autotransfer.search.settings.trial import digest
from autotransfer.search.status import open_run


def export_optuna(run: PathLike, url: str, storage: str | None = None) -> int:
    """Write the trials of a run into a storage of Optuna, one study for each stage.

    Can be called while the run goes on, and again later: trials that are there already are not
    written again. A study is named ``<hash of the run>/<stage>``. The value of a trial is the
    balanced accuracy of the people who validate, or minus infinity where a stage has none. The
    options of a setting are its parameters, or user attributes ``param:...`` where Optuna cannot
    hold them; ``id``, ``fold``, ``seed``, ``test_balanced_accuracy`` and ``error`` are further
    user attributes.

    Parameters
    ----------
    run : path
        Folder of the run.
    url : str
        Storage of Optuna, made if it is not there: ``"sqlite:///run.db"``, ``"postgresql://..."``.
    storage : str, optional
        Ledger of the run, if it is not in its folder.

    Returns
    -------
    int
        Trials written now.

    Raises
    ------
    SourceError
        There is no run in the folder.
    LedgerError
        The ledger cannot be read, or the storage cannot be written.
    """
    if url.startswith(SCHEMES):  # with the driver that the ledger uses
        url = libpq_address(url).replace("postgresql:", "postgresql+psycopg:", 1)
    contents, ledger = open_run(Path(run).expanduser(), storage)
    name, params = digest(contents["definition"]), contents["about"].get("params", {})
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with ledger:
            return sum(
                _export(ledger, stage, f"{name}/{stage}", url, params) for stage in ledger.stages()
            )
    except (SQLAlchemyError, optuna.exceptions.OptunaError, ImportError, RuntimeError) as error:
        # With the URL, as some versions of SQLAlchemy say it, the message would show its password.
        message = str(error).replace(url, "the URL").partition("\n")[0].rstrip(".")
        raise LedgerError(
            f"Optuna cannot use that storage: {message}. Give a URL such as sqlite:///run.db."
        ) from error
    finally:
        optuna.logging.set_verbosity(verbosity)


def _export(ledger: Ledger, stage: str, name: str, url: str, params: dict[str, list[Any]]) -> int:
    """Write what a study lacks of a stage; return how many trials that was."""
    study = optuna.create_study(
        study_name=name, storage=url, direction="maximize", load_if_exists=True
    )
    before = study.get_trials(deepcopy=False)
    entries = ledger.entries(stage)
    ranges = _ranges(params, entries)
    for trial in before:
        ranges |= trial.distributions  # Optuna holds to the choices that a name had first
    ids = {trial.user_attrs.get("id") for trial in before}
    trials = [_trial(entry, ranges) for entry in entries if entry.id not in ids]
    study.add_trials(trials)
    return len(trials)


def _ranges(params: dict[str, list[Any]], entries: Iterable[Entry]) -> dict[str, BaseDistribution]:
    """Find the range of every parameter from the values in the space and those on record.

    Optuna compares only trials whose parameters have the same range, so all of them get it.
    """
    values: dict[str, dict[Any, None]] = {}
    space = ((name, value) for name, choices in params.items() for value in choices)
    for name, value in chain(space, *(entry.params.items() for entry in entries)):
        if isinstance(value, str | bool | None) or _is_number(value):
            values.setdefault(name, {})[value] = None
    return {name: _range(list(choices)) for name, choices in values.items()}


def _range(values: list[Any]) -> BaseDistribution:
    if all(map(_is_number, values)):
        return FloatDistribution(min(values), max(values), log=min(values) > 0)
    return CategoricalDistribution(values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e308


def _fits(value: Any, kind: BaseDistribution | None) -> bool:
    if isinstance(kind, FloatDistribution):
        return _is_number(value) and kind.low <= value <= kind.high
    return isinstance(kind, CategoricalDistribution) and value in kind.choices


def _trial(entry: Entry, ranges: dict[str, BaseDistribution]) -> FrozenTrial:
    """Make the trial of Optuna that shows an entry."""
    done = entry.state == "done"
    params = {k: v for k, v in entry.params.items() if _fits(v, ranges.get(k))}
    attributes = {f"param:{k}": v for k, v in entry.params.items() if k not in params}
    attributes["id"] = entry.id
    attributes |= {name: entry.definition[name] for name in ("fold", "seed")}
    if "test" in entry.result:
        attributes["test_balanced_accuracy"] = entry.result["test"]["balanced_accuracy"]
    if entry.error:
        attributes["error"] = entry.error
    value = -math.inf if entry.value is None else entry.value
    return optuna.trial.create_trial(
        state=TrialState.COMPLETE if done else TrialState.FAIL,
        value=value if done else None,
        params=params,
        distributions={name: ranges[name] for name in params},
        user_attrs=attributes,
    )
