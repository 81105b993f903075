"""Two encoders side by side: a trained one, and covariances of the same signals."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from autotransfer.encoder.covariance import CovarianceNet


class Beside(nn.Module):
    """The latents of an encoder, and after them logarithms of covariances of the same signals.

    Parameters
    ----------
    encoder : nn.Module
        Signals (B, C, T) to latents (B, n).
    covariances : CovarianceNet
        For signals of the same shape.
    n : int, optional
        Length of the encoder's latents, by default its ``n_latent``.

    Attributes
    ----------
    n_latent : int
        Length of both together.
    options : dict or None
        Those of `encoder`, by which a model folder makes it again.
    """

    def __init__(
        self, encoder: nn.Module, covariances: CovarianceNet, n: int | None = None
    ) -> None:
        super().__init__()
        self.encoder, self.covariances = encoder, covariances
        self.n = int(encoder.n_latent) if n is None else n  # type: ignore[arg-type]
        self.n_latent = self.n + covariances.n_latent
        self.options: dict[str, Any] | None = getattr(encoder, "options", None)

    def forward(self, x: Tensor) -> Tensor:
        """Encode signals (B, C, T) to latents (B, n_latent)."""
        return torch.cat([self.encoder(x), self.covariances(x)], 1)

    def literal(self) -> Beside:
        """Write the encoder out layer by layer, if it can be; covariances are a copy."""
        return Beside(written_out(self.encoder), deepcopy(self.covariances), self.n)

    def exported(self) -> Beside:
        """Make both fit for ONNX."""
        return Beside(exported(self.encoder), self.covariances.exported(), self.n)


def written_out(encoder: nn.Module) -> nn.Module:
    """Give an encoder whose norms are called as layers: a copy where it computes otherwise."""
    literal: Any = getattr(encoder, "literal", None)
    layers: nn.Module = encoder if literal is None else literal()
    return layers


def exported(encoder: nn.Module) -> nn.Module:
    """Give an encoder that can be traced: fused ones compute by way of numpy."""
    own: Any = getattr(encoder, "exported", None)
    plain: nn.Module = written_out(encoder) if own is None else own()
    return plain


def covariances_of(encoder: nn.Module) -> dict[str, Any] | None:
    """Give the options of the covariances beside an encoder, None if there are none."""
    return encoder.covariances.options if isinstance(encoder, Beside) else None
