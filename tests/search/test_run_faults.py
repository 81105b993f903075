"""Whole runs that are killed, stopped, starved and doubled: the same table comes out."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import drive
from postgres import database, postgres_server  # noqa: F401 -- fixtures

from autotransfer.search import Ledger
from autotransfer.search.engines.fork_server import FORKS

pytestmark = pytest.mark.slow
nightly = pytest.mark.nightly
SCRIPT = Path(drive.__file__)
N_TRIALS = 17


def begin(out, **options):
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(out), json.dumps(options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(out, **options):
    process = begin(out, **options)
    said, errors = process.communicate(timeout=600)
    assert "done" in said, errors
    return pd.read_csv(out / "trials.csv")


def recorded(out):
    """Trials on record, looked at while another process may write."""
    path = out / "ledger.jsonl"
    return path.read_text().count('"entry":') if path.exists() else 0


def wait_for(condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "undisturbed"
    data = drive.data()
    drive.quick(out).fit(data.X, data.y, subject=data.subject)
    return pd.read_csv(out / "trials.csv")


def check(out, undisturbed):
    table = pd.read_csv(out / "trials.csv")
    assert len(table) == N_TRIALS
    assert table["id"].is_unique
    pd.testing.assert_frame_equal(table, undisturbed, check_exact=True)


@nightly
def test_kill_of_a_worker_in_mid_trial(tmp_path, undisturbed):
    out = tmp_path / "run"
    process = begin(out)
    for n in (2, 6, 11):
        wait_for(lambda n=n: recorded(out) >= n or process.poll() is not None)
        workers = [
            child
            for child in psutil.Process(process.pid).children(recursive=True)
            if re.search("spawn_main|forkserver", " ".join(child.cmdline()))
            and not (FORKS and child.ppid() == process.pid)
        ]
        if workers:
            workers[0].kill()
    said, errors = process.communicate(timeout=600)
    assert "done" in said, errors
    check(out, undisturbed)


@nightly  # tests/cli/test_run_command.py has one that is killed and goes on
@pytest.mark.parametrize("kills", [3, 10])
def test_kill_of_the_driver_at_random_moments(tmp_path, undisturbed, kills):
    out = tmp_path / "run"
    rng = random.Random(0)
    orphans = []
    for _ in range(kills):
        process = begin(out)
        # While it starts, or when it has just recorded a trial and others run.
        target = recorded(out) + rng.choice([0, 1])
        wait_for(lambda p=process, t=target: recorded(out) >= t or p.poll() is not None)
        time.sleep(rng.random() * (0.1 if recorded(out) >= target else 5))
        assert process.poll() is None, "the run was over before it could be killed so often"
        orphans += psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
    finish(out)
    check(out, undisturbed)
    _, alive = psutil.wait_procs(orphans, timeout=10)
    assert not alive


@nightly
def test_two_drivers_at_once(tmp_path, undisturbed):
    out = tmp_path / "run"
    pair = [begin(out) for _ in range(2)]
    ends = [p.communicate(timeout=600) for p in pair]
    won = [i for i, (said, _) in enumerate(ends) if "done" in said]
    assert won
    for i in {0, 1} - set(won):
        assert "RunInUseError" in ends[i][1]
    check(out, undisturbed)


@nightly
@pytest.mark.parametrize("times", [1, 2])
def test_control_c(times, tmp_path, undisturbed):
    out = tmp_path / "run"
    process = begin(out)
    wait_for(lambda: recorded(out) >= 3 or process.poll() is not None)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "RunStoppedError" in errors
    assert "the same call goes on" in errors
    assert not (out / "results.json").exists()  # nothing partial is reported as whole
    assert 3 <= recorded(out) < N_TRIALS
    finish(out)
    check(out, undisturbed)


def fill(path):
    """Write until there is no room."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


@nightly
def test_a_full_disk(tmp_path, undisturbed):
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(small)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a tmpfs is not permitted here")
    try:
        out = small / "run"
        process = begin(out)
        wait_for(lambda: recorded(out) >= 4 or process.poll() is not None)
        fill(small / "filler")
        _, errors = process.communicate(timeout=300)
        assert "LedgerError" in errors
        assert "make room" in errors.lower()
        (small / "filler").unlink()
        finish(out)
        check(out, undisturbed)
    finally:
        subprocess.run(["umount", "-l", str(small)], check=False)


@nightly
def test_postgres_stopped_and_started(tmp_path, undisturbed, postgres_server, database):  # noqa: F811
    out = tmp_path / "run"
    process = begin(out, storage=database)

    def seen():
        with Ledger(database, run_name(out), read_only=True) as ledger:
            return sum(len(ledger.ids(stage)) for stage in ledger.stages())

    wait_for(lambda: (out / "run.json").exists() or process.poll() is not None)
    wait_for(lambda: seen() >= 3 or process.poll() is not None)
    postgres_server.stop()
    time.sleep(3)
    postgres_server.start()
    said, errors = process.communicate(timeout=600)
    assert "done" in said, errors
    check(out, undisturbed)


def run_name(out):
    from autotransfer.search.settings.trial import digest

    return digest(json.loads((out / "run.json").read_text())["definition"])


@nightly
def test_a_partial_run_is_never_reported_as_whole(tmp_path):
    out = tmp_path / "run"
    process = begin(out)
    wait_for(lambda: recorded(out) >= 6 or process.poll() is not None)
    process.kill()
    process.wait()
    assert not (out / "results.json").exists()
    assert not (out / "candidates.csv").exists()
    assert not (out / "model").exists()
    os.sync()
