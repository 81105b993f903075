"""The Ray engine: workers, machines and Ray itself die, and trials go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import FIRST_COMPLETED, wait
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import psutil
import pytest

from autotransfer.errors import EngineError, SettingError, WorkerDiedError
from autotransfer.search.engines import make_engine

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(
        find_spec("ray") is None and os.environ.get("AUTOTRANSFER_NEED_RAY") != "1",
        reason="ray is not installed",
    ),
]
PATIENCE = 240  # seconds; Ray takes up to half a minute to start on a busy machine


def total(handle):
    return float(handle.get().sum())


def read_only(handle):
    return not handle.get().flags.writeable


def slow_square(x):
    time.sleep(0.5)
    return x * x


def run_all(engine, numbers, after=0, act=None):
    """Run all with a trivial loop of attempts; do something once `after` of them are done."""
    futures = {engine.submit(slow_square, n): n for n in numbers}
    found, deaths = {}, 0
    while futures:
        done, _ = wait(futures, PATIENCE, FIRST_COMPLETED)
        assert done, "nothing came back"
        for future in done:
            n = futures.pop(future)
            try:
                found[n] = future.result()
            except WorkerDiedError:
                deaths += 1
                futures[engine.submit(slow_square, n)] = n
        if act is not None and len(found) >= after:
            act()
            act = None
    return found, deaths


def vital(kind):
    """Process of the Ray that this process started."""
    import ray

    return ray._private.worker._global_node.all_processes[kind][0].process.pid


def family(pid):
    return psutil.Process(pid).children(recursive=True)


def alive(processes):
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def gone(processes, seconds):
    end = time.monotonic() + seconds
    while alive(processes) and time.monotonic() < end:
        time.sleep(0.2)
    return not alive(processes)


@pytest.fixture
def cluster(monkeypatch):
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setenv("RAY_worker_niceness", "0")
    monkeypatch.setenv("RAY_health_check_period_ms", "1000")
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    yield cluster
    cluster.shutdown()


def test_a_machine_that_dies_costs_only_attempts(cluster):
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    with make_engine("ray", address=cluster.address) as engine:
        assert engine.n_workers == 2
        assert engine.shares_filesystem is False
        handle = engine.put(np.ones(1000))
        pid = second.all_processes["raylet"][0].process.pid
        found, _ = run_all(engine, range(20), 4, lambda: os.kill(pid, signal.SIGKILL))
        assert found == {n: n * n for n in range(20)}
        assert engine.submit(total, handle).result(PATIENCE) == 1000
        end = time.monotonic() + PATIENCE
        while engine.n_workers != 1 and time.monotonic() < end:
            time.sleep(0.5)
        assert engine.n_workers == 1  # follows the cluster


def on_sigterm(number, frame):
    """Stand for a driver that wants to be asked to stop."""


@pytest.fixture(scope="module")
def started():
    """An engine with a Ray of its own, and what was running before."""
    before = set(family(os.getpid()))
    default = signal.signal(signal.SIGTERM, on_sigterm)
    engine = make_engine("ray", 2)
    yield engine
    signal.signal(signal.SIGTERM, default)
    engine.shutdown(cancel_futures=True)
    # A browser of other tests may be open here: what it started meanwhile is not Ray's.
    new = [p for p in alive(family(os.getpid())) if p not in before]
    left = [p for p in new if not before.intersection(p.parents())]
    assert not [p for p in left if "resource_tracker" not in " ".join(p.cmdline())]


def test_values_are_shared_and_not_copied(started):
    assert started.submit(read_only, started.put(np.ones(10**6))).result(PATIENCE)


def test_sigterm_is_for_the_driver(started):
    assert signal.getsignal(signal.SIGTERM) is on_sigterm


def test_what_cannot_be_sent_is_told(started):
    with pytest.raises(EngineError, match=r"The trial cannot be sent to a worker: .*lock"):
        started.submit(len, threading.Lock()).result(PATIENCE)
    with pytest.raises(TypeError, match=r"serialize|pickle"):
        started.submit(threading.Lock).result(PATIENCE)
    assert started.submit(slow_square, 3).result(PATIENCE) == 9


def test_a_worker_that_is_killed_costs_one_attempt(started):
    pid = started.submit(os.getpid).result(PATIENCE)
    futures = [started.submit(time.sleep, 5) for _ in range(2)]
    time.sleep(1)  # both run: one of them in that process
    os.kill(pid, signal.SIGKILL)
    deaths = [future.exception(PATIENCE) for future in futures]
    assert sorted(type(death).__name__ for death in deaths) == ["NoneType", "WorkerDiedError"]
    assert run_all(started, range(4)) == ({n: n * n for n in range(4)}, 0)


@pytest.mark.parametrize("kind", ["raylet", "gcs_server"])
def test_ray_is_started_anew_when_it_dies(started, kind):
    array = np.arange(10**6, dtype=float)
    handle = started.put(array)
    assert started.submit(total, handle).result(PATIENCE) == array.sum()
    old = vital(kind)
    found, deaths = run_all(started, range(8), 2, lambda: os.kill(old, signal.SIGKILL))
    assert found == {n: n * n for n in range(8)}
    assert 1 <= deaths <= 2
    assert vital(kind) != old
    assert started.submit(total, handle).result(PATIENCE) == array.sum()


def test_ray_that_dies_while_idle_is_started_anew(started):
    os.kill(vital("raylet"), signal.SIGKILL)
    found, _ = run_all(started, range(4))  # a trial may be sent while the process is dying
    assert found == {n: n * n for n in range(4)}


DRIVER = """
import hashlib, time
from autotransfer.search.engines import make_engine

if __name__ == "__main__":
    engine = make_engine("ray", 2)
    for future in [engine.submit(time.sleep, 1.0) for _ in range(2)]:
        future.result()
    engine.submit(hashlib.pbkdf2_hmac, "sha512", b"a", b"b", 2**31 - 1)
    engine.submit(time.sleep, 600)
    time.sleep(2)
    print("busy", flush=True)
    time.sleep(600)
"""


def test_ray_goes_with_a_driver_that_is_killed(tmp_path):
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as driver:
        try:
            assert driver.stdout.readline() == "busy\n"
            processes = family(driver.pid)
            workers = [p for p in processes if p.name().startswith("ray::_call")]
            assert len(workers) == 2
            vitals = [p for p in processes if p.name() in {"raylet", "gcs_server"}]
        finally:
            os.kill(driver.pid, signal.SIGKILL)
        # Ray's own agents take a minute or two more.
        assert gone(workers + vitals, 60)


def test_a_trial_needs_something():
    with pytest.raises(SettingError, match="not both 0"):
        make_engine("ray", num_cpus=0)
