"""Laws that every engine keeps."""

from __future__ import annotations

import os
import signal
import time
import traceback
from concurrent.futures import (
    CancelledError,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
    wait,
)
from importlib.util import find_spec
from multiprocessing import get_context

import numpy as np
import pytest

from autotransfer.errors import (
    AutoTransferWarning,
    EngineError,
    SettingError,
    TrialTimeoutError,
    WorkerDiedError,
)
from autotransfer.search.engines import make_engine
from autotransfer.search.engines.executor import ExecutorEngine

PATIENCE = 120  # seconds; machines that run tests are busy

needs_ray = pytest.mark.skipif(
    find_spec("ray") is None and os.environ.get("AUTOTRANSFER_NEED_RAY") != "1",
    reason="ray is not installed",
)
# Ray takes long to start: one is shared by all tests of this file.
# One Ray run stays for every change: test_auto.
ray = pytest.param("ray", marks=[needs_ray, pytest.mark.slow, pytest.mark.nightly])
ALL = ["local", "pool", ray]
OURS = ["local", ray]  # those that replace workers


def square(x):
    return x * x


def fail(word):
    raise KeyError(word)


def total(array):
    return float(array.sum())


def total_of(handle):
    return float(handle.get().sum())


def torch_threads():
    import torch

    return torch.get_num_threads()


def die(number=signal.SIGKILL):
    os.kill(os.getpid(), number)


def touch(path, seconds=0.0):
    path.touch()
    time.sleep(seconds)


def spin_in_c():
    """Hold the interpreter in C code: no other thread of the process gets a turn."""
    sum(range(10**11))


@pytest.fixture(scope="module")
def engines():
    """Engines by name, made when first asked for."""
    made = {}
    pools = []

    def get(name):
        if name not in made:
            if name == "pool":
                pools.append(ProcessPoolExecutor(2, mp_context=get_context("spawn")))
                made[name] = make_engine(pools[0])
            else:
                made[name] = make_engine(name, 2)
        return made[name]

    yield get
    for engine in made.values():
        engine.shutdown(cancel_futures=True)
    for pool in pools:
        pool.shutdown()


@pytest.fixture
def engine(request, engines):
    return engines(request.param)


every_engine = pytest.mark.parametrize("engine", ALL, indirect=True)
our_engines = pytest.mark.parametrize("engine", OURS, indirect=True)


@every_engine
def test_results_come_whatever_the_order(engine):
    futures = {engine.submit(square, n): n for n in range(20)}
    found = {futures[done]: done.result() for done in as_completed(futures, PATIENCE)}
    assert found == {n: n * n for n in range(20)}


@every_engine
def test_many_small_trials(engine):
    futures = [engine.submit(square, n) for n in range(300)]
    assert [f.result(PATIENCE) for f in futures] == [n * n for n in range(300)]


@every_engine
def test_says_how_many_run_at_once_and_that_files_are_seen(engine):
    assert engine.n_workers == 2
    assert engine.shares_filesystem is True


@every_engine
def test_an_error_of_the_trial_comes_back_with_the_place_where_it_was_raised(engine):
    error = engine.submit(fail, "why").exception(PATIENCE)
    assert type(error) is KeyError
    assert error.args == ("why",)
    text = "".join(traceback.format_exception(error))
    assert "in fail" in text
    assert "raise KeyError(word)" in text
    assert engine.submit(square, 3).result(PATIENCE) == 9


@every_engine
def test_big_arguments_and_results(engine):
    array = np.arange(3_000_000.0)
    assert engine.submit(total, array).result(PATIENCE) == array.sum()
    np.testing.assert_array_equal(engine.submit(np.negative, array).result(PATIENCE), -array)


