"""Read the folder of a run into the tables of its report.

The ledger is opened for reading only, so that a run that goes on is not disturbed; the data
themselves are not needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.documents import misfit, read_object
from autotransfer.errors import AutoTransferError, LedgerError, SourceError
from autotransfer.report.filters import filters_of
from autotransfer.report.record import Method, Portrait, Record
from autotransfer.search.driver import scores_of
from autotransfer.search.ledger import Entry, Ledger
from autotransfer.search.ledger.run_ledger import OPTIONS, SETTING
from autotransfer.search.levels.cases import Case
from autotransfer.search.levels.worth import Levels
from autotransfer.search.run_folder import RunFolder
from autotransfer.search.settings.selection import RULES, TrialScores, by_subject
from autotransfer.search.settings.setting import Setting
from autotransfer.search.settings.trial import Trial
from autotransfer.search.status import (
    AGAIN,
    OF_TRIALS,
    crossval_trials,
    open_run,
    procedure_of,
    status_of,
)

# What run.json and results.json must hold for a report.
_RUN = {
    "definition": {
        **dict.fromkeys(("keep", "n_folds", "n_seeds", "search_folds", "max_epochs", "seed"), int),
        **{"data": str, "strategy": str, "prune": bool, "n_settings": (int, None)},
        "budget": (slice(0, 1e12), None),
        "space": {"modes": [str], "measures": {str: {"strengths": list, "options": list}}},
        "recipes": ({str: [OPTIONS]}, ...),
        **{"new_person": (str, ...), "n_labels": (int, ...)},
    },
    "about": {
        **dict.fromkeys(("begun", "autotransfer", "torch", "numpy", "python"), str),
        **{"classifier": dict, "shape": [int], "classes": [str, ...], "subjects": [str]},
        "subject_names": {str: str},
        **{"command": (str, None, ...), "source": (str, None, ...)},
        "asked": (
            {
                **{"own_recipes": bool, "fixed": [str], "signal": (str, None)},
                **{"n_folds": (int, None), "max_epochs": (int, None)},
            },
            ...,
        ),
    },
}
_PLAN = ("keep", "n_folds", "n_seeds")
_RESULTS = {
    "rule": {"name": str, "is": str, "for_study_only": bool},
    "chosen": {"setting": SETTING},
    "nested_subjects": {str: slice(0, 1)},
    "plan": {"search_folds": (int, ...), "rungs": [int, ...], **dict.fromkeys(_PLAN, int)},
    "people_in_a_fold": {side: [int] for side in ("train", "validation", "test")},
    **{"still_falling": int, "trainings": int},
}
_AUTO_RESULTS = _RESULTS | {
    "nested_error": (slice(0, 1), None, ...),
    "mixed_level": (slice(0, 1), ...),
    "longer_tried": (bool, ...),
    "first": {"setting": SETTING},
    "members": [{"setting": SETTING, "seed": int}, ...],
    "together_subjects": {str: slice(0, 1)},
    **{"not_tried": [str], "trials": int},
    "reference": ({"mean": (slice(0, 1), None), "lower_quartile": (slice(0, 1), None)}, ...),
    **{"new_person": (str, ...), "n_labels": (int, ...)},
    "instead": ({str: (str, int, float, None)}, ...),
    "held_out": (
        {
            "confusion": {str: [[int]]},
            **{"confidence": [slice(0, 1)], "accuracy": [slice(0, 1)]},
        },
        None,
        ...,
    ),
}
_ANEW = "Delete it and make the same run again: nothing is trained twice, and it is written anew."


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
    wrong = misfit(run, _RUN) or ("" if len(run["about"]["shape"]) == 3 else "its shape")
    with ledger:
        _require(wrong, RunFolder(folder).run, AGAIN)
        procedure = procedure_of(run)
        auto = procedure == "auto"
        status = status_of(folder, procedure, ledger)
        there = RunFolder(folder).results.exists() if auto else status.complete
        results = _results(folder, _AUTO_RESULTS if auto else _RESULTS) if there else None
        # One by one: a hundred thousand entries are not kept, only their scores.
        trials: dict[Trial, TrialScores] = {}
        portraits, failures, seconds = [], [], 0.0
        scored: list[Entry] = []
        stages = (*OF_TRIALS[procedure], "refit", *(["levels"] if auto else []), "portrait")
        counts = dict.fromkeys(stages, 0)
        for stage in stages:
            for entry in ledger.each(stage):
                counts[stage] += 1
                seconds += entry.result.get("seconds", 0.0)
                if entry.state == "failed":
                    failures.append(entry)
                if stage in OF_TRIALS[procedure]:
                    trials[entry.trial] = scores_of(entry)
                elif stage == "portrait":
                    portraits.append(_portrait(entry))
                elif stage == "levels" and entry.state == "done":
                    scored.append(entry)
        planned = _on_all_groups(trials, ledger) if auto else crossval_trials(ledger)
        methods = _methods(trials, planned)
        if auto and results is not None:
            methods = _with_answer(methods, results)
        names = _unique_names(run["about"]["subject_names"])
        methods = [_with_names(method, names) for method in methods]
        record = Record(
            folder.resolve().name,
            place_of(folder),
            run["definition"],
            run["about"],
            status,
            results,
            tuple(methods),
            nested=_renamed({} if results is None else results["nested_subjects"], names),
            portraits=tuple(_portrait_names(portrait, names) for portrait in portraits),
            failures=tuple(failures),
            counts=counts,
            seconds=seconds,
            levels=_levels(scored, results, names),
            uncensored_levels=_levels(scored, results, names, censored=False),
        )
        lost = record.chosen is None or (auto and record.baseline is None)
        if results is not None and lost:
            _require("what it chose was not a candidate", RunFolder(folder).results, _ANEW)
        focus = record.chosen or record.baseline
        confusion, curves = _confusion_and_curves(
            ledger, OF_TRIALS[procedure], focus, set(planned or ()), record.n_classes
        )
    record = replace(record, focus=focus, confusion=confusion, curves=curves)
    return replace(_with_held_out(record, names, folder), **_filters(folder))


def place_of(folder: Path) -> str:
    """Write a path so that a command with it can be pasted where this program runs."""
    whole, here = folder.resolve(), Path.cwd()
    return str(whole.relative_to(here) if whole.is_relative_to(here) else whole)


def _require(wrong: str, path: Path, advice: str) -> None:
    if wrong:
        raise SourceError(f"{path} is not as a run writes it ({wrong}). {advice}")


def _results(folder: Path, form: dict[str, Any]) -> dict[str, Any]:
    path = RunFolder(folder).results
    results = read_object(path, SourceError, _ANEW)
    wrong = misfit(results, form)
    if not wrong and results["rule"]["name"] not in RULES:
        wrong = f"there is no rule {results['rule']['name']!r:.40}"
    if not wrong and not results.get("together_subjects", True):
        wrong = "together_subjects should not be empty"
    _require(wrong, path, _ANEW)
    return results


def _methods(trials: dict[Trial, TrialScores], planned: list[Trial] | None) -> list[Method]:
    """Put the trials of each setting together."""
    # What is cross-validated is judged by those trials only, wherever they are on record.
    crossval: dict[Setting, list[Trial]] = {}
    for trial in planned or ():
        crossval.setdefault(trial.setting, []).append(trial)
    methods = [_method(setting, True, plan, trials) for setting, plan in crossval.items()]
    search: dict[Setting, list[Trial]] = {}
    for trial in trials:
        if trial.setting not in crossval:
            search.setdefault(trial.setting, []).append(trial)
    for setting, plan in search.items():
        # A setting that climbed rungs is judged by the last one it reached.
        last = max(trial.epochs for trial in plan)
        methods.append(_method(setting, False, [t for t in plan if t.epochs == last], trials))
    return methods


def _on_all_groups(trials: dict[Trial, TrialScores], ledger: Ledger) -> list[Trial]:
    """Trials of a hands-off run whose setting and seed were tried on every group of people."""
    plan = ledger.plan("auto")
    groups: dict[tuple[Setting, int], list[Trial]] = {}
    for trial, score in trials.items():
        if not score.error:
            groups.setdefault((trial.setting, trial.seed), []).append(trial)
    n = None if plan is None else plan["n_folds"]
    whole = {key: mine for key, mine in groups.items() if len({t.fold for t in mine}) == n}
    # Further seeds are of no use without the first one, by which settings are compared.
    return [t for (setting, _), mine in whole.items() if (setting, 0) in whole for t in mine]


def _with_answer(methods: list[Method], results: dict[str, Any]) -> list[Method]:
    """Put the answer of a hands-off run in front, with its scores, which may be an ensemble's."""
    setting = Setting.from_json(results["chosen"]["setting"])
    own = next((m for m in methods if m.candidate and m.setting == setting), None)
    if own is None:
        return methods
    scores, n = dict(results["together_subjects"]), len(results["members"])
    answer = replace(own, validation=scores, test=scores, networks=n)
    # The networks by themselves stay in the list beside their mean.
    return [answer if m is own else m for m in methods] if n == 1 else [answer, *methods]


