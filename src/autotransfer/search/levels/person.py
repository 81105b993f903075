"""A model and somebody's trials: scores at every level, and what their recordings teach a guard."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from autotransfer.adaptation.guard import WHOLE, Seen
from autotransfer.adaptation.information import LEAST_TRIALS
from autotransfer.adaptation.registry import AUTO, FEW, LEAST_FEW, without_information
from autotransfer.data.problem import Problem
from autotransfer.data.trials import Array, Index, TrialArray
from autotransfer.errors import AdaptationWarning
from autotransfer.search.levels.cases import (
    HALF,
    N_LABELS,
    ONE,
    OTHER,
    RECORDING,
    SAME,
    Case,
    cut_in_two,
    few_labels,
    mean_recall,
)
from autotransfer.training.estimator import SignalModel

MOST_CUTS = 6
"""Recordings of few classes that are tried of a person, of either kind."""

TEACHING, TRIED = 4, 2
"""People of a group with whom what takes time is tried, and with how many recordings of a kind."""


@dataclass(frozen=True)
class Known:
    """A model and a person's trials: some to adapt to, in random order, and others to predict.

    Parameters
    ----------
    model : CensoredClassifier or Ensemble
        Trained on others.
    X : TrialArray of shape (n_trials, C, T)
        The person's trials.
    codes : array of int of shape (n_trials,)
        Class numbers. Below level labels they only judge, and say which trials go to which half.
    given, other : arrays of int
        Numbers of trials.
    made : dict
        Models that were adapted without labels, each made once.
    """

    model: SignalModel
    X: TrialArray
    codes: Index
    given: Index
    other: Index
    made: dict[tuple[str, int | None], SignalModel] = field(default_factory=dict)

    @classmethod
    def of(
        cls, model: SignalModel, X: TrialArray, codes: Index, unit: Array, seed: int = 0
    ) -> Known:
        """Cut a person's trials into halves.

        Parameters
        ----------
        model, X, codes
            As they are kept.
        unit : array of shape (n_trials,)
            What must not be torn apart, such as the recording of each trial.
        seed : int
            Decides which trials to adapt to are taken first.
        """
        return cls(model, X, codes, *cut_in_two(codes, unit, seed))

    def score(self, case: Case) -> float | None:
        """Balanced accuracy in a case; None where there are too few trials for it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AdaptationWarning)  # of hundreds of recordings
            if case.level == "stream":
                return self._stream(case.method)
            tested = self.other if case.tested == OTHER else np.arange(len(self.codes))
            model = self._adapted(case)
        if model is None or not len(tested):
            return None
        return mean_recall(self.codes[tested], model.predict_codes(self.X.take(tested)))

    def probabilities(self, level: str, n_labels: int = N_LABELS) -> Array:
        """Estimate class probabilities (n_trials, n_classes) of everything, at a level.

        Each half is predicted with what there is of the other one; a stream goes through all trials
        in random order, and predicts each before it uses it.

        Parameters
        ----------
        level : {"nothing", "recording", "stream", "labels"}
            What is known of the person.
        n_labels : int
            At level labels: trials of each class that have one, or as many as there are.
        """
        everything: Array = self.model.probabilities(self.X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AdaptationWarning)
            if level == "stream":
                order = np.random.default_rng(len(self.other)).permutation(len(self.codes))
                everything[order] = self.model.live().predict_proba(self.X.take(order))
            elif level != "nothing" and len(self.given) and len(self.other):
                for some, tested in ((self.given, self.other), (self.other, self.given)):
                    model = self._by_half(some, n_labels if level == "labels" else 0)
                    everything[tested] = model.probabilities(self.X.take(tested))
        return everything

    def _by_half(self, some: Index, n_labels: int) -> SignalModel:
        if not n_labels:
            return self.model.adapt(self.X.take(some))
        few, rest = few_labels(self.codes, some, n_labels)
        labels = self.model.classes_[self.codes[few]]
        unlabelled = self.X.take(rest) if len(rest) else None
        return self.model.adapt(self.X.take(few), labels, unlabelled=unlabelled)

    def _adapted(self, case: Case) -> SignalModel | None:
        if case.level == "nothing":
            return self.model
        if case.level == "labels":
            return self._labelled(case)
        if case.tested == SAME:
            if _too_few(case, len(self.codes)):
                return None
            return self.model.adapt(self.X, method=case.method)
        if not len(self.given) or (case.amount or 0) > len(self.given):
            return None
        n = len(self.given) if case.amount is None else case.amount
        if _too_few(case, n):
            return None
        return self._recorded(case.method, case.amount)

    def _recorded(self, method: str, amount: int | None) -> SignalModel:
        """Adapt to trials of the given half, without labels; each case once."""
        if (method, amount) not in self.made:
            few = self.X.take(self.given[:amount])
            self.made[method, amount] = self.model.adapt(few, method=method)
        return self.made[method, amount]

    def _labelled(self, case: Case) -> SignalModel | None:
        assert case.amount is not None
        few, _ = few_labels(self.codes, self.given, case.amount)
        if len(few) < case.amount * len(np.unique(self.codes)):
            return None
        if _too_few(case, len(self.given)):
            return None
        labels = self.model.classes_[self.codes[few]]
        if case.method == AUTO:
            return self._by_half(self.given, case.amount)
        # What is done without labels is the same whatever trials have labels.
        before, _, last = case.method.rpartition("+")
        model = self._recorded(before, None) if before else self.model
        return model.adapt(self.X.take(few), labels, method=last)

    def _stream(self, method: str) -> float | None:
        """Score the other half, which comes after the given one, trial by trial."""
        if not len(self.given) or not len(self.other):
            return None
        live = self.model.live(method=method)
        live.predict_proba(self.X.take(self.given))
        rest = np.random.default_rng(len(self.other)).permutation(self.other)
        predicted = live.predict_proba(self.X.take(rest)).argmax(1)
        return mean_recall(self.codes[rest], predicted)

    def seen(
        self, method: str, seed: int = 0, most: int = MOST_CUTS, tried: int = 0
    ) -> dict[str, list[Seen]]:
        """Adapt to recordings of all classes, of half of them and of one: what is gained by it.

        The recording of all classes is the given half, and the other one is scored; of few classes
        all trials are adapted to and scored.

        Parameters
        ----------
        method : str
            Of adaptation, without labels.
        seed : int
            Decides which classes are left.
        most : int
            Recordings of few classes, of either kind.
        tried : int
            Recordings of each kind of few classes that are adapted to by all that `adapt` would do,
            whatever the method; with them, and the whole one, certainty is tried, too.
        """
        rng = np.random.default_rng(seed)
        classes = rng.permutation(np.unique(self.codes))
        half = len(classes) // 2
        cuts = {ONE: [classes[[i]] for i in range(min(len(classes), most))]}
        if half > 1:
            turns = [np.roll(classes, turn) for turn in range(min(len(classes), most))]
            cuts[HALF] = [turn[:half] for turn in turns]
        found = {}
        if len(self.given) and len(self.other):
            found[WHOLE] = [self._gain(self.given, self.other, method, tried > 0)]
        for name, some in cuts.items():
            trials = [np.flatnonzero(np.isin(self.codes, kept)) for kept in some]
            found[name] = [
                self._gain(mine, mine, RECORDING[0] if number < tried else method, number < tried)
                for number, mine in enumerate(trials)
            ]
        return found

    def _gain(self, some: Index, tested: Index, method: str, otherwise: bool) -> Seen:
        """Adapt to some trials, and compare predictions of others."""
        X = self.X.take(some)
        if len(some) < LEAST_TRIALS:
            method = without_information(method)
        models = [self.model, self.model.adapt(X, method=method)]
        if otherwise:
            models.append(self.model.adapt(X, method=FEW) if len(some) >= LEAST_FEW else self.model)
        scores = [
            mean_recall(self.codes[tested], one.predict_codes(self.X.take(tested)))
            for one in models
        ]
        gains = [score - scores[0] for score in scores[1:]]
        return Seen.of(torch.from_numpy(self.model.probabilities(X)), *gains)


