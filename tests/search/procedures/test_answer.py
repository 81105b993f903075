"""The answer of a run: chosen with care, and made again without each person."""

from __future__ import annotations

import numpy as np
import pytest

from autotransfer.report.statistics import student_interval
from autotransfer.search.procedures.answer import Member, Tried, answer, nested_answer
from autotransfer.search.settings.comparison import out_of_bag
from autotransfer.search.settings.recipe import Recipe
from autotransfer.search.settings.selection import TrialScores, lookup_rule
from autotransfer.search.settings.setting import Setting

PEOPLE = [f"p{i}" for i in range(8)]
SAFE = lookup_rule("safe")


def setting(number):
    """Make a recipe, or a censor of the first one if the number is negative."""
    return Setting("mmd" if number < 0 else None, recipe=Recipe.of(number=abs(number)))


def trials(scores, seed=0, number=0, n_folds=2):
    """Split the scores of people into trials on folds."""
    parts = np.array_split(PEOPLE, n_folds)
    return [
        TrialScores(setting(number), fold, seed, {p: scores[p] for p in map(str, part)})
        for fold, part in enumerate(parts)
    ]


def made(rng, mean, spread=0.05):
    return dict(zip(PEOPLE, rng.normal(mean, spread, len(PEOPLE)).clip(0, 1), strict=True))


def nobody(members):
    return None


