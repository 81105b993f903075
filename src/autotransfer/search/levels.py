"""Somebody held out, treated as new at every level: nothing, a recording, a stream, labels.

A person's trials are cut into two halves, whole recordings on either side; what a model learns of
the person is in the first, and the second is predicted ("later"). Only for "same" are the trials
predicted that the model was adapted to.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch

from autotransfer.adaptation.guard import WHOLE, Guard, Lessons, Seen
from autotransfer.adaptation.information import LEAST_TRIALS
from autotransfer.adaptation.registry import AUTO, FEW, LEAST_FEW, NONE, Policy
from autotransfer.data.problem import Problem
from autotransfer.data.trials import Array, Index, TrialArray
from autotransfer.errors import AdaptationWarning
from autotransfer.search.settings.comparison import out_of_bag
from autotransfer.training.estimator import SignalModel

LATER, SAME = "later", "same"
AMOUNTS = (4, 8, 16, 32, 64)
"""Unlabelled trials of the new person."""

LABELS = (1, 2, 5, 10)
"""Labelled trials of each class."""

N_LABELS = 5
"""Those of which the methods are compared, and that a report tells."""

HALF, ONE = "half", "one"
"""Classes of a recording that the guard is judged by, beside all of them."""

MOST_CUTS = 6
"""Recordings of few classes that are tried of a person, of either kind."""

RECORDING = ("statistics+information", "statistics")
TEACHING, TRIED = 4, 2
"""People of a group with whom certainty is tried, and with how many recordings of a kind."""

WITH_LABELS = ("statistics+head", "statistics+information+head", "statistics+firm", "head")
"""Ways among which people held out choose, the one that is taken without them first."""

Scores = dict[str, float]


@dataclass(frozen=True)
class Case:
    """What is known of somebody new, and what is made of it.

    Parameters
    ----------
    level : {"nothing", "recording", "stream", "labels"}
        See `autotransfer.adaptation.LEVELS`.
    amount : int, optional
        Unlabelled trials, or at level labels labelled trials of each class; None is all there are.
    method : str
        Of adaptation; "" where nothing is adapted.
    tested : {"later", "same"}
        Which trials are predicted.
    """

    level: str
    amount: int | None = None
    method: str = ""
    tested: str = LATER

    def to_json(self) -> dict[str, Any]:
        """Give what JSON can hold."""
        return dict(vars(self))

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Read what `to_json` gave."""
        return cls(*(given[name] for name in ("level", "amount", "method", "tested")))


def standard_cases(
    n_labels: int = N_LABELS, statistics: bool = True, ring: bool = False
) -> list[Case]:
    """List what a run scores, what matters most first.

    Parameters
    ----------
    n_labels : int
        Labelled trials of each class, of which the methods are compared.
    statistics : bool
        Whether the network has any that can be adapted; without, only its head is.
    ring : bool
        Whether electrodes go around an arm, and may sit turned.
    """
    labels = [n for n in LABELS if n != n_labels]
    if not statistics:
        return [Case("nothing"), *(Case("labels", n, "head") for n in (n_labels, *labels))]
    turned = [f"ring+{way}" for way in RECORDING if ring]
    with_labels = [*WITH_LABELS, *(f"{way}+head" for way in turned)]
    return [
        Case("nothing"),
        *(Case("recording", None, way) for way in (*RECORDING, *turned)),
        *(Case("labels", n_labels, way) for way in with_labels),
        Case("recording", None, FEW),
        Case("stream"),
        *(Case("recording", amount, AUTO) for amount in AMOUNTS),
        *(Case("labels", amount, WITH_LABELS[0]) for amount in labels),
        Case("nothing", tested=SAME),
        Case("recording", None, RECORDING[0], SAME),
    ]