def _too_few(case: Case, n_trials: int) -> bool:
    """Whether "auto" would not do it with so many trials."""
    if case.method == FEW:
        return n_trials < LEAST_FEW
    return "information" in case.method and n_trials < LEAST_TRIALS


def people_held_out(
    problem: Problem, held_out: Index, model: SignalModel, seed: int = 0
) -> dict[str, Known]:
    """Find what there is of each person of some trials.

    Parameters
    ----------
    problem : Problem
        The data.
    held_out : array of int
        Numbers of trials that the model was not trained on.
    model, seed
        As for `Known.of`.
    """
    people = {}
    for person in np.unique(problem.subject[held_out]):
        mine = held_out[problem.subject[held_out] == person]
        unit = mine if problem.recording is None else problem.recording[mine]
        people[str(person)] = Known.of(model, problem.X.take(mine), problem.codes[mine], unit, seed)
    return people


def score_cases(
    people: Mapping[str, Known], cases: Iterable[Case], seconds: float | None = None
) -> list[dict[str, Any]]:
    """Score people in several cases, one case after the other.

    Parameters
    ----------
    people : mapping of str to Known
        What there is of each person.
    cases : iterable of Case
        What to score.
    seconds : float, optional
        Time for it: the first case that it is too short for, and all after it, are left out.

    Returns
    -------
    list of dict
        What JSON can hold: each case, and ``subjects``, the balanced accuracy of each person who
        has enough trials for it.
    """
    began = time.perf_counter()
    found: list[dict[str, Any]] = []
    for case in cases:
        scores: dict[str, float | None] = {}
        for person, known in people.items():
            if seconds is not None and time.perf_counter() - began > seconds:
                return found
            scores[person] = known.score(case)
        there = {person: score for person, score in scores.items() if score is not None}
        found.append(case.to_json() | {"subjects": there})
    return found


def seen_of(people: Mapping[str, Known], seed: int, seconds: float | None = None) -> dict[str, Any]:
    """Say what everybody's recordings teach a guard: cut -> person -> what each `Seen` holds.

    Parameters
    ----------
    people : mapping of str to Known
        What there is of each person.
    seed : int
        Decides which classes are left.
    seconds : float, optional
        Time for it: after that certainty is tried with nobody else.
    """
    began = time.perf_counter()
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for number, (person, known) in enumerate(people.items()):
        late = seconds is not None and time.perf_counter() - began > seconds
        # By statistics alone: they do most of the harm, and take no time. With few people also what
        # does: bounds learned without it cost recordings of half of the classes 0.013 on Myo disco,
        # those learned with it gained 0.006 there (three seeds).
        tried = TRIED if number < TEACHING and not late else 0
        for cut, seen in known.seen("statistics", seed, tried=tried).items():
            found.setdefault(cut, {})[person] = [dict(vars(one)) for one in seen]
    return found
