"""Files with mistakes in them, made from good ones by chance: npz, store, model, ledger and run.

What a file becomes depends on its name alone (``npz-17``), so that a name in a report is enough to
make the file again. The good ones are made here or are in `tests/fixtures`.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import random
import shutil
import struct
import time
import zipfile
from functools import partial
from pathlib import Path
from zlib import crc32

import numpy as np

import autotransfer as at
from autotransfer.data import write_store
from autotransfer.errors import AutoTransferError
from autotransfer.report.gather import gather
from autotransfer.report.page import page
from autotransfer.report.pictures import draw, pictures
from autotransfer.search.ledger import RunLedger
from autotransfer.search.run_folder import RunFolder
from autotransfer.search.settings.trial import digest
from autotransfer.search.status import read_status
from bad_files import sign_again
from bad_input import S, X, Y

FIXTURES = Path(__file__).parents[1] / "fixtures"
DEEP = "@DEEP@"
VALUES = [
    *(None, True, False, 0, -1, 1, 2, 1.5, 10**9, 2**31, 2**63, 2**64, 10**30, 10**400),
    *(1e-320, 1e308, -1e308, float("nan"), float("inf"), "", "x", "\ud800", "é\0", "a" * 10**5),
    *([], {}, [[]], [None], ["x"], {"": 0}, list(range(1000)), DEEP),
]
SIZES = [0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**40, 2**63 - 1, 2**64 - 1]


def changed_bytes(rng: random.Random, data: bytes) -> bytes:
    """Make one to four mistakes in some bytes."""
    result = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        where = rng.randrange(len(result) + 1)
        length = rng.choice([1, 1, 2, 4, 8, 64, 1000])
        match rng.randrange(6):
            case 0:
                result[where : where + length] = rng.randbytes(length)
            case 1:
                result[where:where] = rng.randbytes(length)
            case 2:
                del result[where : where + length]
            case 3:
                del result[where:]
            case 4:
                size = struct.pack("<Q", rng.choice(SIZES))[: rng.choice([1, 2, 4, 8])]
                result[where : where + len(size)] = size
            case 5:
                start = rng.randrange(len(result) + 1)
                result[where:where] = result[start : start + length]
    return bytes(result)


def places(value, path=()):
    """Yield the path of every part of some JSON."""
    yield path
    parts = enumerate(value) if isinstance(value, list) else ()
    for key, part in value.items() if isinstance(value, dict) else parts:
        yield from places(part, (*path, key))


def changed_json(rng: random.Random, text: bytes) -> bytes:
    """Make one or two mistakes in the values or keys of some JSON."""
    document = json.loads(text)
    for _ in range(rng.choice([1, 1, 2])):
        *path, key = rng.choice(list(places(document))) or [None]
        if key is None:
            document = copy.deepcopy(rng.choice(VALUES))
            continue
        part = document
        for step in path:
            part = part[step]
        act = rng.randrange(8)
        if act == 0:
            del part[key]
        elif act == 1 and isinstance(part, dict):
            part[f"{key}x"] = part.pop(key)
        elif act == 2 and isinstance(part, list):
            part *= rng.choice([0, 2, 100])
        elif act == 3 and isinstance(part[key], int | float) and abs(part[key]) < 1e15:
            part[key] *= rng.choice([-1, 0, 0.5, 10**3, 10**12])
        else:
            part[key] = copy.deepcopy(rng.choice(VALUES))
    n = rng.choice([50, 500, 10**5])
    return json.dumps(document).replace(f'"{DEEP}"', "[" * n + "]" * n).encode()


def changed(rng: random.Random, text: bytes) -> bytes:
    """Make mistakes in JSON: in its values, or in its bytes."""
    return changed_json(rng, text) if rng.random() < 0.75 else changed_bytes(rng, text)


def use_data(data: at.SubjectDataset) -> None:
    """Do what follows on loading."""
    repr(data)
    data.fingerprint()
    data.counts()
    " ".join([*data.channels, *data.class_names, *data.subject_names]).encode()


def npz(rng: random.Random, there: Path) -> None:
    arrays = {"X": X, "y": Y, "subject": S, "sfreq": 128.0, "channels": ["C3", "C4"]}
    members = {}
    for name, array in arrays.items():
        handle = io.BytesIO()
        np.save(handle, np.asarray(array))
        members[f"{name}.npy"] = handle.getvalue()
    beside = json.dumps({"sfreq": 128, "channel_names": ["a", "b"], "class_names": {"fist": "f"}})
    what = rng.randrange(3)
    if what == 0:
        name = rng.choice(list(members))
        head, data = members[name][:128], members[name][128:]
        # Where it matters: what an array says of itself.
        in_head = rng.random() < 0.7
        members[name] = (
            changed_bytes(rng, head) + data if in_head else changed_bytes(rng, head + data)
        )
    elif what == 1:
        for name in rng.sample(sorted(members), rng.choice([0, 1, 2])):
            if name not in ("X.npy", "y.npy", "subject.npy"):
                del members[name]
        (there / "a.json").write_bytes(changed(rng, beside.encode()))
    how = rng.choice([zipfile.ZIP_STORED] * 5 + [zipfile.ZIP_DEFLATED] * 4 + [zipfile.ZIP_LZMA])
    with zipfile.ZipFile(there / "a.npz", "w", how) as target:
        for name, content in members.items():
            target.writestr(name, content)
    if what == 2:
        path = there / "a.npz"
        path.write_bytes(changed_bytes(rng, path.read_bytes()))
    use_data(at.load(there / "a.npz"))


def store(rng: random.Random, there: Path) -> None:
    path = there / "study"
    write_store(at.SubjectDataset(X, Y, S, session=Y, sfreq=128.0), path)
    file = path / rng.choice(
        ["dataset.json"] * 4 + ["X.npy", "y.npy", "subject.npy", "session.npy"]
    )
    data = file.read_bytes()
    if file.suffix == ".json":
        data = changed(rng, data)
    else:
        start = 192 if file.name == "X.npy" else 128
        head, rest = data[:start], data[start:]
        of_head = rng.random() < 0.6
        data = changed_bytes(rng, head) + rest if of_head else head + changed_bytes(rng, rest)
    file.write_bytes(data)
    use_data(at.load(path))


def model(rng: random.Random, there: Path) -> None:
    path = there / "m"
    shutil.copytree(FIXTURES / rng.choice(["model_v1", "run/model"]), path)
    names = ["model", "labels", "normalisation", "provenance", "manifest"]
    file = path / rng.choice([*(f"{name}.json" for name in names), *["weights.safetensors"] * 3])
    data = file.read_bytes()
    if file.suffix == ".json":
        data = changed(rng, data)
    elif rng.random() < 0.6:
        end = 8 + struct.unpack("<Q", data[:8])[0]
        header = changed(rng, data[8:end])
        data = struct.pack("<Q", len(header)) + header + data[end:]
    else:
        data = changed_bytes(rng, data)
    file.write_bytes(data)
    if file.name != "manifest.json" and rng.random() < 0.5:
        sign_again(path)
    clf = at.CensoredClassifier.load(path)
    clf.predict(np.ones((2, clf.n_channels_, clf.n_times_), np.float32))
    again = clf.save(there / "again")
    at.CensoredClassifier.load(again)


def look_at(run: Path, rng: random.Random) -> None:
    """Do what is done with a run: how far it is, its report, and going on with it."""
    status = read_status(run)
    json.dumps(status.to_json())
    str(status).encode()
    record = gather(run)
    if rng.random() < 0.05:  # it takes a second
        drawings = list(pictures(record).values())
        if drawings:  # a ledger without trials has none
            draw(rng.choice(drawings), False)
    page(record, {}).encode()


def ledger(rng: random.Random, there: Path, which: str = "run") -> None:
    run = there / "run"
    shutil.copytree(FIXTURES / which, run)
    path = run / "ledger.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    if rng.random() < 0.7:
        number = rng.randrange(len(lines))
        body = json.loads(lines[number])
        del body["crc"]
        # In the order of the ledger, and mostly without touching its first keys.
        key = rng.choice(["entry" if "entry" in body else "plan"] * 9 + ["id"])
        inner = changed_json(rng, json.dumps(body[key]).encode())
        parts = {k: inner if k == key else json.dumps(v).encode() for k, v in body.items()}
        text = b"{" + b",".join(b'"%b":%b' % (k.encode(), v) for k, v in parts.items())
        lines[number] = text + b',"crc":"%08x"}\n' % crc32(text)
        path.write_bytes(b"".join(lines))
    else:
        path.write_bytes(changed_bytes(rng, path.read_bytes()))
    name = digest(json.loads((run / "run.json").read_text())["definition"])
    with contextlib.suppress(AutoTransferError), RunLedger(path, name) as opened:
        for stage in opened.stages():
            opened.entries(stage, curves=True)
            opened.plan(stage)
    look_at(run, rng)


def run(rng: random.Random, there: Path, which: str = "run") -> None:
    folder = there / "run"
    shutil.copytree(FIXTURES / which, folder)
    files = RunFolder(folder)
    sign = {"at": time.time(), "left": 12.0, "pid": 1, "host": "here"}
    files.heartbeat.write_text(json.dumps(sign))
    about = json.loads(files.run.read_text())
    results = json.loads(files.results.read_text())
    file = rng.choice([files.run] * 6 + [files.results] * 3 + [files.heartbeat, files.refit])
    file.write_bytes(changed(rng, file.read_bytes()))
    with contextlib.suppress(AutoTransferError):
        files.claim(about["definition"], about["about"])
    files.has_model("x")
    look_at(folder, rng)
    files.write_results(results)


KINDS = {
    **{"npz": npz, "store": store, "model": model, "ledger": ledger, "run": run},
    "auto_ledger": partial(ledger, which="auto_run"),
    "auto_run": partial(run, which="auto_run"),
}


def acts(first: str, count: str):
    """Give ``count`` files of every kind, from number ``first`` on."""
    numbers = range(int(first), int(first) + int(count))
    return {
        f"{kind}-{i}": lambda there, k=kind, i=i: act(k, i, there)
        for i in numbers
        for kind in KINDS
    }


def act(kind: str, number: int, there: Path) -> None:
    KINDS[kind](random.Random(f"{kind} {number}"), there)
