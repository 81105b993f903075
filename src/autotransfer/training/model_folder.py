"""The model folder: JSON and safetensors, nothing that executes.

    model.json             what it is: format, settings, encoder, shapes
    weights.safetensors    weights of encoder and classifier
    labels.json            the classes, with their kind
    normalisation.json     how signals are normalised
    provenance.json        versions, data fingerprint, seed, scores
    manifest.json          SHA-256 of the files above
    README.md              a model card to read and to write on; nothing depends on it

A folder whose files do not match the manifest is refused. That finds damage and changes by hand;
it is no proof against someone who rewrites the manifest too, but even such a folder can only give
wrong numbers, never run code.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from autotransfer.data import atomic
from autotransfer.errors import ModelFolderError, join_some
from autotransfer.training.model_card import CARD, model_card

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
    check_target(path, overwrite)
    texts = {}
    for name in DOCUMENTS:
        try:
            texts[name] = json.dumps(documents[name], indent=1, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ModelFolderError(
                f"The {name} cannot be written as JSON ({error}). Use plain numbers and text in "
                "encoder_options and the other options."
            ) from error
    # Cloned, because safetensors refuses tensors that share memory (tied weights).
    weights = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    with atomic.folder(path, overwrite=overwrite) as folder:
        for name, text in texts.items():
            (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        (folder / WEIGHTS).write_bytes(save_tensors(weights))
        digests = {file.name: _digest(file) for file in sorted(folder.iterdir())}
        manifest = {"format": FORMAT, "format_version": FORMAT_VERSION, "sha256": digests}
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        # Not in the manifest, because people write on it.
        (folder / CARD).write_text(model_card(documents), encoding="utf-8")


def check_target(path: Path, overwrite: bool) -> None:
    """See that `write_model` can write to a path, which is best known before training."""
    if path.exists() and not (overwrite and _replaceable(path)):
        raise ModelFolderError(
            f"{path} already exists"
            + ("" if _replaceable(path) else " and is not a model folder, so it is not replaced")
            + ". Give another path"
            + (", or overwrite=True (--overwrite)." if _replaceable(path) else ".")
        )
    if not path.absolute().parent.is_dir():
        raise ModelFolderError(f"There is no folder {path.absolute().parent} to save in. Make it.")


def read_model(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read a model folder: its documents and its weights.

    Raises
    ------
    ModelFolderError
        If it is missing, damaged, tampered with, or of a newer format.
    """
    if not path.is_dir():
        what = "is a file, not a folder" if path.exists() else "does not exist"
        raise ModelFolderError(f"The model folder {path} {what}. Give the folder that save() made.")
    if (path / MANIFEST).is_symlink() or not (path / MANIFEST).is_file():
        raise ModelFolderError(
            f"{path} is not a model folder: it has no {MANIFEST}. Give the folder that save() made."
        )
    manifest = _object(path / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise ModelFolderError(
            f"{path / MANIFEST} is not that of a model folder. Give the folder that save() made."
        )
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelFolderError(
            f'"format_version" in {path / MANIFEST} must be a whole number, not {version!r}. Save '
            "or copy the model again."
        )
    if version > FORMAT_VERSION:
        raise ModelFolderError(
            f"{path} has format version {version!r}; this autotransfer reads up to "
            f"{FORMAT_VERSION}. Update autotransfer (pip install -U autotransfer)."
        )
    _verify(path, manifest.get("sha256"))
    documents = {name: _object(path / f"{name}.json") for name in DOCUMENTS}
    try:
        return documents, load_tensors((path / WEIGHTS).read_bytes())
    except SafetensorError as error:
        raise ModelFolderError(
            f"{path / WEIGHTS} is not a safetensors file ({error}). Save or copy the model again."
        ) from None


def _verify(path: Path, digests: Any) -> None:
    """Compare every file with the manifest; look at nothing outside the folder."""
    names = {WEIGHTS, *(f"{name}.json" for name in DOCUMENTS)}
    if not isinstance(digests, dict) or set(digests) != names:
        wrong = sorted(names ^ set(digests)) if isinstance(digests, dict) else ["none"]
        raise ModelFolderError(
            f"{path / MANIFEST} should list just {join_some(sorted(names))}; wrong: "
            f"{join_some(wrong)}. The folder was changed; save or copy the model again."
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
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelFolderError(
            f"{file} cannot be read as JSON ({error}). Save or copy the model again."
        ) from None
    if not isinstance(content, dict):
        raise ModelFolderError(f"{file} should hold a JSON object. Save or copy the model again.")
    return content


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
    # Each byte as the character of the same number: JSON has no bytes.
    text = [v.decode("latin-1") if isinstance(v, bytes) else v for v in labels.tolist()]
    return {"kind": labels.dtype.kind, "values": text}


def labels_from_json(document: dict[str, Any]) -> npt.NDArray[Any]:
    """Read class labels back."""
    kinds = {"U": np.str_, "i": np.int64, "u": np.uint64, "f": np.float64, "b": np.bool_}
    kind, values = document.get("kind"), document.get("values")
    if kind not in (*kinds, "S") or not isinstance(values, list) or len(values) < 2:
        raise ModelFolderError(
            "labels.json does not hold a list of at least two class labels. Save or copy the model "
            "again."
        )
    if kind == "S":
        return np.array([str(value).encode("latin-1") for value in values])
    return np.array(values, dtype=kinds[kind])


def as_path(path: Any) -> Path:
    """Check the path of a model folder."""
    if not isinstance(path, str | os.PathLike):
        raise ModelFolderError(f"A model folder has a path, which {path!r} is not. Give its path.")
    return Path(path).expanduser()