@every_engine
def test_workers_see_what_was_put(engine):
    array = np.ones(50_000_000 // 8)
    handle = engine.put(array)
    assert handle.get() is array
    futures = [engine.submit(total_of, handle) for _ in range(4)]
    assert [f.result(PATIENCE) for f in futures] == [len(array)] * 4


@every_engine
def test_workers_have_one_torch_thread(engine):
    assert engine.submit(torch_threads).result(PATIENCE) == 1


@our_engines
def test_workers_environment_says_one_thread(engine):
    assert engine.submit(os.getenv, "OMP_NUM_THREADS").result(PATIENCE) == "1"
    assert engine.submit(os.getenv, "OMP_WAIT_POLICY").result(PATIENCE) == "PASSIVE"


@every_engine
def test_trials_that_wait_can_be_cancelled(engine, tmp_path):
    busy = [engine.submit(touch, tmp_path / f"busy{n}", 3.0) for n in range(2)]
    # A pool hands one trial more than it runs to its workers, who cannot give it back.
    waiting = [engine.submit(touch, tmp_path / f"waiting{n}") for n in range(6)]
    assert waiting[-1].cancel()
    assert waiting[-1].cancelled()
    wait(busy + waiting, PATIENCE)
    with pytest.raises(CancelledError):
        waiting[-1].result(PATIENCE)
    assert not (tmp_path / "waiting5").exists()
    assert (tmp_path / "waiting4").exists()
    assert not busy[0].cancel()


@our_engines
def test_a_worker_that_dies_fails_its_own_trial_only(engine):
    futures = [engine.submit(die) if n == 3 else engine.submit(square, n) for n in range(8)]
    with pytest.raises(WorkerDiedError, match="ended before its trial did"):
        futures.pop(3).result(PATIENCE)
    assert [f.result(PATIENCE) for f in futures] == [n * n for n in range(8) if n != 3]
    assert engine.submit(square, 3).result(PATIENCE) == 9


@our_engines
def test_an_exit_in_a_trial_does_not_reach_the_driver(engine):
    error = engine.submit(os._exit, 3).exception(PATIENCE)
    assert isinstance(error, WorkerDiedError)
    assert engine.submit(square, 3).result(PATIENCE) == 9


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_a_trial_over_its_time_limit_is_stopped(engines, name):
    engines(name)  # Ray is used as it is there
    with make_engine(name, 2, time_limit=2) as engine:
        for fn, args in [(time.sleep, (600,)), (spin_in_c, ())]:
            # The wait for a free worker must not count.
            futures = [engine.submit(fn, *args), *(engine.submit(square, n) for n in range(5))]
            with pytest.raises(TrialTimeoutError, match="longer than its time limit of 2 s"):
                futures[0].result(PATIENCE)
            assert [f.result(PATIENCE) for f in futures[1:]] == [n * n for n in range(5)]
        slow = [engine.submit(time.sleep, 1.2) for _ in range(6)]
        assert [f.result(PATIENCE) for f in slow] == [None] * 6
        with pytest.raises(WorkerDiedError):
            engine.submit(die).result(PATIENCE)


@pytest.mark.parametrize("name", OURS)
def test_no_trials_after_shutdown(engines, name):
    engines(name)
    engine = make_engine(name)
    future = engine.submit(square, 3)
    engine.shutdown()
    assert future.result(0) == 9
    with pytest.raises(RuntimeError, match="shut down"):
        engine.submit(square, 3)
    engine.shutdown()  # a second time does no harm


def test_a_pool_whose_worker_died_says_so_and_what_to_use_instead():
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        engine = make_engine(pool)
        with pytest.raises(WorkerDiedError, match="engine='local'"):
            engine.submit(die).result(PATIENCE)
        with pytest.raises(EngineError, match=r"useless.*engine='local'"):
            engine.submit(square, 3)


def test_an_executor_is_never_shut_down_by_us():
    with ThreadPoolExecutor(3) as pool:
        with make_engine(pool, n_workers=7) as engine:
            assert isinstance(engine, ExecutorEngine)
            assert engine.n_workers == 3
        with pytest.raises(RuntimeError, match="shut down"):
            engine.submit(square, 3)
        assert pool.submit(square, 3).result(PATIENCE) == 9


def test_limits_that_an_executor_cannot_keep_are_named():
    with ThreadPoolExecutor(1) as pool:
        with pytest.warns(AutoTransferWarning, match="time_limit and memory_limit cannot be kept"):
            make_engine(pool, time_limit=3, memory_limit=10**9)
        assert make_engine(pool, shares_filesystem=False).shares_filesystem is False


@pytest.mark.parametrize(
    ("args", "options", "says"),
    [
        (("lokal",), {}, "no engine 'lokal'. Did you mean 'local'.*local, ray"),
        ((7,), {}, r"a name \(local, ray\) or a concurrent.futures.Executor; not a int"),
        (("local", 0), {}, "n_workers must be a whole number, at least 1; not 0"),
        (("local", 2.5), {}, "n_workers must be"),
        (("local",), {"time_limit": 0}, "time_limit must be more than 0"),
        (("local",), {"memory_limit": -1}, "memory_limit must be more than 0"),
        (("local",), {"num_gpus": 1}, "does not know the option num_gpus. It knows: none"),
        (("ray",), {"adress": "x"}, "does not know the option adress.*address, num_cpus"),
    ],
)
def test_wrong_settings_are_named(args, options, says):
    with pytest.raises(SettingError, match=says):
        make_engine(*args, **options)
