"""What each level was worth to those who were held out, and what they choose for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from autotransfer.adaptation.guard import WHOLE, Guard, Lessons, Seen
from autotransfer.adaptation.registry import FEW, NONE, Policy, by_labels_alone
from autotransfer.search.levels.cases import N_LABELS, OTHER, Case, Scores
from autotransfer.search.settings.comparison import out_of_bag


@dataclass(frozen=True)
class Levels:
    """What is known of a new person, and what it was worth to those who were held out.

    Parameters
    ----------
    scores : dict of Case to dict of str to float
        Balanced accuracy of each person; only cases in which every group was scored.
    seen : dict of str to dict of str to list of Seen
        What was seen of recordings: what they were cut to -> person -> that.
    left_out : tuple of Case
        Cases for which there was no time in some group.
    lacking : int
        Groups that could not be scored at all, because a worker died or something else went wrong.
    """

    scores: dict[Case, Scores] = field(default_factory=dict)
    seen: dict[str, dict[str, list[Seen]]] = field(default_factory=dict)
    left_out: tuple[Case, ...] = ()
    lacking: int = 0

    @classmethod
    def of(cls, results: Sequence[Mapping[str, Any]], n_groups: int) -> Levels:
        """Put together what `score_levels` gave for each of so many groups of people."""
        found: dict[Case, list[Scores]] = {}
        seen: dict[str, dict[str, list[Seen]]] = {}
        left_out: dict[Case, None] = {}
        for result in results:
            left_out |= dict.fromkeys(map(Case.from_json, result.get("left_out", ())))
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
        scored = {case: scores for case, scores in merged.items() if scores}
        return cls(scored, seen, tuple(left_out), n_groups - len(results))

    def ways(
        self, level: str, amount: int | None, tested: str = OTHER, guard: Guard | None = None
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
        if guard is None:
            return tried | {NONE: nothing}
        whole = self.seen.get(WHOLE, {})
        refused = {who for who, (own, *_) in whole.items() if not own.passes(guard)}
        plain = careful if level == "recording" and guard.certainty else nothing
        guarded: dict[str, Scores] = {}
        for way, scores in tried.items():
            instead = plain
            if level == "labels":  # the labels are used all the same
                instead = tried.get(by_labels_alone(way), tried.get("head", scores))
            guarded[way] = {p: instead.get(p, s) if p in refused else s for p, s in scores.items()}
        return guarded | {NONE: nothing}

    @cached_property
    def lessons(self) -> Lessons:
        """What recordings teach a guard."""
        return Lessons(self.seen)

    def chosen(
        self, level: str, amount: int | None, tested: str = OTHER, all_classes: bool = False
    ) -> Scores:
        """Score everybody by the guard and the method that others choose (`out_of_bag`).

        Without a guard where it is known that all classes are among the trials.
        """
        plain = self.ways(level, amount, tested)
        if not plain:
            return {}
        people = sorted(set.intersection(*(set(scores) for scores in plain.values())))

        def by(some: Sequence[str]) -> Scores:
            guard = None if all_classes else self._guard_of(tuple(some))
            ways = self.ways(level, amount, tested, guard)
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
        ways = {
            "recording": self.ways("recording", None, guard=guard),
            "labels": self.ways("labels", n_labels, guard=guard),
            "stream": self.ways("stream", None, guard=guard),
            "all_classes": self.ways("recording", None),
        }
        found |= {known: best_way(tried) for known, tried in ways.items() if tried}
        return Policy(**found | {"guard": guard})

    def answers(self, n_labels: int = N_LABELS) -> dict[str, Scores]:
        """Score everybody at each level: nothing, all of a recording, a stream, some labels."""
        # A report asks for them several times, and each time hundreds of draws would choose.
        if n_labels not in self._answers:
            self._answers[n_labels] = self._score_levels(n_labels)
        return dict(self._answers[n_labels])

    @cached_property
    def _answers(self) -> dict[int, dict[str, Scores]]:
        return {}

    @cached_property
    def of_all_classes(self) -> Scores:
        """Score everybody with a recording of which it is known that all classes are in it."""
        return self.chosen("recording", None, all_classes=True)

    def _score_levels(self, n_labels: int) -> dict[str, Scores]:
        found = {
            "nothing": self.scores.get(Case("nothing"), {}),
            "recording": self.chosen("recording", None),
            "stream": self.chosen("stream", None),
            "labels": self.chosen("labels", n_labels),
        }
        return {level: scores for level, scores in found.items() if scores}

    def curve(self, level: str) -> dict[int | None, Scores]:
        """Scores of everybody against the amount; without amounts that somebody has too few for."""
        everybody = set(self.scores.get(Case("nothing"), {}))
        amounts = dict.fromkeys(
            c.amount for c in self.scores if (c.level, c.tested) == (level, OTHER)
        )
        ordered = sorted(amounts, key=lambda n: float("inf") if n is None else n)
        found = {amount: self.chosen(level, amount) for amount in ordered}
        return {amount: scores for amount, scores in found.items() if set(scores) == everybody}

    def not_tried(self) -> list[str]:
        """Name the amounts of a level that there was no time for, and what could not be done.

        Examples
        --------
        >>> Levels(left_out=(Case("stream"), Case("labels", 10, "head"))).not_tried()
        ['level stream', 'level labels with 10 of each class']
        """
        words = {"recording": " trials", "labels": " of each class"}
        missing = dict.fromkeys((c.level, c.amount) for c in self.left_out if c.tested == OTHER)
        scored = {(c.level, c.amount) for c in self.scores}
        failed = [f"levels: scoring {self.lacking} of the groups failed"] if self.lacking else []
        return failed + [
            f"level {level}" + ("" if amount is None else f" with {amount}{words[level]}")
            for level, amount in missing
            if (level, amount) not in scored
        ]

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

    A way of fewer methods is not preferred where it is nearly as good: with one that is within a
    standard error of the best, nine data sets gained 0.047 instead of 0.050 by a recording, and as
    much as now by a stream and by labels (one seed).

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
