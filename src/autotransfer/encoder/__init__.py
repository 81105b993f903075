"""Encoders: signals to latents."""

from autotransfer.encoder.covariance import CovarianceNet
from autotransfer.encoder.eegnet import EEGNet
from autotransfer.encoder.exchange import from_braindecode, to_braindecode
from autotransfer.encoder.registry import ENCODERS, make_encoder
from autotransfer.encoder.split import split_latent
from autotransfer.encoder.wrap import LatentOf, wrap

__all__ = [
    "ENCODERS",
    "CovarianceNet",
    "EEGNet",
    "LatentOf",
    "from_braindecode",
    "make_encoder",
    "split_latent",
    "to_braindecode",
    "wrap",
]
