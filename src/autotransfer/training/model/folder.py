"""The model folder: JSON and safetensors, nothing that executes.

    model.json             what it is: format, settings, encoder, shapes
    weights.safetensors    weights of encoder and classifier
    labels.json            the classes, with their kind
    normalisation.json     how signals are normalised
    provenance.json        versions, data fingerprint, seed, scores
    manifest.json          SHA-256 of the files above
    stream.safetensors     only of a `Live`: what it goes on from
    README.md              a model card to read and to write on; nothing depends on it

That of an ensemble (`autotransfer.training.ensemble`) has such folders in it, and ensemble.json.

A folder whose files do not match the manifest is refused. That finds damage and changes by hand;
it is no proof against someone who rewrites the manifest too, but even such a folder can only give
wrong numbers, never run code.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from autotransfer import atomic
from autotransfer.adaptation.registry import FORM, Policy
from autotransfer.data.info import SignalInfo
from autotransfer.data.normalise import Normaliser
from autotransfer.data.validate import as_count, as_names
from autotransfer.documents import misfit, parse, read_object
from autotransfer.encoder.beside import Beside
from autotransfer.encoder.covariance import CovarianceNet
from autotransfer.encoder.network import Network
from autotransfer.encoder.registry import make_encoder
from autotransfer.errors import KernelLengthWarning, ModelFolderError, join_some
from autotransfer.training.model.card import CARD, model_card

FORMAT = "autotransfer-model"
FORMAT_VERSION = 1
DOCUMENTS = ("model", "labels", "normalisation", "provenance")
WEIGHTS = "weights.safetensors"
STREAM = "stream.safetensors"
MANIFEST = "manifest.json"
ENSEMBLE = "ensemble.json"
AGAIN = "Save or copy the model again."

MODEL = {
    "measure": (str, None),
    "encoder": (str, None),
    "encoder_options": dict,
    "encoder_made": (dict, None, ...),
    "covariances": (dict, None, ...),
    "parameters": {
        "sfreq": (float, None, ...),
        "strength": (float, None, ...),
        "augment": (str, None, ...),
        "schedule": (str, ...),
    },
    "n_channels": int,
    "n_times": int,
    "history": [dict],
    "best_epoch": int,
    "latent": (str, ...),
    "class_names": ([str], ...),
    "signals": (
        {
            "channels": ([str], None),
            "sfreq": (slice(0, 1e12), None),
            "unit": (str, None),
            "amplitude": (slice(0, 1e38), None),
        },
        ...,
    ),
}
PROVENANCE = {
    "training_subjects": ([str], ...),
    "validation_subjects": ([str], ...),
    "scores": ({str: (float, None)}, ...),
    "adapted": ({"n_trials": int, "n_labels": (int, ...), "method": (str, ...)}, ...),
    "adaptation": (FORM, ...),
}
MOST_VALUES = 2**26
"""Most numbers in a trial: a batch of larger ones would have fitted no memory to be trained on."""

_LONGEST_LABELS = 2**24  # characters
# As safetensors calls them.
_DTYPES = {
    **{torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"},
    **{torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8"},
    **{torch.uint64: "U64", torch.uint32: "U32", torch.uint16: "U16", torch.uint8: "U8"},
    **{torch.bool: "BOOL", torch.complex64: "C64"},
}


def model_files(
    contents: dict[str, Any], tensors: dict[str, Tensor], stream: dict[str, Tensor] | None = None
) -> dict[str, bytes]:
    """Make the files of a model folder: name -> content.

    Parameters
    ----------
    contents : dict
        One JSON-able object for each of `DOCUMENTS`.
    tensors : dict of str to Tensor
        The weights.
    stream : dict of str to Tensor, optional
        What a `Live` goes on from.
    """
    binary = {WEIGHTS: _packed(tensors)}
    if stream is not None:
        binary[STREAM] = _packed(stream)
    return _folder_of(contents, binary)


def with_adaptation(files: Mapping[str, bytes], policy: dict[str, Any]) -> dict[str, bytes]:
    """Give the files of a model folder with what was learned about its adaptation.

    Parameters
    ----------
    files : mapping of str to bytes
        What `model_files` made.
    policy : dict
        What `Policy.to_json` gave.
    """
    contents = {name: parse(files[f"{name}.json"]) for name in DOCUMENTS}
    contents["provenance"]["adaptation"] = policy
    return _folder_of(contents, {name: files[name] for name in (WEIGHTS, STREAM) if name in files})


def _folder_of(contents: dict[str, Any], binary: Mapping[str, bytes]) -> dict[str, bytes]:
    """Put documents and weights together."""
    files = {}
    for name in DOCUMENTS:
        try:
            text = json.dumps(contents[name], indent=1, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ModelFolderError(
                f"The {name} cannot be written as JSON ({error}). Use plain numbers and text in "
                "encoder_options and the other options."
            ) from error
        files[f"{name}.json"] = f"{text}\n".encode()
    files |= binary
    digests = {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)}
    manifest = {"format": FORMAT, "format_version": FORMAT_VERSION, "sha256": digests}
    files[MANIFEST] = f"{json.dumps(manifest, indent=1)}\n".encode()
    # Not in the manifest, because people write on it.
    files[CARD] = model_card(contents).encode()
    return files


def _packed(tensors: Mapping[str, Tensor]) -> bytes:
    # Cloned, because safetensors refuses tensors that share memory (tied weights).
    own = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
        for name, tensor in tensors.items()
    }
    content: bytes = save_tensors(own)
    return content


def write_model(path: Path, files: Mapping[str, bytes], overwrite: bool) -> None:
    """Write a model folder; it appears whole or not at all.

    Parameters
    ----------
    path : Path
        Folder to make.
    files : mapping
        What `model_files` made.
    overwrite : bool
        Whether a model folder of that name is replaced.
    """
    check_target(path, overwrite)
    with atomic.folder(path, overwrite=overwrite) as folder:
        write_files(folder, files)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder: name -> content."""
    for name, content in files.items():
        (folder / name).write_bytes(content)


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


