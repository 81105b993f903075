"""The ledger as it should be: what goes in comes out, once, on both storages."""

from __future__ import annotations

import math
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotransfer.errors import LedgerError
from autotransfer.search.ledger import Entry, Ledger

pytest_plugins = ["postgres"]

DONE = Entry(
    id="4b0c",
    stage="search",
    state="done",
    definition={"setting": {"measure": "mmd", "strength": 0.1}, "fold": 3, "seed": 2**40},
    result={"score": 0.1 + 0.2, "tiny": 5e-324, "classes": {"é": 1 / 3}, "curve": [1e300, -0.0]},
    attempts=2,
    value=0.1 + 0.7,
    params={"measure": "mmd", "mode": None, "censored": True, "strength": 0.1, "note": "x", "n": 3},
)
FAILED = Entry("91aa", "search", "failed", {"fold": 1}, {}, error="Traceback\n  \0 'é' \ud800")


@pytest.fixture(params=["file", "postgres"])
def storage(request, tmp_path):
    if request.param == "file":
        return tmp_path / "ledger"
    return request.getfixturevalue("database")


def number(n: int, stage: str = "search") -> Entry:
    return replace(DONE, id=f"id{n}", stage=stage, definition={"n": n}, value=n / 7)


def test_curves_are_read_when_asked_for(storage):
    with_curves = replace(DONE, curves={"task_loss": [1.5, 0.1], "penalty": [None, 1e-300]})
    with Ledger(storage, "run") as ledger:
        ledger.record(with_curves)
        assert ledger.entries("search") == [DONE]
        assert ledger.entries("search", curves=True) == [with_curves]


def test_entries_come_back_exactly(storage):
    with Ledger(storage, "run") as ledger:
        ledger.record(DONE)
        ledger.record(FAILED)
        assert ledger.entries("search") == [DONE, FAILED]
        # 1 == 1.0 == True, and -0.0 == 0.0: only the text tells them apart.
        assert repr(ledger.entries("search")) == repr([DONE, FAILED])
    with Ledger(storage, "run", read_only=True) as ledger:
        assert ledger.entries("search") == [DONE, FAILED]
        assert ledger.ids("search") == {"4b0c", "91aa"}
        assert ledger.stages() == ["search"]


def test_nan_and_infinity_come_back(storage):
    odd = replace(DONE, result={"nan": math.nan, "inf": [math.inf, -math.inf]})
    with Ledger(storage, "run") as ledger:
        ledger.record(odd)
        result = ledger.entries("search")[0].result
    assert math.isnan(result["nan"])
    assert result["inf"] == [math.inf, -math.inf]


def test_a_trial_that_is_done_may_have_no_value(storage):
    refit = replace(DONE, stage="refit", value=None)
    with Ledger(storage, "run") as ledger:
        ledger.record(refit)
        assert ledger.entries("refit") == [refit]


def test_an_id_is_recorded_once_in_a_stage(storage):
    with Ledger(storage, "run") as ledger:
        ledger.record(DONE)
        with pytest.raises(LedgerError, match="Trial 4b0c of search is already on record"):
            ledger.record(replace(DONE, value=0.9))
        ledger.record(replace(DONE, stage="crossval"))
    with Ledger(storage, "run") as ledger:
        with pytest.raises(LedgerError, match="already on record"):
            ledger.record(DONE)
        assert ledger.entries("search") == [DONE]
        assert ledger.stages() == ["search", "crossval"]


def test_runs_in_one_storage_do_not_see_each_other(storage):
    for name in ("a", "a/b", "ab"):
        with Ledger(storage, name) as ledger:
            assert ledger.stages() == []
            ledger.record(replace(DONE, error=name))
    for name in ("a", "a/b", "ab"):
        with Ledger(storage, name, read_only=True) as ledger:
            assert ledger.stages() == ["search"]
            assert [entry.error for entry in ledger.entries("search")] == [name]


def test_a_plan_is_written_once(storage):
    plan = {"ids": ["a", "b"], "strength": 0.1, "options": {"x": 1, "y": None}}
    with Ledger(storage, "run") as ledger:
        assert ledger.plan("search") is None
        ledger.write_plan("search", plan)
        ledger.write_plan("search", {"options": {"y": None, "x": 1}, **plan})
        with pytest.raises(LedgerError, match="Another plan of search"):
            ledger.write_plan("search", {**plan, "strength": 0.2})
    with Ledger(storage, "run") as ledger:
        ledger.write_plan("search", plan)
        assert ledger.plan("search") == plan
        assert ledger.plan("refit") is None
        assert ledger.stages() == ["search"]
    with Ledger(storage, "run", read_only=True) as ledger:
        assert ledger.plan("search") == plan


