"""Recordings on the command line: from files as they were recorded to predictions."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import autotransfer as at
from autotransfer.cli.app import app
from autotransfer.data import write_npz
from recorded import NAMES, make_raw, save

pytestmark = pytest.mark.filterwarnings("ignore::autotransfer.errors.AutoTransferWarning")
CUT = ["--events", "L=left,R=right", "--tmin", -0.2, "--tmax", 1, "--band", "4-40", "--sfreq", 100]
SAME = {"events": {"L": "left", "R": "right"}, "tmin": -0.2, "tmax": 1, "band": (4, 40)}


def call(*args, code=0):
    done = CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": "200"})
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Recordings of four people in a folder."""
    folder = tmp_path_factory.mktemp("study")
    for name in ("anna", "ben", "cleo", "dan"):
        save(make_raw(name), folder / f"{name}_raw.fif")
    return folder


@pytest.fixture(scope="module")
def model(study, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "small.model"
    options = ["--max-epochs", 40, "--device", "cpu", "--quiet"]
    call("fit", study, "--model", folder, *CUT, *options)
    return folder


def test_inspect_sees_what_python_loads(study):
    told = json.loads(call("inspect", study, "--quick", "--json", *CUT).stdout)
    data = at.load(study, **SAME, sfreq=100)
    assert told["counts"] == data.counts().tolist()
    assert (told["class_names"], told["sfreq"], told["times"]) == (["L", "R"], 100, 121)
    assert told["subject_names"] == ["anna", "ben", "cleo", "dan"]
    part = json.loads(
        call(
            "inspect", study, "--quick", "--json", *CUT, "--subjects", "ben", "--channels", "Cz,C3"
        ).stdout
    )
    assert (part["subject_names"], part["channel_names"]) == (["ben"], ["Cz", "C3"])


def test_the_window_is_asked_for(study):
    done = call("inspect", study, "--quick", code=1)
    assert "--tmax" in done.stderr
    assert "Events: left, right" in done.stderr


def test_fit_and_predict(model, tmp_path):
    """Somebody new, whose name need not be known."""
    path = save(make_raw(), tmp_path / "new_raw.fif")
    done = call("predict", model, path, *CUT)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["true"] for row in rows] == np.where(NAMES == "left", "L", "R").tolist()
    right = np.mean([row["true"] == row["predicted"] for row in rows])
    assert right > 0.9  # 10 Hz or nothing
    assert rows[0]["subject"] == "new_raw.fif"
    done = call("predict", model, path, *CUT, "--subject", "eve")
    assert next(csv.DictReader(io.StringIO(done.stdout)))["subject"] == "eve"
    other = call("predict", model, path, *CUT[:-2], code=1)
    assert "at 100 Hz, but these are at 200 Hz" in other.stderr


def test_adapt_and_leakage(model, study, tmp_path):
    path = save(make_raw(), tmp_path / "new_raw.fif")
    call("adapt", model, path, *CUT, "--labels", "--out", tmp_path / "person.model")
    assert at.load_model(tmp_path / "person.model").provenance_["adapted"]["n_trials"] == 12
    told = json.loads(call("leakage", model, study, *CUT, "--json", "--n-folds", 2).stdout)
    assert len(told["z"]["subjects"]) == 4


def test_run_reads_them_too(study):
    options = ["--procedure", "paper", "--measure", "mmd", "--mode", "marginal", "--max-epochs", 1]
    told = call("run", study, *CUT, *options, "--dry-run", "--json", "--device", "cpu").stdout
    assert json.loads(told)


def test_the_rate_of_arrays_is_told_and_not_made(tmp_path, model):
    X = np.random.default_rng(0).normal(size=(4, 3, 121)).astype("float32")
    names = ["C3", "Cz", "C4"]
    data = at.load((X, ["L", "R"] * 2, ["a", "a", "b", "b"]), channels=names, unit="V")
    write_npz(data, tmp_path / "a.npz")
    told = json.loads(
        call("inspect", tmp_path / "a.npz", "--quick", "--json", "--sfreq", 50).stdout
    )
    assert told["times"] == 121
    done = call("predict", model, tmp_path / "a.npz", "--sfreq", 50, code=1)
    assert "sfreq cannot be set for a .npz file" in done.stderr


def test_trials_on_standard_input_are_cut_already(model):
    done = call("predict", model, "-", "--live", "--band", "4-40", code=2)
    assert "cut already" in done.output
