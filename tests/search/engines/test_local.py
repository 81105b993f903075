"""The local engine: what can go wrong with processes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from multiprocessing import Pipe, get_context
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from autotransfer.errors import EngineError, WorkerDiedError
from autotransfer.search.engines.fork_server import FORKS
from autotransfer.search.engines.local import LocalEngine

PATIENCE = 120  # seconds; machines that run tests are busy
LINUX = sys.platform.startswith("linux")


class OddError(Exception):
    """Can be written by one process but not read by another."""

    def __init__(self, one, two):
        super().__init__(one)


def odd():
    raise OddError(1, 2)


def grab(megabytes):
    return int(np.ones(megabytes * 125_000).sum())


def grab_torch(megabytes):
    return int(torch.ones(megabytes * 250_000).sum())


def locked():
    return threading.Lock()


def tensor():
    return torch.arange(1000)


def processes_of(pid):
    """Processes of a driver, without Python's own tracker of shared memory."""
    children = psutil.Process(pid).children(recursive=True)
    return [c for c in children if "resource_tracker" not in " ".join(c.cmdline())]


def workers_of(pid):
    """Workers of a driver, without the server that they are forks of."""
    return [c for c in processes_of(pid) if not (FORKS and c.ppid() == pid)]


def gone(processes, seconds):
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture(scope="module")
def engine():
    with LocalEngine(1) as engine:
        engine.submit(os.getpid).result(PATIENCE)
        yield engine


def test_a_worker_is_kept_for_the_next_trial(engine):
    assert len({engine.submit(os.getpid).result(PATIENCE) for _ in range(5)}) == 1


def test_what_cannot_be_sent_is_told_and_the_worker_stays(engine):
    pid = engine.submit(os.getpid).result(PATIENCE)
    for fn, args, says in [
        (lambda: 1, (), "The trial cannot be sent to a worker: .*lambda"),
        (len, (threading.Lock(),), "The trial cannot be sent to a worker: .*lock"),
        (locked, (), "The trial's result, a lock, cannot be sent: .*pickle"),
        (odd, (), "The trial failed with .*OddError: 1"),
    ]:
        with pytest.raises(EngineError, match=says):
            engine.submit(fn, *args).result(PATIENCE)
    assert engine.submit(os.getpid).result(PATIENCE) == pid


def test_tensors_outlive_the_worker_that_made_them(engine):
    future = engine.submit(tensor)
    while not future.done():
        time.sleep(0.05)
    psutil.Process(engine.submit(os.getpid).result(PATIENCE)).kill()
    assert int(future.result(0).sum()) == 499_500


def test_a_worker_killed_while_idle_is_replaced(engine):
    pid = engine.submit(os.getpid).result(PATIENCE)
    os.kill(pid, signal.SIGKILL)
    assert engine.submit(os.getpid).result(PATIENCE) != pid


def test_a_death_is_told_in_words(engine):
    with pytest.raises(WorkerDiedError, match="killed by signal SIGSEGV"):
        engine.submit(signal.raise_signal, signal.SIGSEGV).result(PATIENCE)
    with pytest.raises(WorkerDiedError, match="exit code 3"):
        engine.submit(sys.exit, 3).result(PATIENCE)


# A terminal sends the one to all processes, and Slurm the other.
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_to_stop_are_for_the_driver(engine, number):
    pid = engine.submit(os.getpid).result(PATIENCE)
    future = engine.submit(time.sleep, 0.5)
    os.kill(pid, number)
    assert future.result(PATIENCE) is None
    assert engine.submit(os.getpid).result(PATIENCE) == pid


def test_the_drivers_environment_stays_as_it_was():
    before = dict(os.environ)
    with LocalEngine(1) as engine:
        engine.submit(os.getpid).result(PATIENCE)
    assert dict(os.environ) == before


@pytest.mark.parametrize("value", ["one", "another"])
def test_a_worker_has_the_environment_of_the_driver(monkeypatch, value):
    monkeypatch.setenv("AUTOTRANSFER_SAID", value)
    with LocalEngine(1) as engine:
        assert engine.submit(os.getenv, "AUTOTRANSFER_SAID").result(PATIENCE) == value
        assert engine.submit(os.getenv, "AUTOTRANSFER_DRIVER").result(PATIENCE) is None
        assert engine.submit(os.getenv, "OMP_NUM_THREADS").result(PATIENCE) == "1"
        assert engine.submit(os.getenv, "PYTHONPATH").result(PATIENCE) == os.getenv("PYTHONPATH")


@pytest.mark.skipif(not FORKS, reason="here every worker imports for itself")
def test_the_imports_are_made_once(engine):
    with LocalEngine(1) as another:
        assert another.submit(time.process_time).result(PATIENCE) < 1
    server = psutil.Process(engine.submit(os.getppid).result(PATIENCE))
    with LocalEngine(1) as another:
        assert another.submit(os.getppid).result(PATIENCE) == server.pid
        server.kill()
        while server.status() != psutil.STATUS_ZOMBIE:  # not wait(): Python's own has to see it
            time.sleep(0.01)
    with LocalEngine(1) as another:
        assert another.submit(os.getppid).result(PATIENCE) != server.pid


def in_a_fork(pipe):
    with LocalEngine(1) as engine:
        pipe.send(engine.submit(os.getpid).result(PATIENCE))