def read_model(path: Path) -> tuple[dict[str, Any], Weights, Weights | None]:
    """Read the documents of a model folder, and of its weights and its stream what they are.

    Raises
    ------
    ModelFolderError
        If it is missing, damaged, tampered with, or of a newer format.
    """
    if not path.is_dir():
        what = "is a file, not a folder" if path.exists() else "does not exist"
        raise ModelFolderError(f"The model folder {path} {what}. Give the folder that save() made.")
    if (path / ENSEMBLE).is_file() and not (path / MANIFEST).exists():
        raise ModelFolderError(
            f"{path} holds an ensemble of several networks. Load it with "
            "autotransfer.load_model(path)."
        )
    manifest = read_manifest(path / MANIFEST, FORMAT, FORMAT_VERSION)
    digests = _digests(path, manifest.get("sha256"))
    contents = {}
    for name in DOCUMENTS:
        file = path / f"{name}.json"
        contents[name] = _object(file)  # first, because it reads no more than a document has
        _verify(file, digests[file.name])
    stream = Weights(path / STREAM, digests[STREAM]) if STREAM in digests else None
    return contents, Weights(path / WEIGHTS, digests[WEIGHTS]), stream


def read_manifest(file: Path, form: str, newest: int) -> dict[str, Any]:
    """Read the file that says what a folder is, and see that this version of us can read it.

    Parameters
    ----------
    file : Path
        The file.
    form : str
        Format that it must tell.
    newest : int
        Newest version of the format.
    """
    if file.is_symlink() or not file.is_file():
        raise ModelFolderError(
            f"{file.parent} is not a model folder: it has no {file.name}. Give the folder that "
            "save() made."
        )
    manifest = _object(file)
    if manifest.get("format") != form:
        raise ModelFolderError(
            f"{file} is not that of a model folder. Give the folder that save() made."
        )
    version = manifest.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelFolderError(
            f'"format_version" in {file} must be a whole number, not {version!r:.40}. {AGAIN}'
        )
    if version > newest:
        raise ModelFolderError(
            f"{file.parent} has format version {version!r}; this autotransfer reads up to "
            f"{newest}. Update autotransfer (pip install -U autotransfer)."
        )
    return manifest


def check_documents(contents: dict[str, Any]) -> None:
    """Raise `ValueError` unless the documents have the form that `write_model` was given."""
    for name, form in {"model": MODEL, "provenance": PROVENANCE}.items():
        departure = misfit(contents[name], form, f"{name}.json")
        if departure:
            raise ValueError(departure)
    values = contents["model"]["n_channels"] * contents["model"]["n_times"]
    if values > MOST_VALUES:
        raise ValueError(f"a trial of n_channels x n_times would have {values} numbers")