def halves(codes: Index, unit: Array) -> tuple[Index, Index]:
    """Cut a person's trials into two halves with all classes in both, units staying whole.

    Of each class, every other unit goes to the second half, in the order of the trials.

    Parameters
    ----------
    codes : array of int of shape (n_trials,)
        Class numbers.
    unit : array of shape (n_trials,)
        What must not be torn apart, such as the recording of each trial.

    Returns
    -------
    first, later : arrays of int
        Numbers of trials.

    Examples
    --------
    >>> first, later = halves(np.array([0, 0, 1, 1, 0, 1]), np.array([7, 7, 8, 8, 9, 6]))
    >>> first.tolist(), later.tolist()
    ([0, 1, 2, 3], [4, 5])
    """
    seen: dict[Any, bool] = {}
    counts: dict[int, int] = {}
    for code, name in zip(codes.tolist(), unit.tolist(), strict=True):
        if name not in seen:
            seen[name] = counts.get(code, 0) % 2 == 1
            counts[code] = counts.get(code, 0) + 1
    second = np.array([seen[name] for name in unit.tolist()], dtype=bool)
    return np.flatnonzero(~second), np.flatnonzero(second)


def few_labels(codes: Index, some: Index, n_labels: int) -> tuple[Index, Index]:
    """Take so many trials of each class, or as many as there are; and the rest.

    Parameters
    ----------
    codes : array of int of shape (n_trials,)
        Class numbers of all trials.
    some : array of int
        Numbers of the trials to take from, in this order.
    n_labels : int
        Trials of each class.

    Returns
    -------
    few, rest : arrays of int
        Numbers of trials.
    """
    few = np.concatenate([some[codes[some] == code][:n_labels] for code in np.unique(codes)])
    return few, some[~np.isin(some, few)]


def mean_recall(true: Index, predicted: Index) -> float:
    """Balanced accuracy over the classes that there are: scikit-learn warns if there is but one.

    Examples
    --------
    >>> mean_recall(np.array([0, 0, 2, 2]), np.array([0, 1, 2, 2]))
    0.75
    """
    return float(np.mean([np.mean(predicted[true == code] == code) for code in np.unique(true)]))


@dataclass(frozen=True)
class Known:
    """A model and a person's trials: the first half in random order, and later ones.

    Parameters
    ----------
    model : CensoredClassifier or Ensemble
        Trained on others.
    X : TrialArray of shape (n_trials, C, T)
        The person's trials.
    codes : array of int of shape (n_trials,)
        Class numbers. Below level labels they only judge, and say which trials go to which half.
    first, later : arrays of int
        Numbers of trials.
    made : dict
        Models that were adapted without labels, each made once.
    """

    model: SignalModel
    X: TrialArray
    codes: Index
    first: Index
    later: Index
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
            Decides which trials of the first half are taken.
        """
        first, later = halves(codes, unit)
        return cls(model, X, codes, np.random.default_rng(seed).permutation(first), later)

    def score(self, case: Case) -> float | None:
        """Balanced accuracy in a case; None where there are too few trials for it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AdaptationWarning)  # of hundreds of recordings
            if case.level == "stream":
                return self._stream()
            tested = self.later if case.tested == LATER else np.arange(len(self.codes))
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
                order = np.random.default_rng(len(self.later)).permutation(len(self.codes))
                everything[order] = self.model.live().predict_proba(self.X.take(order))
            elif level != "nothing" and len(self.first) and len(self.later):
                for some, tested in ((self.first, self.later), (self.later, self.first)):
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
        if not len(self.first) or (case.amount or 0) > len(self.first):
            return None
        n = len(self.first) if case.amount is None else case.amount
        if _too_few(case, n):
            return None
        return self._recorded(case.method, case.amount)

    def _recorded(self, method: str, amount: int | None) -> SignalModel:
        """Adapt to trials of the first half, without labels; each case once."""
        if (method, amount) not in self.made:
            few = self.X.take(self.first[:amount])
            self.made[method, amount] = self.model.adapt(few, method=method)
        return self.made[method, amount]

    def _labelled(self, case: Case) -> SignalModel | None:
        assert case.amount is not None
        few, _ = few_labels(self.codes, self.first, case.amount)
        if len(few) < case.amount * len(np.unique(self.codes)):
            return None
        if _too_few(case, len(self.first)):
            return None
        labels = self.model.classes_[self.codes[few]]
        if case.method == AUTO:
            return self._by_half(self.first, case.amount)
        # What is done without labels is the same whatever trials have labels.
        before, _, last = case.method.rpartition("+")
        model = self._recorded(before, None) if before else self.model
        return model.adapt(self.X.take(few), labels, method=last)

    def _stream(self) -> float | None:
        """Score the second half, which comes after the first, trial by trial."""
        if not len(self.first) or not len(self.later):
            return None
        live = self.model.live()
        live.predict_proba(self.X.take(self.first))
        rest = np.random.default_rng(len(self.later)).permutation(self.later)
        predicted = live.predict_proba(self.X.take(rest)).argmax(1)
        return mean_recall(self.codes[rest], predicted)

    def seen(
        self, method: str, seed: int = 0, most: int = MOST_CUTS, tried: int = 0
    ) -> dict[str, list[Seen]]:
        """Adapt to recordings of all classes, of half of them and of one: what is gained by it.

        The recording of all classes is the first half, and later trials are scored; of few classes
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
            Recordings of each kind with which it is also tried to make predictions certain.
        """
        rng = np.random.default_rng(seed)
        classes = rng.permutation(np.unique(self.codes))
        half = len(classes) // 2
        cuts = {ONE: [classes[[i]] for i in range(min(len(classes), most))]}
        if half > 1:
            turns = [np.roll(classes, turn) for turn in range(min(len(classes), most))]
            cuts[HALF] = [turn[:half] for turn in turns]
        found = {}
        if len(self.first) and len(self.later):
            found[WHOLE] = [self._gain(self.first, self.later, method, tried > 0)]
        for name, some in cuts.items():
            trials = [np.flatnonzero(np.isin(self.codes, kept)) for kept in some]
            found[name] = [
                self._gain(mine, mine, method, number < tried) for number, mine in enumerate(trials)
            ]
        return found

    def _gain(self, some: Index, tested: Index, method: str, otherwise: bool) -> Seen:
        """Adapt to some trials, and compare predictions of others."""
        X = self.X.take(some)
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


