"""What a trained EEGNet listens to: its spatial filters and the frequencies they are of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.encoder import EEGNet
from autotransfer.training import Ensemble, load_model

Floats = npt.NDArray[np.float64]

POINTS = 512
"""Length to which filters are filled up with zeros before their spectrum is taken."""


@dataclass(frozen=True)
class Filters:
    """Spatial filters of an EEGNet, the one that weighs most first.

    Parameters
    ----------
    spatial : ndarray of float of shape (n_filters, n_channels)
        Weights of channels; the largest of each filter is 1 or -1.
    response : ndarray of float of shape (n_filters, n_frequencies)
        Gain of the temporal filter before each of them; the largest is 1.
    frequencies : ndarray of float of shape (n_frequencies,)
        In Hz, or in cycles per sample where the sampling rate is not known.
    channels : tuple of str
        Names.
    in_hertz : bool
        Whether frequencies are in Hz.
    """

    spatial: Floats
    response: Floats
    frequencies: Floats
    channels: tuple[str, ...]
    in_hertz: bool

    @classmethod
    def of(cls, network: EEGNet, channels: tuple[str, ...] | None, sfreq: float | None) -> Filters:
        """Read the filters of a network.

        A filter weighs as much as what follows makes of it: the gain of its norm, the norm of its
        second temporal filter, and that of the pointwise weights that read it.
        """
        state = {name: value.detach().numpy() for name, value in network.state_dict().items()}
        temporal = state["conv_temporal.weight"].reshape(network.options["F1"], -1)
        n_points = max(POINTS, temporal.shape[1])
        spatial = next(v for k, v in state.items() if k.startswith("conv_spatial"))
        spatial = spatial.reshape(len(spatial), -1).astype(np.float64)
        depth = state["conv_separable_depth.weight"].reshape(len(spatial), -1)
        point = state["conv_separable_point.weight"].reshape(-1, len(spatial))
        weight = abs(state["bnorm_1.weight"]) * np.linalg.norm(depth, axis=1)
        order = np.argsort(-weight * np.linalg.norm(point, axis=0), kind="stable")
        gain = abs(np.fft.rfft(temporal.astype(np.float64), n_points, axis=1))
        response = np.repeat(gain, network.options["D"], axis=0).astype(np.float64)
        frequencies = np.fft.rfftfreq(n_points, 1 if sfreq is None else 1 / sfreq)
        return cls(
            _to_one(spatial)[order],
            _to_one(response)[order],
            frequencies.astype(np.float64),
            channels or tuple(str(i) for i in range(spatial.shape[1])),
            sfreq is not None,
        )


def filters_of(model: Any) -> Filters | None:
    """Read the filters of a trained model.

    Parameters
    ----------
    model : CensoredClassifier, Ensemble, AutoTransfer or path
        The model, or its folder. Of an ensemble the first network is taken.

    Returns
    -------
    Filters or None
        None if the model has no EEGNet.
    """
    if isinstance(model, str | Path):
        model = load_model(model)
    model = getattr(model, "best_estimator_", model)
    one = model.members[0] if isinstance(model, Ensemble) else model
    encoder = one.network_.encoder
    if not isinstance(encoder, EEGNet):
        return None
    return Filters.of(encoder, one.info_.channels, one.info_.sfreq)


def _to_one(rows: Floats) -> Floats:
    largest = abs(rows).max(axis=1, keepdims=True)
    return np.asarray(rows / np.where(largest > 0, largest, 1.0), np.float64)
