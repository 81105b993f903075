"""A training that is killed, again and again, ends with the bits of one that is not."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from autotransfer import CensoredClassifier, make_subjects
from autotransfer.errors import CheckpointError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL"),
]

# One process imports everything (torch's optimisers import for seconds when first used, hence the
# first training); each order makes a copy of it that trains.
SERVER = """
import json, os, signal, sys, time
import numpy as np
import torch
from autotransfer import CensoredClassifier, make_subjects

torch.set_num_threads(1)


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def train(order):
    data = make_subjects(n_subjects=5, n_trials=24, n_channels=4, n_times=64, random_state=3)
    clf = CensoredClassifier(
        encoder_options={"F1": 4, "kernel_length": 16, "depthwise_kernel_length": 4},
        max_epochs=order["epochs"], patience=100, subjects_per_batch=2, trials_per_subject=8,
        random_state=5, device="cpu", verbose=False,
        checkpoint=order["checkpoint"], checkpoint_every=2,
    )
    if order["die"]:
        name = {"half": "fsync", "renamed": "replace"}[order["die"]]
        real, calls = getattr(os, name), []

        def fatal(*args):
            calls.append(args)
            if len(calls) == 9:
                if name == "fsync":  # what a kill in the middle of a write leaves
                    os.truncate(args[0], os.fstat(args[0]).st_size // 2)
                else:
                    real(*args)
                die()
            return real(*args)

        setattr(os, name, fatal)
    clf.fit(data.X, data.y, subject=data.subject)
    weights = {k: v.numpy() for k, v in clf.network_.state_dict().items()}
    history = [[e["epoch"], e["task_loss"], e["validation_loss"]] for e in clf.history_]
    with open(order["out"], "wb") as file:
        np.savez(file, history=history, best=clf.best_epoch_, **weights)


train({"checkpoint": None, "out": os.devnull, "die": None, "epochs": 1})
for line in sys.stdin:
    order = json.loads(line)
    pid = os.fork()
    if pid == 0:
        try:
            train(order)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    if order["kill_after"] is not None:
        time.sleep(order["kill_after"])
        os.kill(pid, signal.SIGKILL)  # our child, not waited for yet: the number is still its own
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Server:
    """Runs trainings in processes of their own, to their end or to a kill."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def run(self, out, checkpoint=None, die=None, kill_after=None):
        """Train; returns the exit code, or minus the signal that ended the process."""
        order = {
            "out": str(out),
            "checkpoint": checkpoint and str(checkpoint),
            "die": die,
            "kill_after": kill_after,
            "epochs": 40,
        }
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.process.stdin.close()
    made.process.wait(timeout=30)


@pytest.fixture(scope="module")
def uninterrupted(server, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "weights.npz"
    assert server.run(out) == 0
    return out


def same(one: Path, other: Path) -> bool:
    with np.load(one) as a, np.load(other) as b:
        return a.files == b.files and all(a[k].tobytes() == b[k].tobytes() for k in a.files)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_kills_at_random_moments_change_no_bit(server, uninterrupted, tmp_path, seed):
    moments = random.Random(seed)
    checkpoint, out = tmp_path / "run.ckpt", tmp_path / "weights.npz"
    kills = 0
    for attempt in range(200):
        # Longer with each attempt, so that a slow machine gets to its end too.
        moment = moments.uniform(0.1, 0.35) * (1 + attempt / 8)
        code = server.run(out, checkpoint, kill_after=moment)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        kills += checkpoint.exists()
    assert code == 0
    assert kills >= 2, "it was not killed in mid-training: this proves nothing"
    assert same(out, uninterrupted)


@pytest.mark.parametrize("moment", ["half", "renamed"])
def test_a_kill_while_the_checkpoint_is_written(server, uninterrupted, tmp_path, moment):
    checkpoint, out = tmp_path / "run.ckpt", tmp_path / "weights.npz"
    assert server.run(out, checkpoint, die=moment) == -signal.SIGKILL
    assert checkpoint.exists()
    left = [path for path in tmp_path.iterdir() if path != checkpoint]
    assert len(left) == (moment == "half")  # a hidden half, which nothing opens
    assert server.run(out, checkpoint) == 0
    assert same(out, uninterrupted)


def test_a_finished_training_is_not_trained_again(server, uninterrupted, tmp_path):
    checkpoint, out = tmp_path / "run.ckpt", tmp_path / "weights.npz"
    assert server.run(out, checkpoint) == 0
    written = checkpoint.stat().st_mtime_ns
    out.unlink()
    assert server.run(out, checkpoint) == 0
    assert checkpoint.stat().st_mtime_ns == written
    assert same(out, uninterrupted)


DATA = make_subjects(n_subjects=3, n_trials=8, n_channels=2, n_times=64)
OPTIONS = {
    "encoder_options": {"F1": 1, "D": 1, "kernel_length": 4, "depthwise_kernel_length": 4},
    "max_epochs": 2,
    "validation": [0],
    "random_state": 0,
    "device": "cpu",
    "verbose": False,
}


def fit(path, data=DATA, y=None, subject=None, **changed):
    clf = CensoredClassifier(**{**OPTIONS, **changed}, checkpoint=path)
    y = data.y if y is None else y
    return clf.fit(data.X, y, subject=data.subject if subject is None else subject)


@pytest.mark.parametrize(
    "changed",
    [
        {"data": make_subjects(n_subjects=3, n_trials=8, n_channels=2, n_times=64, noise=1.1)},
        {"y": 1 - DATA.y},
        {"subject": (DATA.subject + 1) % 3},
        {"learning_rate": 2e-3},
        {"validation": [1]},
        {"random_state": 1},
        {"normalise": "trial"},
        {"subjects_per_batch": 3},
        {"encoder_options": {"F1": 1, "D": 1, "kernel_length": 4, "pool1": 2}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, changed):
    path = tmp_path / "run.ckpt"
    fit(path)
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match="other data or settings"):
        fit(path, **changed)
    assert path.read_bytes() == before
    fit(path, verbose=True)  # what does not change the result does not matter


def test_more_epochs_go_on_to_the_same_weights(tmp_path):
    fit(tmp_path / "short.ckpt", max_epochs=2)
    longer = fit(tmp_path / "short.ckpt", max_epochs=5)
    whole = fit(tmp_path / "whole.ckpt", max_epochs=5)
    assert len(longer.history_) == len(whole.history_) == 5
    np.testing.assert_array_equal(longer.predict_proba(DATA.X), whole.predict_proba(DATA.X))
    # Fewer epochs than the checkpoint has seen: its earlier weights are gone, so from the start.
    again = fit(tmp_path / "whole.ckpt", max_epochs=2)
    short = fit(tmp_path / "other.ckpt", max_epochs=2)
    np.testing.assert_array_equal(again.predict_proba(DATA.X), short.predict_proba(DATA.X))


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_checkpoint_is_refused(tmp_path, damage):
    path = tmp_path / "run.ckpt"
    fit(path)
    path.write_bytes(path.read_bytes()[:-100] if damage is None else damage)
    with pytest.raises(CheckpointError, match=r"run\.ckpt"):
        fit(path)
