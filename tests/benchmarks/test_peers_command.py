"""The command: settings are chosen by validation alone, and a run goes on where it was stopped."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import autotransfer as at
from autotransfer.data.sources.npz import write_npz
from benchmarks.common.recordings import network_options
from benchmarks.peers import peers
from benchmarks.peers.peer_work import Job

ROOT = Path(__file__).parents[2]
SETTINGS = ({"strength": 1.0}, {"strength": 0.1}, {"strength": 10.0})


def results(*scores, test=(0.5, 0.5, 0.5), error=None):
    """Two folds for each setting; `scores` are those of validation subjects."""
    done = {}
    for i, (setting, score) in enumerate(zip(SETTINGS, scores, strict=True)):
        for fold in range(2):
            job = Job("erp", "coral", json.dumps(setting), fold, 0, "{}")
            found = {"validation_subjects": {"a": score}, "test": {"b": test[i]}, "seconds": 1.0}
            done[job] = {"error": "broke", "seconds": 1.0} if i == error else found
    return done


def test_validation_chooses_and_test_scores_do_not():
    assert peers.choose(results(0.5, 0.6, 0.7, test=(0.9, 0.1, 0.1)), SETTINGS) == SETTINGS[2]


def test_ties_go_to_the_default():
    assert peers.choose(results(0.6, 0.6, 0.6), SETTINGS) == SETTINGS[0]


def test_a_setting_that_failed_is_not_chosen():
    assert peers.choose(results(0.5, 0.6, 0.7, error=2), SETTINGS) == SETTINGS[1]


def test_a_row_counts_a_subject_once_however_many_seeds():
    setting = json.dumps(SETTINGS[0])
    done = {
        Job("erp", "coral", setting, 0, seed, "{}"): {
            "test": {"a": a, "b": 0.4},
            "validation_subjects": {"c": 0.5},
            "seconds": 30.0,
        }
        for seed, a in enumerate((0.6, 0.8))
    }
    row = peers.row("erp", "coral", SETTINGS[0], done)
    assert (row["subjects"], row["seeds"], row["failed"]) == (2, 2, 0)
    assert row["mean"] == pytest.approx((0.7 + 0.4) / 2)
    assert row["worst"] == pytest.approx(0.4)
    assert row["CPU min"] == pytest.approx(1.0)


def test_options_of_networks_are_those_that_were_chosen(tmp_path):
    chosen = {"normalise": "train", "kernel_seconds": 0.08, "F1": 16, "learning_rate": 0.003}
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps({"chosen": {"emg": chosen}, "rows": []}))
    options = network_options("emg", peers.read_options(file)["emg"])
    assert options["normalise"] == "train"
    assert options["learning_rate"] == 0.003
    encoder = {"kernel_seconds": 0.08, "F1": 16, "kernel_length": None}
    assert options["encoder_options"] == encoder
    assert options["max_epochs"] == network_options("emg")["max_epochs"]
    at.CensoredClassifier(sfreq=200.0, **options)


def test_options_of_an_unknown_data_set_are_refused(tmp_path):
    file = tmp_path / "options.json"
    file.write_text(json.dumps({"sleep": {}}))
    with pytest.raises(SystemExit, match="sleep"):
        peers.read_options(file)


@pytest.mark.nightly
def test_the_command_runs_and_goes_on(tmp_path):
    folder = tmp_path / "data" / "uci_eeg_objects"
    folder.mkdir(parents=True)
    made = at.make_subjects(n_subjects=4, n_trials=20, n_classes=3, random_state=0)
    write_npz(made, folder / "uci_eeg_objects.npz")
    keep, figures = tmp_path / "kept.jsonl", tmp_path / "peers.json"
    command = [sys.executable, "-m", peers.__name__, "--dataset", "erp", "--workers", "1"]
    command += ["--method", "erm", "groupdro", "--folds", "2", "--max-epochs", "1", "--seeds", "2"]
    command += ["--keep", str(keep), "--json", str(figures)]

    def run():
        where = {**os.environ, "AUTOTRANSFER_DATA": str(tmp_path / "data")}
        done = subprocess.run(
            command, env=where, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(figures.read_text())

    first = run()
    # 2 folds: 1 + 3 settings at seed 0, and the chosen ones of both at seed 1.
    lines = keep.read_text().splitlines()
    assert len(lines) == 2 * (1 + 3) + 2 * 2
    keep.write_text("".join(line + "\n" for line in lines[:-3]))
    again = run()
    assert len(keep.read_text().splitlines()) == len(lines)
    scores = [[entry["test"] for entry in found["subjects"]] for found in (first, again)]
    assert scores[0] == scores[1]
    assert [row["seeds"] for row in first["rows"]] == [2, 2]
    assert sum(entry["chosen"] for entry in first["tried"]) == 2
    assert np.isfinite([row["mean"] for row in first["rows"]]).all()
