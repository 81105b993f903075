"""`autotransfer run` as a person runs it: killed, interrupted, and run again to its end."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import optuna
import psutil
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))

import small

import autotransfer as at
from autotransfer.cli.app import app
from autotransfer.cli.output import working
from autotransfer.data import write_npz
from autotransfer.errors import AutoTransferError
from autotransfer.report.auto_summary import first_screen
from autotransfer.report.gather import gather
from autotransfer.search.status import read_status

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="sends signals"),
]

TABLES = ("trials.csv", "candidates.csv", "scores.csv", "results.json")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return small.write_study(tmp_path_factory.mktemp("study") / "study.npz")


@pytest.fixture(scope="module")
def undisturbed(study):
    """Run to the end; gives the folder and what was printed."""
    out = study.parent / "undisturbed"
    done = small.call("run", study, "--out", out, *small.OPTIONS, "--json")
    assert done.returncode == 0, done.stderr
    return out, done


def call(*args, code=0):
    """Run a command in this process."""
    done = CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output
    return done


def wait_for_trials(out, n, process):
    """Wait until so many trials are on record while the command runs."""
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        try:
            if sum(stage.done for stage in read_status(out).stages) >= n:
                return
        except AutoTransferError:
            pass  # the folder is not there yet
        time.sleep(0.05)
    raise AssertionError(f"it ended with {process.poll()} before {n} trials were done")


@pytest.mark.nightly
def test_a_run_that_is_killed_and_interrupted_ends_like_one_that_is_not(
    study, undisturbed, tmp_path
):
    out = tmp_path / "run"
    given = ("run", study, "--out", out, *small.OPTIONS)

    process = small.start(*given)
    wait_for_trials(out, 2, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    killed = read_status(out)
    assert not killed.complete
    assert sum(stage.done for stage in killed.stages) < small.TRIALS
    done = call("status", out, "--check", "--json", code=3)
    assert json.loads(done.stdout)["complete"] is False
    assert "no model yet" in call("predict", out, study, code=1).stderr

    process = small.start(*given)
    wait_for_trials(out, sum(stage.done for stage in killed.stages) + 1, process)
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate(timeout=120)
    assert process.returncode == 3, said
    assert "Stopping: the trials that run are finished first." in said
    assert said.splitlines()[-1].startswith("Stopped: ")
    assert "same call goes on" in said
    assert printed == ""
    assert not read_status(out).complete

    done = small.call(*given)
    assert done.returncode == 0, done.stderr
    assert "are on record already" in done.stderr
    for name in TABLES:
        assert (out / name).read_bytes() == (undisturbed[0] / name).read_bytes(), name
    assert (out / "model" / "weights.safetensors").read_bytes() == (
        undisturbed[0] / "model" / "weights.safetensors"
    ).read_bytes()
    call("status", out, "--check")


@pytest.mark.nightly
def test_sigterm_is_a_first_control_c(study, tmp_path):
    out = tmp_path / "run"
    given = ("run", study, "--out", out, *small.OPTIONS, "--max-epochs", 40)
    process = small.start(*given, start_new_session=True)
    wait_for_trials(out, 1, process)
    before = sum(stage.done for stage in read_status(out).stages)
    assert (out / ".heartbeat.json").exists()
    workers = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGTERM)  # as Slurm does: driver and workers
    _, said = process.communicate(timeout=60)
    assert process.returncode == 3, said
    assert "Stopping: the trials that run have 20 s to finish" in said
    assert said.splitlines()[-1].startswith("Stopped: ")
    status = read_status(out)
    assert not status.complete
    assert sum(stage.done for stage in status.stages) > before  # what ran was finished
    assert sum(stage.failed for stage in status.stages) == 0
    assert not (out / ".heartbeat.json").exists()
    _, alive = psutil.wait_procs(workers, timeout=5)
    assert not alive


def test_json_stands_alone_on_stdout(undisturbed):
    out, done = undisturbed
    told = json.loads(done.stdout)
    assert told["run"] == str(out)
    assert Path(told["report"]).is_file()
    assert told["results"] == json.loads((out / "results.json").read_text())
    assert told["results"]["trials"] == small.TRIALS
    # A log is told in plain lines: no colours, no cursor that moves.
    assert "\x1b" not in done.stderr
    assert "autotransfer: cross-validating: 9/9, " in done.stderr


def test_the_commands_that_read_a_run(study, undisturbed, tmp_path):
    out, _ = undisturbed
    told = json.loads(call("status", out, "--json").stdout)
    assert told["complete"] is True
    assert [stage["done"] for stage in told["stages"]] == [3, 9]
    assert "The run is complete." in call("status", out).stdout
    done = call("report", out, "--out", tmp_path / "page.html", "--check")
    assert done.stdout == f"{tmp_path / 'page.html'}\n"
    assert (tmp_path / "page.html").is_file()
    assert len(call("predict", out, study).stdout.splitlines()) == 121


def test_the_same_command_again_says_the_same(study, undisturbed):
    out, first = undisturbed
    before = (out / "ledger.jsonl").read_bytes()
    again = call("run", study, "--out", out, *small.OPTIONS, "--json")
    assert json.loads(again.stdout) == json.loads(first.stdout)
    assert (out / "ledger.jsonl").read_bytes() == before


def test_a_run_ends_with_what_its_report_says_first(study, undisturbed):
    out, _ = undisturbed
    said = call("run", study, "--out", out, *small.OPTIONS).stdout
    screen = first_screen(gather(out))
    lines = said.splitlines()
    assert lines[0] == screen.headline
    for line, tile in zip(lines[1:], screen.tiles, strict=False):
        assert line.split() == f"{tile.label} {tile.value} {tile.note}".split()
    assert "test q25" in said  # of all candidates, for who compares methods
    assert lines[-2:] == [f"model:  {out / 'model'}", f"report: {out / 'report.html'}"]


def test_what_a_hands_off_run_says_to_type_can_be_typed(study, tmp_path, monkeypatch):
    tiny = ["F1=2", "kernel_length=16", "depthwise_kernel_length=4"]
    options = [word for one in tiny for word in ("--encoder-options", one)]
    # What is written is not searched: a few trainings of a second.
    options += ["--normalise", "train", "--augment", "shift", "--learning-rate", 0.003]
    options += [
        "--n-steps",
        8,
        "--schedule",
        "sqrt",
        "--n-folds",
        3,
        "--no-portraits",
        "--no-levels",
    ]
    done = small.call("run", study, "--out", tmp_path / "run", *options)
    assert done.returncode == 0, done.stderr
    said = done.stdout.replace("\N{NO-BREAK SPACE}", " ")
    assert said.startswith("Expect ")
    assert "guessing gives 50 %, a classical pipeline " in said
    assert "Expect balanced accuracy" not in done.stderr  # said once, in one way
    somebody = at.load(study).select(subjects=[0])
    for name in ("new.npz", "recording.npz"):
        write_npz(somebody, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    typed = [line for line in said.splitlines() if line.startswith("  autotransfer ")]
    assert [line.split()[1] for line in typed] == ["predict", "adapt", "adapt"]
    call(*shlex.split(typed[0])[1:])
    call(*shlex.split(typed[2])[1:])


def test_export_writes_the_trials_for_optuna(undisturbed, tmp_path):
    out, _ = undisturbed
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    done = call("export", out, "--optuna", url)
    assert done.stdout == ""
    assert f"{small.TRIALS + 1} trials written" in done.stderr  # the refit is one too
    assert "0 trials written" in call("export", out, "--optuna", url).stderr
    studies = [
        optuna.load_study(study_name=name, storage=url) for name in optuna.get_all_study_names(url)
    ]
    assert sum(len(study.trials) for study in studies) == small.TRIALS + 1
    search = next(study for study in studies if study.study_name.endswith("/search"))
    assert {trial.params["measure"] for trial in search.trials} == {
        "uncensored",
        "mmd",
        "adversary",
    }
    assert not any(name.startswith("param:") for t in search.trials for name in t.user_attrs)


def test_other_options_are_refused_in_the_folder(study, undisturbed):
    out, _ = undisturbed
    before = (out / "ledger.jsonl").read_bytes()
    done = call("run", study, "--out", out, *small.OPTIONS, "--keep", 2, code=1)
    assert "keep: 1 there, 2 now" in done.stderr
    assert (out / "ledger.jsonl").read_bytes() == before


def test_a_dry_run_writes_nothing(study, tmp_path):
    out = tmp_path / "none"
    done = call("run", study, "--out", out, *small.OPTIONS, "--dry-run", "--json")
    (told,) = json.loads(done.stdout)
    assert told["trials"] == small.TRIALS
    assert told["plan"]["seconds"] > 0
    assert not out.exists()


def test_ctrl_c_while_nothing_runs_yet_is_130(study, tmp_path):
    process = small.start("inspect", study)
    assert process.stderr.readline() == "autotransfer: loading\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert said.splitlines()[-1] == "Interrupted."
    assert "Traceback" not in said


def test_an_interrupt_that_a_library_swallows_is_not_lost():
    def swallows():
        with contextlib.suppress(BaseException):  # `try: import extra`, `except: pass`
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    swallows()  # alone, it is gone
    with pytest.raises(KeyboardInterrupt), working("loading"):
        swallows()
    with working("loading"):
        pass
    assert signal.getsignal(signal.SIGINT) is before


INTERRUPTED_IN_TEXT = """
import sys
import autotransfer.cli as cli

def app(prog_name):
    try:
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        sys.exit(130)

sys.modules["autotransfer.cli.app"].app = app
cli.main()
"""


def test_an_interrupt_within_an_exec_of_text_is_130_too(tmp_path):
    (tmp_path / "interrupted.py").write_text(INTERRUPTED_IN_TEXT)
    command = [sys.executable, "-m", "interrupted"]
    done = subprocess.run(command, cwd=tmp_path, check=False, env=small.environment())
    assert done.returncode == 130
