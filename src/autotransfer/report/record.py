"""Everything a report shows, in plain tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.report.filters import Filters
from autotransfer.search.ledger import Entry
from autotransfer.search.levels.cases import N_LABELS
from autotransfer.search.levels.worth import Levels
from autotransfer.search.results import first_name
from autotransfer.search.settings.selection import RULES, Rule
from autotransfer.search.settings.setting import BASELINE, Setting
from autotransfer.search.status import OF_TRIALS, RunStatus


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
    place : str
        Path of the folder: from the working directory where it is in it, or else a whole one.
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
        Of `focus`, summed over test subjects and seeds: rows are true classes. Of the answer of a
        hands-off run, where its predictions are on record.
    confusions : dict of str to ndarray
        The same of each person; empty where predictions are not on record.
    calibration : tuple of two ndarray, or None
        How sure the answer was, and how often it was right, in parts of the trials
        (`autotransfer.search.procedures.held_out`).
    filters : Filters or None
        Of the model, if it is an EEGNet.
    filters_error : str
        Why they could not be read, or "".
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
    place: str
    definition: dict[str, Any]
    about: dict[str, Any]
    status: RunStatus
    results: dict[str, Any] | None
    methods: tuple[Method, ...] = ()
    nested: dict[str, float] = field(default_factory=dict)
    focus: Method | None = None
    confusion: npt.NDArray[np.int64] | None = None
    confusions: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    calibration: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None = None
    filters: Filters | None = None
    filters_error: str = ""
    curves: tuple[dict[str, Any], ...] = ()
    portraits: tuple[Portrait, ...] = ()
    failures: tuple[Entry, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    levels: Levels = field(default_factory=Levels)
    uncensored_levels: Levels = field(default_factory=Levels)

    @property
    def title(self) -> str:
        """What the report is called: the file of the recordings, if it is known, or the folder."""
        return str(self.about.get("source") or self.name)

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
    def first_name(self) -> str:
        """What the recipe that a hands-off run began with is called."""
        return first_name((self.results or {}).get("instead"))

    @property
    def baseline(self) -> Method | None:
        """What the choice is compared with.

        The uncensored one, with the batches of what was chosen. In a hands-off run the first
        answer, which is by `first_name`.
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