class Weights:
    """The weights in a model folder: what they are is read at once, their numbers when asked for.

    Parameters
    ----------
    file : Path
        In safetensors format. Its length is compared with its header, without reading more.
    digest : str
        SHA-256 of the file.
    """

    def __init__(self, file: Path, digest: str) -> None:
        self.file, self.digest = file, digest
        # By numpy's way, because torch's would map as much memory as the file is long.
        with self._opened("numpy") as handle:
            slices = {name: handle.get_slice(name) for name in handle.keys()}  # noqa: SIM118
            self.shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
            self.dtypes = {name: part.get_dtype() for name, part in slices.items()}

    @property
    def n_classes(self) -> int:
        """Number of classes: as many as the classifier has rows."""
        shape = self.shapes.get("head.weight", ())
        return int(shape[0]) if shape else 0

    def check(self, network: nn.Module) -> None:
        """Raise `ValueError` unless these are the weights of a network, by name, shape and dtype.

        Parameters
        ----------
        network : nn.Module
            May be on torch's meta device: a network that is not the one in the file need not be
            allocated to be refused.
        """
        state = network.state_dict()
        others = sorted(state.keys() ^ self.shapes.keys())
        if others:
            raise ValueError(f"{WEIGHTS} and the network do not both have {join_some(others, 4)}")
        for name, tensor in state.items():
            expected = (_DTYPES.get(tensor.dtype, str(tensor.dtype)), tuple(tensor.shape))
            if (self.dtypes[name], self.shapes[name]) != expected:
                raise ValueError(
                    f"{name} is {self.dtypes[name]} {self.shapes[name]} in {WEIGHTS}, but "
                    f"{expected[0]} {expected[1]} in the network"
                )

    def read(self) -> dict[str, Tensor]:
        """Read the numbers, if they are those that were saved."""
        _verify(self.file, self.digest)
        with self._opened("pt") as handle:
            return {name: handle.get_tensor(name) for name in self.shapes}

    @contextmanager
    def _opened(self, framework: str) -> Iterator[Any]:
        try:
            with safe_open(str(self.file), framework=framework) as handle:
                yield handle
        except (SafetensorError, OSError, MemoryError, RuntimeError) as error:
            raise ModelFolderError(
                f"{self.file} is damaged or not a safetensors file ({error}). {AGAIN}"
            ) from None


def _digests(path: Path, digests: Any) -> dict[str, str]:
    """Check what the manifest lists; look at nothing outside the folder."""
    names = {WEIGHTS, *(f"{name}.json" for name in DOCUMENTS)}
    if not isinstance(digests, dict) or set(digests) - {STREAM} != names:
        wrong = sorted(names ^ (set(digests) - {STREAM})) if isinstance(digests, dict) else ["none"]
        raise ModelFolderError(
            f"{path / MANIFEST} should list just {join_some(sorted(names))}; wrong: "
            f"{join_some(wrong)}. The folder was changed; save or copy the model again."
        )
    for name in digests:
        # A link could point anywhere on this machine.
        if (path / name).is_symlink() or not (path / name).is_file():
            raise ModelFolderError(f"{path / name} is missing or is a link. {AGAIN}")
    return digests


def _verify(file: Path, digest: str) -> None:
    if _digest(file) != digest:
        raise ModelFolderError(
            f"{file} is not what was saved: it was damaged or changed since. Save the model "
            "again, or get an intact copy."
        )


def _object(file: Path) -> dict[str, Any]:
    return read_object(file, ModelFolderError, AGAIN)


def _digest(file: Path) -> str:
    with file.open("rb") as handle:  # in pieces: weights may be larger than memory
        return hashlib.file_digest(handle, "sha256").hexdigest()


def is_model(path: Path) -> bool:
    """Whether a path looks like the folder of a model, of one network or of several."""
    return (path / MANIFEST).is_file() or (path / ENSEMBLE).is_file()


def _replaceable(path: Path) -> bool:
    return path.is_dir() and (is_model(path) or not any(path.iterdir()))


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


