"""The table of files made to hang us, to fill the memory or to crash: all are refused by name.

Rows are as in `tests/refused/bad_input.py`; `tests/refused/limited.py` does their acts within limits.
"""

# A row is a line, however long: that is what makes it a table.
# ruff: noqa: E501

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import struct
import zipfile
from pathlib import Path
from zlib import crc32

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save, save_file
from scipy.io import savemat

import autotransfer as at
from autotransfer import errors as e
from autotransfer.data import read_faces_basic, write_store
from autotransfer.report.gather import gather
from autotransfer.search.status import read_status
from bad_files import (
    CLASSIFIER,
    change,
    checkpoint,
    model,
    npz,
    put,
    sign_again,
    store,
    store_file,
)
from bad_input import S, X, Y, dataset, fitted, made

RUN = Path(__file__).parents[1] / "fixtures" / "run"
AUTO = RUN.with_name("auto_run")
HUGE = 10**400
HALF = "a\ud800"


# Models -------------------------------------------------------------------------------------------


def signed(there, spoil):
    return model(there, spoil, sign=True)


def options(**changes):
    """Change the options that the encoder was made with."""

    def spoil(path):
        document = json.loads((path / "model.json").read_text())
        top = {k: changes.pop(k) for k in ("n_channels", "n_times") if k in changes}
        document["encoder_made"] |= changes
        (path / "model.json").write_text(json.dumps(document | top))

    return spoil


def sparse(name, size):
    """Make a file long without writing it: its header does not know of the rest."""
    return lambda path: os.truncate(path / name, size)


def header(change_header, size=None):
    """Change the header of the weights."""

    def spoil(path):
        file = path / "weights.safetensors"
        data = file.read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        about = json.loads(data[8 : 8 + length])
        change_header(about)
        text = json.dumps(about).encode()
        file.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])
        if size is not None:
            os.truncate(file, 8 + len(text) + size)

    return spoil


def longer(about):
    """The last tensor has 30 GB, and so has the file."""
    last = max(
        (v for k, v in about.items() if k != "__metadata__"), key=lambda v: v["data_offsets"]
    )
    start = last["data_offsets"][0]
    last |= {
        "dtype": "F32",
        "shape": [(30 * 2**30 - start) // 4],
        "data_offsets": [start, 30 * 2**30],
    }


def dtype(name):
    """All weights in another number of bits or another meaning of them."""
    kinds = {
        "BF16": torch.bfloat16,
        "I32": torch.int32,
        "F64": torch.float64,
        "F8": torch.float8_e4m3fn,
    }

    def spoil(path):
        tensors = load_file(path / "weights.safetensors")
        floats = {k: v.to(kinds[name]) if v.is_floating_point() else v for k, v in tensors.items()}
        save_file(floats, path / "weights.safetensors")

    return spoil


def unknown_dtype(about):
    next(v for k, v in about.items() if k != "__metadata__")["dtype"] = "F7"


def own_encoder(there, encoder, loaded, **changes):
    """Load a model with an encoder of one's own, whose folder tells of other trials."""
    clf = made(encoder=encoder, encoder_options={"latent": "output"}).fit(X, Y, subject=S)
    path = clf.save(there / "m.model")
    change("model.json", **changes)(path)
    sign_again(path)
    return CLASSIFIER.load(path, encoder=loaded)


class Pooled(torch.nn.Module):
    """An encoder for trials of any length."""

    def __init__(self, n_channels=2):
        super().__init__()
        self.layer = torch.nn.Linear(n_channels, 3)

    def forward(self, x):
        return self.layer(x.mean(2))


def by_function(n_channels, n_times):
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(n_channels * n_times, 64))


def ensemble(there, spoil):
    """Save an ensemble, spoil it, and load it."""
    path = at.Ensemble([fitted(), fitted()]).save(there / "m.model")
    spoil(path)
    return at.load_model(path)


