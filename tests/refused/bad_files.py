"""The table of wrong files: damaged, foreign, newer or hostile data, models and checkpoints.

Rows are as in `tests/refused/bad_input.py`.
"""

# A row is a line, however long: that is what makes it a table.
# ruff: noqa: E501

from __future__ import annotations

import hashlib
import json
import pickle
import shutil

import numpy as np
import torch
from safetensors.torch import load_file, save_file

import autotransfer as at
from autotransfer import errors as e
from autotransfer.data import write_npz, write_store
from bad_input import S, X, Y, dataset, fit, fitted, made

CLASSIFIER = at.CensoredClassifier


def npz(there, beside=None, **changes):
    """Write a .npz with changes (None leaves out), and text beside it, and load it."""
    arrays = {"X": X, "y": Y, "subject": S, **changes}
    np.savez(there / "a.npz", **{k: v for k, v in arrays.items() if v is not None})
    if beside is not None:
        (there / "a.json").write_text(beside)
    return at.load(there / "a.npz")


def cut(path, keep):
    path.write_bytes(path.read_bytes()[:keep])


def cut_npz(there):
    write_npz(dataset(), there / "a.npz")
    cut(there / "a.npz", 5000)
    return at.load(there / "a.npz")


def file(there, name, content=b"nothing"):
    (there / name).write_bytes(content)
    return at.load(there / name)


def store(there, **changes):
    """Write a store, change its description, and load it."""
    write_store(dataset(), there / "study")
    describe(there / "study" / "dataset.json", **changes)
    return at.load(there / "study")


def describe(path, **changes):
    about = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({k: v for k, v in about.items() if v != "DELETE"}))


def store_file(there, name, content=None, keep=None):
    """Write a store, spoil one of its files, and load it."""
    write_store(dataset(), there / "study")
    if content is not None:
        (there / "study" / name).write_bytes(content)
    if keep is not None:
        cut(there / "study" / name, keep)
    return at.load(there / "study")


def model(there, spoil, sign=False):
    """Save a model, spoil it, sign it again as an attacker would, and load it."""
    path = fitted().save(there / "m.model")
    spoil(path)
    if sign:
        sign_again(path)
    return CLASSIFIER.load(path)


def sign_again(path):
    digests = {f: hashlib.sha256((path / f).read_bytes()).hexdigest() for f in listed(path)}
    describe(path / "manifest.json", sha256=digests)


def listed(path):
    return json.loads((path / "manifest.json").read_text())["sha256"]


def put(name, content):
    return lambda path: (path / name).write_bytes(content)


def change(name, **changes):
    return lambda path: describe(path / name, **changes)


def list_also(name):
    return lambda path: describe(path / "manifest.json", sha256={**listed(path), name: "0" * 64})


def link_weights(path):
    real = path.parent / "elsewhere.safetensors"
    shutil.move(path / "weights.safetensors", real)
    (path / "weights.safetensors").symlink_to(real)


def flip(path):
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(bytes(data))


def other_weights(path):
    save_file({"w": torch.zeros(2)}, path / "weights.safetensors")


def other_head(path):
    tensors = load_file(path / "weights.safetensors")
    tensors["head.weight"] = torch.zeros(5, tensors["head.weight"].shape[1])
    save_file(tensors, path / "weights.safetensors")


def save_to(there, make, **options):
    make(there / "m.model")
    fitted().save(there / "m.model", **options)


def foreign_folder(path):
    path.mkdir()
    (path / "thesis.tex").write_text("years of work")


def unnamed_encoder(there):
    encoder = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(128, 3))
    clf = fit(encoder=encoder, encoder_options={"latent": "output"})
    return CLASSIFIER.load(clf.save(there / "m.model"))


def unwritable_option(there):
    def encoder(n_channels, n_times, kind=None):
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(128, 3))

    return fit(encoder=encoder, encoder_options={"kind": {1, 2}}).save(there / "m.model")


def checkpoint(there, spoil, **options):
    """Train with a checkpoint, spoil that, and train again."""
    path = there / "run.checkpoint"
    made(checkpoint=path).fit(X, Y, subject=S)
    spoil(path)
    made(checkpoint=path, **options).fit(X, Y, subject=S)


def blocked_checkpoint(there):
    (there / "file").write_text("")
    fit(checkpoint=there / "file" / "run.checkpoint")


PICKLE = pickle.dumps({"weights": [1, 2, 3]})
DEEP = b"[" * 100_000