def seen_of(people: Mapping[str, Known], seed: int) -> dict[str, Any]:
    """Say what everybody's recordings teach a guard: cut -> person -> what each `Seen` holds."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for number, (person, known) in enumerate(people.items()):
        # By statistics alone: they do most of the harm, and take no time. Certainty does.
        tried = TRIED if number < TEACHING else 0
        for cut, seen in known.seen("statistics", seed, tried=tried).items():
            found.setdefault(cut, {})[person] = [dict(vars(one)) for one in seen]
    return found


@dataclass(frozen=True)
class Levels:
    """What is known of a new person, and what it was worth to those who were held out.

    Parameters
    ----------
    scores : dict of Case to dict of str to float
        Balanced accuracy of each person; only cases in which every group was scored.
    seen : dict of str to dict of str to list of Seen
        What was seen of recordings: what they were cut to -> person -> that.
    """

    scores: dict[Case, Scores] = field(default_factory=dict)
    seen: dict[str, dict[str, list[Seen]]] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Iterable[Mapping[str, Any]], n_groups: int) -> Levels:
        """Put together what `score_levels` gave for each of so many groups of people."""
        found: dict[Case, list[Scores]] = {}
        seen: dict[str, dict[str, list[Seen]]] = {}
        for result in results:
            for one in result["cases"]:
                found.setdefault(Case.from_json(one), []).append(one["subjects"])
            for cut, people in result["guard"].items():
                mine = {who: [Seen(**one) for one in some] for who, some in people.items()}
                seen.setdefault(cut, {}).update(mine)
        whole = {case: parts for case, parts in found.items() if len(parts) == n_groups}
        merged = {
            case: {person: score for part in parts for person, score in part.items()}
            for case, parts in whole.items()
        }
        return cls({case: scores for case, scores in merged.items() if scores}, seen)

    def ways(
        self, level: str, amount: int | None, tested: str = LATER, guard: Guard | None = None
    ) -> dict[str, Scores]:
        """Scores by each method that was tried with an amount, and by the model as it is.

        Parameters
        ----------
        level, amount, tested
            As of a `Case`.
        guard : Guard, optional
            Whom it refuses, has of what is done without labels nothing, or what it does instead.
        """
        tried = {
            case.method: scores
            for case, scores in self.scores.items()
            if (case.level, case.amount, case.tested) == (level, amount, tested)
        }
        if not tried:
            return {}
        nothing = self.scores[Case("nothing", tested=tested)]
        careful = tried.pop(FEW, nothing)
        plain = {"recording": nothing, "labels": tried.get("head")}.get(level)
        if level == "recording" and guard is not None and guard.certainty:
            plain = careful
        if guard is not None and plain is not None:
            whole = self.seen.get(WHOLE, {})
            refused = {who for who, (own, *_) in whole.items() if not own.passes(guard)}
            tried = {
                way: {p: plain.get(p, s) if p in refused else s for p, s in scores.items()}
                for way, scores in tried.items()
            }
        return tried | {NONE: nothing}

    @cached_property
    def lessons(self) -> Lessons:
        """What recordings teach a guard."""
        return Lessons(self.seen)

    def chosen(self, level: str, amount: int | None, tested: str = LATER) -> Scores:
        """Score everybody by the guard and the method that others choose (`out_of_bag`)."""
        plain = self.ways(level, amount, tested)
        if not plain:
            return {}
        people = sorted(set.intersection(*(set(scores) for scores in plain.values())))

        def by(some: Sequence[str]) -> Scores:
            ways = self.ways(level, amount, tested, self._guard_of(tuple(some)))
            return ways[best_way(ways, some)]

        return by(people) if len(people) < 3 else out_of_bag(people, by)[0]

    def _guard_of(self, people: tuple[str, ...]) -> Guard:
        """Learn a guard on some people; draws of the same people come again and again."""
        if people not in self._guards:
            self._guards[people] = self.lessons.guard(people)
        return self._guards[people]

    @cached_property
    def _guards(self) -> dict[tuple[str, ...], Guard]:
        return {}

    def policy(self, n_labels: int = N_LABELS) -> Policy:
        """Say what "auto" should do, by what people held out gained by."""
        guard, found = self.lessons.guard(), vars(Policy())
        for level, amount in (("recording", None), ("labels", n_labels)):
            ways = self.ways(level, amount, guard=guard)
            if ways:
                found[level] = best_way(ways)
        return Policy(found["recording"], found["labels"], guard)

    def answers(self, n_labels: int = N_LABELS) -> dict[str, Scores]:
        """Score everybody at each level: nothing, all of a recording, a stream, some labels."""
        found = {
            "nothing": self.scores.get(Case("nothing"), {}),
            "recording": self.chosen("recording", None),
            "stream": self.scores.get(Case("stream"), {}),
            "labels": self.chosen("labels", n_labels),
        }
        return {level: scores for level, scores in found.items() if scores}

    def curve(self, level: str) -> dict[int | None, Scores]:
        """Scores of everybody against the amount; without amounts that somebody has too few for."""
        everybody = set(self.scores.get(Case("nothing"), {}))
        amounts = dict.fromkeys(
            c.amount for c in self.scores if (c.level, c.tested) == (level, LATER)
        )
        ordered = sorted(amounts, key=lambda n: float("inf") if n is None else n)
        found = {amount: self.chosen(level, amount) for amount in ordered}
        return {amount: scores for amount, scores in found.items() if set(scores) == everybody}

    def rows(self) -> list[dict[str, Any]]:
        """List every score: person, level, amount, tested, method, score."""
        return [
            {
                "person": person,
                "level": case.level,
                "amount": case.amount,
                "tested": case.tested,
                "method": case.method,
                "score": score,
            }
            for case, scores in self.scores.items()
            for person, score in scores.items()
        ]


def best_way(ways: Mapping[str, Scores], among: Sequence[str] | None = None) -> str:
    """Name the way by which people have the highest mean score; of equal ones the first.

    Parameters
    ----------
    ways : mapping of str to dict
        Scores of people by each way.
    among : sequence of str, optional
        People who decide, some perhaps more than once; by default all who have all scores.
    """
    if among is None:
        among = sorted(set.intersection(*(set(scores) for scores in ways.values())))
    means = {
        way: float(np.mean([scores[person] for person in among] or [0.0]))
        for way, scores in ways.items()
    }
    return max(means, key=lambda way: means[way])
