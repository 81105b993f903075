"""Everything a report shows, read from the folder of a run into plain tables.

The ledger is opened for reading only, so that a run that goes on is not disturbed; the data
themselves are not needed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.errors import SourceError
from autotransfer.search.driver import scored
from autotransfer.search.entry import Entry
from autotransfer.search.ledger import Ledger
from autotransfer.search.run_folder import RunFolder
from autotransfer.search.settings.selection import RULES, Rule, Scored, by_subject
from autotransfer.search.settings.setting import BASELINE, Setting
from autotransfer.search.settings.trial import Trial
from autotransfer.search.status import RunStatus, crossval_trials, open_run, status_of

TRIALS = ("search", "crossval")
STAGES = (*TRIALS, "refit", "portrait")


@dataclass(frozen=True)
class Method:
    """What is on record of a setting.

    Parameters
    ----------
    setting : Setting
        What was tried.
    candidate : bool
        Whether it is cross-validated, or was tried in the search only.
    planned, done, failed : int
        Trials.
    validation, test : dict of str to float
        Balanced accuracy of each person, the mean over seeds.
    adapted : dict of str to float
        The same of test people, by models adapted to them without labels; may be empty.
    """

    setting: Setting
    candidate: bool
    planned: int
    done: int
    failed: int
    validation: dict[str, float]
    test: dict[str, float]
    adapted: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """How it is called."""
        return str(self.setting)

    @property
    def complete(self) -> bool:
        """Whether all its trials came to their end."""
        return self.done == self.planned


@dataclass(frozen=True)
class Portrait:
    """What the latent of a method tells about the person (see `autotransfer.search.portrait`).

    Parameters
    ----------
    setting : Setting
        The method.
    placebo : bool
        Whether it was trained with shuffled subject labels.
    leakage : dict
        Part of the latent -> `Leakage.to_dict`, or ``{"error": why}``.
    points : dict
        ``points`` (two coordinates), ``subject`` and ``label`` of some trials.
    error : str
        Why there is none, or "".
    """

    setting: Setting
    placebo: bool
    leakage: dict[str, Any]
    points: dict[str, Any]
    error: str = ""


@dataclass(frozen=True)
class Record:
    """A run, as far as it is on record.

    Parameters
    ----------
    name : str
        Of the folder.
    definition, about : dict
        What ``run.json`` holds.
    status : RunStatus
        How far the run is.
    results : dict or None
        What ``results.json`` holds; None unless the run is complete.
    methods : tuple of Method
        Every setting tried, the cross-validated ones first, each part in the order of its plan.
    focus : Method or None
        What curves and confusion matrix are of: the chosen one, or the baseline while nothing is
        chosen.
    confusion : ndarray of int of shape (n_classes, n_classes) or None
        Of `focus`, summed over test subjects and seeds: rows are true classes.
    curves : tuple of dict
        Of `focus`: one for each trial, name -> list with a number for each epoch, with the epoch
        that was kept as ``best_epoch``.
    portraits : tuple of Portrait
        Of the baseline, the choice and its placebo.
    failures : tuple of Entry
        Trials that failed, of all stages.
    counts : dict of str to int
        Stage -> trials on record.
    seconds : float
        Sum of the times of all trials.
    """

    name: str
    definition: dict[str, Any]
    about: dict[str, Any]
    status: RunStatus
    results: dict[str, Any] | None
    methods: tuple[Method, ...] = ()
    focus: Method | None = None
    confusion: npt.NDArray[np.int64] | None = None
    curves: tuple[dict[str, Any], ...] = ()
    portraits: tuple[Portrait, ...] = ()
    failures: tuple[Entry, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """Whether there is a result: nothing is claimed from part of one."""
        return self.results is not None

    @property
    def rule(self) -> Rule | None:
        """The rule by which the choice was made; None while there is none."""
        return None if self.results is None else RULES.get(self.results["rule"]["name"])

    @property
    def classifier(self) -> dict[str, Any]:
        """Options of the classifier that somebody set; none in runs of earlier versions."""
        return dict(self.about.get("classifier", {}))

    @property
    def for_study_only(self) -> bool:
        """Whether the choice was made by test scores."""
        return self.results is not None and bool(self.results["rule"]["for_study_only"])

    @property
    def candidates(self) -> list[Method]:
        """What is cross-validated."""
        return [method for method in self.methods if method.candidate]

    @property
    def baseline(self) -> Method | None:
        """The uncensored one, with the batches of what was chosen."""
        wanted = BASELINE if self.results is None else self._chosen_setting.baseline
        return next((m for m in self.methods if m.setting == wanted), None)

    @property
    def chosen(self) -> Method | None:
        """The chosen one; None unless the run is complete."""
        if self.results is None:
            return None
        return next((m for m in self.candidates if m.setting == self._chosen_setting), None)

    @property
    def _chosen_setting(self) -> Setting:
        assert self.results is not None
        return Setting.from_json(self.results["chosen"]["setting"])

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None in runs of versions that did not note it."""
        if self.about.get("classes"):
            return len(self.about["classes"])
        return None if self.confusion is None else len(self.confusion)

    @property
    def baseline_portrait(self) -> Portrait | None:
        """The portrait of the baseline, if there is one."""
        return None if self.baseline is None else self.portrait(self.baseline.setting)

    def portrait(self, setting: Setting, placebo: bool = False) -> Portrait | None:
        """Find the portrait of a method; the last one if there are several."""
        found = [p for p in self.portraits if (p.setting, p.placebo) == (setting, placebo)]
        return found[-1] if found else None