def test_nothing_is_on_record_of_an_unknown_stage(storage):
    Ledger(storage, "run").close()
    with Ledger(storage, "run", read_only=True) as ledger:
        assert (ledger.entries("x"), ledger.ids("x"), ledger.plan("x")) == ([], set(), None)
        assert ledger.stages() == []


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (replace(DONE, state="running"), "only done and failed"),
        (replace(DONE, value=math.nan), "finite number"),
        (replace(FAILED, value=0.5), "if it failed, None"),
        (replace(DONE, result={"x": {1, 2}}), "The result of Trial 4b0c of search cannot be kept"),
        (replace(DONE, stage="a/b"), "cannot be a stage"),
    ],
)
def test_what_cannot_be_kept_is_refused(tmp_path, entry, words):
    with Ledger(tmp_path / "ledger", "run") as ledger:
        with pytest.raises(LedgerError, match=words):
            ledger.record(entry)
        assert ledger.stages() == []


def test_a_closed_or_read_only_ledger_refuses_to_write(storage):
    ledger = Ledger(storage, "run")
    ledger.record(DONE)
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="closed"):
        ledger.record(FAILED)
    with Ledger(storage, "run", read_only=True) as looking:
        with pytest.raises(LedgerError, match="for reading only"):
            looking.record(FAILED)
        assert looking.entries("search") == [DONE]


def test_there_is_nothing_to_look_at(tmp_path, postgres_server):
    for storage in (tmp_path / "none", postgres_server.create_database()):
        with pytest.raises(LedgerError, match="There is no ledger"):
            Ledger(storage, "run", read_only=True)
    assert list(tmp_path.iterdir()) == []


TEXTS = st.text(st.characters(), max_size=8)
NUMBERS = st.integers() | st.floats(allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=3)
NAMES = st.sampled_from(["measure", "strength", "note"])
VALUES = st.none() | st.booleans() | NUMBERS | st.sampled_from(["mmd", "", "é"])
RESULTS = st.builds(
    Entry,
    id=st.text("0123456789abcdef", min_size=1, max_size=6),
    stage=st.sampled_from(["search", "crossval"]),
    state=st.just("done"),
    definition=OBJECTS,
    result=OBJECTS,
    attempts=st.integers(1, 9),
    value=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    params=st.dictionaries(NAMES, VALUES),
)
FAILURES = st.builds(
    replace, RESULTS, state=st.just("failed"), value=st.none(), result=st.just({}), error=TEXTS
)
# False stands for closing and opening again.
LIVES = st.lists(RESULTS | FAILURES | st.just(False), max_size=12)


def live(storage, name: str, life: list[Entry | bool]) -> None:
    """Record, reopen, and compare with what a plain list would hold."""
    told: list[Entry] = []
    ledger = Ledger(storage, name)
    try:
        for act in life:
            if not isinstance(act, Entry):
                ledger.close()
                ledger = Ledger(storage, name)
            elif (act.stage, act.id) in {(entry.stage, entry.id) for entry in told}:
                with pytest.raises(LedgerError, match="already on record"):
                    ledger.record(act)
            else:
                ledger.record(act)
                told.append(act)
            for stage in ("search", "crossval"):
                expected = [entry for entry in told if entry.stage == stage]
                assert ledger.entries(stage) == expected
                assert ledger.ids(stage) == {entry.id for entry in expected}
    finally:
        ledger.close()
    with Ledger(storage, name, read_only=True) as looking:
        assert looking.stages() == list(dict.fromkeys(entry.stage for entry in told))


@settings(deadline=None, max_examples=60)
@given(life=LIVES)
def test_any_life_in_a_file(tmp_path_factory, life):
    live(tmp_path_factory.mktemp("life") / "ledger", "run", life)


@pytest.mark.slow
@settings(
    deadline=None, max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(life=LIVES)
def test_any_life_on_postgres(database, life):
    live(database, uuid.uuid4().hex, life)  # one database for all lives: each is a run


def test_a_missing_extra_is_named(tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import core_only\n"
        "sys.meta_path[:] = [core_only.WithoutExtras if f is core_only.PathFinder else f "
        "for f in sys.meta_path]\n"
        "from autotransfer.search.ledger import Ledger\n"
        "Ledger('postgresql://me:secret@127.0.0.1:1/db', 'run')"
    )
    house = Path(__file__).parents[2] / "house"
    done = subprocess.run(
        [sys.executable, "-c", code, house], capture_output=True, text=True, check=False
    )
    assert "MissingExtraError" in done.stderr
    assert 'pip install "psycopg[binary]"' in done.stderr
