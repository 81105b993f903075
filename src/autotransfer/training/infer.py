"""Latents and logits of trials by a trained network."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from autotransfer.data.normalise import Normaliser
from autotransfer.data.trials import TrialArray
from autotransfer.data.validate import require_finite
from autotransfer.errors import NonFiniteDataError, some
from autotransfer.training.network import Network


def encode_trials(
    network: Network, normaliser: Normaliser, X: TrialArray, logits: bool, size: int = 256
) -> npt.NDArray[Any]:
    """Encode trials a block at a time, so that data larger than memory can be used.

    Parameters
    ----------
    network : Network
        Trained.
    normaliser : Normaliser
        As in training.
    X : TrialArray of shape (n_trials, C, T)
        Signals.
    logits : bool
        Give logits (n_trials, n_classes) and not latents (n_trials, n_latent).
    size : int
        Trials in a block.

    Returns
    -------
    array of shape (n_trials, n_classes) or (n_trials, n_latent)
    """
    device = network.head.weight.device
    network.eval()
    found = []
    with torch.inference_mode():
        for start in range(0, len(X), size):
            block = X[start : start + size]
            require_finite(block, start)
            z = network.encode(torch.from_numpy(normaliser.transform(block)).to(device))
            found.append((network.head(z) if logits else z).cpu().numpy())
            bad = np.flatnonzero(~np.isfinite(found[-1]).all(1))
            if len(bad):
                raise NonFiniteDataError(
                    f"The network has no finite answer for trials {some((bad + start).tolist())}: "
                    "their values are too large for it. Check the unit of these signals."
                )
    return np.concatenate(found)
