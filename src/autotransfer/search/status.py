"""How far a run is, read from its folder without disturbing it."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotransfer.documents import misfit, read_object
from autotransfer.errors import SourceError
from autotransfer.search.budget import Plan
from autotransfer.search.ledger import Ledger, RunLedger
from autotransfer.search.ledger.connection import place
from autotransfer.search.run_folder import FORMAT, RunFolder
from autotransfer.search.settings.setting import Setting
from autotransfer.search.settings.trial import Trial, digest

STAGES = {
    "cost": "measuring costs",
    "first": "first answer",
    "recipe": "trying recipes",
    "censor": "trying censors",
    "confirm": "further seeds",
    "search": "searching",
    "crossval": "cross-validating",
    "refit": "refitting",
    "levels": "scoring what is known of a new person",
    "portrait": "looking at the latents",
}
"""What a run does in its stages, in words."""

OF_TRIALS = {
    "paper": ("search", "crossval"),
    "auto": ("first", "recipe", "censor", "confirm"),
}
"""Stages of a procedure that train and score, in their order."""

STALE = 30.0
"""Seconds without a sign of life after which a driver counts as gone."""

AGAIN = "Put back a copy of it, or begin the run anew in another folder."
RUN = {"definition": dict, "about": {"storage": (str, None, ...), "params": ({str: list}, ...)}}
SIGN = {"at": float, "left": (slice(0, 1e12), None), "pid": slice(1, 2**31), "host": str}


@dataclass(frozen=True)
class StageStatus:
    """How far a stage is.

    Parameters
    ----------
    name : str
        The stage: a name in `OF_TRIALS`.
    planned : int or None
        Trials; None while nobody knows. With pruning or TPE, at least so many. What follows on the
        first answer of a hands-off run depends on what it has seen, so nobody knows that.
    done, failed : int
        Trials on record.
    """

    name: str
    planned: int | None
    done: int
    failed: int


@dataclass(frozen=True)
class RunStatus:
    """How far a run is.

    Parameters
    ----------
    folder : Path
        Of the run.
    stages : tuple of StageStatus
        In their order.
    complete : bool
        Whether the run has come to its end, and the model is written.
    alive : bool
        Whether a driver gave a sign of life in the last seconds.
    left : float or None
        Seconds to the end of the stage, as the driver estimated them.
    expected : dict or None
        Balanced accuracy of a new person by the answer so far, if there is one: ``mean`` and
        ``lower_quartile``.
    """

    folder: Path
    stages: tuple[StageStatus, ...]
    complete: bool
    alive: bool
    left: float | None
    expected: dict[str, float] | None = None

    def to_json(self) -> dict[str, Any]:
        """Give what JSON can hold."""
        stages = [vars(stage) for stage in self.stages]
        return vars(self) | {"folder": str(self.folder), "stages": stages}

    def __str__(self) -> str:
        parts = []
        for stage in self.stages:
            of = "" if stage.planned is None else f" of {stage.planned}"
            failed = f" ({stage.failed} failed)" if stage.failed else ""
            parts.append(f"{stage.name} {stage.done + stage.failed}{of}{failed}")
        return ", ".join(parts)


def open_run(folder: Path, storage: str | None = None) -> tuple[dict[str, Any], Ledger]:
    """Open the ledger of a run for reading.

    Returns
    -------
    run : dict
        What ``run.json`` holds: ``definition`` and ``about``.
    ledger : Ledger
        To be closed.
    """
    files = RunFolder(folder)
    if not files.run.exists():
        raise SourceError(
            f"There is no run in {folder}: it has no run.json. Give the folder that was the run's "
            "--out (out=...)."
        )
    run = read_object(files.run, SourceError, AGAIN)
    if run.get("format") != FORMAT:
        raise SourceError(f"{folder} holds a run of another version of autotransfer.")
    try:
        wrong, name = misfit(run, RUN, "it"), digest(run.get("definition"))
    except ValueError as error:  # NaN
        wrong = str(error)
    if wrong:
        raise SourceError(f"{files.run} is not as a run writes it ({wrong}). {AGAIN}")
    elsewhere = run["about"].get("storage")
    if storage is None and elsewhere is not None:
        raise SourceError(
            f"The ledger of this run is in {place(elsewhere):.200}. Give its address as storage "
            "(--storage)."
        )
    return run, RunLedger(storage or files.ledger, name, read_only=True)


def read_status(folder: Path, storage: str | None = None) -> RunStatus:
    """Say how far a run is, also while it goes on."""
    run, ledger = open_run(folder, storage)
    with ledger:
        return status_of(folder, procedure_of(run), ledger)


def procedure_of(run: dict[str, Any]) -> str:
    """Name the procedure of a run, from what ``run.json`` holds: a name in `OF_TRIALS`."""
    return "auto" if "recipes" in run["definition"] else "paper"


def status_of(folder: Path, procedure: str, ledger: Ledger) -> RunStatus:
    """Say how far a run is whose ledger is open."""
    files = RunFolder(folder)
    stages, complete = (_auto if procedure == "auto" else _paper)(files, ledger)
    alive, left = _heartbeat(files.heartbeat)
    left = left if alive else None
    return RunStatus(folder, stages, complete, alive and not complete, left, files.expected)


def _auto(files: RunFolder, ledger: Ledger) -> tuple[tuple[StageStatus, ...], bool]:
    """Say how far the stages of a hands-off run are, and whether it has come to its end."""
    plan = ledger.plan("auto")
    # Results are written with the first answer too, and say then that they are not the last.
    complete = files.says_complete and files.model.is_dir()
    stages = []
    for name in OF_TRIALS["auto"]:
        states = [entry.state for entry in ledger.each(name)]
        planned = plan["n_folds"] if plan is not None and name == "first" else None
        planned = len(states) if complete else planned
        stages.append(StageStatus(name, planned, states.count("done"), states.count("failed")))
    return tuple(stages), complete


def _paper(files: RunFolder, ledger: Ledger) -> tuple[tuple[StageStatus, ...], bool]:
    """Say the same of a run of the paper's procedure."""
    recorded = {
        stage: [(entry.trial, entry.state) for entry in ledger.each(stage)]
        for stage in OF_TRIALS["paper"]
    }
    # By what defines a trial and not by its id, which needs the data's fingerprint.
    states = dict(recorded["search"] + recorded["crossval"])
    searched = [state for _, state in recorded["search"]]
    plan = ledger.plan("search")
    planned = None if plan is None else Plan.from_json(plan["plan"]).searched
    trials = crossval_trials(ledger)
    n_trials = None if trials is None else len(trials)
    validated = [states[trial] for trial in trials or () if trial in states]
    stages = (
        StageStatus("search", planned, searched.count("done"), searched.count("failed")),
        StageStatus("crossval", n_trials, validated.count("done"), validated.count("failed")),
    )
    complete = (
        n_trials == len(validated)
        and bool(ledger.ids("refit"))
        and files.results.exists()
        and files.model.is_dir()
    )
    return stages, complete


def crossval_trials(ledger: Ledger) -> list[Trial] | None:
    """All trials of the cross-validation, done or not; None if it is not planned yet.

    The search has trained some of them: they are on record in that stage.
    """
    document = ledger.plan("crossval")
    if document is None:
        return None
    plan = Plan.from_json(document["plan"])
    return [
        Trial(Setting.from_json(setting), fold, plan.n_folds, seed, plan.epochs)
        for setting in document["candidates"]
        for fold in range(plan.n_folds)
        for seed in range(plan.n_seeds)
    ]


def _heartbeat(path: Path) -> tuple[bool, float | None]:
    try:
        sign = read_object(path, SourceError, "")
        if misfit(sign, SIGN):
            return False, None
        fresh = time.time() - sign["at"] < STALE
        if fresh and os.name == "posix" and sign["host"] == platform.node():
            os.kill(sign["pid"], 0)  # asks whether there is such a process, and sends nothing
        return fresh, sign["left"]
    except PermissionError:
        return True, None  # somebody else's process
    except (OSError, OverflowError):
        return False, None
