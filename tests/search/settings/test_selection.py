"""The choice among candidates, on tables made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotransfer.errors import IncompleteResultsError, SettingError
from autotransfer.search import BASELINE, RULES, Setting
from autotransfer.search.settings.selection import (
    TrialScores,
    best_of_each,
    choose,
    over_folds,
    promoted,
)

MMD, ADV = Setting.of("mmd", "marginal", 3), Setting.of("adversary", "conditional", 0.1)
CANDIDATES = [BASELINE, MMD, ADV]


def table(values, test=None, seeds=1, errors=()):
    """Scores by candidate: a list over folds; fold i has the one subject i."""
    return [
        TrialScores(
            setting,
            fold,
            seed,
            {str(fold): value},
            {str(fold): (test or values)[setting][fold]},
            "Traceback\nboom" if (setting, fold, seed) in errors else "",
        )
        for setting, scores in values.items()
        for fold, value in enumerate(scores)
        for seed in range(seeds)
    ]


VALUES = {
    BASELINE: [0.5, 0.6, 0.7, 0.8, 0.9],  # quartile 0.6, mean 0.7, worst 0.5
    MMD: [0.61, 0.62, 0.63, 0.64, 0.65],  # quartile 0.62, mean 0.63, worst 0.61
    ADV: [0.3, 0.59, 0.9, 0.9, 0.9],  # quartile 0.59, mean 0.718, worst 0.3
}


@pytest.mark.parametrize(
    ("rule", "wanted"), [("lower_quartile", MMD), ("mean", ADV), ("worst_subject", MMD)]
)
def test_rules(rule, wanted):
    choice = choose(CANDIDATES, table(VALUES), 5, 1, rule)
    assert choice.setting == wanted
    assert choice.censors
    assert not RULES[rule].for_study_only


def test_the_lower_quartile_is_numpys_percentile():
    choice = choose(CANDIDATES, table(VALUES), 5, 1)
    assert choice.judged == {s: np.percentile(v, 25) for s, v in VALUES.items()}


def test_oracle_sees_test_scores_and_is_marked():
    test = {BASELINE: [0.9] * 5, MMD: [0.1] * 5, ADV: [0.2] * 5}
    assert choose(CANDIDATES, table(VALUES, test), 5, 1, "oracle").setting == BASELINE
    assert RULES["oracle"].for_study_only
    assert "study only" in RULES["oracle"].words


@given(st.lists(st.floats(0, 1), min_size=15, max_size=15), st.sampled_from(sorted(RULES)))
def test_corrupted_test_scores_change_no_choice(noise, rule):
    if RULES[rule].for_study_only:
        return
    test = {s: noise[5 * i : 5 * i + 5] for i, s in enumerate(CANDIDATES)}
    choice = choose(CANDIDATES, table(VALUES, test), 5, 1, rule)
    assert choice == choose(CANDIDATES, table(VALUES), 5, 1, rule)
    missing = [TrialScores(o.setting, o.fold, o.seed, o.validation) for o in table(VALUES)]
    assert choice == choose(CANDIDATES, missing, 5, 1, rule)


def test_ties_go_to_the_baseline_then_to_the_first():
    same = {s: [0.5, 0.6, 0.7] for s in CANDIDATES}
    assert choose(CANDIDATES, table(same), 3, 1).setting == BASELINE
    assert not choose(CANDIDATES, table(same), 3, 1).censors
    lower = {**same, BASELINE: [0.1] * 3}
    assert choose(CANDIDATES, table(lower), 3, 1).setting == MMD
    assert choose([BASELINE, ADV, MMD], table(lower), 3, 1).setting == ADV


def test_the_order_of_results_does_not_matter():
    found = table(VALUES, seeds=2)
    shuffled = [found[i] for i in np.random.default_rng(0).permutation(len(found))]
    assert choose(CANDIDATES, shuffled, 5, 2) == choose(CANDIDATES, found, 5, 2)


@pytest.mark.parametrize("drop", range(15))
def test_missing_folds_are_refused(drop):
    found = table(VALUES)
    gone = found.pop(drop)
    with pytest.raises(IncompleteResultsError) as caught:
        choose(CANDIDATES, found, 5, 1)
    assert str(gone.setting) in str(caught.value)
    assert f"fold {gone.fold + 1}" in str(caught.value)


def test_missing_seeds_are_refused():
    with pytest.raises(IncompleteResultsError, match="seed 1"):
        choose(CANDIDATES, table(VALUES), 5, 2)


def test_one_fold():
    one = {s: v[:1] for s, v in VALUES.items()}
    assert choose(CANDIDATES, table(one), 1, 1).setting == MMD


def test_seeds_are_averaged_for_each_subject_first():
    found = [
        TrialScores(BASELINE, fold, seed, {str(fold): v}, {})
        for fold, pair in enumerate([(0.2, 0.6), (0.4, 0.4)])
        for seed, v in enumerate(pair)
    ]
    assert choose([BASELINE], found, 2, 2, "worst_subject").judged[BASELINE] == pytest.approx(0.4)


def test_a_candidate_that_failed_is_not_chosen():
    choice = choose(CANDIDATES, table(VALUES, errors=[(MMD, 2, 0)]), 5, 1)
    assert choice.setting == BASELINE
    assert choice.failed == {MMD: 1}


def test_all_failed():
    errors = [(s, 0, 0) for s in CANDIDATES]
    with pytest.raises(IncompleteResultsError, match=r"All 3 candidates.*boom"):
        choose(CANDIDATES, table(VALUES, errors=errors), 5, 1)


def test_wrong_rule():
    with pytest.raises(SettingError, match="Did you mean 'mean'"):
        choose(CANDIDATES, table(VALUES), 5, 1, "maen")


def searched(*pairs):
    return [
        TrialScores(s, 0, 0, {"a": v} if v is not None else {}, {}, "" if v is not None else "x")
        for s, v in pairs
    ]


def mmd(strength):
    return Setting.of("mmd", "marginal", strength)


def test_scores_of_several_folds_are_put_together():
    one, two = mmd(1), mmd(2)
    found = [
        TrialScores(one, 0, 0, {"a": 0.2}, {"b": 0.1}),
        TrialScores(one, 1, 0, {"b": 0.6}, {"c": 0.3}),
        TrialScores(two, 0, 0, {"a": 0.9}, {"b": 0.1}),
        TrialScores(two, 1, 0, error="lost"),
    ]
    first, second = over_folds(found)
    assert (first.setting, second.setting) == (one, two)
    assert first.validation == {"a": 0.2, "b": 0.6}
    assert first.test == {"b": 0.1, "c": 0.3}
    assert second.error == "lost"
    assert best_of_each(over_folds(found), 2) == [one]
    alone = [one for one in found if one.fold == 0]
    assert over_folds(alone) == alone


def test_the_best_of_each_measure_are_kept():
    found = searched(
        (BASELINE, 0.9), (mmd(1), 0.5), (mmd(2), 0.7), (mmd(3), 0.5), (mmd(4), None), (ADV, 0.1)
    )
    assert best_of_each(found, 2) == [mmd(2), mmd(1), ADV]
    assert best_of_each(found, 9) == [mmd(2), mmd(1), mmd(3), ADV]


def test_what_could_not_be_censored_is_passed_over():
    """The best of all, but of most trials a batch has too few to censor."""
    found = searched((BASELINE, 0.5), (mmd(1), 0.9), (mmd(2), 0.1), (ADV, 0.9))
    found[1], found[3] = (replace(found[i], small_cells=True) for i in (1, 3))
    assert best_of_each(found, 1) == [mmd(2)]
    assert promoted(found, 4, 1) == [BASELINE, mmd(2)]
    on_two_folds = over_folds([replace(found[1], small_cells=False, fold=1), *found])
    assert best_of_each(on_two_folds, 1) == [mmd(2)]


def test_halving_keeps_the_best_and_enough_of_each_measure():
    found = searched(*((mmd(i), i / 100) for i in range(1, 10)), (ADV, 0.0), (BASELINE, 0.0))
    assert promoted(found, 3, 1) == [mmd(7), mmd(8), mmd(9), ADV, BASELINE]


@given(st.lists(st.floats(0, 1), min_size=15, max_size=15), st.sampled_from(sorted(RULES)))
def test_nested_scores_by_leaving_each_person_out(noise, rule):
    """The choice without a person, made again from a table in which that person is not."""
    values = {s: noise[5 * i : 5 * i + 5] for i, s in enumerate(CANDIDATES)}
    test = VALUES
    choice = choose(CANDIDATES, table(values, test), 5, 1, rule)
    side = test if RULES[rule].side == "test" else values
    for fold in range(5):
        rest = {s: [v for i, v in enumerate(scores) if i != fold] for s, scores in side.items()}
        without = choose(CANDIDATES, table(rest), 4, 1, rule.replace("oracle", "lower_quartile"))
        assert choice.without[str(fold)] == without.setting
        assert choice.nested[str(fold)] == test[without.setting][fold]


def test_a_persons_own_score_does_not_reach_the_nested_choice():
    for fold in range(5):
        values = {s: list(scores) for s, scores in VALUES.items()}
        before = choose(CANDIDATES, table(values), 5, 1).without[str(fold)]
        for scrambled in ([0, 1, 0.5], [1, 0, 0.2], [0.3, 0.3, 1]):
            for setting, value in zip(CANDIDATES, scrambled, strict=True):
                values[setting][fold] = value
            assert choose(CANDIDATES, table(values), 5, 1).without[str(fold)] == before


def test_one_person_cannot_be_left_out():
    choice = choose(CANDIDATES, table({s: v[:1] for s, v in VALUES.items()}), 1, 1)
    assert choice.nested == choice.without == {}