def gather(folder: Path, storage: str | None = None) -> Record:
    """Read a run.

    Parameters
    ----------
    folder : Path
        Of the run.
    storage : str, optional
        Address of the ledger if it is in a database.
    """
    run, ledger = open_run(folder, storage)
    with ledger:
        status = status_of(folder, ledger)
        results = _results(folder) if status.complete else None
        planned = crossval_trials(ledger)
        # One by one: a hundred thousand entries are not kept, only their scores.
        trials: dict[Trial, Scored] = {}
        portraits, failures, seconds = [], [], 0.0
        counts = dict.fromkeys(STAGES, 0)
        for stage in STAGES:
            for entry in ledger.each(stage):
                counts[stage] += 1
                seconds += entry.result.get("seconds", 0.0)
                if entry.state == "failed":
                    failures.append(entry)
                if stage in TRIALS:
                    trials[Trial.from_json(entry.definition)] = scored(entry)
                elif stage == "portrait":
                    portraits.append(_portrait(entry))
        made = Record(
            folder.resolve().name,
            run["definition"],
            run["about"],
            status,
            results,
            tuple(_methods(trials, planned)),
            portraits=tuple(portraits),
            failures=tuple(failures),
            counts=counts,
            seconds=seconds,
        )
        focus = made.chosen or made.baseline
        confusion, curves = _closely(ledger, focus, set(planned or ()))
    return replace(made, focus=focus, confusion=confusion, curves=curves)


def _results(folder: Path) -> dict[str, Any]:
    path = RunFolder(folder).results
    try:
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    except (OSError, ValueError) as error:
        raise SourceError(
            f"{path} cannot be read ({error}). Delete it and make the same run again: nothing is "
            "trained twice, and the file is written anew."
        ) from None


def _methods(trials: dict[Trial, Scored], planned: list[Trial] | None) -> list[Method]:
    """Put the trials of each setting together."""
    # What is cross-validated is judged by those trials only, wherever they are on record.
    wanted: dict[Setting, list[Trial]] = {}
    for trial in planned or ():
        wanted.setdefault(trial.setting, []).append(trial)
    made = [_method(setting, True, mine, trials) for setting, mine in wanted.items()]
    others: dict[Setting, list[Trial]] = {}
    for trial in trials:
        if trial.setting not in wanted:
            others.setdefault(trial.setting, []).append(trial)
    for setting, mine in others.items():
        # A setting that climbed rungs is judged by the last one it reached.
        last = max(trial.epochs for trial in mine)
        made.append(_method(setting, False, [t for t in mine if t.epochs == last], trials))
    return made


def _method(
    setting: Setting, candidate: bool, wanted: list[Trial], trials: dict[Trial, Scored]
) -> Method:
    found = [trials[trial] for trial in wanted if trial in trials]
    failed = sum(bool(one.error) for one in found)
    return Method(
        setting,
        candidate,
        len(wanted),
        len(found) - failed,
        failed,
        by_subject(found, "validation"),
        by_subject(found, "test"),
        by_subject(found, "adapted"),
    )


def _closely(
    ledger: Ledger, focus: Method | None, planned: set[Trial]
) -> tuple[npt.NDArray[np.int64] | None, tuple[dict[str, Any], ...]]:
    """Read confusion matrix and curves of one method."""
    confusion: npt.NDArray[np.int64] | None = None
    curves = []
    for stage in TRIALS if focus is not None else ():
        assert focus is not None
        for entry in ledger.each(stage, curves=True):
            if entry.state != "done" or entry.definition["setting"] != focus.setting.to_json():
                continue
            if focus.candidate and Trial.from_json(entry.definition) not in planned:
                continue
            curves.append(entry.curves | {"best_epoch": entry.result["best_epoch"]})
            counts = entry.result["test"].get("confusion")  # older runs have none
            if counts is not None:
                added = np.array(counts, np.int64)
                confusion = added if confusion is None else confusion + added
    return confusion, tuple(curves)


def _portrait(entry: Entry) -> Portrait:
    setting = Setting.from_json(entry.definition["setting"])
    placebo = bool(entry.definition.get("placebo"))
    if entry.state != "done":
        return Portrait(setting, placebo, {}, {}, entry.error or "failed")
    return Portrait(setting, placebo, entry.result["leakage"], entry.result["map"])
