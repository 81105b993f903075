"""A trained model as one ONNX graph, from raw signals to probabilities and latents.

The graph holds all that `predict_proba` and `transform` do: normalisation, encoder and classifier,
of an ensemble those of all members and their mean. It runs where there is neither Python nor torch.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from autotransfer import atomic
from autotransfer._version import __version__
from autotransfer.data.align import OWN, whitening
from autotransfer.data.normalise import Normaliser
from autotransfer.encoder.beside import exported
from autotransfer.encoder.literal import MaxNormConv2d
from autotransfer.errors import MissingExtraError, ModelFolderError, SettingError
from autotransfer.training.model.folder import labels_to_json

INPUT = "signals"
OUTPUTS = ("probabilities", "latent")
METADATA = "autotransfer"
"""Key of the model's metadata under which a JSON object says what the model is."""

_EPS = float(np.finfo(np.float32).eps)


def export_onnx(classifier: Any, path: str | os.PathLike[str], *, opset: int | None = None) -> Path:
    """Write a trained classifier as an ONNX model.

    Parameters
    ----------
    classifier : CensoredClassifier or Ensemble
        Trained.
    path : path
        File to write; an existing one is replaced.
    opset : int, optional
        Version of ONNX's operators, for runtimes that lack the newest ones. torch's choice by
        default.

    Returns
    -------
    Path
        The file. Its input ``signals`` is (B, C, T) in float32, for any B; its outputs are
        ``probabilities`` (B, n_classes) and ``latent`` (B, n_latent). Its metadata has a JSON
        object under the key ``autotransfer``: ``labels`` (``kind`` and ``values``, in the order of
        the probabilities), ``n_channels``, ``n_times``, ``sfreq``, ``version``, ``normalise`` (a
        list, of an ensemble's members).

    Raises
    ------
    MissingExtraError
        The packages of the extra ``onnx`` are not installed.
    SettingError
        The encoder has operations that ONNX does not know.

    Notes
    -----
    Equal to `predict_proba` and `transform` to about 1e-6, not to the bit: the operations run in
    another order. Unlike `predict_proba`, the graph does not refuse signals that are not finite; it
    gives probabilities that are not finite either.
    """
    check_is_fitted(classifier)
    try:
        import onnx
        import onnxscript  # noqa: F401 -- torch needs it, and would say so in other words
    except ImportError as error:
        raise MissingExtraError(
            "onnx and onnxscript are needed to export. Install them with pip install onnx "
            "onnxscript onnxruntime."
        ) from error
    target = Path(path).expanduser()
    if not target.absolute().parent.is_dir():
        raise ModelFolderError(
            f"There is no folder {target.absolute().parent} to write into. Make it."
        )
    # Layers draw weights when they are made, which must not move the caller's random stream.
    with torch.random.fork_rng(devices=[]):
        module = deployed(classifier)
    model = _trace(module, classifier.n_channels_, classifier.n_times_, opset).model_proto
    if not model.graph.input[0].type.tensor_type.shape.dim[0].dim_param:
        raise SettingError(
            "The encoder ties the graph to one number of trials, for instance by len(x): use "
            "x.shape[0] there."
        )
    kinds = [member.normaliser_.kind for member in classifier.members]
    about = {
        "version": __version__,
        "labels": labels_to_json(classifier.classes_),
        "n_channels": classifier.n_channels_,
        "n_times": classifier.n_times_,
        "sfreq": classifier.info_.sfreq or classifier.sfreq,
        "normalise": kinds if len(kinds) > 1 else kinds[0],
    }
    entry = model.metadata_props.add()
    entry.key, entry.value = METADATA, json.dumps(about, ensure_ascii=False, default=float)
    onnx.checker.check_model(model)
    atomic.write_bytes(target, model.SerializeToString())
    return target


def deployed(classifier: Any) -> nn.Module:
    """Make the module that is exported: signals to probabilities and latents, in plain layers."""
    parts = [_deployed_member(member) for member in classifier.members]
    return _Mean(parts).eval() if len(parts) > 1 else parts[0]