DATA = [
    ("file absent", lambda t: at.load(t / "none.npz"), e.SourceError, "none.npz does not exist; Check the path"),
    ("file pickle", lambda t: file(t, "a.pkl", PICKLE), e.SourceError, "a.pkl; execute; numpy.savez"),
    ("file unknown", lambda t: file(t, "a.xyz"), e.SourceError, "a.xyz; .xyz; .npz"),
    ("file csv", lambda t: file(t, "a.csv"), e.SourceError, "a.csv; pandas"),
    ("folder foreign", lambda t: foreign_folder(t / "x") or at.load(t / "x"), e.SourceError, "dataset.json; thesis.tex"),
    ("npz no archive", lambda t: file(t, "a.npz"), e.SourceError, "a.npz; damaged; numpy.savez"),
    ("npz empty", lambda t: file(t, "a.npz", b""), e.SourceError, "a.npz; damaged; numpy.savez"),
    ("npz truncated", cut_npz, e.SourceError, "a.npz; damaged; Copy it again"),
    ("npz pickled objects", lambda t: npz(t, y=Y.astype(object)), e.SourceError, "a.npz; pickle; astype(str)"),
    ("npz without subject", lambda t: npz(t, subject=None), e.SourceError, "a.npz lacks subject; X, y, subject"),
    ("npz y length", lambda t: npz(t, y=Y[1:]), e.ShapeError, "a.npz; y has 23 values"),
    ("npz scale negative", lambda t: npz(t, X=X.astype(np.int16), scale=-1.0), e.SourceError, "a.npz; scale; positive"),
    ("npz scale of two", lambda t: npz(t, X=X.astype(np.int16), scale=[1, 2]), e.SourceError, "a.npz; scale; one number"),
    ("npz JSON broken", lambda t: npz(t, "{"), e.SourceError, "a.json; JSON; write it again"),
    ("npz JSON deep", lambda t: npz(t, DEEP.decode()), e.SourceError, "a.json; JSON; write it again"),
    ("npz JSON list", lambda t: npz(t, "[]"), e.SourceError, "a.json; object; list"),
    ("npz JSON rate", lambda t: npz(t, '{"sfreq": "fast"}'), e.SourceError, "a.json; sfreq; number"),
    ("npz JSON names", lambda t: npz(t, '{"channel_names": "C3"}'), e.SourceError, "a.json; channel_names; list of names"),
    ("store X truncated", lambda t: store_file(t, "X.npy", keep=1000), e.SourceError, "X.npy; again"),
    ("store X of objects", lambda t: store_file(t, "y.npy", PICKLE), e.SourceError, "y.npy; objects; again"),
    ("store JSON broken", lambda t: store_file(t, "dataset.json", b"{"), e.SourceError, "dataset.json; not valid JSON; again"),
    ("store JSON list", lambda t: store_file(t, "dataset.json", b"[]"), e.SourceError, "dataset.json; object"),
    ("store JSON keys", lambda t: store(t, channels="DELETE"), e.SourceError, "dataset.json lacks channels; again"),
    ("store JSON types", lambda t: store(t, shape="24x2x64"), e.SourceError, "dataset.json; shape; three positive"),
    ("store newer", lambda t: store(t, version=9), e.SourceError, "version 9; upgrade"),
    ("store foreign array", lambda t: store(t, arrays=["X", "y", "subject", "../secret"]), e.SourceError, "arrays; ../secret"),
    ("store over a folder", lambda t: foreign_folder(t / "x") or write_store(dataset(), t / "x", overwrite=True), e.SourceError, "not a store; another name"),
]  # fmt: skip

