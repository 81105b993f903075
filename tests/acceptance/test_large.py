"""A store of 20 GB is trained on in 2 GB of memory, by the same call as a small one.

The store is sparse: every trial begins with some random numbers in each of a few channels, and
the rest is a hole in the file, which the system reads as zeros. So it is as large as any to the
reader, and takes little of the disk.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from autotransfer.data import atomic
from autotransfer.data.store_format import read_store

N_SUBJECTS, N_TRIALS = 101, 400  # 100 subjects train, one validates
SHAPE = (N_SUBJECTS * N_TRIALS, 64, 2000)
STEPS = 100
LIMIT = 2 * 2**30

# In a process of its own: its peak of resident memory is then that of the training alone.
TRAIN = """
import json, resource, sys, time
import torch
from torch import nn
import autotransfer as at
from autotransfer.training import classifier, loop

torch.set_num_threads(1)


def peak():
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


told = {"imports": peak()}
start = time.perf_counter()
data = at.load(sys.argv[1])
told["open_seconds"] = time.perf_counter() - start
told["opened"] = peak()

scan = classifier.fingerprint


def timed(*args, **kwargs):
    start = time.perf_counter()
    found = scan(*args, **kwargs)
    told["scan_seconds"], told["scanned"] = time.perf_counter() - start, peak()
    return found


classifier.fingerprint = timed
seen, steps = set(), []
batch = classifier.Feed.batch


def counted(self, trials):
    if torch.is_grad_enabled():
        steps.append(len(trials))
        seen.update(trials.tolist())
    return batch(self, trials)


classifier.Feed.batch = counted
encoder = nn.Sequential(nn.Conv1d(64, 8, 25, stride=25), nn.ELU(), nn.AdaptiveAvgPool1d(8))
clf = at.CensoredClassifier(
    encoder=sys.argv[2] if sys.argv[2] == "eegnet" else encoder,
    encoder_options=None if sys.argv[2] == "eegnet" else {"latent": "output"},
    max_epochs=1, subjects_per_batch=20, trials_per_subject=20, validation=1, random_state=0,
    device="cpu", verbose=False,
)
start = time.perf_counter()
clf.fit(data.X, data.y, subject=data.subject)
told["fit_seconds"] = time.perf_counter() - start
told["peak"] = max(peak(), 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
told["steps"], told["trials"], told["different"] = len(steps), sum(steps), len(seen)
told["loss"] = clf.history_[0]["task_loss"]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("large") / "store"
    folder.mkdir()
    n, channels, times = SHAPE
    subject = np.repeat(np.arange(N_SUBJECTS), N_TRIALS)
    y = np.arange(n) % 2
    np.save(folder / "subject.npy", subject)
    np.save(folder / "y.npy", y)
    rng = np.random.default_rng(0)
    with (folder / "X.npy").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": SHAPE}
        np.lib.format.write_array_header_1_0(file, header)
        start = file.tell()
        file.truncate(start + 4 * n * channels * times)
        for trial in range(n):
            file.seek(start + 4 * trial * channels * times)
            file.write(rng.normal(y[trial], 1, 500).astype("<f4").tobytes())
    if (folder / "X.npy").stat().st_blocks * 512 > 2**30:
        (folder / "X.npy").unlink()
        pytest.skip("this file system has no sparse files")
    about = {
        "format": "autotransfer-store",
        "version": 1,
        "shape": list(SHAPE),
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
    yield folder
    (folder / "X.npy").unlink()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_20_gigabytes_are_trained_on_in_2(store):
    assert read_store(store).trials.nbytes > 20e9
    run = subprocess.run(
        [sys.executable, "-c", TRAIN, str(store), "small"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    print(json.dumps(told, indent=1))
    # All 100 steps of an epoch, which reads every training trial once: from all over the store.
    assert told["steps"] == STEPS
    assert told["trials"] == told["different"] == (N_SUBJECTS - 1) * N_TRIALS
    assert np.isfinite(told["loss"])
    assert told["scanned"] < LIMIT
    assert told["peak"] < LIMIT
    # To open it reads nothing: the signals stay where they are.
    assert told["opened"] - told["imports"] < 64 * 2**20
