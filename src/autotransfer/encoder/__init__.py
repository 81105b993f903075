"""Encoders: signals to latents."""

from autotransfer.encoder.eegnet import EEGNet

__all__ = ["EEGNet"]
