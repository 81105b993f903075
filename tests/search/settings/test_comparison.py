"""Whether a gain is credible, against scipy's bootstrap and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from autotransfer.search.settings.comparison import credible_gain, differences, out_of_bag


@pytest.mark.parametrize("level", [0.6, 0.8, 0.95])
@pytest.mark.parametrize("n", [8, 12, 37])
def test_the_bound_is_that_of_scipys_bootstrap(level, n):
    gains = np.random.default_rng(n).normal(0.01, 0.05, n)
    ours = credible_gain(gains, level)
    # A two-sided interval of 2 * level - 1 has the one-sided bound as its lower end.
    theirs = stats.bootstrap(
        (gains,),
        np.mean,
        confidence_level=2 * level - 1,
        method="percentile",
        n_resamples=20000,
        rng=0,
    ).confidence_interval.low
    assert ours == pytest.approx(theirs, abs=0.15 * gains.std() / np.sqrt(n))


def test_more_credibility_asks_for_more():
    gains = [0.05, 0.02, -0.01, 0.04, 0.0]
    bounds = [credible_gain(gains, level) for level in (0.5, 0.7, 0.9, 0.99)]
    assert bounds == sorted(bounds, reverse=True)
    assert credible_gain(gains, 0.8) == credible_gain(list(gains), 0.8)  # the same people are drawn


def test_people_are_scored_by_choices_of_others():
    """Where there is one thing to choose: their own scores, and the error of a plain mean."""
    rng = np.random.default_rng(0)
    people = [f"p{i}" for i in range(25)]
    scores = dict(zip(people, rng.normal(0.6, 0.1, 25).tolist(), strict=True))
    asked = []

    def scores_by(some):
        asked.append(some)
        return scores

    mine, error = out_of_bag(people, scores_by)
    assert mine == pytest.approx(scores)
    plain = np.std(list(scores.values())) / np.sqrt(25)
    assert error == pytest.approx(plain, rel=0.25)  # of 400 draws
    assert all(len(some) == 25 for some in asked)
    assert len(asked) == 400


def test_the_error_knows_of_the_choice():
    """Two equal settings: over many studies the means vary as the errors say, or a little less."""
    rng = np.random.default_rng(1)
    people = [f"p{i}" for i in range(10)]
    means, errors = [], []
    for _ in range(60):
        tables = [dict(zip(people, rng.normal(0.5, 0.1, 10), strict=True)) for _ in range(2)]

        def scores_by(some, tables=tables):
            return max(tables, key=lambda table: np.mean([table[p] for p in some]))

        mine, error = out_of_bag(people, scores_by)
        means.append(np.mean(list(mine.values())))
        errors.append(error)
    assert np.mean(means) == pytest.approx(0.5, abs=0.015)
    assert 0.9 < np.mean(errors) / np.std(means) < 1.8


def test_one_person_tells_nothing_of_others():
    assert credible_gain([0.5], 0.8) == -np.inf
    assert credible_gain([], 0.8) == -np.inf


def test_people_are_paired_by_name():
    new, old = {"b": 0.5, "a": 0.9, "c": 0.1}, {"a": 0.4, "b": 0.6, "d": 1.0}
    assert differences(new, old) == pytest.approx([0.5, -0.1])
    assert differences(new, old, ["b", "a", "b"]) == pytest.approx([-0.1, 0.5, -0.1])