MODELS = [
    ("model no path", lambda t: CLASSIFIER.load(None), e.ModelFolderError, "None; path"),
    ("model absent", lambda t: CLASSIFIER.load(t / "none"), e.ModelFolderError, "none does not exist; save()"),
    ("model a file", lambda t: (t / "f").write_text("") or CLASSIFIER.load(t / "f"), e.ModelFolderError, "is a file; save()"),
    ("model foreign", lambda t: foreign_folder(t / "x") or CLASSIFIER.load(t / "x"), e.ModelFolderError, "no manifest.json; save()"),
    ("model manifest broken", lambda t: model(t, put("manifest.json", b"{")), e.ModelFolderError, "manifest.json; JSON; again"),
    ("model manifest deep", lambda t: model(t, put("manifest.json", DEEP)), e.ModelFolderError, "manifest.json; JSON; again"),
    ("model manifest list", lambda t: model(t, put("manifest.json", b"[]")), e.ModelFolderError, "manifest.json; object; again"),
    ("model manifest foreign", lambda t: model(t, change("manifest.json", format="x")), e.ModelFolderError, "manifest.json; save()"),
    ("model newer", lambda t: model(t, change("manifest.json", format_version=2)), e.ModelFolderError, "version 2; pip install -U"),
    ("model version a word", lambda t: model(t, change("manifest.json", format_version="1")), e.ModelFolderError, "format_version; '1'; again"),
    ("model no digests", lambda t: model(t, change("manifest.json", sha256=None)), e.ModelFolderError, "manifest.json; again"),
    ("model outside", lambda t: model(t, list_also("../../etc/passwd")), e.ModelFolderError, "wrong: ../../etc/passwd; changed"),
    ("model absolute", lambda t: model(t, list_also("/etc/passwd")), e.ModelFolderError, "wrong: /etc/passwd; changed"),
    ("model extra file", lambda t: model(t, list_also("run.py")), e.ModelFolderError, "wrong: run.py; changed"),
    ("model link", lambda t: model(t, link_weights), e.ModelFolderError, "weights.safetensors; link; again"),
    ("model link signed", lambda t: model(t, link_weights, sign=True), e.ModelFolderError, "weights.safetensors; link; again"),
    ("model file absent", lambda t: model(t, lambda p: (p / "labels.json").unlink()), e.ModelFolderError, "labels.json; missing; again"),
    ("model weights changed", lambda t: model(t, lambda p: flip(p / "weights.safetensors")), e.ModelFolderError, "weights.safetensors; changed; intact copy"),
    ("model weights short", lambda t: model(t, lambda p: cut(p / "weights.safetensors", 50)), e.ModelFolderError, "weights.safetensors; damaged; again"),
    ("model JSON changed", lambda t: model(t, change("model.json", n_times=65)), e.ModelFolderError, "model.json; changed; again"),
    ("model pickle", lambda t: model(t, put("weights.safetensors", PICKLE), sign=True), e.ModelFolderError, "weights.safetensors; not a safetensors; again"),
    ("model short signed", lambda t: model(t, lambda p: cut(p / "weights.safetensors", 50), sign=True), e.ModelFolderError, "weights.safetensors; again"),
    ("model other weights", lambda t: model(t, other_weights, sign=True), e.ModelFolderError, "fit together; again"),
    ("model other head", lambda t: model(t, other_head, sign=True), e.ModelFolderError, "fit together; again"),
    ("model other encoder", lambda t: model(t, change("model.json", encoder="x"), sign=True), e.ModelFolderError, "fit together; 'x'"),
    ("model keys", lambda t: model(t, change("model.json", measure="DELETE"), sign=True), e.ModelFolderError, "fit together; measure"),
    ("model parameters", lambda t: model(t, change("model.json", parameters=5), sign=True), e.ModelFolderError, "fit together; again"),
    ("model shape", lambda t: model(t, change("model.json", n_channels=-1), sign=True), e.ModelFolderError, "fit together; n_channels"),
    ("model shape endless", lambda t: model(t, change("model.json", n_channels=float("inf")), sign=True), e.ModelFolderError, "fit together; again"),
    ("model one label", lambda t: model(t, change("labels.json", values=["a"]), sign=True), e.ModelFolderError, "labels.json; two class labels; again"),
    ("model label kind", lambda t: model(t, change("labels.json", kind="i"), sign=True), e.ModelFolderError, "fit together; again"),
    ("model normaliser", lambda t: model(t, change("normalisation.json", kind="x"), sign=True), e.ModelFolderError, "fit together; 'x'"),
    ("model normaliser channels", lambda t: model(t, change("normalisation.json", kind="train", mean=[0], std=[1]), sign=True), e.ModelFolderError, "fit together; 2 channels"),
    ("model own encoder", unnamed_encoder, e.ModelFolderError, "encoder of its own; load(path, encoder=module)"),
    ("save no path", lambda t: fitted().save(None), e.ModelFolderError, "None; path"),
    ("save nowhere", lambda t: fitted().save(t / "a" / "b"), e.ModelFolderError, "no folder; Make it"),
    ("save over a model", lambda t: save_to(t, fitted().save), e.ModelFolderError, "already exists; overwrite=True"),
    ("save over a folder", lambda t: save_to(t, foreign_folder, overwrite=True), e.ModelFolderError, "not a model folder; another path"),
    ("save over a file", lambda t: save_to(t, lambda p: p.write_text(""), overwrite=True), e.ModelFolderError, "not a model folder; another path"),
    ("save an odd option", unwritable_option, e.ModelFolderError, "JSON; encoder_options"),
    ("checkpoint of another run", lambda t: checkpoint(t, lambda p: None, learning_rate=0.5), e.CheckpointError, "run.checkpoint; other data or settings; Delete"),
    ("checkpoint cut", lambda t: checkpoint(t, lambda p: cut(p, 300)), e.CheckpointError, "run.checkpoint; cannot be read; Delete"),
    ("checkpoint changed", lambda t: checkpoint(t, flip), e.CheckpointError, "run.checkpoint; changed; Delete"),
    ("checkpoint pickle", lambda t: checkpoint(t, lambda p: p.write_bytes(PICKLE)), e.CheckpointError, "run.checkpoint; cannot be read; Delete"),
    ("checkpoint foreign", lambda t: checkpoint(t, lambda p: save_file({"w": torch.ones(1)}, p)), e.CheckpointError, "run.checkpoint; not a checkpoint; Delete"),
    ("checkpoint a folder", lambda t: fit(checkpoint=t), e.CheckpointError, "cannot be read; Delete"),
    ("checkpoint below a file", blocked_checkpoint, e.CheckpointError, "run.checkpoint; cannot be written; another path"),
]  # fmt: skip

ROWS = [*DATA, *MODELS]
