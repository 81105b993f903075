"""The benchmarks of nine data sets learn nothing of the people they test, below level labels."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import autotransfer as at
from autotransfer.data.trials import TrialArray
from autotransfer.search.levels.cases import N_LABELS, few_labels
from autotransfer.search.levels.person import Known
from benchmarks.accuracy.levels import groups
from benchmarks.censors.skew import SKEWED
from benchmarks.common.parts_of_people import parts
from benchmarks.nine_sets import another_session, censoring, more_people, today

DATA = at.make_subjects(n_subjects=6, n_trials=40, n_classes=3, noise=2.0, random_state=0)


def scrambled(test):
    """The data with other labels for some trials."""
    y = DATA.y.copy()
    y[test] = (y[test] + 1) % 3
    return at.SubjectDataset(DATA.trials[:], y, DATA.subject, sfreq=DATA.sfreq)


@pytest.mark.parametrize("method", ["riemann"])
def test_competitors_learn_no_label_of_the_new_people(method):
    fold = groups(DATA, 3)[0]
    job = today.Job("emg", method, 3, 0, np.inf)
    models = [today.fit(job, data, fold) for data in (DATA, scrambled(fold.test))]
    found = [model(DATA.trials[:]) for model in models]
    assert np.array_equal(*found)
    assert len(np.unique(found[0])) == 3  # a model that has learnt nothing would pass, too


def test_a_model_of_a_single_class_knows_that_one():
    X, y = DATA.trials[:], DATA.y
    only = y == 1
    assert set(today.own_model(X[only], y[only])(X)) == {1}
    assert len(set(today.own_model(X, y)(X))) == 3


def test_validation_people_are_training_people():
    fold = groups(DATA, 3)[1]
    known = today.known_of(today.Job("emg", "braindecode-people", 3, 1, np.inf), DATA, fold)
    assert set(known.validation) < set(fold.subjects("train"))
    assert set(known.data.subject) == set(fold.subjects("train"))
    known = today.known_of(today.Job("emg", "braindecode", 3, 1, np.inf), DATA, fold)
    assert known.validation == []


def test_labels_and_other_trials_are_those_of_the_levels(monkeypatch):
    monkeypatch.setattr(today, "load_set", lambda name: DATA)
    seen = {}

    def model(X):
        return np.zeros(len(X), int)

    def tuned(X, y, seed):
        seen["labelled"] = X
        return model

    def own(X, y):
        return model

    model.tuned = tuned
    monkeypatch.setattr(today, "fit", lambda *_: model)
    monkeypatch.setattr(today, "own_model", own)
    found = today.run(today.Job("any", today.WITH_LABELS, 6, 0, np.inf))
    who = next(iter(found["same"]))
    mine = np.flatnonzero(DATA.subject.astype(str) == who)
    known = Known.of(None, TrialArray(DATA.trials[mine]), DATA.y_code[mine], mine, 0)
    few, _ = few_labels(known.codes, known.given, N_LABELS)
    assert np.array_equal(seen["labelled"], DATA.trials[mine][few])
    assert found["tuned"][who] == found["other"][who] == pytest.approx(1 / 3)


def test_more_people_are_never_those_held_out():
    data = more_people.everybody(made_up=True)
    before = set()
    for people in (2, 4):
        fold = more_people.fold_of(data, more_people.Job(people, 0, 0))
        train = set(fold.subjects("train"))
        assert len(train) == people
        assert before < train  # more people are the same and others
        assert not train & set(fold.subjects("test"))
        before = train


@pytest.mark.parametrize("placebo", [False, True])
def test_labels_of_new_people_change_no_weight_of_a_censored_network(placebo, monkeypatch):
    fold = parts(DATA.subject, 2)[0]
    job = censoring.Job("emg", "all", "eegnet", "mmd", "marginal", placebo, 0, 0, 20)
    found = []
    for data in (DATA, scrambled(fold.test)):
        monkeypatch.setattr(censoring, "load_set", lambda name, data=data: data)
        found.append(censoring.run(job))
    assert found[0]["leakage"] == found[1]["leakage"]
    assert found[0]["cases"] != found[1]["cases"]  # they are judged by these labels


def test_a_censor_and_its_placebo_stand_beside_networks_of_their_own_batches():
    scores = {  # measure, mode, placebo
        (None, "marginal", False): 0.5,
        (None, "marginal", True): 0.4,
        (None, "conditional", False): 0.6,
        (None, "conditional", True): 0.3,
        ("mmd", "marginal", False): 0.51,
        ("mmd", "marginal", True): 0.42,
        ("mmd", "conditional", False): 0.63,
        ("mmd", "conditional", True): 0.34,
    }
    todo = censoring.jobs(["emg"], ["eegnet"], ["mmd"], ["marginal", "conditional"], 1, None)
    assert {(job.measure, job.mode, job.placebo) for job in todo} == set(scores)
    results = {}
    for job in todo:
        score = scores[job.measure, job.mode, job.placebo]
        people = {f"{job.part}-{n}": score for n in range(6)}
        case = censoring.CASES[0].to_json() | {"subjects": people}
        leakage = {name: {"accuracy": score} for name in ("z", "z given y")}
        results[job] = {"cases": [case], "leakage": leakage}
    rows = {row["censor"]: row for row in censoring.rows_of(results)}
    up = {name: row["accuracy up"] for name, row in rows.items() if name.startswith("mmd")}
    assert up == {
        "mmd marginal": pytest.approx(0.01),
        "mmd marginal placebo": pytest.approx(0.02),
        "mmd conditional": pytest.approx(0.03),
        "mmd conditional placebo": pytest.approx(0.04),
    }
    assert rows["mmd marginal placebo"]["probe less"] == pytest.approx(-0.02)
    shuffled = {name for name in rows if name.endswith(", people shuffled")}
    assert len(shuffled) == 2
    assert all(np.isnan(rows[name]["accuracy up"]) for name in shuffled)


def test_skewed_trials_are_of_training_people_and_fewer(monkeypatch):
    monkeypatch.setattr(censoring, "load_set", lambda name: DATA)
    job = censoring.Job("emg", SKEWED, "eegnet", None, "marginal", False, 0, 0, 2)
    assert censoring.run(job)["trials"] < len(parts(DATA.subject, 2)[0].train)


def test_runs_on_record_stand_by_budget_with_the_time_of_both_cores(monkeypatch, tmp_path):
    rows = [
        {"case": "emg 30m", "people": {"1": 0.8}, "seconds": 1800.0},
        {"case": "emg 2m", "people": {"1": 0.7}, "seconds": 120.0},
        {"case": "emg 10m busy", "people": {"1": 0.6}, "seconds": 600.0},
        {"case": "emg 1h30m", "people": {"1": 0.9}, "seconds": None},
        {"case": "erp 5m", "people": {"1": 0.5}, "seconds": 300.0},
    ]
    monkeypatch.setattr(today, "RESULTS", tmp_path)
    assert today.runs_on_record("emg") == {}
    (tmp_path / "hands_off.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert list(today.runs_on_record("emg").items()) == [
        ("2m", ({"1": 0.7}, 240.0)),
        ("30m", ({"1": 0.8}, 3600.0)),
        ("1h30m", ({"1": 0.9}, None)),
    ]
    job = today.Job("emg", "riemann", 1, 0, np.inf)
    found = today.rows_of("emg", {job: {"same": {"1": 0.75}, "other": {}, "seconds": 60.0}})
    minutes = [(row["method"], row["CPU min"]) for row in found]
    assert minutes[:2] == [("one command, 2m", 4.0), ("one command, 30m", 60.0)]
    assert minutes[-1] == ("riemann", 1.0)
    assert found[-1]["ours is above by"] == pytest.approx(0.05)  # than the run of 30 minutes


def test_who_adapts_is_compared_with_our_network_adapted(monkeypatch, tmp_path):
    """Beside a method that has the unlabelled trials, ours has them too."""

    def case(level, method, scores):
        return {
            "level": level,
            "amount": None,
            "method": method,
            "tested": "same",
            "subjects": scores,
        }

    nothing = dict.fromkeys("1234", 0.5)
    cases = [
        case("nothing", "", nothing),
        case("recording", "statistics", dict.fromkeys(nothing, 0.7)),
    ]
    key = json.dumps({"dataset": "emg", "recipe": "default", "seed": 0, "groups": 1})
    line = json.dumps({"key": key, "result": {"cases": cases, "guard": {}, "judged": {}}})
    (tmp_path / "levels.jsonl").write_text(line + "\n")
    monkeypatch.setattr(today, "RESULTS", tmp_path)
    result = {"same": dict.fromkeys(nothing, 0.6), "other": {}, "seconds": 60.0}
    methods = "riemann", "braindecode-aligned"
    jobs = {today.Job("emg", method, 1, 0, np.inf): result for method in methods}
    above = {row["method"]: row["ours is above by"] for row in today.rows_of("emg", jobs)}
    assert above["riemann"] == pytest.approx(-0.1)
    assert above["braindecode-aligned"] == pytest.approx(0.1)


def test_the_table_of_what_is_on_record_trains_nothing(monkeypatch, tmp_path):
    """A method that has not finished all groups of a data set is left out of it."""
    result = {"same": {"1": 0.75}, "other": {}, "seconds": 60.0}
    jobs = [today.Job("emg", "riemann", 3, i, 1200.0) for i in range(3)]
    jobs += [today.Job("erp", "riemann", 3, i, 1200.0) for i in range(2)]
    keep, table = tmp_path / "kept.jsonl", tmp_path / "table.json"
    lines = [json.dumps({"key": job.key, "result": result}) for job in jobs]
    keep.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(today, "RESULTS", tmp_path)
    monkeypatch.setattr(today, "load_set", lambda name: DATA)
    monkeypatch.setattr(today, "n_groups", lambda data: 3)
    monkeypatch.setattr(today, "run", None)
    command = ["today", "--on-record", "--keep", str(keep), "--json", str(table), "--workers", "0"]
    monkeypatch.setattr(sys, "argv", command)
    today.main()
    rows = json.loads(table.read_text())["rows"]
    assert [(row["data"], row["method"]) for row in rows] == [("emg", "riemann")]


def test_another_session_is_predicted_by_what_is_said(monkeypatch):
    """What is tested is of the last session, and is never among what was adapted to."""
    codes, came = np.tile([0, 1], 40), np.repeat([0, 1, 2], [30, 10, 40])
    unit = np.arange(80) // 4 * 2 + codes  # recordings of two trials
    now, tested, then = another_session.cut(codes, unit, came, seed=0)
    assert set(came[now]) == set(came[tested]) == {2}
    assert sorted([*now, *tested]) == list(range(40, 80))
    assert not set(unit[now]) & set(unit[tested])
    assert sorted(then) == list(range(30))
    monkeypatch.setattr(another_session, "load_set", lambda name: DATA)
    job = another_session.Job("made up", groups=3, group=0, seed=0, n_steps=2)
    found = another_session.run(job)
    nothing = [one["subjects"] for one in (found[of][0] for of in found) if one["subjects"]]
    assert nothing[0] == nothing[1]  # the same network on the same trials
    assert len(nothing[0]) == 2