@pytest.mark.slow
@pytest.mark.skipif(not FORKS, reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_driver_that_is_a_fork_has_workers_of_its_own(engine):
    engine.submit(os.getpid).result(PATIENCE)
    here, there = Pipe()
    process = get_context("fork").Process(target=in_a_fork, args=(there,))
    process.start()
    there.close()
    try:
        assert here.poll(PATIENCE)
        assert here.recv() != process.pid
    finally:
        process.kill()
        process.join()


@pytest.mark.slow
def test_shutdown_leaves_no_process_behind():
    before = set(workers_of(os.getpid()))
    with LocalEngine(2) as engine:
        pids = [engine.submit(os.getpid) for _ in range(4)]
        used = {f.result(PATIENCE) for f in pids}
        started = set(workers_of(os.getpid())) - before
        assert used <= {p.pid for p in started}
    assert set(workers_of(os.getpid())) - before == set()


@pytest.mark.slow
def test_shutdown_at_once_kills_what_runs_and_drops_what_waits():
    engine = LocalEngine(1)
    pid = engine.submit(os.getpid).result(PATIENCE)
    worker = psutil.Process(pid)
    futures = [engine.submit(time.sleep, 600) for _ in range(3)]
    while not futures[0].running():
        time.sleep(0.05)
    engine.shutdown(wait=False, cancel_futures=True)
    assert gone([worker], 30)
    with pytest.raises(WorkerDiedError, match="the engine was shut down"):
        futures[0].result(PATIENCE)
    assert all(f.cancelled() for f in futures[1:])


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="memory limits are kept on Linux")
def test_a_trial_that_eats_memory_gets_an_error_and_the_worker_stays():
    with LocalEngine(1, memory_limit=2 * 10**9) as engine:
        pid = engine.submit(os.getpid).result(PATIENCE)
        with pytest.raises(MemoryError):
            engine.submit(grab, 4000).result(PATIENCE)
        with pytest.raises(RuntimeError, match="memory"):
            engine.submit(grab_torch, 4000).result(PATIENCE)
        assert engine.submit(grab, 100).result(PATIENCE) == 12_500_000
        assert engine.submit(os.getpid).result(PATIENCE) == pid


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="memory limits are kept on Linux")
def test_a_memory_limit_below_what_a_worker_needs_is_refused():
    with LocalEngine(1, memory_limit=10**6) as engine:
        for _ in range(2):
            with pytest.raises(EngineError, match="memory_limit is 1 MB, but a worker has"):
                engine.submit(os.getpid).result(PATIENCE)


DRIVER = """
import hashlib, os, sys, time
from autotransfer.search.engines.local import LocalEngine

TASKS = {
    "idle": (os.getpid,),
    "asleep": (time.sleep, 600),
    "in C with the interpreter held": (sum, range(10**12)),
    "in C without": (hashlib.pbkdf2_hmac, "sha512", b"a", b"b", 2**31 - 1),
}

if __name__ == "__main__":
    engine = LocalEngine(len(TASKS))
    ready = [engine.submit(time.sleep, 1.0) for _ in TASKS]
    for future in ready:
        future.result()
    futures = [engine.submit(*task) for task in TASKS.values()]
    futures[0].result()
    while not all(future.running() or future.done() for future in futures):
        time.sleep(0.05)
    print("busy", flush=True)
    time.sleep(float(sys.argv[1]))
"""


def start(path: Path, text: str, *args: str) -> subprocess.Popen:
    path.write_text(text)
    return subprocess.Popen(
        [sys.executable, path, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.slow
def test_workers_go_with_a_driver_that_is_killed(tmp_path):
    with start(tmp_path / "driver.py", DRIVER, "600") as driver:
        try:
            assert driver.stdout.readline() == "busy\n"
            assert len(workers_of(driver.pid)) == 4
            processes = processes_of(driver.pid)
        finally:
            os.kill(driver.pid, signal.SIGKILL)
        assert gone(processes, 5)


STARTING = """
import os
import autotransfer as at
from autotransfer.search.engines.local import LocalEngine

if __name__ == "__main__":
    LocalEngine(1).submit(os.getpid).result()
"""


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="reads /proc; elsewhere a thread looks every second")
def test_a_worker_goes_with_a_driver_that_is_killed_while_it_imports(tmp_path):
    with start(tmp_path / "driver.py", STARTING) as driver:
        try:
            worker = None
            # One of the first things this package imports; torch, which takes seconds, follows.
            while worker is None or not re.search("_ctypes|libtorch", maps(worker)):
                assert driver.poll() is None
                started = [p for p in processes_of(driver.pid) if re.search(STARTED, said_by(p))]
                worker = worker or next(iter(started), None)
                time.sleep(0.005)
        finally:
            os.kill(driver.pid, signal.SIGKILL)
        assert gone([worker], 1)


STARTED = "forkserver|spawn_main"


def said_by(process):
    """Return the command line of a process; that of its driver for a moment, while it starts."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return " ".join(process.cmdline())
    return ""


def maps(process):
    """Return the names of what a process has mapped into its memory."""
    return Path(f"/proc/{process.pid}/maps").read_text()


@pytest.mark.slow
@pytest.mark.nightly
def test_workers_go_with_a_driver_that_ends_without_shutdown(tmp_path):
    with start(tmp_path / "driver.py", DRIVER, "0") as driver:
        assert driver.stdout.readline() == "busy\n"
        _, errors = driver.communicate(timeout=PATIENCE)
        assert driver.returncode == 0, errors
        assert errors == ""


UNGUARDED = """
import os
from autotransfer.search.engines.local import LocalEngine

with LocalEngine(2) as engine:
    print(engine.submit(os.getpid).result())
"""


@pytest.mark.slow
@pytest.mark.nightly
def test_a_script_without_a_guard_is_told_so(tmp_path):
    with start(tmp_path / "script.py", UNGUARDED) as script:
        _, errors = script.communicate(timeout=PATIENCE)
    assert script.returncode == 1
    last = errors.strip().splitlines()[-1]
    assert "EngineError: A worker died while it started, twice in a row" in last
    assert 'if __name__ == "__main__":' in last
