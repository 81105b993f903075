"""The verdict on nine data sets counts what the kept files say, and what is missing as missed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from benchmarks.accuracy.hands_off import everybody
from benchmarks.accuracy.levels import CHOSEN
from benchmarks.nine_sets import one_command

PEOPLE = [str(i) for i in range(12)]


def scores(start, seed=0):
    noise = np.random.default_rng(seed).normal(scale=0.02, size=len(PEOPLE))
    return dict(zip(PEOPLE, (start + noise).tolist(), strict=True))


def test_differences_are_wilcoxon_tests_corrected_for_the_number_of_sets():
    ours = {"ssvep": scores(0.8), "erp": scores(0.62), "emg": scores(0.7)}
    others = {"ssvep": scores(0.7, 1), "erp": scores(0.61, 2)}
    found = one_command.compared(ours, others)
    assert list(found) == ["ssvep", "erp"]  # those that both have
    p = {
        name: stats.wilcoxon([ours[name][who] - others[name][who] for who in PEOPLE]).pvalue
        for name in found
    }
    assert p["ssvep"] < p["erp"]
    assert found["ssvep"]["p"] == pytest.approx(2 * p["ssvep"])
    assert found["erp"]["p"] == pytest.approx(p["erp"])
    mean = np.mean([ours["erp"][who] - others["erp"][who] for who in PEOPLE])
    assert found["erp"]["above by"] == pytest.approx(mean)


def test_sets_are_counted_by_sign_and_by_significance():
    changes = {
        "a": {"above by": 0.1, "p": 0.01},
        "b": {"above by": 0.1, "p": 0.2},
        "c": {"above by": -0.1, "p": 0.01},
        "d": {"above by": 0.0, "p": 1.0},
    }
    assert one_command.above(changes) == (2, 1, 1)


def test_a_competitor_with_a_group_missing_is_not_one(tmp_path):
    file = tmp_path / "today.jsonl"

    def line(method, group):
        key = {"dataset": "emg", "method": method, "groups": 2, "group": group}
        return json.dumps({"key": json.dumps(key), "result": {"same": {str(group): 0.5}}})

    file.write_text("\n".join([line("riemann", 0), line("riemann", 1), line("braindecode", 0)]))
    assert one_command.competitors(file) == {"emg": {"riemann": {"0": 0.5, "1": 0.5}}}
    assert one_command.competitors(tmp_path / "none.jsonl") == {}


def test_quartiles_that_rise_are_counted_in_the_tables_of_levels():
    def rows(name, *quartiles):
        levels = [("nothing", "all", ""), ("recording", "all", CHOSEN), ("labels", "5", CHOSEN)]
        return [
            {"data": name, "level": level, "amount": amount, "method": method, "tested": "other"}
            | {"lower quartile": quartile}
            for (level, amount, method), quartile in zip(levels, quartiles, strict=True)
        ]

    up, level, short = rows("a", 0.4, 0.5, 0.6), rows("b", 0.4, 0.4, 0.6), rows("c", 0.1, 0.2, 0.3)
    other = [row | {"tested": "same", "lower quartile": 0.9} for row in up]
    assert one_command.rising([*up, *other, *level, *short[:2]]) == 1


def test_only_runs_of_thirty_minutes_count(tmp_path):
    file = tmp_path / "hands_off.jsonl"
    beside = {"classical": scores(0.5)}
    rows = [
        {"case": "emg 10m", "people": scores(0.6)},
        {"case": "emg 30m", "people": scores(0.7), "beside": beside},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    assert one_command.runs(file) == {"emg": {"one command": scores(0.7), **beside}}


def test_what_is_missing_is_not_met():
    goals = one_command.goals_of({"classical": {}}, {}, [])
    assert {goal.name for goal in goals if goal.kept} == {
        "nothing: sets significantly below classical",
        "recording: sets significantly below nothing",
    }


def test_the_lower_quartile_must_rise_with_each_level():
    def row(*quartiles):
        names = (f"quartile, {level}" for level in ("nothing", "recording", "labels"))
        return dict(zip(names, quartiles, strict=True)) | {"recording": 0.7, "labels": 0.8}

    levels = [row(0.5, 0.6, 0.7), row(0.5, 0.6, 0.55), row(0.5, 0.5, 0.6), row(0.5, 0.6, np.nan)]
    goals = {goal.name: goal for goal in one_command.goals_of({}, {}, levels)}
    assert goals["lower quartile: sets where it rises with each level"].value == 1
    assert goals["labels: sets above recording"].value == 4


def test_scores_of_everybody_are_read_from_the_folder_of_a_run(tmp_path):
    (tmp_path / "scores.csv").write_text(
        "person,level,method,seed,score\n"
        "01,nothing,answer,,0.9\n"
        "01,nothing,classical pipeline,,0.5\n"
        '01,nothing,"first network of the answer, uncensored",0,0.6\n'
        '01,recording,"first network of the answer, uncensored",0,0.7\n'
    )
    wanted = {"classical": {"01": 0.5}, "nothing": {"01": 0.6}, "recording": {"01": 0.7}}
    assert everybody(tmp_path) == wanted


def test_levels_are_compared_on_the_people_who_have_all_of_them():
    levels = {"nothing": {"a": 0.2, "b": 0.6}, "recording": {"a": 0.9, "b": 0.7}}
    (row,) = one_command.table_of_levels({"ecg": levels | {"labels": {"b": 0.8}}}, {})
    assert (row["people"], row["nothing"], row["recording"], row["labels"]) == (1, 0.6, 0.7, 0.8)
    assert np.isnan(row["stream"])
