"""Encoder f and classifier g, together, and what they say of trials."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from autotransfer.data.normalise import Normaliser
from autotransfer.data.trials import TrialArray
from autotransfer.data.validate import require_finite
from autotransfer.errors import NonFiniteDataError, join_some


class Network(nn.Module):
    """An encoder and the one linear layer that classifies its latents.

    Parameters
    ----------
    encoder : nn.Module
        Signals (B, C, T) to latents (B, n_latent), with the attribute ``n_latent``.
    n_classes : int
        Number of classes.
    """

    def __init__(self, encoder: nn.Module, n_classes: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.n_latent = int(encoder.n_latent)  # type: ignore[arg-type]
        self.head = nn.Linear(self.n_latent, n_classes)
        nn.init.zeros_(self.head.bias)
        self.by_person = bool(getattr(encoder, "person_norm", False))
        # Without a norm over everybody there is nothing to prepare.
        self.prepares = hasattr(encoder, "prepare") and not self.by_person

    def encode(
        self, x: Tensor, stats: Tensor | None = None, people: Tensor | None = None
    ) -> Tensor:
        """Latents (B, n_latent) of signals (B, C, T).

        `stats` is for encoders that prepare, and `people` for those that train with the statistics
        of each person.
        """
        z: Tensor
        if self.by_person:
            z = self.encoder(x, people=people)
        else:
            z = self.encoder(x, stats) if self.prepares else self.encoder(x)
        return z

    def forward(
        self, x: Tensor, stats: Tensor | None = None, people: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Latents (B, n_latent) and logits (B, n_classes) of signals (B, C, T)."""
        z = self.encode(x, stats, people)
        return z, self.head(z)


def encode_trials(
    network: Network, normaliser: Normaliser, X: TrialArray, logits: bool, size: int = 256
) -> npt.NDArray[Any]:
    """Encode trials (n_trials, C, T): logits (n_trials, n_classes) or latents (n_trials, n_latent).

    By a trained network, `size` trials at a time, so that data larger than memory can be used.
    """
    device = network.head.weight.device
    network.eval()
    outputs = []
    with torch.inference_mode():
        for start in range(0, len(X), size):
            block = X[start : start + size]
            require_finite(block, start)
            z = network.encode(torch.from_numpy(normaliser.transform(block)).to(device))
            outputs.append((network.head(z) if logits else z).cpu().numpy())
            bad = np.flatnonzero(~np.isfinite(outputs[-1]).all(1))
            if len(bad):
                raise NonFiniteDataError(
                    "The network has no finite answer for trials "
                    f"{join_some((bad + start).tolist())}: "
                    "their values are too large for it. Check the unit of these signals."
                )
    return np.concatenate(outputs)
