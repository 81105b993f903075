"""The driver with the real local engine and the real ledger: faults of trials and of workers."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import work

from autotransfer.errors import EngineError, LedgerError, RunStoppedError, StalledTrialWarning
from autotransfer.search import BASELINE, Ledger, Setting, driver, make_engine
from autotransfer.search.driver import TRIES, Driver, Stop
from autotransfer.search.progress import RunProgress
from autotransfer.search.settings.trial import Trial

TRIALS = [
    Trial(setting, fold, 8, 0, 10)
    for fold in range(8)
    for setting in (BASELINE, Setting.of("mmd", "marginal", 3))
]


@pytest.fixture
def run(tmp_path):
    """Run trials with a function of `work`; gives the driver's answer and the ledger's entries."""
    (tmp_path / "traces").mkdir()

    def go(function, trials=TRIALS, stop=None, **engine):
        with (
            make_engine("local", 2, **engine) as made,
            Ledger(tmp_path / "ledger", "run") as ledger,
        ):
            handle = made.put(str(tmp_path / "traces"))
            driver = Driver(
                ledger, lambda: (made, handle), "data", RunProgress(False), stop or Stop(), function
            )
            try:
                return driver.run("search", trials), ledger.entries("search")
            except BaseException:
                go.left = ledger.entries("search")
                raise

    go.traces = lambda: sorted(p.name for p in (tmp_path / "traces").iterdir())
    return go


def test_all_are_run_once_and_in_the_order_of_the_plan(run):
    found, entries = run(work.fine)
    assert [(s.setting, s.fold) for s in found] == [(t.setting, t.fold) for t in TRIALS]
    assert len(entries) == len(run.traces()) == len(TRIALS)
    again, entries = run(work.fine)
    assert again == found
    assert len(entries) == len(run.traces()) == len(TRIALS)


def test_a_trial_that_stands_twice_in_a_plan_is_run_once(run):
    found, entries = run(work.fine, [*TRIALS, *TRIALS])
    assert len(found) == 2 * len(TRIALS)
    assert len(entries) == len(run.traces()) == len(TRIALS)


@pytest.mark.slow
def test_faults_are_recorded_and_the_run_goes_on(run):
    trials = [t for t in TRIALS if t.setting == BASELINE]
    found, entries = run(work.faulty, trials, time_limit=3, memory_limit=3 * 2**30)
    assert len(entries) == len(trials)
    by_fold = {e.definition["fold"]: e for e in entries}
    words = {
        0: "boom of fold 0",
        1: "WorkerDiedError",
        2: "TrialTimeoutError",
        3: "the score nan",
        4: "MemoryError",
        5: "NonFiniteLossError",
    }
    for fold, text in words.items():
        entry = by_fold[fold]
        assert entry.state == "failed"
        assert text in entry.error
        # What this package raises by name would be raised again: tried once.
        assert entry.attempts == (1 if fold == 5 else TRIES)
        assert found[fold].error
    assert "in faulty" in by_fold[0].error  # the worker's own frames
    for fold in (6, 7):
        assert by_fold[fold].state == "done"
        assert by_fold[fold].attempts == 1


@pytest.mark.slow
@pytest.mark.nightly
def test_workers_that_die_cost_an_attempt_and_no_result(run):
    found, entries = run(work.dies_at_first)
    assert all(not one.error for one in found)
    assert [e.value for e in sorted(entries, key=lambda e: e.id)] == [
        work.result(t)["validation"]["balanced_accuracy"]
        for t in sorted(TRIALS, key=lambda t: t.id("data"))
    ]
    died = sum(t.fold % 3 == 0 for t in TRIALS)
    assert len(run.traces()) == len(TRIALS) + died


@pytest.mark.nightly
def test_asked_once_it_finishes_what_runs_and_twice_it_stops(run):
    for asked in (1, 2):
        stop = Stop()

        def ask(stop=stop, asked=asked):
            time.sleep(6)
            stop.asked = asked

        threading.Thread(target=ask, daemon=True).start()
        with pytest.raises(RunStoppedError, match="the same call goes on"):
            run(work.slow, [Trial(BASELINE, f, 99, 0, 10) for f in range(99)], stop)
        before = len(run.left)
        if asked == 1:
            assert before == len(run.traces())  # nothing that had begun was thrown away
    found, entries = run(work.slow, [Trial(BASELINE, f, 99, 0, 10) for f in range(99)])
    assert len(found) == len(entries) == 99
    assert len({e.id for e in entries}) == 99


def test_control_c_is_heard_in_the_main_thread_and_given_back(capfd):
    before = signal.getsignal(signal.SIGINT)
    stop = Stop()
    with stop.listening(RunProgress(True)):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
    assert stop.asked == 2
    assert signal.getsignal(signal.SIGINT) is before
    said = capfd.readouterr().err
    assert "finished first" in said
    assert "Stopping now" in said


def test_sigterm_gives_trials_a_while_and_then_stops(run, monkeypatch):
    monkeypatch.setattr(driver, "GRACE", 1.0)
    stop = Stop()
    asked = []

    def ask():
        while not run.traces():
            time.sleep(0.05)
        asked.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with stop.listening(RunProgress(False)):
        threading.Thread(target=ask, daemon=True).start()
        with pytest.raises(RunStoppedError, match="the same call goes on"):
            run(work.hangs, TRIALS[:1], stop)
    assert 1 <= time.monotonic() - asked[0] < 10
    assert stop.asked == 1
    assert signal.getsignal(signal.SIGTERM) is before
    assert run.left == []  # to be run again, as if it had never begun


def test_a_second_sigterm_stops_now(capfd):
    stop = Stop()
    with stop.listening(RunProgress(True)):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)
        assert (stop.asked, stop.now) == (1, False)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)
        assert stop.now
    said = capfd.readouterr().err
    # Slurm and Kubernetes kill after 30 s.
    assert "the trials that run have 20 s to finish" in said
    assert "Stopping now" in said


def test_a_trial_that_seems_to_hang_is_named_once_and_left_alone(run, monkeypatch):
    monkeypatch.setattr(driver, "STALLED_SECONDS", 1.0)
    trials = [t for t in TRIALS if t.setting == BASELINE][:4]
    with pytest.warns(StalledTrialWarning) as said:
        found, entries = run(work.stalls, trials)
    (warning,) = said
    assert str(warning.message).startswith("uncensored, fold 2 of 8: no epoch has ended for ")
    assert "an epoch takes about 0 s" in str(warning.message)
    assert "--time-limit" in str(warning.message)
    assert all(not one.error for one in found)
    assert [entry.attempts for entry in entries] == [1] * 4


def test_a_ledger_that_cannot_be_written_stops_the_run(tmp_path):
    with make_engine("local", 1) as engine, Ledger(tmp_path / "ledger", "run") as ledger:
        handle = engine.put(str(tmp_path))
        driver = Driver(
            ledger, lambda: (engine, handle), "data", RunProgress(False), Stop(), work.fine
        )
        ledger.close()
        with pytest.raises(LedgerError):
            driver.run("search", TRIALS[:2])


@pytest.mark.slow
def test_an_engine_that_is_broken_stops_the_run_and_fails_no_trial(tmp_path):
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        make_engine(pool) as engine,
        Ledger(tmp_path / "ledger", "run") as ledger,
    ):
        handle = engine.put(str(tmp_path))
        driver = Driver(
            ledger, lambda: (engine, handle), "data", RunProgress(False), Stop(), work.faulty
        )
        with pytest.raises(EngineError, match="local"):
            driver.run("search", [t for t in TRIALS if t.fold in (1, 6, 7)])
        assert all(entry.state == "done" for entry in ledger.entries("search"))