def _unique_names(names: dict[str, str]) -> dict[str, str]:
    """Names of subjects by id; the id stands beside a name that several have."""
    often = Counter(names.values())
    return {key: name if often[name] == 1 else f"{name} ({key})" for key, name in names.items()}


def _levels(
    entries: list[Entry],
    results: dict[str, Any] | None,
    names: dict[str, str],
    censored: bool = True,
) -> Levels:
    """Put together the levels of the network that the results are of, or without its censor."""
    if results is None or not entries:
        return Levels()
    first, n_groups = results["members"][0], results["plan"]["n_folds"]
    setting = Setting.from_json(first["setting"])
    if not censored and setting.baseline == setting:
        return Levels()
    wanted = setting if censored else setting.baseline, first["seed"]
    mine = [e.result for e in entries if (e.trial.setting, e.trial.seed) == wanted]
    levels = Levels.of(mine, n_groups)
    if Case("nothing") not in levels.scores:
        return Levels()
    scores = {case: _renamed(one, names) for case, one in levels.scores.items()}
    seen = {
        cut: {names.get(p, p): some for p, some in people.items()}
        for cut, people in levels.seen.items()
    }
    return Levels(scores, seen)


def _renamed(scores: dict[str, float], names: dict[str, str]) -> dict[str, float]:
    return {names.get(person, person): value for person, value in scores.items()}


