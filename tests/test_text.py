"""Names in the data steer no terminal, break no picture and are no formula in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent / "search"))
import drive

import autotransfer as at
from autotransfer.cli.app import app
from autotransfer.data import write_npz
from autotransfer.errors import AutoTransferWarning, DataError, UnknownSubjectError
from autotransfer.report import write_report
from autotransfer.search.progress import RunProgress

pytestmark = pytest.mark.filterwarnings("ignore::autotransfer.errors.AutoTransferWarning")

# Clear the screen, ring, go back to the start of the line, set the title (with a C1 character),
# write from right to left.
PEOPLE = np.array(["=1+1", "@ann\x1b[2J", "-2", "+b\x07\r", "\x9b31m\u202ered"])
CLASSES = np.array(['=cmd|" /C calc"!A1', "-\x1b]0;title\x07"])
STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def data():
    made = at.make_subjects(n_subjects=5, n_trials=24, n_times=64, random_state=0)
    return made.X, CLASSES[made.y], PEOPLE[made.subject]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Make a run of people with such names, and its report."""
    out = tmp_path_factory.mktemp("run") / "run"
    X, y, subject = data()
    space = drive.Space(["mmd"], ["marginal"], {"mmd": [1]})
    drive.quick(out, space=space, n_folds=3).fit(X, y, subject=subject)
    write_report(out)
    return out


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    X, y, subject = data()
    path = tmp_path_factory.mktemp("study") / "study.npz"
    channels = ["\x1b[31mC3", *(f"c{n}" for n in range(X.shape[1] - 1))]
    signals = np.array(X)
    signals[:, 0] = 0.0  # a flat channel is named
    write_npz(at.SubjectDataset(signals, y, subject, channels=channels), path)
    return path


def call(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args], env={"COLUMNS": "200"})


def test_what_inspect_prints_steers_no_terminal(study):
    done = call("inspect", study, "--quick")
    assert done.exit_code == 0, done.output
    assert r"@ann\x1b[2J" in done.stdout
    assert r"\x1b[31mC3" in done.stdout
    assert not STEERS.search(done.stdout + done.stderr)
    done = call("inspect", study, "--quick", "--json")
    assert not STEERS.search(done.stdout)
    assert json.loads(done.stdout)["subject_names"] == sorted(PEOPLE.tolist())


def test_errors_steer_no_terminal(tmp_path):
    folder = tmp_path / "run\x1b[2J"
    folder.mkdir()
    for more in ([], ["--debug"]):
        done = call("status", folder, *more)
        assert done.exit_code == 1
        assert r"There is no run in" in done.stderr
        assert r"run\x1b[2J" in done.stderr
        assert not STEERS.search(done.stderr)
    for kind in (DataError, UnknownSubjectError, AutoTransferWarning):
        assert str(kind("who is \x1b[2J?\nNext line.")) == "who is \\x1b[2J?\nNext line."


def test_progress_steers_no_terminal(capsys):
    progress = RunProgress(True)
    progress.retry("a trial", ValueError("no subject \x1b[2J"), 1)
    said = capsys.readouterr().err
    assert r"no subject \x1b[2J" in said
    assert not STEERS.search(said)


def test_pictures_and_page_are_well_formed(run):
    pictures = list((run / "report-files").glob("*.svg"))
    assert len(pictures) >= 3
    for path in pictures:
        ElementTree.fromstring(path.read_bytes())
    drawn = "".join(path.read_text() for path in pictures)
    assert "@ann\N{REPLACEMENT CHARACTER}[2J" in drawn
    page = (run / "report.html").read_bytes().decode()
    assert not STEERS.search(page)
    assert "@ann\N{REPLACEMENT CHARACTER}[2J" in page


def test_no_cell_of_a_table_is_a_formula(run):
    tables = [*run.glob("*.csv"), *(run / "report-files").glob("*.csv")]
    assert {"trials.csv", "candidates.csv", "people.csv", "scores.csv", "confusion.csv"} <= {
        path.name for path in tables
    }
    cells = [
        cell
        for path in tables
        for row in csv.reader(io.StringIO(path.read_bytes().decode(), newline=""))
        for cell in row
    ]
    assert {"'=1+1", "-2", '\'=cmd|" /C calc"!A1'} <= set(cells)
    for cell in cells:
        assert not re.match(r"[=+@\t\r-](?![\d.]+(e-?\d+)?$)", cell), cell


def test_the_table_of_predictions_is_safe_as_well(run, study):
    done = call("predict", run, study)
    assert done.exit_code == 0, done.output
    rows = list(csv.reader(io.StringIO(done.stdout, newline="")))
    safe = {'\'=cmd|" /C calc"!A1', r"'-\x1b]0;title\x07"}
    for column in (2, 3):  # the true class and the predicted one
        assert {row[column] for row in rows[1:]} <= safe
    assert "'=1+1" in {row[1] for row in rows[1:]}
