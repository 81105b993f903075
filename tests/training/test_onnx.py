"""The exported graph says what the classifier says, under onnxruntime."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import autotransfer as at
from autotransfer.data.normalise import NORMALISERS
from autotransfer.errors import MissingExtraError, ModelFolderError, SettingError
from autotransfer.training.model.onnx import export_onnx

NEEDED = os.environ.get("AUTOTRANSFER_NEED_EXTRAS") == "1"
ort = __import__("onnxruntime") if NEEDED else pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

RECORDINGS = Path(
    os.environ.get("AUTOTRANSFER_DATA", Path(__file__).parents[3] / "shared" / "data")
)
# In volts, on an offset, as amplifiers give it: what a careless graph gets wrong.
DATA = at.make_subjects(n_subjects=4, n_trials=20, n_channels=5, n_times=70, random_state=0)
X = (DATA.X * 1e-5 + 3e-3).astype(np.float32)
TINY = {"F1": 2, "kernel_length": 16, "depthwise_kernel_length": 4}


def fitted(data=DATA, signals=X, **options):
    quick = {"encoder_options": TINY, "max_epochs": 2, "random_state": 0, "verbose": False}
    clf = at.CensoredClassifier(**{**quick, **options})
    return clf.fit(signals, data.y, subject=data.subject)


def session(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def assert_equal(clf, run, signals):
    probabilities, latent = run.run(None, {"signals": signals})
    assert probabilities.dtype == latent.dtype == np.float32
    np.testing.assert_allclose(probabilities, clf.predict_proba(signals), atol=1e-5)
    np.testing.assert_allclose(latent, clf.transform(signals), rtol=1e-5, atol=1e-5)


FIRST, *AT_NIGHT = NORMALISERS


@pytest.mark.slow
@pytest.mark.parametrize(
    "normalise", [FIRST, *(pytest.param(one, marks=pytest.mark.nightly) for one in AT_NIGHT)]
)
def test_equal_for_every_normaliser_and_any_number_of_trials(normalise, tmp_path):
    # Without normalisation volts are too small to train on.
    signals = (DATA.X if normalise == "none" else X).copy()
    signals[:, 1] = 0.0123  # flat everywhere
    signals[3:6] = 0.5  # flat trials
    clf = fitted(signals=signals, normalise=normalise, measure="mmd")
    run = session(clf.export_onnx(tmp_path / "model.onnx"))
    for n in (1, 64):
        assert_equal(clf, run, signals[:n])
    assert run.run(None, {"signals": signals})[0].std(0).min() > 0  # they differ at all
    if normalise in ("channel", "trial"):  # the scale of the others is that of training
        for unit in (1e-18, 1e18):
            assert_equal(clf, run, (DATA.X[:4] * unit).astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ssvep_exoskeleton", "myo_emg"])
def test_equal_on_real_recordings(name, tmp_path):
    file = RECORDINGS / name / f"{name}.npz"
    if not file.exists():
        pytest.skip(f"no {name} in {RECORDINGS}; set AUTOTRANSFER_DATA")
    data = at.load(file)
    some = data.select(subjects=data.subject_ids[:3])
    some = some.select(trials=np.arange(0, some.n_trials, max(1, some.n_trials // 200)))
    clf = fitted(some, some.X, encoder_options={"kernel_length": 32}, normalise="trial")
    run = session(clf.export_onnx(tmp_path / "model.onnx"))
    block = data.trials[:64]
    for n in (1, 64):
        assert_equal(clf, run, np.ascontiguousarray(block[:n], np.float32))


class Own(nn.Module):
    """Has a last layer that `wrap` cuts off."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(5, 4, 9), nn.ELU(), nn.AdaptiveAvgPool1d(3))
        self.last = nn.Linear(12, 2)

    def forward(self, x):
        return self.last(self.features(x).flatten(1))


class Counts(Own):
    """Has a look at the number of trials that ties the graph to it."""

    def forward(self, x):
        return self.last(self.features(x).reshape(len(x), 12))


class Unknown(nn.Module):
    """Does what no graph can hold."""

    n_latent = 5

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(5))

    def forward(self, x):
        found = torch.from_numpy(np.sort(x.detach().numpy().mean(-1)))
        return found * self.scale


@pytest.mark.slow
def test_an_encoder_of_ones_own(tmp_path):
    clf = fitted(encoder=Own(), encoder_options=None)
    run = session(export_onnx(clf, str(tmp_path / "own.onnx"), opset=18))
    assert_equal(clf, run, X[:7])


@pytest.mark.slow
def test_an_encoder_that_ties_the_graph_to_a_number_of_trials(tmp_path):
    clf = fitted(encoder=Counts(), encoder_options=None)
    with pytest.raises(SettingError, match=r"number of trials|cannot be written"):
        clf.export_onnx(tmp_path / "own.onnx")


def test_an_encoder_that_cannot_be_traced(tmp_path):
    clf = fitted(encoder=Unknown(), encoder_options=None)
    with pytest.raises(SettingError, match=r"cannot be written as ONNX .* your own"):
        clf.export_onnx(tmp_path / "own.onnx")
    assert list(tmp_path.iterdir()) == []


def test_labels_and_shapes_are_in_the_metadata(tmp_path):
    words = np.array(["links", "rechts", "Füße"])[DATA.y_code % 3]
    clf = at.CensoredClassifier(
        encoder_options=TINY, sfreq=128, max_epochs=1, random_state=0, verbose=False
    ).fit(X, words, subject=DATA.subject)
    state, random = torch.random.get_rng_state(), clf.network_.training
    run = session(clf.export_onnx(tmp_path / "model.onnx"))
    assert torch.equal(state, torch.random.get_rng_state())
    assert clf.network_.training == random
    about = json.loads(run.get_modelmeta().custom_metadata_map["autotransfer"])
    assert about["labels"] == {"kind": "U", "values": clf.classes_.tolist()}
    assert (about["n_channels"], about["n_times"], about["sfreq"]) == (5, 70, 128)
    assert about["version"] == at.__version__
    assert [one.name for one in run.get_outputs()] == ["probabilities", "latent"]
    assert [one.shape for one in run.get_inputs()] == [["trials", 5, 70]]
    (written,) = tmp_path.iterdir()  # one file, nothing beside it
    assert written.name == "model.onnx"


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="not fitted"):
        at.CensoredClassifier().export_onnx(tmp_path / "model.onnx")
    clf = fitted()
    with pytest.raises(ModelFolderError, match=r"no folder .*nowhere"):
        clf.export_onnx(tmp_path / "nowhere" / "model.onnx")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(MissingExtraError, match=r"pip install onnx"):
        clf.export_onnx(tmp_path / "model.onnx")
