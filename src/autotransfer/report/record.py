"""Everything a report shows, read from the folder of a run into plain tables.

The ledger is opened for reading only, so that a run that goes on is not disturbed; the data
themselves are not needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.documents import misfit, read_object
from autotransfer.errors import LedgerError, SourceError
from autotransfer.search.driver import scores_of
from autotransfer.search.ledger import Entry, Ledger
from autotransfer.search.ledger.run_ledger import OPTIONS, SETTING
from autotransfer.search.levels.cases import N_LABELS, Case
from autotransfer.search.levels.worth import Levels
from autotransfer.search.run_folder import RunFolder
from autotransfer.search.settings.selection import RULES, Rule, TrialScores, by_subject
from autotransfer.search.settings.setting import BASELINE, Setting
from autotransfer.search.settings.trial import Trial
from autotransfer.search.status import (
    AGAIN,
    OF_TRIALS,
    RunStatus,
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
    "first": {"setting": SETTING},
    "members": [{"setting": SETTING, "seed": int}, ...],
    "together_subjects": {str: slice(0, 1)},
    **{"not_tried": [str], "trials": int},
    "reference": ({"mean": (slice(0, 1), None), "lower_quartile": (slice(0, 1), None)}, ...),
    **{"new_person": (str, ...), "n_labels": (int, ...)},
    "instead": ({str: (str, int, float, None)}, ...),
}
_ANEW = "Delete it and make the same run again: nothing is trained twice, and it is written anew."


@dataclass(frozen=True)
class Method:
    """What is on record of a setting.

    Parameters
    ----------
    setting : Setting
        What was tried.
    candidate : bool
        Whether it is cross-validated (in a hands-off run: was tried on all groups of people), or
        was tried in the search (on some groups) only.
    planned, done, failed : int
        Trials.
    validation, test : dict of str to float
        Balanced accuracy of each person, the mean over seeds.
    adapted : dict of str to float
        The same of test people, by models adapted to them without labels; may be empty.
    networks : int
        Of how many networks the mean is scored; their settings are the setting's or close to it.
    """

    setting: Setting
    candidate: bool
    planned: int
    done: int
    failed: int
    validation: dict[str, float]
    test: dict[str, float]
    adapted: dict[str, float] = field(default_factory=dict)
    networks: int = 1

    @property
    def name(self) -> str:
        """How it is called."""
        several = f"mean of {self.networks} networks: " if self.networks > 1 else ""
        return f"{several}{self.setting}"

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
        What ``results.json`` holds; None unless the run is complete, or a hands-off run that has an
        answer.
    methods : tuple of Method
        Every setting tried, the cross-validated ones first, each part in the order of its plan.
    nested : dict of str to float
        Test score of each person under the choice made without that person's score.
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
    levels : Levels
        What recordings and labels of a new person were worth to people held out.
    uncensored_levels : Levels
        The same without the censor of the answer, if it has one.
    """

    name: str
    definition: dict[str, Any]
    about: dict[str, Any]
    status: RunStatus
    results: dict[str, Any] | None
    methods: tuple[Method, ...] = ()
    nested: dict[str, float] = field(default_factory=dict)
    focus: Method | None = None
    confusion: npt.NDArray[np.int64] | None = None
    curves: tuple[dict[str, Any], ...] = ()
    portraits: tuple[Portrait, ...] = ()
    failures: tuple[Entry, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    levels: Levels = field(default_factory=Levels)
    uncensored_levels: Levels = field(default_factory=Levels)

    @property
    def n_labels(self) -> int:
        """Labelled trials of each class that are told of first."""
        return int(self.definition.get("n_labels", N_LABELS))

    @property
    def complete(self) -> bool:
        """Whether there is a result: nothing is claimed from part of one."""
        return self.results is not None

    @property
    def auto(self) -> bool:
        """Whether it is a hands-off run, which searches recipes too."""
        return "recipes" in self.definition

    @property
    def best_so_far(self) -> bool:
        """Whether there is a result that is not the last one: the run is not at its end."""
        return self.results is not None and not self.status.complete

    @property
    def n_trials(self) -> int:
        """Trials on record; not the sum over stages of the status, some of which share trials."""
        return sum(self.counts[stage] for stage in OF_TRIALS["auto" if self.auto else "paper"])

    @property
    def rule(self) -> Rule | None:
        """The rule by which the choice was made; None while there is none."""
        return None if self.results is None else RULES[self.results["rule"]["name"]]

    @property
    def classifier(self) -> dict[str, Any]:
        """Options of the classifier that somebody set."""
        return dict(self.about["classifier"])

    @property
    def for_study_only(self) -> bool:
        """Whether the choice was made by test scores."""
        return self.results is not None and bool(self.results["rule"]["for_study_only"])

    @property
    def candidates(self) -> list[Method]:
        """What is cross-validated; in a hands-off run, what was tried on all groups of people."""
        return [method for method in self.methods if method.candidate]

    @property
    def baseline(self) -> Method | None:
        """What the choice is compared with.

        The uncensored one, with the batches of what was chosen. In a hands-off run the first
        answer, which is the default recipe.
        """
        if self.auto:
            methods = [m for m in self.methods if m.networks == 1]
            if self.results is None:
                return methods[0] if methods else None
            first = Setting.from_json(self.results["first"]["setting"])
            return next((m for m in methods if m.candidate and m.setting == first), None)
        wanted = BASELINE if self.results is None else self._chosen_setting.baseline
        return next((m for m in self.methods if m.setting == wanted), None)

    @property
    def chosen(self) -> Method | None:
        """The chosen one; None while there is no result."""
        if self.results is None:
            return None
        return next((m for m in self.candidates if m.setting == self._chosen_setting), None)

    @property
    def _chosen_setting(self) -> Setting:
        assert self.results is not None
        return Setting.from_json(self.results["chosen"]["setting"])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.about["classes"])

    @property
    def baseline_portrait(self) -> Portrait | None:
        """The portrait of the uncensored network with the recipe of the choice, if there is one."""
        one = self.chosen or self.baseline
        return None if one is None else self.portrait(one.setting.baseline)

    def portrait(self, setting: Setting, placebo: bool = False) -> Portrait | None:
        """Find the portrait of a method; the last one if there are several."""
        portraits = [p for p in self.portraits if (p.setting, p.placebo) == (setting, placebo)]
        return portraits[-1] if portraits else None


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
    return replace(record, focus=focus, confusion=confusion, curves=curves)


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


def _portrait(entry: Entry) -> Portrait:
    setting = entry.trial.setting
    placebo = bool(entry.definition["placebo"])
    if entry.state != "done":
        return Portrait(setting, placebo, {}, {}, entry.error or "failed")
    return Portrait(setting, placebo, entry.result["leakage"], entry.result["map"])
