"""Intervals and tests against closed forms, scipy and counting."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from autotransfer.leakage.result import Estimate
from autotransfer.report import statistics
from autotransfer.report.statistics import bootstrap_mean, paired

GAINS = np.array([0.05, -0.02, 0.11, 0.07, -0.01, 0.03, 0.09, 0.04])


def test_the_interval_is_that_of_scipy():
    values = np.random.default_rng(1).normal(0.6, 0.15, 25)
    found = bootstrap_mean(values)
    # Further out, as Student's t is for 25 people.
    tail = stats.norm.cdf(-np.sqrt(25 / 24) * stats.t.ppf(0.975, 24))
    method = {"method": "percentile", "n_resamples": 20_000, "confidence_level": 1 - 2 * tail}
    theirs = stats.bootstrap((values,), np.mean, **method).confidence_interval
    width = theirs.high - theirs.low
    assert found.value == pytest.approx(values.mean())
    assert found.low == pytest.approx(theirs.low, abs=0.05 * width)
    assert found.high == pytest.approx(theirs.high, abs=0.05 * width)


def test_the_interval_of_many_people_is_the_normal_one():
    values = np.random.default_rng(2).normal(0.0, 1.0, 4000)
    found = bootstrap_mean(values)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert found.low == pytest.approx(values.mean() - half, abs=0.05 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.05 * half)


def test_the_interval_of_two_people_is_all_there_is():
    # Both resampled from one of them with probability 1/4 each: more than 2.5 % at either end.
    found = bootstrap_mean([0.0, 1.0])
    assert (found.value, found.low, found.high) == (0.5, 0.0, 1.0)


@pytest.mark.parametrize("people", [8, 30])
def test_the_interval_covers_what_it_should(people):
    rng = np.random.default_rng(3)
    hits = 0
    for seed in range(300):
        found = bootstrap_mean(rng.normal(1.0, 0.5, people), resamples=2000, seed=seed)
        hits += found.low <= 1.0 <= found.high
    assert 0.915 <= hits / 300 <= 0.985  # 95 %, +- 3 standard errors of 300


def test_one_person_has_no_interval():
    assert bootstrap_mean([0.7]) == Estimate(0.7, 0.7, 0.7)


def test_the_same_numbers_give_the_same_interval():
    assert bootstrap_mean(GAINS) == bootstrap_mean(GAINS)


def test_few_numbers_at_once_change_nothing_of_note(monkeypatch):
    whole = bootstrap_mean(GAINS)
    monkeypatch.setattr(statistics, "_AT_ONCE", 64)
    parts = bootstrap_mean(GAINS)
    assert parts.low == pytest.approx(whole.low, abs=0.003)
    assert parts.high == pytest.approx(whole.high, abs=0.003)


def compare(gains):
    base = {f"p{i}": 0.5 for i in range(len(gains))}
    return paired({p: 0.5 + g for p, g in zip(base, gains, strict=True)}, base)


@pytest.mark.parametrize("gains", [GAINS, GAINS.round(1), np.append(GAINS.round(1), 0.3)])
def test_wilcoxon_is_what_counting_all_signs_gives(gains):
    compared, gains = compare(gains), gains[gains != 0]  # ties are ranked, zeros are not
    ranks = stats.rankdata(np.abs(gains))
    total = ranks.sum()

    def statistic(signs):
        up = ranks[np.array(signs) > 0].sum()
        return min(up, total - up)

    seen = statistic(np.sign(gains))
    every = [statistic(signs) for signs in product([-1, 1], repeat=len(gains))]
    assert compared.p == pytest.approx(np.mean(np.array(every) <= seen))


@pytest.mark.parametrize("n", [3, 5, 6, 9])
def test_the_smallest_p_there_is(n):
    found = compare(np.linspace(0.01, 0.2, n))
    assert found.p == pytest.approx(found.least_p)
    assert found.verdict == ("better" if n >= 6 else "unclear")


def test_who_gained_and_who_lost():
    found = paired({"a": 0.5, "b": 0.75, "c": 0.2, "only": 1.0}, {"c": 0.3, "b": 0.5, "a": 0.5})
    assert (found.n, found.gained, found.lost, found.same) == (3, 1, 1, 1)
    assert found.difference.value == pytest.approx(0.05)


def test_rounding_is_no_gain():
    found = paired({"a": 0.1 + 0.2}, {"a": 0.3})
    assert (found.gained, found.lost, found.same, found.p) == (0, 0, 1, 1.0)


def test_nobody_in_common():
    assert paired({"a": 0.5}, {"b": 0.5}) is None


def test_a_clear_loss_is_worse():
    assert compare(-np.linspace(0.01, 0.2, 9)).verdict == "worse"


@settings(max_examples=8)  # ties: scipy counts all signs
@given(st.lists(st.integers(-20, 20), min_size=2, max_size=8))
def test_changing_sides_changes_signs(gains):
    there, back = compare(np.array(gains) / 100), compare(-np.array(gains) / 100)
    assert (there.gained, there.lost) == (back.lost, back.gained)
    assert there.p == pytest.approx(back.p)
    assert there.difference.low == pytest.approx(-back.difference.high, abs=0.01)
