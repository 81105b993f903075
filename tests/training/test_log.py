"""Logging to TensorBoard, read back with TensorBoard's own reader."""

from __future__ import annotations

import os
import sys
import time

import numpy as np
import pytest
import torch

import autotransfer as at
from autotransfer.errors import MissingExtraError, SettingError, SourceError
from autotransfer.search import write_tensorboard

if os.environ.get("AUTOTRANSFER_NEED_EXTRAS") != "1":
    pytest.importorskip("tensorboard")

TINY = {"F1": 2, "kernel_length": 16, "depthwise_kernel_length": 4}
DATA = at.make_subjects(n_subjects=4, n_trials=16, n_channels=2, n_times=64, random_state=0)
QUICK = {"encoder_options": TINY, "max_epochs": 4, "random_state": 0, "verbose": False}


def fitted(measure="adversary", **options):
    clf = at.CensoredClassifier(measure, **{**QUICK, **options})
    return clf.fit(DATA.X, DATA.y, subject=DATA.subject)


def scalars(folder):
    """Read a run: tag -> (steps, values)."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), purge_orphaned_data=True).Reload()
    return {
        tag: ([e.step for e in found.Scalars(tag)], [e.value for e in found.Scalars(tag)])
        for tag in found.Tags()["scalars"]
    }


def test_every_epoch_and_the_scores_are_logged(tmp_path):
    clf = fitted(log=tmp_path)
    (run,) = tmp_path.iterdir()
    assert run.name.startswith("adversary-marginal-")
    found = scalars(run)
    for name in ("task_loss", "validation_loss", "penalty", "critic_accuracy"):
        steps, values = found[f"epoch/{name}"]
        assert steps == [1, 2, 3, 4]
        np.testing.assert_allclose(values, [e[name] for e in clf.history_], rtol=1e-6)
    steps, values = found["score/validation_balanced_accuracy"]
    score = clf.provenance_["scores"]["validation_balanced_accuracy"]
    assert steps == [clf.best_epoch_]
    np.testing.assert_allclose(values, score, rtol=1e-6)


def test_the_log_changes_nothing(tmp_path):
    plain, logged = fitted(), fitted(log=str(tmp_path / "log"))
    for name, value in plain.network_.state_dict().items():
        assert torch.equal(value, logged.network_.state_dict()[name]), name
    # Nor what is saved, nor whether a checkpoint is taken up.
    logged.save(tmp_path / "m")
    assert at.CensoredClassifier.load(tmp_path / "m").log is None
    assert str(tmp_path / "log") not in (tmp_path / "m" / "model.json").read_text()


def test_trainings_have_runs_of_their_own_and_go_on_in_them(tmp_path):
    fitted(None, log=tmp_path, max_epochs=2)
    fitted(None, log=tmp_path, max_epochs=2, random_state=1)
    assert len(list(tmp_path.glob("uncensored-*"))) == 2
    there = tmp_path / "resumed"
    fitted(None, log=there, max_epochs=2, checkpoint=tmp_path / "c", checkpoint_every=1)
    time.sleep(1.1)  # TensorBoard reads the files of a run in the order of the second they are of
    clf = fitted(None, log=there, checkpoint=tmp_path / "c", checkpoint_every=1)
    (run,) = there.iterdir()
    steps, values = scalars(run)["epoch/task_loss"]
    assert steps == [1, 2, 3, 4]
    np.testing.assert_allclose(values, [e["task_loss"] for e in clf.history_], rtol=1e-6)


def test_what_cannot_be_is_said_before_training(tmp_path, monkeypatch):
    with pytest.raises(SettingError, match="log must be the path of a folder, not 3"):
        fitted(log=3)
    with pytest.raises(SourceError, match="no run in"):
        write_tensorboard(tmp_path, tmp_path / "log")
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingExtraError, match=r"pip install tensorboard"):
        fitted(log=tmp_path)
    with pytest.raises(MissingExtraError, match="tensorboard"):
        write_tensorboard(tmp_path, tmp_path / "log")