def _with_names(method: Method, names: dict[str, str]) -> Method:
    return replace(
        method,
        validation=_renamed(method.validation, names),
        test=_renamed(method.test, names),
        adapted=_renamed(method.adapted, names),
    )


def _portrait_names(portrait: Portrait, names: dict[str, str]) -> Portrait:
    people = [names.get(person, person) for person in portrait.points.get("subject", ())]
    points = {**portrait.points, "subject": people} if portrait.points else {}
    return replace(portrait, points=points)


def _method(
    setting: Setting, candidate: bool, plan: list[Trial], trials: dict[Trial, TrialScores]
) -> Method:
    scores = [trials[trial] for trial in plan if trial in trials]
    failed = sum(bool(score.error) for score in scores)
    return Method(
        setting,
        candidate,
        len(plan),
        len(scores) - failed,
        failed,
        by_subject(scores, "validation"),
        by_subject(scores, "test"),
        by_subject(scores, "adapted"),
    )


def _confusion_and_curves(
    ledger: Ledger,
    stages: Sequence[str],
    focus: Method | None,
    planned: set[Trial],
    n_classes: int,
) -> tuple[npt.NDArray[np.int64] | None, tuple[dict[str, Any], ...]]:
    """Read confusion matrix and curves of one method."""
    if focus is None:
        return None, ()
    confusion: npt.NDArray[np.int64] | None = None
    curves = []
    for stage in stages:
        for entry in ledger.each(stage, curves=True):
            if entry.state != "done" or entry.trial.setting != focus.setting:
                continue
            if focus.candidate and entry.trial not in planned:
                continue
            rows, best = entry.result["test"].get("confusion", []), entry.result["best_epoch"]
            lengths = {len(rows), *map(len, rows)}
            if lengths != {n_classes} or not all(0 < best <= len(c) for c in entry.curves.values()):
                raise LedgerError(
                    f"The result of trial {entry.id} of {stage} in {ledger.where} does not fit "
                    f"together. {AGAIN}"
                )
            curves.append(entry.curves | {"best_epoch": best})
            counts = np.array(rows, np.int64)
            confusion = counts if confusion is None else confusion + counts
    return confusion, tuple(curves)


def _with_held_out(record: Record, names: dict[str, str], folder: Path) -> Record:
    """Add how the answer predicted each person, if that is on record."""
    held_out = (record.results or {}).get("held_out")
    if held_out is None:
        return record
    n = record.n_classes
    sizes = {len(row) for rows in held_out["confusion"].values() for row in (rows, *rows)}
    parts = len(held_out["confidence"])
    least = min(
        (c for rows in held_out["confusion"].values() for row in rows for c in row), default=0
    )
    wrong = sizes != {n} or least < 0 or not parts or len(held_out["accuracy"]) != parts
    _require("held_out does not fit together" if wrong else "", RunFolder(folder).results, _ANEW)
    counts = {who: np.array(rows, np.int64) for who, rows in held_out["confusion"].items()}
    confidence, accuracy = (np.array(held_out[k], np.float64) for k in ("confidence", "accuracy"))
    return replace(
        record,
        confusion=np.sum(list(counts.values()), axis=0),
        confusions={names.get(who, who): rows for who, rows in counts.items()},
        calibration=(confidence, accuracy),
    )


def _filters(folder: Path) -> dict[str, Any]:
    """Read the filters of the model; a report does not fail by a model that cannot be read."""
    model = RunFolder(folder).model
    if not model.is_dir():
        return {}
    try:
        return {"filters": filters_of(model)}
    except AutoTransferError as error:
        return {"filters_error": str(error)}


def _portrait(entry: Entry) -> Portrait:
    setting = entry.trial.setting
    placebo = bool(entry.definition["placebo"])
    if entry.state != "done":
        return Portrait(setting, placebo, {}, {}, entry.error or "failed")
    return Portrait(setting, placebo, entry.result["leakage"], entry.result["map"])
