"""The ledger of a run as TensorBoard runs."""

from __future__ import annotations

import os
import shutil
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import autotransfer as at
from autotransfer.search import Space, write_tensorboard
from autotransfer.search.status import open_run

if os.environ.get("AUTOTRANSFER_NEED_EXTRAS") != "1":
    pytest.importorskip("tensorboard")


@pytest.mark.slow
def test_every_trial_of_a_run_is_written_once(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    data = at.make_subjects(n_subjects=3, n_trials=12, n_channels=2, n_times=64, random_state=0)
    tiny = {"F1": 2, "kernel_length": 16, "depthwise_kernel_length": 4}
    log = tmp_path / "log"
    with ThreadPoolExecutor(1) as pool:
        auto = at.AutoTransfer(
            procedure="paper",
            out=tmp_path / "run",
            classifier=at.CensoredClassifier(
                encoder_options=tiny, max_epochs=2, device="cpu", log=log
            ),
            space=Space(["mmd"], ["marginal"], {"mmd": [1.0]}),
            keep=1,
            engine=pool,
            portraits=False,
            verbose=False,
        ).fit(data.X, data.y, subject=data.subject)
    _, ledger = open_run(tmp_path / "run")
    with ledger:
        entries = {
            (stage, entry.id[:8]): entry
            for stage in ("search", "crossval")
            for entry in ledger.each(stage, curves=True)
        }
    runs = {(p.parent.name, p.name.rpartition("-")[2]): p for p in log.glob("*/*")}
    assert runs.keys() == entries.keys()
    assert len(runs) == len(auto.trials_)
    for key, entry in entries.items():
        found = EventAccumulator(str(runs[key])).Reload()
        curve = [event.value for event in found.Scalars("epoch/task_loss")]
        np.testing.assert_allclose(curve, entry.curves["task_loss"], rtol=1e-6)
        (score,) = found.Scalars("score/test_balanced_accuracy")
        np.testing.assert_allclose(score.value, entry.result["test"]["balanced_accuracy"], 1e-6)
    assert write_tensorboard(tmp_path / "run", log) == 0
    assert write_tensorboard(tmp_path / "run", tmp_path / "other", stages=["search"]) == sum(
        stage == "search" for stage, _ in entries
    )


def test_a_ledger_cannot_say_where_to_write(tmp_path):
    """The names of settings are the ledger's, and a ledger may come from anybody."""
    shutil.copytree(Path(__file__).parents[1] / "fixtures" / "run", tmp_path / "run")
    path, far = tmp_path / "run" / "ledger.jsonl", "../../../far"
    lines = path.read_bytes().splitlines(keepends=True)
    for i, line in enumerate(lines):
        body = line.replace(b'"measure":"mmd"', f'"measure":"{far}"'.encode())
        body = body[: body.index(b',"crc"')]
        lines[i] = body + b',"crc":"%08x"}\n' % zlib.crc32(body)
    path.write_bytes(b"".join(lines))
    log = tmp_path / "a" / "b" / "log"
    assert write_tensorboard(tmp_path / "run", log) == 8
    assert len(list(log.glob("*/*"))) == 8
    assert (
        sorted(p.name for p in tmp_path.rglob("*") if "far" in p.name and log not in p.parents)
        == []
    )
