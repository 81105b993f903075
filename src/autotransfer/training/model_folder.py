"""The model folder: JSON and safetensors, nothing that executes.

    model.json             what it is: format, settings, encoder, shapes
    weights.safetensors    weights of encoder and classifier
    labels.json            the classes, with their kind
    normalisation.json     how signals are normalised
    provenance.json        versions, data fingerprint, seed, scores
    manifest.json          SHA-256 of every other file

A folder whose files do not match the manifest is refused. That finds damage and changes by hand;
it is no proof against someone who rewrites the manifest too, but even such a folder can only give
wrong numbers, never run code.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from autotransfer.data import atomic
from autotransfer.errors import ModelFolderError, some

FORMAT = "autotransfer-model"
FORMAT_VERSION = 1
DOCUMENTS = ("model", "labels", "normalisation", "provenance")
WEIGHTS = "weights.safetensors"
MANIFEST = "manifest.json"


def write_model(
    path: Path, documents: dict[str, Any], tensors: dict[str, Tensor], overwrite: bool
) -> None:
    """Write a model folder; it appears whole or not at all.

    Parameters
    ----------
    path : Path
        Folder to make.
    documents : dict
        One JSON-able object for each of `DOCUMENTS`.
    tensors : dict of str to Tensor
        The weights.
    overwrite : bool
        Whether a model folder of that name is replaced.
    """
    if path.exists() and not (overwrite and _replaceable(path)):
        raise ModelFolderError(
            f"{path} already exists"
            + ("" if _replaceable(path) else " and is not a model folder, so it is not replaced")
            + ". Give another path"
            + (", or overwrite=True." if _replaceable(path) else ".")
        )
    with atomic.folder(path, overwrite=overwrite) as folder:
        for name in DOCUMENTS:
            text = json.dumps(documents[name], indent=1, ensure_ascii=False, allow_nan=False)
            (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        (folder / WEIGHTS).write_bytes(save_tensors(contiguous))
        digests = {file.name: _digest(file) for file in sorted(folder.iterdir())}
        manifest = {"format": FORMAT, "format_version": FORMAT_VERSION, "sha256": digests}
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


def read_model(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read a model folder: its documents and its weights.

    Raises
    ------
    ModelFolderError
        If it is missing, damaged, tampered with, or of a newer format.
    """
    if not path.is_dir():
        what = "is a file, not a folder" if path.exists() else "does not exist"
        raise ModelFolderError(f"The model folder {path} {what}.")
    if not (path / MANIFEST).is_file():
        raise ModelFolderError(
            f"{path} is not a model folder: it has no {MANIFEST}. Give the folder that save() made."
        )
    manifest = _object(path / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise ModelFolderError(f"{path} is not a model folder of autotransfer ({MANIFEST}).")
    version = manifest.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ModelFolderError(
            f"{path} has format version {version!r}; this autotransfer reads up to "
            f"{FORMAT_VERSION}. Update autotransfer (pip install -U autotransfer)."
        )
    _verify(path, manifest.get("sha256"))
    documents = {name: _object(path / f"{name}.json") for name in DOCUMENTS}
    try:
        return documents, load_tensors((path / WEIGHTS).read_bytes())
    except SafetensorError as error:
        raise ModelFolderError(f"{path / WEIGHTS} cannot be read: {error}.") from None


def _verify(path: Path, digests: Any) -> None:
    """Compare every file with the manifest; look at nothing outside the folder."""
    needed = {WEIGHTS, *(f"{name}.json" for name in DOCUMENTS)}
    if not isinstance(digests, dict) or set(digests) != needed:
        raise ModelFolderError(
            f"{path / MANIFEST} should list just {some(sorted(needed))}. The folder was changed; "
            "save the model again."
        )
    for name, digest in digests.items():
        file = path / name
        # A link could point anywhere on this machine.
        if file.is_symlink() or not file.is_file():
            raise ModelFolderError(f"{file} is missing or is a link. Save or copy the model again.")
        if _digest(file) != digest:
            raise ModelFolderError(
                f"{file} is not what was saved: it was damaged or changed since. Save the model "
                "again, or get an intact copy."
            )


def _object(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelFolderError(f"{file} cannot be read as JSON ({error}).") from None
    if not isinstance(found, dict):
        raise ModelFolderError(f"{file} should hold a JSON object.")
    return found


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _replaceable(path: Path) -> bool:
    return path.is_dir() and ((path / MANIFEST).is_file() or not any(path.iterdir()))


def labels_to_json(labels: npt.NDArray[Any]) -> dict[str, Any]:
    """Write class labels with their kind.

    Examples
    --------
    >>> labels_to_json(np.array(["left", "right"]))
    {'kind': 'U', 'values': ['left', 'right']}
    """
    return {"kind": labels.dtype.kind, "values": labels.tolist()}


def labels_from_json(document: dict[str, Any]) -> npt.NDArray[Any]:
    """Read class labels back."""
    kinds = {"U": np.str_, "i": np.int64, "u": np.uint64, "f": np.float64, "b": np.bool_}
    kind, values = document.get("kind"), document.get("values")
    if kind not in kinds or not isinstance(values, list) or len(values) < 2:
        raise ModelFolderError("labels.json does not hold a list of at least two class labels.")
    return np.array(values, dtype=kinds[kind])
