"""The model folder: what is loaded is what was saved, for ever, and nothing in it executes."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import autotransfer as at
from autotransfer.encoder.registry import ENCODERS
from autotransfer.errors import ModelFolderError

FIXTURES = Path(__file__).parents[1] / "fixtures"
FILES = {
    "manifest.json",
    "model.json",
    "labels.json",
    "normalisation.json",
    "provenance.json",
    "weights.safetensors",
}
CARD = "README.md"  # for people; nothing reads it
DATA = at.make_subjects(n_subjects=3, n_trials=8, n_channels=2, n_times=64)
TINY = {"F1": 2, "kernel_length": 16, "depthwise_kernel_length": 4}


def fitted(y=DATA.y, **options):
    quick = {"encoder_options": TINY, "max_epochs": 2, "random_state": 0, "verbose": False}
    clf = at.CensoredClassifier(**{**quick, **options})
    return clf.fit(DATA.X, y, subject=DATA.subject)


def assert_same(one, other):
    for answer in ("predict_proba", "transform", "predict"):
        a, b = getattr(one, answer)(DATA.X), getattr(other, answer)(DATA.X)
        assert a.dtype.kind == b.dtype.kind
        np.testing.assert_array_equal(a, b)


def in_a_fresh_process(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_fresh_process_gives_the_same_bits(tmp_path):
    clf = fitted()
    clf.save(tmp_path / "a.model")
    np.save(tmp_path / "X.npy", DATA.X)
    in_a_fresh_process(
        """if True:
        import sys, numpy as np, autotransfer as at
        folder = sys.argv[1]
        clf, X = at.CensoredClassifier.load(folder + "/a.model"), np.load(folder + "/X.npy")
        np.savez(folder + "/out.npz", p=clf.predict_proba(X), z=clf.transform(X))
        """,
        tmp_path,
    )
    out = np.load(tmp_path / "out.npz")
    np.testing.assert_array_equal(out["p"], clf.predict_proba(DATA.X))
    np.testing.assert_array_equal(out["z"], clf.transform(DATA.X))


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["left", "right"]),
        np.array(["Füße", "ruhig, \"so\"\n"]),
        np.array([b"left", b"right\xff"]),
        np.array([-1, 1]),
        np.array([2**63 - 2, 2**63 - 1]),
        np.array([3, 250], np.uint8),
        np.array([False, True]),
        np.array([1.0, 2.0]),
        np.array([1.0, 2.0], np.float32),
    ],
    ids=lambda classes: f"{classes.dtype}{classes[1]!a}",
)  # fmt: skip
def test_labels_of_every_kind(tmp_path, classes):
    clf = fitted(classes[DATA.y])
    back = at.CensoredClassifier.load(clf.save(tmp_path / "m"))
    np.testing.assert_array_equal(back.classes_, classes)
    assert_same(back, clf)
    assert set(back.predict(DATA.X).tolist()) <= set(classes.tolist())


@pytest.mark.parametrize("normalise", ["channel", "trial", "train", "none"])
def test_normalisers_of_every_kind(tmp_path, normalise):
    clf = fitted(normalise=normalise)
    back = at.CensoredClassifier.load(clf.save(tmp_path / "m"))
    assert back.normalise == normalise
    assert_same(back, clf)


def test_what_else_comes_back(tmp_path):
    clf = fitted(sfreq=128.0, learning_rate=np.float64(0.01))
    back = at.CensoredClassifier.load(str(clf.save(tmp_path / "m")))
    for name in ("history_", "best_epoch_", "provenance_", "n_channels_", "n_times_"):
        assert getattr(back, name) == getattr(clf, name)
    for name in ("sfreq", "learning_rate", "max_epochs", "encoder", "encoder_options"):
        assert getattr(back, name) == getattr(clf, name)
    assert back.validation_subjects_ == [str(who) for who in clf.validation_subjects_]
    assert_same(at.CensoredClassifier.load(back.save(tmp_path / "again")), clf)
    assert back.fit(DATA.X, DATA.y, subject=DATA.subject) is back


def test_an_encoder_of_ones_own_is_handed_over_again(tmp_path):
    def net():
        layer = nn.Linear(128, 128)
        return nn.Sequential(nn.Flatten(), layer, nn.ELU(), layer)  # tied weights

    clf = fitted(encoder=net(), encoder_options={"latent": "output"})
    path = clf.save(tmp_path / "m")
    assert_same(at.CensoredClassifier.load(path, encoder=net()), clf)
    with pytest.raises(ModelFolderError, match="give the encoder that it was trained with"):
        at.CensoredClassifier.load(path, encoder=nn.Sequential(nn.Flatten(), nn.Linear(128, 9)))


def test_overwriting(tmp_path):
    path, first, second = tmp_path / "m", fitted(), fitted(random_state=1)
    first.save(path)
    with pytest.raises(ModelFolderError, match="overwrite=True"):
        second.save(path)
    assert_same(at.CensoredClassifier.load(path), first)
    second.save(path, overwrite=True)
    assert_same(at.CensoredClassifier.load(path), second)
    (tmp_path / "empty").mkdir()
    first.save(tmp_path / "empty", overwrite=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years")
    with pytest.raises(ModelFolderError, match="not a model folder"):
        first.save(tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["empty", "m", "mine"]


def test_the_folder_holds_these_files_and_no_more(tmp_path):
    path = fitted().save(tmp_path / "m")
    assert {file.name for file in path.iterdir()} == FILES | {CARD}
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["format_version"] == 1
    for name, digest in manifest["sha256"].items():
        assert hashlib.sha256((path / name).read_bytes()).hexdigest() == digest


def test_later_defaults_of_the_encoder_do_not_change_a_saved_model(tmp_path, monkeypatch):
    clf = fitted()
    path = clf.save(tmp_path / "m")
    later = partial(ENCODERS["eegnet"], batch_norm_eps=0.5, pool2=4, D=3)
    monkeypatch.setitem(ENCODERS, "eegnet", later)
    assert_same(at.CensoredClassifier.load(path), clf)


def test_the_folder_of_version_1_loads_for_ever():
    clf = at.CensoredClassifier.load(FIXTURES / "model_v1")
    expected = np.load(FIXTURES / "model_v1_expected.npz")
    X = expected["X"]
    np.testing.assert_allclose(clf.predict_proba(X), expected["probabilities"], atol=1e-5)
    np.testing.assert_allclose(clf.transform(X), expected["latents"], atol=1e-5)
    np.testing.assert_array_equal(clf.predict(X), expected["labels"])
    assert clf.classes_.tolist() == ["fist", "rest"]
    # Outputs that do not depend on the trial would be easy to reproduce.
    assert np.ptp(expected["probabilities"][:, 0]) > 0.05
    assert set(expected["labels"]) == {"fist", "rest"}


class Bomb:
    """Unpickled, it writes a file."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (Path.touch, (self.marker,))


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("protocol", [0, 5])
@pytest.mark.parametrize("name", sorted(FILES))
def test_nothing_in_a_folder_is_executed(tmp_path, name, protocol, signed):
    path, marker = fitted().save(tmp_path / "m"), tmp_path / "exploded"
    bomb = pickle.dumps(Bomb(marker), protocol=protocol)
    pickle.loads(bomb)
    assert marker.exists(), "the bomb does not work, so this test would prove nothing"
    marker.unlink()
    (path / name).write_bytes(bomb)
    if signed and name != "manifest.json":
        manifest = json.loads((path / "manifest.json").read_text())
        manifest["sha256"][name] = hashlib.sha256(bomb).hexdigest()
        (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelFolderError, match=name):
        at.CensoredClassifier.load(path)
    assert not marker.exists()


def test_loading_neither_unpickles_nor_compiles_nor_starts_anything(tmp_path):
    path = fitted().save(tmp_path / "m")
    said = in_a_fresh_process(
        """if True:
        import sys, pickle, autotransfer as at
        load, path = at.CensoredClassifier.load, sys.argv[1]
        load(path)  # the first time, torch may import modules, which compiles and executes them
        seen = []
        watched = ("pickle.", "exec", "compile", "os.system", "subprocess.", "ctypes.dlopen")
        sys.addaudithook(lambda event, _: seen.append(event) if event.startswith(watched) else None)
        load(path)
        print("load", seen)
        pickle.loads(pickle.dumps(at.SubjectFolds))
        print("pickle", seen)
        """,
        path,
    )
    assert said.splitlines() == ["load []", "pickle ['pickle.find_class']"]
