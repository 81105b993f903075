"""Hashes of samples, and how much information equal stretches of signal hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from autotransfer.data.trials import Float32

Hashes = npt.NDArray[np.uint64]


def odd_numbers(rng: np.random.Generator, n: int) -> Hashes:
    """Draw n random odd 64-bit numbers: factors that lose no bit."""
    return rng.integers(0, 2**64, n, dtype=np.uint64) | np.uint64(1)


def sample_hashes(block: Float32, factors: Hashes) -> Hashes:
    """Hash the channel vector of every sample: Σ_c factor_c bits(x_c) modulo 2^64.

    Parameters
    ----------
    block : ndarray of shape (n, n_channels, n_times)
        Signals.
    factors : ndarray of uint64 of shape (n_channels,)
        Random odd numbers, one for each channel.

    Returns
    -------
    ndarray of uint64 of shape (n, n_times)
        Equal for equal samples; for others equal by chance only.
    """
    bits = np.ascontiguousarray(block).view(np.uint32)
    out = np.zeros((block.shape[0], block.shape[2]), np.uint64)
    term = np.empty_like(out)
    for channel, factor in enumerate(factors):
        np.multiply(bits[:, channel], factor, out=term)
        out += term
    return out


def information(x: Float32) -> float:
    """Estimate the information in a stretch of signals, in bits.

    The sum over channels of (number of steps) x (entropy of the empirical distribution of the
    steps from sample to sample). Steps and not values, so that a ramp or a counter holds nothing.

    Parameters
    ----------
    x : ndarray of shape (n_channels, n_times)
        Signals.

    Returns
    -------
    float
        Bits; 0 for constant signals.

    Examples
    --------
    >>> information(np.array([[0, 1, 2, 3, 4]], np.float32))
    0.0
    >>> information(np.array([[0, 1, 0, 1, 0]], np.float32))
    4.0
    """
    with np.errstate(invalid="ignore"):
        steps = np.sort(np.diff(x, axis=1), axis=1)
    n_channels, n = steps.shape
    if n == 0:
        return 0.0
    starts = np.ones(steps.shape, np.bool_)
    starts[:, 1:] = steps[:, 1:] != steps[:, :-1]
    runs = np.diff(np.flatnonzero(starts), append=steps.size)
    return float(n_channels * n * np.log2(n) - np.sum(runs * np.log2(runs)))
