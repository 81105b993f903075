"""The folder store on disk: what ``dataset.json`` says, and opening a store without trusting it.

See `autotransfer.data.sources.store` for what a store is and how it is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer import atomic
from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.sources import files, npy
from autotransfer.data.trials import TrialArray
from autotransfer.errors import SourceError, join_some

FORMAT = "autotransfer-store"
VERSION = 1
DESCRIPTION = "dataset.json"
LABELS = ("y", "subject", "session", "recording")
_KEYS = (
    *("format", "version", "shape", "dtype", "scale", "arrays"),
    *("sfreq", "channels", "class_names", "subject_names", "fingerprint"),
)


def describe(data: SubjectDataset) -> dict[str, Any]:
    """Describe a data set for ``dataset.json``; reads the signals once, for the fingerprint."""
    optional = [name for name in LABELS[2:] if getattr(data, name) is not None]
    return {
        "format": FORMAT,
        "version": VERSION,
        "shape": list(data.trials.shape),
        "dtype": data.trials.base.dtype.name,
        "scale": data.trials.scale,
        "arrays": ["X", "y", "subject", *optional],
        "sfreq": data.sfreq,
        "channels": data.channels,
        "unit": data.unit,
        "class_names": data.class_names,
        "subject_names": data.subject_names,
        "fingerprint": data.fingerprint(),
    }


def is_store(path: Path) -> bool:
    """Tell whether a folder is a store, of any version, by its description."""
    try:
        return files.read_json_object(path / DESCRIPTION).get("format") == FORMAT
    except SourceError:
        return False


def read_store(path: atomic.PathLike) -> SubjectDataset:
    """Open a folder store; the signals stay on disk and are read as needed.

    Parameters
    ----------
    path : path
        The folder.

    Returns
    -------
    SubjectDataset
        Labels in memory, signals memory-mapped.

    Raises
    ------
    SourceError
        The folder is missing, is not a store, is damaged or was written by a newer version.

    Notes
    -----
    Opening takes a time that does not depend on the size of the signals, so the fingerprint in
    ``dataset.json`` is not compared; ``data.fingerprint()`` reads all signals and tells.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise SourceError(f"There is no folder {folder}. Check the path.")
    if not (folder / DESCRIPTION).is_file():
        raise SourceError(
            f"{folder} is not a store: it has no {DESCRIPTION}. Write one with write_store."
        )
    about = _read_description(folder / DESCRIPTION)
    signals = _load(folder, "X", about, mmap_mode="r")
    labels = {name: _load(folder, name, about) for name in LABELS if name in about["arrays"]}
    with files.about(folder):
        return SubjectDataset(
            TrialArray(signals, scale=about["scale"]),
            **labels,
            sfreq=about["sfreq"],
            channels=about["channels"],
            unit=about.get("unit"),
            classes=about["class_names"],
            subjects=about["subject_names"],
        )


def _read_description(path: Path) -> dict[str, Any]:
    """Read ``dataset.json`` and check every value in it."""
    about = files.read_json_object(path)
    if about.get("format") != FORMAT:
        raise SourceError(
            f'{path} does not describe a store: its "format" is '
            f'{files.short(about.get("format"))}, not "{FORMAT}". Write a store with write_store.'
        )
    version = about.get("version")
    if type(version) is not int or version < 1:
        raise SourceError(
            f'"version" in {path} must be a whole number, not {files.short(version)}.'
        )
    if version > VERSION:
        raise SourceError(
            f"{path} has format version {version}; this autotransfer reads up to {VERSION}. It was "
            "written by a newer one: update with pip install --upgrade autotransfer."
        )
    missing = [key for key in _KEYS if key not in about]
    if missing:
        raise SourceError(f"{path} lacks {join_some(missing)}. Write the store again.")
    shape = about["shape"]
    integers = isinstance(shape, list) and all(type(length) is int for length in shape)
    if not integers or len(shape) != 3 or min(shape) < 1:
        raise SourceError(
            f'"shape" in {path} must be three positive numbers, not {files.short(shape)}.'
        )
    if about["dtype"] not in ("float32", "int16"):
        value = files.short(about["dtype"])
        raise SourceError(f'"dtype" in {path} must be float32 or int16, not {value}.')
    about["scale"] = files.number(about["scale"], "scale", path)
    if about["scale"] is not None and about["scale"] <= 0:
        raise SourceError(f'"scale" in {path} must be positive, not {about["scale"]}.')
    about["sfreq"] = files.number(about["sfreq"], "sfreq", path)
    for key in ("channels", "class_names", "subject_names", "arrays"):
        files.name_list(about[key], key, path)
    unknown = set(about["arrays"] or ()) - {"X", *LABELS}
    absent = {"X", "y", "subject"} - set(about["arrays"] or ())
    if unknown or absent:
        raise SourceError(
            f'"arrays" in {path} must name X, y and subject, and perhaps session and recording, '
            f"not {join_some(about['arrays'] or ['nothing'])}."
        )
    if not isinstance(about["fingerprint"], str):
        value = files.short(about["fingerprint"])
        raise SourceError(f'"fingerprint" in {path} must be text, not {value}.')
    return about


def _load(
    folder: Path, name: str, about: dict[str, Any], mmap_mode: Any = None
) -> npt.NDArray[Any]:
    """Load one array of a store, whose header must fit its file and the description."""
    path = folder / f"{name}.npy"
    if not path.is_file():
        raise SourceError(f"The store {folder} lacks {path.name}. Copy or write it again.")
    what = f"{path} is damaged, cut short or holds Python objects"
    with files.damage(what, "Copy or write the store again."):
        with path.open("rb") as handle:
            header = npy.read_header(handle)
        if not header.dtype.hasobject:
            _compare(path, header, about)
        header.check(path.stat().st_size)
        array: npt.NDArray[Any] = np.load(path, mmap_mode=mmap_mode, allow_pickle=False)
    return array


def _compare(path: Path, header: npy.Header, about: dict[str, Any]) -> None:
    """Compare what an array says of itself with the description."""
    shape, n = list(header.shape), about["shape"][0]
    if path.stem != "X" and shape != [n]:
        raise SourceError(
            f"{path} has shape {header.shape}, but there are {n} trials. The store is damaged: "
            "write it again."
        )
    actual, described = (shape, header.dtype.name), (about["shape"], about["dtype"])
    if path.stem == "X" and actual != described:
        raise SourceError(
            f"{path} has shape {actual[0]} and dtype {actual[1]}, but {DESCRIPTION} says "
            f"{described[0]} and {described[1]}. The files do not belong together: write the "
            "store again."
        )
    size = path.stat().st_size
    if size > header.size:
        raise SourceError(
            f"{path} has {size} bytes, but its array takes {header.size}. The store is damaged: "
            "copy or write it again."
        )
