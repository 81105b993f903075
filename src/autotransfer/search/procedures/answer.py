"""The best answer from all that was tried: one setting, or the mean of several networks.

Pure: scores and predictions in, an answer out. Made again without a person, it gives the answer by
which that person may be scored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from autotransfer.search.settings.comparison import credible_gain, differences, out_of_bag
from autotransfer.search.settings.selection import Rule, TrialScores, best_by, by_subject
from autotransfer.search.settings.setting import Setting

Floats = npt.NDArray[np.float64]
Scores = Mapping[str, float]
People = Sequence[str] | None

MOST_MEMBERS = 5
"""Networks of an ensemble at most: prediction takes as many times as long."""


MIXED_LEVEL = 0.6
"""How credible it must be that people gain by networks of other settings beside the seeds of the
chosen one. One or two compositions are tried, so little is won by luck: on nine data sets people
gained the more the less was asked for (docs/training.md, docs/run_tables.md), and where others are
much worse, a mean with them is not taken at any level. A little more than even chances keeps single
people from deciding near ties."""


@dataclass(frozen=True)
class Member:
    """A network of an answer: a setting, trained with a seed."""

    setting: Setting
    seed: int


@dataclass(frozen=True)
class Answer:
    """What a run would give now.

    Parameters
    ----------
    setting : Setting
        The chosen one.
    members : tuple of Member
        Networks whose probabilities are averaged; one, unless several are credibly better.
    scores : mapping of str to float
        Balanced accuracy of each person by these members, held out.
    nested : mapping of str to float
        The same by answers that are given by other people's scores; empty for fewer than three.
    nested_error : float
        Standard error of the mean of these, with what the choice adds to it.
    """

    setting: Setting
    members: tuple[Member, ...]
    scores: Scores
    nested: Scores = field(default_factory=dict)
    nested_error: float = math.nan


class Tried:
    """All that was tried on every person: settings with their seeds.

    Parameters
    ----------
    scores : iterable of TrialScores
        Held-out scores; what does not cover every fold, or failed on one, is left out.
    n_folds : int
        Folds that cover everybody.
    score : callable
        Members -> balanced accuracy of each person by the mean of their probabilities; None where
        the predictions are not at hand.
    """

    def __init__(
        self,
        scores: Iterable[TrialScores],
        n_folds: int,
        score: Callable[[tuple[Member, ...]], Scores | None],
    ) -> None:
        trials: dict[Setting, dict[int, list[TrialScores]]] = {}
        for one in scores:
            trials.setdefault(one.setting, {}).setdefault(one.seed, []).append(one)
        self.by_seed: dict[Setting, dict[int, Scores]] = {}
        for setting, seeds in trials.items():
            whole: dict[int, Scores] = {
                seed: by_subject(mine, "validation")
                for seed, mine in sorted(seeds.items())
                if len(mine) == n_folds and not any(one.error for one in mine)
            }
            if 0 in whole:
                self.by_seed[setting] = whole
        self._score = score
        self._cache: dict[tuple[Member, ...], Scores | None] = {}
        self._alone: dict[tuple[Setting, tuple[int, ...]], Scores] = {}

    def alone(self, setting: Setting, seeds: Iterable[int] | None = None) -> Scores:
        """Score of each person by one network of a setting, the mean over its seeds."""
        mine = self.by_seed[setting]
        key = setting, tuple(mine if seeds is None else seeds)
        if key not in self._alone:
            chosen = [mine[seed] for seed in key[1]]
            means = {p: float(np.mean([one[p] for one in chosen])) for p in sorted(chosen[0])}
            self._alone[key] = means
        return self._alone[key]

    def gains(self, new: Setting, old: Setting, among: People = None) -> Floats:
        """Paired gains of people, over the seeds that both settings have."""
        seeds = sorted(set(self.by_seed[new]) & set(self.by_seed[old]))
        return differences(self.alone(new, seeds), self.alone(old, seeds), among)

    def together(self, members: tuple[Member, ...]) -> Scores | None:
        """Score of each person by the mean probability of some members."""
        if members not in self._cache:
            self._cache[members] = self._score(members)
        return self._cache[members]


def best_setting(
    tried: Tried, rule: Rule, among: People = None, settings: Iterable[Setting] | None = None
) -> Setting:
    """Choose a setting by a rule, of all that were tried or of some.

    Settings stand in the order in which they were tried, simple ones first: the default recipe,
    other recipes, censors. A rule with levels walks through them and goes over to what is better,
    as credibly as it asks for, over the seeds that both have.
    """
    some = list(tried.by_seed if settings is None else settings)
    if rule.levels is None:
        return best_by(rule, {s: tried.alone(s, [0]) for s in some}, among)
    best = some[0]
    for setting in some[1:]:
        if rule.replaces(setting, tried.gains(setting, best, among)):
            best = setting
    return best


def answer(
    tried: Tried,
    rule: Rule,
    most: int = MOST_MEMBERS,
    among: People = None,
    mixed: float = MIXED_LEVEL,
) -> Answer:
    """Choose a setting, then the networks whose mean is credibly better than one alone.

    Parameters
    ----------
    tried : Tried
        All that was tried.
    rule : Rule
        How to choose.
    most : int
        Members at most.
    among : sequence of str, optional
        People whose scores decide, some perhaps more than once; everybody by default.
    mixed : float
        How credible the gain by networks of other settings must be.
    """
    setting = best_setting(tried, rule, among)
    members: tuple[Member, ...] = (Member(setting, 0),)
    scores = tried.alone(setting)
    seeds = tuple(Member(setting, seed) for seed in tried.by_seed[setting])[:most]

    def gain(wider: tuple[Member, ...], level: float) -> None:
        nonlocal members, scores
        together = tried.together(wider) if wider != members else None
        if together is not None and credible_gain(differences(together, scores, among), level) > 0:
            members, scores = wider, together

    # That the mean of seeds helps is known beforehand: it is enough if people gain at all.
    gain(seeds, 0.5)
    gain((*seeds, *_others(tried, setting, most - len(seeds), among)), mixed)
    own, others = members, _of_another_kind(tried, members, among)
    for n in range(1, 1 + min(most // 2, len(others))):
        gain((*own[: most - n], *others[:n]), mixed)
    return Answer(setting, members, scores)


def _others(tried: Tried, setting: Setting, most: int, among: People) -> tuple[Member, ...]:
    """Networks of the next best settings."""
    others = [s for s in tried.by_seed if s != setting]
    return tuple(Member(s, 0) for s in _best_first(tried, others, among)[: max(most, 0)])


def _of_another_kind(tried: Tried, members: Sequence[Member], among: People) -> tuple[Member, ...]:
    """Networks of the best settings with another encoder than all members: they err elsewhere."""
    kinds = {member.setting.recipe.encoder for member in members}
    others = [s for s in tried.by_seed if s.recipe.encoder not in kinds]
    return tuple(Member(s, 0) for s in _best_first(tried, others, among))


def _best_first(tried: Tried, settings: Sequence[Setting], among: People) -> list[Setting]:
    """Order settings by the mean score of people."""

    def mean(setting: Setting) -> float:
        scores = tried.alone(setting)
        return float(np.mean([scores[person] for person in (scores if among is None else among)]))

    return sorted(settings, key=mean, reverse=True)


def nested_answer(
    tried: Tried, rule: Rule, most: int = MOST_MEMBERS, mixed: float = MIXED_LEVEL
) -> Answer:
    """Give the answer, and each person's score by answers of others (`out_of_bag`)."""
    final = answer(tried, rule, most, mixed=mixed)
    people = sorted(final.scores)
    if len(people) < 3:
        return final
    nested, error = out_of_bag(people, lambda some: answer(tried, rule, most, some, mixed).scores)
    return replace(final, nested=nested, nested_error=error)


def mean_gain(
    seen: Sequence[TrialScores], new: Setting, old: Setting, n_folds: int
) -> float | None:
    """Mean gain of people on the first groups; None where the new one failed."""
    people: dict[Setting, dict[str, float]] = {new: {}, old: {}}
    for one in seen:
        if one.setting in people and one.seed == 0 and one.fold < n_folds:
            if one.setting == new and (one.error or one.small_cells):
                return None
            people[one.setting] |= one.validation
    both = sorted(people[new].keys() & people[old].keys())
    if not both:
        return None
    return float(np.mean([people[new][p] - people[old][p] for p in both]))
