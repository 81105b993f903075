"""A store of 20 GB is trained on in 2 GB of memory, by the same call as a small one.

For every change a store of 1 GB is trained on in half of that; the 20 GB are for the night.

The store is sparse: every 20th trial begins with some random numbers, and the rest is a hole in
the file, which the system reads as zeros. So it is as large as any to the reader, and takes little
of the disk.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from autotransfer import atomic
from autotransfer.data.sources.store_format import read_store

CHANNELS, TIMES = 64, 2000


@dataclass(frozen=True)
class Size:
    """A store, the memory that its training may use for signals, and what it must stay below."""

    n_subjects: int  # all but one train, one validates
    n_trials: int
    per_batch: int  # subjects, and as many trials of each
    budget: int
    limit: int

    @property
    def shape(self):
        return self.n_subjects * self.n_trials, CHANNELS, TIMES

    @property
    def steps(self):
        """Steps of an epoch."""
        return (self.n_subjects - 1) * self.n_trials // self.per_batch**2


LARGE = Size(101, 400, 20, 2**28, 2 * 2**30)
SMALL = Size(21, 100, 5, 2**25, 2**29)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc"),
]

# In a process of its own: its peak of resident memory is then that of the training alone.
TRAIN = """
import json, sys, time
import torch
from torch import nn
import autotransfer as at
from autotransfer.training.feed import Feed

torch.set_num_threads(1)


def peak():
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


told = {"imports": peak()}
start = time.perf_counter()
data = at.load(sys.argv[1])
told["open_seconds"] = time.perf_counter() - start
told["opened"] = peak()

seen, steps = set(), []
made, batch = Feed.__init__, Feed.batch


def after_the_scan(self, *args, **kwargs):
    told["scan_seconds"], told["scanned"] = time.perf_counter() - start, peak()
    made(self, *args, **kwargs)


def counted(self, trials):
    if torch.is_grad_enabled():
        steps.append(len(trials))
        seen.update(trials.tolist())
    return batch(self, trials)


Feed.__init__, Feed.batch = after_the_scan, counted


class Glance(nn.Module):
    # Reads a trial here and there: what is measured is the way of the signals, not a network.

    n_latent = 8

    def __init__(self, n_channels, n_times):
        super().__init__()
        self.layer = nn.Linear(n_channels * 40, 8)

    def forward(self, x):
        return self.layer(x[:, :, ::50].flatten(1))


if sys.argv[2] == "glance":
    several = int(sys.argv[4])
    options = {"encoder": Glance, "subjects_per_batch": several, "trials_per_subject": several}
else:
    options, data = {}, data.select(trials=slice(None, None, 6))
clf = at.CensoredClassifier(
    max_epochs=1, validation=1, random_state=0, device="cpu", verbose=False,
    memory_budget=int(sys.argv[3]), **options,
)
start = time.perf_counter()
clf.fit(data.X, data.y, subject=data.subject)
told["fit_seconds"], told["cpu_seconds"] = time.perf_counter() - start, time.process_time()
told["peak"] = peak()  # getrusage would count the process that started this one, too
told["steps"], told["trials"], told["different"] = len(steps), sum(steps), len(seen)
told["loss"] = clf.history_[0]["task_loss"]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    with_signals = write(LARGE, tmp_path_factory.mktemp("large") / "store")
    yield with_signals
    (with_signals / "X.npy").unlink()


def write(size, folder):
    folder.mkdir()
    n, channels, times = size.shape
    subject = np.repeat(np.arange(size.n_subjects), size.n_trials)
    y = np.arange(n) // 20 % 2
    np.save(folder / "subject.npy", subject)
    np.save(folder / "y.npy", y)
    rng = np.random.default_rng(0)
    with (folder / "X.npy").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": size.shape}
        np.lib.format.write_array_header_1_0(file, header)
        start = file.tell()
        file.truncate(start + 4 * n * channels * times)
        for trial in range(0, n, 20):
            file.seek(start + 4 * trial * channels * times)
            file.write(rng.normal(y[trial], 1, 500).astype("<f4").tobytes())
    if (folder / "X.npy").stat().st_blocks * 512 > 2**30:
        (folder / "X.npy").unlink()
        pytest.skip("this file system has no sparse files")
    about = {
        "format": "autotransfer-store",
        "version": 1,
        "shape": list(size.shape),
        "dtype": "float32",
        "scale": None,
        "arrays": ["X", "y", "subject"],
        "sfreq": 250.0,
        "channels": None,
        "class_names": None,
        "subject_names": None,
        "fingerprint": "not computed",
    }
    atomic.write_json(folder / "dataset.json", about)
    return folder


def trained(store, what, size):
    run = subprocess.run(
        [sys.executable, "-c", TRAIN, str(store), what, str(size.budget), str(size.per_batch)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    print(what, json.dumps(told, indent=1))
    return told


def check_an_epoch(told, size):
    """All steps of an epoch, which reads every training trial once: from all over the store."""
    assert told["steps"] == size.steps
    assert told["trials"] == told["different"] == (size.n_subjects - 1) * size.n_trials
    assert np.isfinite(told["loss"])
    # To open it reads nothing: the signals stay where they are.
    assert told["opened"] - told["imports"] < 64 * 2**20


@pytest.mark.nightly
def test_20_gigabytes_are_trained_on_in_2(large):
    assert read_store(large).trials.nbytes > 20e9
    told = trained(large, "glance", LARGE)
    assert told["steps"] == 100
    check_an_epoch(told, LARGE)
    assert told["scanned"] < LARGE.limit
    assert told["peak"] < LARGE.limit


@pytest.mark.nightly
def test_so_does_the_default_encoder_with_the_default_batch(large):
    """Every 6th trial, from all over the store: 100 steps of the default batch of 64."""
    told = trained(large, "eegnet", LARGE)
    assert told["steps"] >= 100
    assert told["peak"] < LARGE.limit


@pytest.mark.nightly
def test_a_store_larger_than_its_memory(tmp_path):
    """What Python and torch take themselves is more than the signals may: it is not counted."""
    store = write(SMALL, tmp_path / "store")
    assert read_store(store).trials.nbytes > 2 * SMALL.limit
    told = trained(store, "glance", SMALL)
    check_an_epoch(told, SMALL)
    assert told["scanned"] - told["imports"] < SMALL.limit
    assert told["peak"] - told["imports"] < SMALL.limit