def random_problem(seed):
    """Scores of a few settings, some with seeds, and of their ensembles."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(4):
        for again in range(3 if number == seed % 4 else 1):
            rows += trials(made(rng, 0.6 + 0.03 * rng.random()), again, number)
    gains = {}

    def together(members):
        if members not in gains:
            gains[members] = made(np.random.default_rng(len(members) + seed), 0.66)
        return gains[members]

    return rows, together


def test_no_censor_is_added_unless_people_gain_credibly():
    base = dict.fromkeys(PEOPLE, 0.6)
    by_luck = base | {"p0": 0.9, "p1": 0.55, "p2": 0.55, "p3": 0.5}
    for_all = {person: value + 0.02 for person, value in base.items()}
    lucky = Tried([*trials(base), *trials(by_luck, number=-1)], 2, nobody)
    assert answer(lucky, SAFE).setting == setting(0)
    assert answer(lucky, lookup_rule("mean")).setting == setting(-1)
    better = Tried([*trials(base), *trials(for_all, number=-1)], 2, nobody)
    assert answer(better, SAFE).setting == setting(-1)


def test_another_recipe_replaces_one_where_people_gain_in_the_mean():
    base = dict.fromkeys(PEOPLE, 0.6)
    ahead = base | {"p0": 0.7, "p1": 0.65, "p2": 0.62, "p3": 0.5}
    behind = base | {"p0": 0.5, "p1": 0.65}
    tried = Tried([*trials(base), *trials(ahead, number=1)], 2, nobody)
    assert answer(tried, SAFE).setting == setting(1)
    tried = Tried([*trials(base), *trials(behind, number=1)], 2, nobody)
    assert answer(tried, SAFE).setting == setting(0)


def test_what_is_not_whole_or_has_failed_is_no_candidate():
    base, good = dict.fromkeys(PEOPLE, 0.6), dict.fromkeys(PEOPLE, 0.9)
    half = trials(good, number=1)[:1]
    failed = [*trials(good, number=2)[:1], TrialScores(setting(2), 1, 0, error="boom")]
    tried = Tried([*trials(base), *half, *failed], 2, nobody)
    assert list(tried.by_seed) == [setting(0)]


def test_settings_are_compared_on_the_seeds_that_both_have():
    base, other = dict.fromkeys(PEOPLE, 0.6), dict.fromkeys(PEOPLE, 0.61)
    rows = [*trials(base), *trials(other, number=1), *trials(dict.fromkeys(PEOPLE, 0.5), 1, 1)]
    tried = Tried(rows, 2, nobody)
    assert tried.gains(setting(1), setting(0)) == pytest.approx([0.01] * 8)
    assert tried.alone(setting(1))["p0"] == pytest.approx(0.555)


def test_the_mean_of_seeds_is_taken_where_people_gain():
    base = dict.fromkeys(PEOPLE, 0.6)
    rows = [*trials(base), *trials(base, seed=1), *trials(base, seed=2)]
    pair, three = [tuple(Member(setting(0), s) for s in range(n)) for n in (2, 3)]
    same = {pair: base, three: base}
    assert answer(Tried(rows, 2, same.get), SAFE).members == (Member(setting(0), 0),)
    better = {pair: base, three: {p: v + 0.01 for p, v in base.items()}}
    found = answer(Tried(rows, 2, better.get), SAFE)
    assert found.members == three
    assert found.scores == better[three]
    assert answer(Tried(rows, 2, better.get), SAFE, most=1).members == (Member(setting(0), 0),)


def test_other_settings_join_where_the_gain_is_more_than_a_toss_up():
    base = dict.fromkeys(PEOPLE, 0.6)
    rows = [*trials(base), *trials(base, number=1)]
    both = Member(setting(0), 0), Member(setting(1), 0)
    by_luck = {both: base | {"p0": 0.7, "p1": 0.56, "p2": 0.55}}
    assert len(answer(Tried(rows, 2, by_luck.get), SAFE).members) == 1
    assert answer(Tried(rows, 2, by_luck.get), SAFE, mixed=0.5).members == both
    for_all = {both: {p: v + 0.01 for p, v in base.items()}}
    assert answer(Tried(rows, 2, for_all.get), SAFE).members == both
    assert len(answer(Tried(rows, 2, for_all.get), SAFE, most=1).members) == 1


def of_another_kind(scores, **options):
    """Trials of a recipe with another encoder."""
    kind = Setting(None, recipe=Recipe.of(encoder="covariance", **options))
    parts = np.array_split(PEOPLE, 2)
    return kind, [
        TrialScores(kind, fold, 0, {p: scores[p] for p in map(str, part)})
        for fold, part in enumerate(parts)
    ]


@pytest.mark.parametrize("gain", [0.02, -0.02])
def test_a_network_of_another_kind_joins_where_people_gain_by_it(gain):
    """It may be worse alone, and behind networks of the first kind that add nothing."""
    base, worse = dict.fromkeys(PEOPLE, 0.6), dict.fromkeys(PEOPLE, 0.4)
    near = dict.fromkeys(PEOPLE, 0.59)
    kind, rows = of_another_kind(worse)

    def together(members):
        other = any(member.setting == kind for member in members)
        return {person: 0.6 + gain * other - 0.05 * (len(members) > 2) for person in PEOPLE}

    tried = Tried([*trials(base), *trials(near, number=1), *rows], 2, together)
    found = answer(tried, SAFE)
    assert found.setting == setting(0)
    alone, both = (Member(setting(0), 0),), (Member(setting(0), 0), Member(kind, 0))
    assert found.members == (both if gain > 0 else alone)
    assert answer(tried, SAFE, most=1).members == alone


def test_a_network_of_another_kind_takes_the_last_place_where_there_is_no_other():
    base, kinds = dict.fromkeys(PEOPLE, 0.6), of_another_kind(dict.fromkeys(PEOPLE, 0.5))
    kind, rows = kinds

    def together(members):
        return {p: 0.6 + 0.02 * len({member.setting for member in members}) for p in PEOPLE}

    seeds = [row for seed in range(3) for row in trials(base, seed)]
    found = answer(Tried([*seeds, *rows], 2, together), SAFE, most=3)
    assert [member.setting for member in found.members] == [setting(0), setting(0), kind]


@pytest.mark.parametrize("most", [3, 4, 5])
def test_networks_of_another_kind_are_at_most_half(most):
    """Where each is worth more than one of the first kind."""
    base = dict.fromkeys(PEOPLE, 0.6)
    kinds = [of_another_kind(dict.fromkeys(PEOPLE, 0.5), drop_prob=d) for d in (0.1, 0.2, 0.3)]

    def together(members):
        others = sum(member.setting.recipe.encoder == "covariance" for member in members)
        return {p: 0.6 + 0.01 * len(members) + 0.02 * others for p in PEOPLE}

    seeds = [row for seed in range(5) for row in trials(base, seed)]
    rows = [*seeds, *(row for _, mine in kinds for row in mine)]
    found = answer(Tried(rows, 2, together), SAFE, most=most)
    others = [member.setting for member in found.members if member.setting != setting(0)]
    assert len(found.members) == most
    assert others == [kind for kind, _ in kinds][: most // 2]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rule", ["safe", "mean", "lower_quartile"])
def test_the_answer_of_some_is_that_of_a_study_of_them(seed, rule):
    """Literally: a study of these people, some of them there twice, and its answer."""
    rows, together = random_problem(seed)
    for again in range(10):
        drawn = np.random.default_rng(again).choice(PEOPLE, len(PEOPLE)).tolist()
        # In the order in which they were drawn: a bootstrap sees them so.
        names = {f"{place:02}": one for place, one in enumerate(drawn)}

        def study(scores, names=names):
            return {name: scores[one] for name, one in names.items() if one in scores}

        others = [
            TrialScores(one.setting, one.fold, one.seed, study(one.validation)) for one in rows
        ]

        def theirs(members, study=study):
            return study(together(members))

        there = answer(Tried(others, 2, theirs), lookup_rule(rule))
        here = answer(Tried(rows, 2, together), lookup_rule(rule), among=drawn)
        assert (here.setting, here.members) == (there.setting, there.members)


def test_a_persons_own_scores_take_no_part_in_the_choice_for_them():
    """Scrambled, they change what that person has, by the very choices of before."""
    rng = np.random.default_rng(0)
    rows = [r for number in range(6) for r in trials(made(rng, 0.6), number=number)]
    tried = Tried(rows, 2, nobody)
    scrambled = [
        TrialScores(
            one.setting,
            one.fold,
            one.seed,
            {p: rng.random() if p == "p0" else v for p, v in one.validation.items()},
        )
        for one in rows
    ]
    other = Tried(scrambled, 2, nobody)
    chosen = []

    def scores_by(some):
        if "p0" not in some:
            chosen.append(answer(tried, SAFE, among=some).setting)
        return dict.fromkeys(PEOPLE, 0.5)

    out_of_bag(PEOPLE, scores_by)
    assert len(set(chosen)) > 1  # or there was nothing to get wrong
    expected = np.mean([other.alone(one)["p0"] for one in chosen])
    assert nested_answer(other, SAFE).nested["p0"] == pytest.approx(expected)


def test_intervals_of_nested_scores_cover_chance_where_there_is_nothing_to_choose():
    """Six equal settings: scores of single answers were too low or too high together."""
    covered, rng = 0, np.random.default_rng(0)
    for _ in range(20):
        rows = [r for number in range(6) for r in trials(made(rng, 0.5), number=number)]
        found = nested_answer(Tried(rows, 2, nobody), SAFE)
        mean = student_interval(list(found.nested.values()), found.nested_error)
        covered += mean.low <= 0.5 <= mean.high
    assert covered >= 17
