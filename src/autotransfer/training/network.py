"""Encoder f and classifier g, together."""

from __future__ import annotations

from torch import Tensor, nn


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
        self.prepares = hasattr(encoder, "prepare")

    def encode(self, x: Tensor, stats: Tensor | None = None) -> Tensor:
        """Latents (B, n_latent) of signals (B, C, T); `stats` is for encoders that prepare."""
        z: Tensor = self.encoder(x, stats) if self.prepares else self.encoder(x)
        return z

    def forward(self, x: Tensor, stats: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Latents (B, n_latent) and logits (B, n_classes) of signals (B, C, T)."""
        z = self.encode(x, stats)
        return z, self.head(z)