def labels(values, kind="U"):
    return change("labels.json", values=values, kind=kind)


def deep_state(path):
    """Give a checkpoint a state that Python cannot parse, and sign it."""
    with safe_open(str(path), framework="pt") as opened:
        about = opened.metadata()
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    state = "[" * 10**5 + "]" * 10**5
    digest = hashlib.sha256(save(tensors) + state.encode()).hexdigest()
    save_file(tensors, path, metadata=about | {"state": state, "sha256": digest})


FITS = "fit together; again"
LABELS = "fit together; labels.json; again"
WEIGHTS = "weights.safetensors; again"

MODELS = [
    ("model times", lambda t: signed(t, options(n_times=10**9)), e.ModelFolderError, f"{FITS}; m.model"),
    ("model times pooled", lambda t: signed(t, options(n_times=10**9, pool1=10**9 // 16)), e.ModelFolderError, FITS),
    ("model channels", lambda t: signed(t, options(n_channels=10**8)), e.ModelFolderError, FITS),
    ("model channels, no memory", lambda t: signed(t, options(n_channels=5 * 10**7)), e.ModelFolderError, FITS),
    ("model channels at one time", lambda t: signed(t, options(n_channels=5 * 10**7, n_times=1, pool1=1, pool2=1)), e.ModelFolderError, f"{FITS}; weights.safetensors"),
    ("model channels and no times", lambda t: signed(t, options(n_channels=10**8, n_times=0)), e.ModelFolderError, FITS),
    ("model filters", lambda t: signed(t, options(F1=10**8)), e.ModelFolderError, f"{FITS}; weights.safetensors"),
    ("model filters of D", lambda t: signed(t, options(D=10**12)), e.ModelFolderError, FITS),
    ("model pointwise filters", lambda t: signed(t, options(F2=10**10)), e.ModelFolderError, FITS),
    ("model kernel", lambda t: signed(t, options(kernel_length=10**9)), e.ModelFolderError, FITS),
    ("model kernel beyond all", lambda t: signed(t, options(kernel_length=10**30)), e.ModelFolderError, FITS),
    ("model pooling", lambda t: signed(t, options(pool1=10**9)), e.ModelFolderError, f"{FITS}; too short"),
    ("model norm a word", lambda t: signed(t, options(max_norm="much")), e.ModelFolderError, f"{FITS}; max_norm"),
    ("model eps below 0", lambda t: signed(t, options(batch_norm_eps=-1.0)), e.ModelFolderError, f"{FITS}; batch_norm_eps"),
    ("model own module", lambda t: own_encoder(t, Pooled(), Pooled(), n_times=10**9), e.ModelFolderError, FITS),
    ("model own function", lambda t: own_encoder(t, by_function, by_function, n_channels=2**20), e.ModelFolderError, FITS),
    ("model rate", lambda t: signed(t, change("model.json", parameters={"sfreq": HUGE})), e.ModelFolderError, "model.json; 401 digits; again"),
    ("model rate a word", lambda t: signed(t, change("model.json", parameters={"sfreq": "fast"})), e.ModelFolderError, f"{FITS}; sfreq"),
    ("model half a character", lambda t: signed(t, change("model.json", measure=HALF)), e.ModelFolderError, "model.json; surrogate; again"),
    ("model history", lambda t: signed(t, change("model.json", history={"a": 1})), e.ModelFolderError, f"{FITS}; history"),
    ("model provenance", lambda t: signed(t, change("provenance.json", training_subjects=3)), e.ModelFolderError, f"{FITS}; training_subjects"),
    ("model JSON of 30 GB", lambda t: model(t, sparse("model.json", 30 * 2**30)), e.ModelFolderError, "model.json; longer than; again"),
    ("model manifest of 30 GB", lambda t: model(t, sparse("manifest.json", 30 * 2**30)), e.ModelFolderError, "manifest.json; longer than; again"),
    ("ensemble JSON of 30 GB", lambda t: ensemble(t, sparse("ensemble.json", 30 * 2**30)), e.ModelFolderError, "ensemble.json; longer than; again"),
    ("ensemble of a million", lambda t: ensemble(t, change("ensemble.json", members=["member-1"] * 10**6)), e.ModelFolderError, "ensemble.json; 1000000 members; again"),
    ("ensemble of other folders", lambda t: ensemble(t, change("ensemble.json", members=["../../etc"])), e.ModelFolderError, "ensemble.json; ../../etc; again"),
    ("ensemble of other networks", lambda t: ensemble(t, lambda p: options(F1=10**8)(p / "member-2") or sign_again(p / "member-2")), e.ModelFolderError, f"{FITS}; member-2"),
    ("model labels nested", lambda t: signed(t, labels([["a", "b"], ["c", "d"]])), e.ModelFolderError, LABELS),
    ("model labels twice", lambda t: signed(t, labels(["fist", "fist"])), e.ModelFolderError, LABELS),
    ("model labels turned", lambda t: signed(t, labels(["rest", "fist"])), e.ModelFolderError, LABELS),
    ("model labels mixed", lambda t: signed(t, labels(["fist", 2])), e.ModelFolderError, LABELS),
    ("model labels endless", lambda t: signed(t, labels([1.0, 1e999], "f")), e.ModelFolderError, LABELS),
    ("model labels no number", lambda t: signed(t, labels([1.0, float("nan")], "f")), e.ModelFolderError, LABELS),
    ("model labels as true", lambda t: signed(t, labels([False, True], "i")), e.ModelFolderError, LABELS),
    ("model labels huge", lambda t: signed(t, labels([1, 2**63], "i")), e.ModelFolderError, FITS),
    ("model labels too many", lambda t: signed(t, labels([f"{i:06d}" for i in range(10**6)])), e.ModelFolderError, FITS),
    ("model labels too long", lambda t: signed(t, labels(["a" * 10**6, *(f"b{i:05d}" for i in range(10**5))])), e.ModelFolderError, LABELS),
    ("model labels half a character", lambda t: signed(t, labels(["a", HALF])), e.ModelFolderError, "labels.json; surrogate; again"),
    ("model labels of a kind", lambda t: signed(t, labels(["a", "b"], ["U"])), e.ModelFolderError, LABELS),
    ("model weights sparse", lambda t: model(t, sparse("weights.safetensors", 30 * 2**30)), e.ModelFolderError, WEIGHTS),
    ("model weights of 30 GB", lambda t: model(t, header(longer, 30 * 2**30)), e.ModelFolderError, "m.model; again"),
    ("model weights of half", lambda t: signed(t, dtype("BF16")), e.ModelFolderError, f"{FITS}; BF16"),
    ("model weights of double", lambda t: signed(t, dtype("F64")), e.ModelFolderError, f"{FITS}; F64"),
    ("model weights of integers", lambda t: signed(t, dtype("I32")), e.ModelFolderError, f"{FITS}; I32"),
    ("model weights of eight bits", lambda t: signed(t, dtype("F8")), e.ModelFolderError, f"{FITS}; F8"),
    ("model weights of nothing known", lambda t: signed(t, header(unknown_dtype)), e.ModelFolderError, f"{WEIGHTS}; F7"),
    ("checkpoint of 30 GB", lambda t: checkpoint(t, lambda p: os.truncate(p, 30 * 2**30)), e.CheckpointError, "run.checkpoint; cannot be read; Delete"),
    ("checkpoint deep", lambda t: checkpoint(t, deep_state), e.CheckpointError, "run.checkpoint; cannot be read; Delete"),
]  # fmt: skip


# Data ---------------------------------------------------------------------------------------------


def npy(shape, descr, data=b""):
    """Write a .npy that claims to be something."""
    text = (
        repr({"descr": descr, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    )
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def as_npy(array):
    handle = io.BytesIO()
    np.save(handle, array)
    return handle.getvalue()


def archive(there, how=zipfile.ZIP_STORED, **changes):
    """Write a .npz whose members are these bytes, and load it."""
    members = {"X": as_npy(X), "y": as_npy(Y), "subject": as_npy(S), **changes}
    with zipfile.ZipFile(there / "a.npz", "w", how) as target:
        for name, content in members.items():
            target.writestr(f"{name}.npy", content)
    return at.load(there / "a.npz")


def damaged_lzma(there):
    """Change the packed signals, so that LZMA itself stumbles."""
    with contextlib.suppress(e.SourceError):
        archive(there, zipfile.ZIP_LZMA)
    path = there / "a.npz"
    data = bytearray(path.read_bytes())
    data[60:400] = b"\xff" * 340
    path.write_bytes(bytes(data))
    return at.load(path)


def bomb(there):
    """2 MB that unpack to 400."""
    start, zeros = npy((25 * 2**18, 1, 16), "<f4"), b"\0" * 2**24
    with zipfile.ZipFile(there / "a.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
        with target.open("X.npy", "w", force_zip64=True) as member:
            member.write(start)
            for _ in range(25):
                member.write(zeros)
        target.writestr("y.npy", as_npy(Y))
        target.writestr("subject.npy", as_npy(S))
    return at.load(there / "a.npz")


def long_directory(there):
    """An archive whose list of members has 3 GB."""
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, 3 * 2**30, 100, 0)
    with (there / "a.npz").open("wb") as handle:
        handle.write(b"PK\3\4")
        handle.seek(100 + 3 * 2**30)
        handle.write(end)
    return at.load(there / "a.npz")


def many_labels(path):
    """Labels in a store that are long, in a file that is as long, sparsely."""
    (path / "y.npy").write_bytes(npy((24,), "<U250000000"))
    os.truncate(path / "y.npy", 128 + 24 * 10**9)


def store_with(there, spoil):
    write_store(dataset(), there / "study")
    spoil(there / "study")
    return at.load(there / "study")


def mat(there, spoil, **how):
    """Write a .mat file as faces_basic has them, spoil its bytes, and load it."""
    stim = np.repeat([0, 101, 1, 101, 60, 101, 0], 100).astype(np.uint8)[:, None]
    savemat(
        there / "ca_faceshouses.mat",
        {"data": np.ones((700, 2)), "stim": stim, "srate": 100.0},
        **how,
    )
    data = bytearray((there / "ca_faceshouses.mat").read_bytes())
    spoil(data)
    (there / "ca_faceshouses.mat").write_bytes(bytes(data))
    return read_faces_basic(there, seconds=0.5)


def at_first_numbers(value, skip=0):
    """Change the type (or the length) of the first variable's numbers, 56 bytes into it."""

    def spoil(data):
        where = 128 + 8 + 16 + 16 + 8 + skip  # tag, flags, dimensions, a name of four letters
        data[where : where + 4] = struct.pack("<I", value)

    return spoil


def mat_of_zeros(there):
    with (there / "ca_faceshouses.mat").open("wb") as handle:
        handle.write(b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM")
        handle.truncate(30 * 2**30)
    return read_faces_basic(there)


def many_channels(there):
    names = [str(i) for i in range(200_000)]
    return npz(there, X=np.ones((24, len(names), 1), np.float32), channels=[*names[1:], names[1]])


def many_cells(there):
    ids = np.arange(30_000)
    return npz(there, X=np.ones((len(ids), 1, 1), np.float32), y=ids, subject=ids).counts()


JSON_RATE = '{"sfreq": %s}' % ("9" * 400)
JSON_HALF = '{"channel_names": ["a", "\\ud800"]}'

DATA = [
    ("npz JSON rate", lambda t: npz(t, JSON_RATE), e.SourceError, "a.json; 400 digits; again"),
    ("npz JSON scale", lambda t: npz(t, JSON_RATE.replace("sfreq", "scale"), X=X.astype(np.int16)), e.SourceError, "a.json; 400 digits; again"),
    ("npz JSON half a character", lambda t: npz(t, JSON_HALF), e.SourceError, "a.json; surrogate; again"),
    ("npz subject half a character", lambda t: npz(t, subject=np.where(S == "ann", HALF, S)), e.DtypeError, "a.npz; subject; surrogate; anew"),
    ("npz label half a character", lambda t: npz(t, y=np.where(Y == "rest", HALF, Y)), e.DtypeError, "a.npz; y; surrogate; anew"),
    ("npz channel half a character", lambda t: npz(t, channels=["C3", HALF]), e.DtypeError, "a.npz; channels; surrogate; anew"),
    ("npz character beyond all", lambda t: archive(t, y=npy((24,), "<U1", b"\xff" * 96)), e.DtypeError, "a.npz; y; Unicode; anew"),
    ("npz LZMA", lambda t: archive(t, zipfile.ZIP_LZMA), e.SourceError, "a.npz; packed; again"),
    ("npz BZIP2", lambda t: archive(t, zipfile.ZIP_BZIP2), e.SourceError, "a.npz; packed; again"),
    ("npz LZMA damaged", damaged_lzma, e.SourceError, "a.npz; packed; again"),
    ("npz y of terabytes", lambda t: archive(t, y=npy((10**12,), "<i8", b"\0" * 64)), e.SourceError, '"y"; a.npz; header asks for; again'),
    ("npz X of terabytes", lambda t: archive(t, X=npy((10**6, 10**3, 10**3), "<f4", b"\0" * 64)), e.SourceError, '"X"; a.npz; header asks for; again'),
    ("npz X of nothing and all", lambda t: archive(t, X=npy((0, 10**30, 10**30), "<f4")), e.SourceError, '"X"; a.npz; again'),
    ("npz X below nothing", lambda t: archive(t, X=npy((-2, -3, 4), "<f4", b"\0" * 96)), e.SourceError, '"X"; a.npz; again'),
    ("npz y of no bytes", lambda t: archive(t, y=npy((10**12,), "<U0")), e.SourceError, '"y"; a.npz; again'),
    ("npz y of long texts", lambda t: archive(t, y=npy((24,), "<U100000", b"a\0\0\0" * 2400000)), e.SourceError, '"y"; a.npz; texts; again'),
    ("npz header deep", lambda t: archive(t, y=npy((1,), "@").replace(b"'@'", b"-" * 9000 + b"1")), e.SourceError, '"y"; a.npz; header; again'),
    ("npz header of 4 GB", lambda t: archive(t, y=b"\x93NUMPY\x02\x00" + b"\xff" * 100), e.SourceError, '"y"; a.npz; header; again'),
    ("npz of a bomb", bomb, e.SourceError, '"X"; a.npz; unpack; again'),
    ("npz of a long list", long_directory, e.SourceError, "a.npz; again"),
    ("npz of many channels", many_channels, e.ShapeError, "a.npz; more than once"),
    ("npz of many cells", many_cells, e.LabelError, "30000 subjects and 30000 classes; y and subject"),
    ("store rate", lambda t: store(t, sfreq=HUGE), e.SourceError, "dataset.json; 401 digits; again"),
    ("store scale", lambda t: store(t, scale=HUGE), e.SourceError, "dataset.json; 401 digits; again"),
    ("store half a character", lambda t: store(t, channels=["a", HALF]), e.SourceError, "dataset.json; surrogate; again"),
    ("store JSON of 30 GB", lambda t: store_with(t, sparse("dataset.json", 30 * 2**30)), e.SourceError, "dataset.json; longer than; again"),
    ("store y of terabytes", lambda t: store_file(t, "y.npy", npy((10**12,), "<i8")), e.SourceError, "y.npy; trials; again"),
    ("store y of long texts", lambda t: store_with(t, many_labels), e.SourceError, "y.npy; texts; again"),
    ("store subject of gigabytes", lambda t: store_file(t, "subject.npy", npy((24,), "<U250000000")), e.SourceError, "subject.npy; again"),
    ("store X of terabytes", lambda t: store_with(t, lambda p: (put("X.npy", npy((10**6, 10**3, 10**3), "<f4"))(p), change("dataset.json", shape=[10**6, 10**3, 10**3])(p))), e.SourceError, "X.npy; header asks for; again"),
    ("store X beyond all", lambda t: store_with(t, lambda p: (put("X.npy", npy((10**30, 1, 1), "<f4"))(p), change("dataset.json", shape=[10**30, 1, 1])(p))), e.SourceError, "X.npy; again"),
    ("mat type of numbers", lambda t: mat(t, at_first_numbers(8)), e.SourceError, "ca_faceshouses.mat; again"),
    ("mat type beyond all", lambda t: mat(t, at_first_numbers(0x7FFF)), e.SourceError, "ca_faceshouses.mat; again"),
    ("mat length of numbers", lambda t: mat(t, at_first_numbers(0xFFFFFFF0, 4)), e.SourceError, "ca_faceshouses.mat; again"),
    ("mat dimensions", lambda t: mat(t, at_first_numbers(0x7FFFFFFF, -16)), e.SourceError, "ca_faceshouses.mat; again"),
    ("mat of zeros", mat_of_zeros, e.SourceError, "ca_faceshouses.mat; again"),
]  # fmt: skip


# Runs ---------------------------------------------------------------------------------------------


def run(there, name, change_it, look=gather, which=RUN):
    """Change a file of a finished run, and look at the run."""
    shutil.copytree(which, there / "run")
    path = there / "run" / name
    content = json.loads(path.read_text())
    path.write_text(json.dumps(change_it(content)))
    return look(there / "run")


def within(*keys, value):
    """Put a value somewhere into an object."""

    def change_it(content):
        part = content
        for key in keys[:-1]:
            part = part[key]
        if value == "DELETE":
            del part[keys[-1]]
        else:
            part[keys[-1]] = value
        return content

    return change_it


def written(body):
    """Write a line of a ledger, with its checksum."""
    return body + b',"crc":"%08x"}\n' % crc32(body)


def ledger(there, stage, *keys, value, kind="entry", look=gather, which=RUN):
    """Change something in the first such line of a ledger, and sign the line."""
    shutil.copytree(which, there / "run")
    path = there / "run" / "ledger.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    for i, line in enumerate(lines):
        content = json.loads(line)
        if content["stage"] == stage and kind in content:
            del content["crc"]
            within(kind, *keys, value=value)(content)
            lines[i] = written(json.dumps(content, separators=(",", ":")).encode()[:-1])
            break
    path.write_bytes(b"".join(lines))
    return look(there / "run")


def deep_line(there):
    path = there / "run" / "ledger.jsonl"
    shutil.copytree(RUN, there / "run")
    line = path.read_bytes().splitlines()[1]
    head = line[: line.index(b'"entry":') + 8]
    with path.open("ab") as handle:
        handle.write(written(head.replace(b'"id":"', b'"id":"x') + b"[" * 10**5 + b"]" * 10**5))
    return gather(there / "run")


def endless_line(there):
    shutil.copytree(RUN, there / "run")
    os.truncate(there / "run" / "ledger.jsonl", 30 * 2**30)
    return read_status(there / "run")


NO_RUN = "run.json; as a run writes it; copy"
NO_RESULT = "results.json; Delete it"
NO_TRIAL = "ledger.jsonl; as a run records it; copy"

RUNS = [
    ("run a list", lambda t: run(t, "run.json", lambda c: []), e.SourceError, "run.json; object; list; copy"),
    ("run null", lambda t: run(t, "run.json", lambda c: None), e.SourceError, "run.json; object; null; copy"),
    ("run a number", lambda t: run(t, "run.json", lambda c: 3), e.SourceError, "run.json; object; number; copy"),
    ("run without about", lambda t: run(t, "run.json", within("about", value="DELETE"), read_status), e.SourceError, NO_RUN),
    ("run about a list", lambda t: run(t, "run.json", within("about", value=[1]), read_status), e.SourceError, NO_RUN),
    ("run definition null", lambda t: run(t, "run.json", within("definition", value=None), read_status), e.SourceError, NO_RUN),
    ("run definition no number", lambda t: run(t, "run.json", within("definition", "seed", value=float("nan")), read_status), e.SourceError, NO_RUN),
    ("run storage a number", lambda t: run(t, "run.json", within("about", "storage", value=5), read_status), e.SourceError, f"{NO_RUN}; storage"),
    ("run half a character", lambda t: run(t, "run.json", within("about", "subjects", 0, value=HALF)), e.SourceError, "run.json; surrogate; copy"),
    ("run digits", lambda t: run(t, "run.json", within("about", "shape", 0, value=HUGE)), e.SourceError, "run.json; 401 digits; copy"),
    ("run classes null", lambda t: run(t, "run.json", within("about", "classes", value=None)), e.SourceError, f"{NO_RUN}; classes"),
    ("run shape of two", lambda t: run(t, "run.json", within("about", "shape", value=[1, 2])), e.SourceError, f"{NO_RUN}; shape"),
    ("results a list", lambda t: run(t, "results.json", lambda c: []), e.SourceError, f"{NO_RESULT}; object"),
    ("results null", lambda t: run(t, "results.json", lambda c: None), e.SourceError, f"{NO_RESULT}; object"),
    ("results rule a number", lambda t: run(t, "results.json", within("rule", value=7)), e.SourceError, f"{NO_RESULT}; rule"),
    ("results rule unknown", lambda t: run(t, "results.json", within("rule", "name", value="dice")), e.SourceError, f"{NO_RESULT}; dice"),
    ("results choice unknown", lambda t: run(t, "results.json", within("chosen", "setting", "mode", value="x")), e.SourceError, f"{NO_RESULT}; candidate"),
    ("results half a character", lambda t: run(t, "results.json", within("rule", "is", value=HALF)), e.SourceError, f"{NO_RESULT}; surrogate"),
    ("ledger entry a list", lambda t: ledger(t, "search", value=[]), e.LedgerError, "ledger.jsonl; line 2; holds no trial; copy"),
    ("ledger state a number", lambda t: ledger(t, "search", "state", value=5), e.LedgerError, "ledger.jsonl; line 2; state; copy"),
    ("ledger definition null", lambda t: ledger(t, "search", "definition", value=None), e.LedgerError, "ledger.jsonl; line 2; definition; copy"),
    ("ledger fold a word", lambda t: ledger(t, "search", "definition", "fold", value="one"), e.LedgerError, f"{NO_TRIAL}; definition.fold"),
    ("ledger no fold", lambda t: ledger(t, "search", "definition", "fold", value="DELETE"), e.LedgerError, f"{NO_TRIAL}; definition.fold"),
    ("ledger strength of digits", lambda t: ledger(t, "search", "definition", "setting", "strength", value=HUGE), e.LedgerError, f"{NO_TRIAL}; 401 digits"),
    ("ledger option a list", lambda t: ledger(t, "search", "definition", "setting", "options", value={"a": [1]}), e.LedgerError, f"{NO_TRIAL}; options.a"),
    ("ledger scores a list", lambda t: ledger(t, "crossval", "result", "validation", value=[1]), e.LedgerError, f"{NO_TRIAL}; validation"),
    ("ledger score a word", lambda t: ledger(t, "crossval", "result", "test", "subjects", value={"a": "high"}), e.LedgerError, f"{NO_TRIAL}; subjects.a"),
    ("ledger score beyond all", lambda t: ledger(t, "crossval", "result", "test", "subjects", value={"a": 1e308}), e.LedgerError, f"{NO_TRIAL}; subjects.a"),
    ("ledger subject half a character", lambda t: ledger(t, "crossval", "result", "test", "subjects", value={HALF: 0.5}), e.LedgerError, "ledger.jsonl; half a character; copy"),
    ("ledger seconds null", lambda t: ledger(t, "refit", "result", "seconds", value=None), e.LedgerError, f"{NO_TRIAL}; seconds"),
    ("ledger confusion of one", lambda t: ledger(t, "crossval", "result", "test", "confusion", value=[[1]]), e.LedgerError, "ledger.jsonl; together; copy"),
    ("ledger portrait a word", lambda t: ledger(t, "portrait", "result", "map", value="here"), e.LedgerError, f"{NO_TRIAL}; map"),
    ("ledger plan a list", lambda t: ledger(t, "search", value=[1], kind="plan"), e.LedgerError, "ledger.jsonl; plan of search; copy"),
    ("ledger plan of words", lambda t: ledger(t, "search", "plan", "n_folds", value="three", kind="plan"), e.LedgerError, f"{NO_TRIAL}; n_folds"),
    ("ledger plan without rungs", lambda t: ledger(t, "search", "plan", "rungs", value=[], kind="plan"), e.LedgerError, f"{NO_TRIAL}; rungs"),
    ("ledger plan endless", lambda t: ledger(t, "crossval", "plan", "n_folds", value=10**9, kind="plan"), e.LedgerError, f"{NO_TRIAL}; n_folds"),
    ("ledger plan long", lambda t: ledger(t, "crossval", "plan", "n_seeds", value=10**6, kind="plan"), e.LedgerError, f"{NO_TRIAL}; trials"),
    ("auto results a list", lambda t: run(t, "results.json", lambda c: [], which=AUTO), e.SourceError, f"{NO_RESULT}; object"),
    ("auto results members a word", lambda t: run(t, "results.json", within("members", value="two"), which=AUTO), e.SourceError, f"{NO_RESULT}; members"),
    ("auto results score beyond all", lambda t: run(t, "results.json", within("together_subjects", "0", value=1e308), which=AUTO), e.SourceError, f"{NO_RESULT}; together_subjects"),
    ("auto results first unknown", lambda t: run(t, "results.json", within("first", "setting", "mode", value="x"), which=AUTO), e.SourceError, f"{NO_RESULT}; candidate"),
    ("auto run recipes a list", lambda t: run(t, "run.json", within("definition", "recipes", value=[1]), which=AUTO), e.SourceError, f"{NO_RUN}; recipes"),
    ("auto run asked a word", lambda t: run(t, "run.json", within("about", "asked", value="much"), which=AUTO), e.SourceError, f"{NO_RUN}; asked"),
    ("auto ledger group a word", lambda t: ledger(t, "first", "definition", "grouped", value="yes", which=AUTO), e.LedgerError, f"{NO_TRIAL}; grouped"),
    ("auto ledger plan endless", lambda t: ledger(t, "auto", "n_folds", value=10**9, kind="plan", look=read_status, which=AUTO), e.LedgerError, f"{NO_TRIAL}; n_folds"),
    ("ledger line deep", deep_line, e.LedgerError, "ledger.jsonl; holds no trial; copy"),
    ("ledger line endless", endless_line, e.LedgerError, "ledger.jsonl; longer than; copy"),
]  # fmt: skip

ROWS = [*MODELS, *DATA, *RUNS]


LONG = [row for row in ROWS if any(word in row[0] for word in ("30 GB", "sparse", "endless"))]


def acts(rows):
    return {name: act for name, act, _, _ in globals()[rows]}
