"""How far a run is, and whether anybody works on it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autotransfer.errors import RunMismatchError, SourceError
from autotransfer.search.budget import Plan
from autotransfer.search.ledger import Entry, Ledger
from autotransfer.search.run_folder import RunFolder
from autotransfer.search.settings.setting import BASELINE
from autotransfer.search.settings.trial import Trial, digest
from autotransfer.search.status import read_status


@pytest.fixture
def folder(tmp_path):
    """A run of which nothing but the plan is on record."""
    files = RunFolder(tmp_path / "run")
    definition = {"data": "a", "classifier": "b"}
    files.claim(definition, {"storage": None})
    with Ledger(files.ledger, digest(definition)) as ledger:
        ledger.write_plan("search", {"plan": Plan(4, (10,), 1, 3, 1).to_json(), "costs": None})
    return files


def beat(folder, **changes):
    sign = {"at": time.time(), "left": 12.0, "pid": os.getpid(), "host": platform.node()}
    folder.heartbeat.write_text(json.dumps(sign | changes))
    return read_status(folder.path)


def gone():
    """Number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_what_is_planned_and_done(folder):
    status = read_status(folder.path)
    search, crossval = status.stages
    assert (search.planned, search.done, search.failed) == (5, 0, 0)
    assert crossval.planned is None
    assert not status.complete
    assert json.loads(json.dumps(status.to_json()))["stages"][0]["planned"] == 5


def test_who_is_alive(folder):
    assert not read_status(folder.path).alive
    assert beat(folder).alive
    assert beat(folder).left == 12
    assert beat(folder, host="elsewhere", pid=gone()).alive  # nobody here can know
    assert not beat(folder, at=time.time() - 60).alive


@pytest.mark.parametrize(
    "sign",
    [
        *("", "[]", "null", "7", "{}", "[" * 100_000),
        '{"at": "now", "left": 1, "pid": 1, "host": "x"}',
        '{"at": 9e99, "left": "long", "pid": 1, "host": "x"}',
        '{"at": 9e99, "left": NaN, "pid": 1, "host": "x"}',
        f'{{"at": 9e99, "left": 1, "pid": {10**30}, "host": "{platform.node()}"}}',
        f'{{"at": 9e99, "left": 1, "pid": "me", "host": "{platform.node()}"}}',
    ],
)
def test_a_sign_of_life_that_is_none(folder, sign):
    folder.heartbeat.write_text(sign)
    status = read_status(folder.path)
    assert (status.alive, status.left) == (False, None)


@pytest.mark.parametrize("content", ["", "[]", "null", '{"refit": ', "[" * 100_000])
def test_what_is_damaged_and_can_be_written_anew_is(folder, content):
    folder.model.mkdir()
    for path in (folder.refit, folder.results):
        path.write_text(content)
    assert not folder.has_model("4b0c")
    folder.write_results({"complete": True})
    assert json.loads(folder.results.read_text()) == {"complete": True}


@pytest.mark.parametrize("content", ["", "[]", "null", "{", '{"definition": 3}', "[" * 100_000])
def test_a_damaged_run_is_not_taken_up(folder, content):
    folder.run.write_text(content)
    with pytest.raises(RunMismatchError, match="Give another folder"):
        folder.claim({"data": "a"}, {})


def test_what_was_typed_is_kept_when_a_run_of_python_goes_on_at_the_command_line(tmp_path):
    folder = RunFolder(tmp_path / "new")
    for typed in (None, "autotransfer run a.npz", None, "autotransfer run ./a.npz"):
        folder.claim({"data": "a"}, {"command": typed, "begun": "now"})
    about = json.loads(folder.run.read_text())["about"]
    assert about == {"command": "autotransfer run a.npz", "begun": "now"}


@pytest.mark.skipif(os.name != "posix", reason="only there can be asked for a process")
def test_a_driver_that_was_killed_is_not_alive(folder):
    status = beat(folder, pid=gone())
    assert not status.alive
    assert status.left is None


LOOK = """
import json, sys
sys.argv = ["autotransfer", "status", {!r}]
from autotransfer.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
heavy = ("torch", "sklearn", "pandas", "scipy", "numpy", "optuna", "matplotlib")
print(json.dumps([name for name in heavy if name in sys.modules]))
"""


AUTO_RUN = Path(__file__).parents[1] / "fixtures" / "auto_run"


def test_a_hands_off_run_that_goes_on_has_open_stages(tmp_path):
    """Without its results it has not come to its end, and nobody knows how far it will go."""
    for name in ("run.json", "ledger.jsonl"):
        (tmp_path / name).write_bytes((AUTO_RUN / name).read_bytes())
    status = read_status(tmp_path)
    assert [stage.planned for stage in status.stages] == [3, None, None, None]
    assert (status.complete, status.expected) == (False, None)


def test_looking_at_a_hands_off_run_imports_nothing_heavy():
    code = LOOK.format(str(AUTO_RUN))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *said, heavy = done.stdout.splitlines()
    for stage in ("first answer", "trying recipes", "trying censors", "further seeds"):
        (line,) = (line for line in said if stage in line)
        assert line.split("|")[2].strip() == line.split("|")[3].strip()  # all that was to be done
    results = json.loads((AUTO_RUN / "results.json").read_text())["nested"]
    assert said[-1] == (
        f"The run is complete. Expect balanced accuracy {results['mean']:.3f} "
        f"(lower quartile {results['lower_quartile']:.3f}) on a new person."
    )
    assert json.loads(heavy) == []


def test_looking_at_a_run_imports_nothing_heavy(folder):
    trial = Trial(BASELINE, 0, 3, 0, 10)
    with Ledger(folder.ledger, digest({"data": "a", "classifier": "b"})) as ledger:
        ledger.record(Entry("1", "search", "failed", trial.to_json(), {}, error="boom"))
    code = LOOK.format(str(folder.path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *said, heavy = done.stdout.splitlines()
    assert any("searching" in line and "1" in line for line in said)
    assert json.loads(heavy) == []


def test_a_folder_without_a_run(tmp_path):
    with pytest.raises(SourceError, match=r"There is no run in .*run\.json"):
        read_status(tmp_path)