def labels_from_json(document: dict[str, Any], n_classes: int) -> npt.NDArray[Any]:
    """Read class labels back; `ValueError` unless they are sorted, of one kind, each there once."""
    types = {"U": str, "S": str, "i": int, "u": int, "f": float, "b": bool}
    bits = {"i": np.int64, "u": np.uint64, "f": np.float64}
    kind, values = document.get("kind"), document.get("values")
    if kind not in (*types,) or not isinstance(values, list) or len(values) < 2:
        raise ValueError("labels.json does not hold a list of at least two class labels")
    if len(values) != n_classes:
        raise ValueError(f"labels.json holds {len(values)} labels for {n_classes} classes")
    departure = misfit(values, [types[kind]], "labels.json: values")
    # An array of text has room for the longest in every place.
    if not departure and len(values) * max(len(str(value)) for value in values) > _LONGEST_LABELS:
        departure = "labels.json holds labels that are too long"
    if departure:
        raise ValueError(departure)
    plain = [value.encode("latin-1") for value in values] if kind == "S" else values
    labels = np.array(plain, dtype=bits.get(kind))
    if not np.array_equal(np.unique(labels), labels) or (kind == "f" and np.isinf(labels).any()):
        raise ValueError("labels.json does not hold finite labels, sorted and each once")
    return labels


def as_path(path: Any) -> Path:
    """Check the path of a model folder."""
    if not isinstance(path, str | os.PathLike):
        raise ModelFolderError(f"A model folder has a path, which {path!r} is not. Give its path.")
    return Path(path).expanduser()


def _restore_names(classifier: Any, model: dict[str, Any]) -> None:
    """Give a model the names of its classes and what it knows of its signals."""
    signals = model.get("signals") or {}
    classifier.info_ = SignalInfo.from_json(signals, classifier.n_channels_)
    usual = signals.get("amplitude")
    classifier.amplitude_ = None if usual is None else float(usual)
    names = model.get("class_names")
    classifier.class_names_ = as_names(names, classifier.classes_, "class_names")


def rebuild(cls: Any, documents: dict[str, Any], weights: Weights, encoder: Any = None) -> Any:
    """Make a fitted estimator from the contents of a model folder."""
    model = documents["model"]
    spec = encoder if encoder is not None else model.get("encoder")
    if spec is None:
        raise ModelFolderError(
            "This model was trained with an encoder of its own, whose code is not in the folder. "
            "Pass it: load(path, encoder=module)."
        )
    names = set(cls._get_param_names())
    try:
        check_documents(documents)
        options = {k: v for k, v in model["parameters"].items() if k in names}
        classifier = cls(
            model["measure"],
            encoder=spec,
            encoder_options=model["encoder_options"] or None,
            **options,
        )
        classifier.classes_ = labels_from_json(documents["labels"], weights.n_classes)
        shape = as_count(model["n_channels"], "n_channels"), as_count(model["n_times"], "n_times")
        classifier.n_channels_, classifier.n_times_ = shape
        classifier.history_, classifier.best_epoch_ = model["history"], model["best_epoch"]
        classifier.normaliser_ = Normaliser.from_state(documents["normalisation"])
        classifier.normaliser_.require_channels(shape[0])
        made_with = None if encoder is not None else model.get("encoder_made")
        encoder_options = made_with or classifier.encoder_options

        def make() -> Network:
            module = make_encoder(spec, *shape, classifier.sfreq, encoder_options)
            if model.get("covariances") is not None:  # of the person that it was adapted to
                own = make_encoder("covariance", *shape, options=model["covariances"])
                module = Beside(module, cast(CovarianceNet, own))
            return Network(module, len(classifier.classes_))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KernelLengthWarning)  # fit said it
            # First without memory: a folder may describe a network that it has no weights for.
            sketch = _sketch(make, spec)
            if sketch is not None:
                weights.check(sketch)
            network = make()
        weights.check(network)
        network.load_state_dict(weights.read())
        _restore_names(classifier, model)
        Policy.from_json(documents["provenance"].get("adaptation"))
    except (KeyError, TypeError, ValueError, RuntimeError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelFolderError(
            f"The model folder {weights.file.parent} does not fit together "
            f"({type(error).__name__}: {reason}). Save or copy the model again, or give the "
            "encoder that it was trained with."
        ) from error
    classifier.network_ = network.eval()
    classifier.provenance_ = documents["provenance"]
    classifier.training_subjects_ = classifier.provenance_.get("training_subjects") or []
    classifier.validation_subjects_ = classifier.provenance_.get("validation_subjects") or []
    return classifier


def _sketch(make: Callable[[], Network], spec: Any) -> Network | None:
    """Make a network whose weights take no memory; None where that cannot be done."""
    if isinstance(spec, nn.Module):  # it has its memory, whatever the folder says
        return None
    try:
        with torch.device("meta"):
            return make()
    except Exception:
        if isinstance(spec, str):
            raise
        return None  # a function of the user's, whose network looks at numbers when it is made