def _deployed_member(classifier: Any) -> nn.Module:
    network = classifier.network_
    encoder = exported(copy.deepcopy(network.encoder).cpu())
    for name, layer in list(encoder.named_modules()):
        if isinstance(layer, MaxNormConv2d):
            _replace(encoder, name, _fixed(layer))
    head = copy.deepcopy(network.head).cpu()
    return _Deployed(_Normalise(classifier.normaliser_), encoder, head).eval()


class _Deployed(nn.Module):
    """Normalisation, encoder and classifier in one."""

    def __init__(self, normalise: nn.Module, encoder: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.normalise, self.encoder, self.head = normalise, encoder, head

    def forward(self, signals: Tensor) -> tuple[Tensor, Tensor]:
        latent = self.encoder(self.normalise(signals))
        return torch.softmax(self.head(latent), 1), latent


class _Mean(nn.Module):
    """The mean of the members' probabilities, and their latents side by side."""

    def __init__(self, members: list[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, signals: Tensor) -> tuple[Tensor, Tensor]:
        probabilities, latents = zip(*(member(signals) for member in self.members), strict=True)
        return torch.stack(probabilities).mean(0), torch.cat(latents, 1)


class _Normalise(nn.Module):
    """What `autotransfer.data.normalise.Normaliser` does, in torch."""

    def __init__(self, normaliser: Normaliser) -> None:
        super().__init__()
        self.kind, self.turn = normaliser.kind, normaliser.turn
        if self.kind == "train":
            mean, std = normaliser.mean, normaliser.std
            assert mean is not None
            assert std is not None
            flat = std <= _EPS * np.abs(mean)
            # The mean in two float32 parts, so that a large offset cancels to full precision.
            high = mean.astype(np.float32)
            low = (mean - high).astype(np.float32)
            scale = np.where(flat, 0.0, 1.0 / np.where(std > 0, std, 1.0))
            for name, values in (("high", high), ("low", low), ("scale", scale)):
                self.register_buffer(name, torch.from_numpy(values).float()[:, None])

        if normaliser.by_person:
            assert normaliser.covariance is not None
            self.register_buffer("white", torch.from_numpy(whitening(normaliser.covariance)))

    def forward(self, x: Tensor) -> Tensor:
        if self.turn:
            x = x.roll(self.turn, 1)
        if self.kind == "none":
            return x
        if self.kind == "train":
            high, low, scale = self.high, self.low, self.scale
            return (x - high - low) * scale  # type: ignore[operator]
        mean = x.mean(-1, keepdim=True)
        x = x - mean
        x = x - x.mean(-1, keepdim=True)
        # In float64, because squares of small or large units leave the float32 range.
        deviation = x.double().square().mean(-1, keepdim=True).sqrt()
        moves = deviation > _EPS * mean.double().abs()
        x = torch.where(moves, x, torch.zeros_like(x))
        if self.kind in OWN:
            return self.white @ x  # type: ignore[operator]
        if self.kind == "trial":
            squares = torch.where(moves, deviation.square(), torch.zeros_like(deviation))
            deviation = squares.mean(1, keepdim=True).sqrt()
        return x / torch.where(deviation > 0, deviation, torch.ones_like(deviation)).float()


def _trace(module: nn.Module, n_channels: int, n_times: int, opset: int | None) -> Any:
    """Turn a module into an ONNX program, for any number of trials."""
    example = torch.zeros(2, n_channels, n_times)
    try:
        with _quiet():
            return torch.onnx.export(
                module,
                (example,),
                dynamo=True,
                input_names=[INPUT],
                output_names=list(OUTPUTS),
                dynamic_shapes=({0: torch.export.Dim("trials")},),
                opset_version=opset,
                verbose=False,
            )
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise SettingError(
            f"This classifier cannot be written as ONNX ({type(error).__name__}: {reason}). If its "
            "encoder is your own, use operations that torch.onnx.export knows; otherwise try "
            "another opset."
        ) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch from telling of its progress, its future and packages that nobody needs here."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _fixed(layer: MaxNormConv2d) -> nn.Conv2d:
    """Make a plain convolution with the filters as they are after the limit on their norm."""
    weight = layer.weight.detach()
    n, share, height, width = weight.shape
    conv = nn.Conv2d(share * layer.groups, n, (height, width), groups=layer.groups, bias=False)
    conv.weight.data = weight.clone()
    return conv


def _replace(module: nn.Module, name: str, layer: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(module.get_submodule(parent), last, layer)
