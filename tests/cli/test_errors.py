"""Errors: a sentence and a next step on stderr, an exit code, and no traceback."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))

import small

import autotransfer as at
from autotransfer.cli.app import app
from autotransfer.search.run_folder import RunFolder


def call(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a folder with a study and with things that are none."""
    made = tmp_path_factory.mktemp("study")
    small.write_study(made / "study.npz")
    whole = (made / "study.npz").read_bytes()
    (made / "damaged.npz").write_bytes(whole[: len(whole) // 2])
    np.savez(made / "new.npz", X=np.zeros((3, 4, 32), np.float32))
    RunFolder(made / "other").claim({"data": "of somebody else"}, {})
    (made / "empty").mkdir()
    return made


FAILED = {
    "no such file": ("inspect nothing.npz --quick", "nothing.npz does not exist"),
    "damaged": ("inspect damaged.npz --quick", "damaged.npz is damaged"),
    "band of a file": (
        "inspect study.npz --quick --band 4-40",
        "band cannot be set for a .npz file",
    ),
    "no labels": ("inspect new.npz --quick", "lacks y, subject"),
    "measure": ("run study.npz --measure mdm", "no measure 'mdm'. Did you mean 'mmd'?"),
    "mode": ("run study.npz --mode all", "no mode 'all'"),
    "strengths": ("run study.npz --strengths mmd=strong", "Write mmd=1,3,10"),
    "strengths of others": ("run study.npz --measure mmd --strengths mige=1", "not among its"),
    "engine": ("run study.npz --out x --engine slurm", "no engine 'slurm'"),
    "engine option": ("run study.npz --out y --engine-options a=1", "does not know the option a"),
    "rule": ("run study.npz --rule best", "no rule 'best'"),
    "strategy": ("run study.npz --strategy random", "Choose one of grid, tpe"),
    "budget": ("run study.npz --budget soon", "budget='soon' is not a time. Write it like"),
    "budget below 0": ("run study.npz --budget -5m", "is not a time"),
    "budget of 0": ("run study.npz --budget 0m", "must be a time above 0"),
    "budget without a unit": (
        "run study.npz --dry-run --budget 5",
        "Write '5m' for minutes or '5s",
    ),
    "time limit without a unit": ("run study.npz --dry-run --time-limit 90", "Write '90m' for"),
    "normalise": ("run study.npz --normalise zscore", "channel, trial, train, person"),
    "encoder": ("run study.npz --encoder egnet", "Did you mean 'eegnet'?"),
    "folds": ("run study.npz --n-folds 9", "9"),
    "another run": ("run study.npz --out other", "made with other data or options"),
    "no run": ("status empty", "no run in"),
    "no run to report": ("report empty", "no run in"),
    "neither run nor model": ("predict empty study.npz", "neither a run nor a model"),
    "run without a model": ("predict other study.npz", "has no model yet"),
    "nobody of that name": ("fit study.npz --model m --validation zed", "subject zed"),
    "folder in the way": ("fit study.npz --model empty/../study.npz", "already exists"),
    "measure of fit": ("fit study.npz --model m --measure mdm", "Did you mean 'mmd'?"),
}


@pytest.mark.parametrize(("line", "words"), FAILED.values(), ids=FAILED)
def test_what_fails_is_told_in_a_sentence(folder, monkeypatch, line, words):
    monkeypatch.chdir(folder)
    done = call(*line.split())
    assert done.exit_code == 1, done.output
    assert words in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert "bug" not in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "",
        "inspekt study.npz",
        "run",
        "run study.npz --keep many",
        "run study.npz --no-such-option",
        "run study.npz --encoder-options F1",
        "fit study.npz",
        "inspect study.npz --band 4",
        "inspect study.npz --band a-b",
        "inspect study.npz --events left=T1,right",
        "inspect study.npz --tmax soon",
        "export other",
    ],
)
def test_wrong_usage_is_2(folder, monkeypatch, line):
    monkeypatch.chdir(folder)
    done = call(*line.split())
    assert done.exit_code == 2
    assert "Traceback" not in done.output


def broken(error):
    def load(source):
        raise error

    return load


def test_what_nobody_foresaw_is_told_as_our_bug(monkeypatch):
    monkeypatch.setattr(at.data, "load", broken(RuntimeError("first line\nsecond line")))
    done = call("inspect", "study.npz")
    assert done.exit_code == 1
    assert "RuntimeError: first line)" in done.stderr
    assert "bug of ours" in done.stderr
    assert "--debug" in done.stderr
    assert "Traceback" not in done.stderr


def test_debug_shows_the_traceback_of_any_error(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    done = call("status", "nothing", "--debug")
    assert done.exit_code == 1
    assert "Traceback (most recent call last)" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: ")


def test_a_full_disk_is_no_bug(monkeypatch):
    monkeypatch.setattr(at.data, "load", broken(OSError(28, "No space left on device", "a/b")))
    done = call("inspect", "study.npz")
    assert done.exit_code == 1
    assert "a/b: No space left on device" in done.stderr
    assert "bug" not in done.stderr


def test_an_interrupt_is_130(monkeypatch):
    monkeypatch.setattr(at.data, "load", broken(KeyboardInterrupt()))
    done = call("inspect", "study.npz")
    assert done.exit_code == 130
    assert "Interrupted." in done.stderr


def test_warnings_are_sentences(tmp_path):
    # With one session of each subject, probes are tested on blocks of it, and say so.
    data = at.make_subjects(n_subjects=3, n_trials=12, n_times=64, random_state=0)
    session = np.zeros(data.n_trials, int)
    arrays = {"X": np.asarray(data.X), "y": data.y, "subject": data.subject, "session": session}
    np.savez(tmp_path / "few.npz", **arrays)
    done = call("fit", tmp_path / "few.npz", "--model", tmp_path / "m", "--max-epochs", "1")
    assert done.exit_code == 0, done.output
    done = call("leakage", tmp_path / "m", tmp_path / "few.npz", "--probes", "linear")
    assert done.exit_code == 0, done.output
    assert "Warning: Subject 0, 1, 2 has one recording only" in done.stderr
    assert ".py:" not in done.stderr
