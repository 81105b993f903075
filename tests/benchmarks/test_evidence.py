"""The comparison of AutoTransfer with its baseline: nobody's own scores choose for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autotransfer.search.selection import Scored
from autotransfer.search.setting import BASELINE, Setting
from evidence import csv_rows, holm, row, without_the_person

PEOPLE = [f"p{i}" for i in range(8)]
CENSOR = Setting.of("mmd", "marginal", 1)


def table(seed):
    """Scores of two settings; in fold i person i validates and person i + 1 tests."""
    rng = np.random.default_rng(seed)
    return {
        setting: [
            Scored(setting, i, 0, {who: rng.random()}, {PEOPLE[(i + 1) % 8]: rng.random()})
            for i, who in enumerate(PEOPLE)
        ]
        for setting in (BASELINE, CENSOR)
    }


def test_holm_against_its_definition():
    # 0.01 x 3, 0.02 x 2, 0.9 x 1; and never less than the one before.
    assert holm([0.9, 0.01, 0.02]) == pytest.approx([0.9, 0.03, 0.04])
    assert holm([0.04, 0.03]) == pytest.approx([0.06, 0.06])
    assert holm([0.5]) == [0.5]


@pytest.mark.parametrize("seed", range(5))
def test_a_persons_own_scores_do_not_choose_for_them(seed):
    found = table(seed)
    before = without_the_person(found)
    for person in PEOPLE:
        changed = {
            setting: [
                replace(one, validation=dict.fromkeys(one.validation, 0.0))
                if person in one.validation and setting is CENSOR
                else one
                for one in mine
            ]
            for setting, mine in found.items()
        }
        assert without_the_person(changed)[person] == before[person]


def test_the_scores_of_others_do():
    found = table(0)
    worse = [replace(one, validation=dict.fromkeys(one.validation, 0.0)) for one in found[CENSOR]]
    better = [replace(one, validation=dict.fromkeys(one.validation, 1.0)) for one in found[CENSOR]]
    test = {s: {p: v for one in mine for p, v in one.test.items()} for s, mine in found.items()}
    assert without_the_person(found | {CENSOR: worse}) == test[BASELINE]
    assert without_the_person(found | {CENSOR: better}) == test[CENSOR]


@pytest.mark.parametrize("seed", range(5))
def test_test_scores_choose_nothing(seed):
    found = table(seed)
    marks = {
        setting: [replace(one, test=dict.fromkeys(one.test, float(i))) for one in mine]
        for i, (setting, mine) in enumerate(found.items())
    }
    turned = {
        setting: [replace(one, test=dict.fromkeys(one.test, float(1 - i))) for one in mine]
        for i, (setting, mine) in enumerate(found.items())
    }
    one, other = without_the_person(marks), without_the_person(turned)
    assert {p: 1 - v for p, v in one.items()} == other


def test_rows_and_scores():
    found = table(1)
    scores = dict.fromkeys(PEOPLE, 0.5)
    made, compared = row("emg", "uncensored", scores, scores)
    assert (made["difference"], made["p"], compared.same) == (0, 1, 8)
    assert len(csv_rows("emg", found)) == 2 * 8 * 2
