"""What makes people alike by their own unlabelled signals, and what imitates their differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import autotransfer as at
from benchmarks.peers.known import Array


def euclidean_alignment(X: Array) -> Array:
    """Whiten the trials of one person by their mean covariance.

        X_i <- R^(-1/2) X_i,   R = mean_i X_i X_i' / T

    Channels of every trial are centred first, so that offsets are not taken for covariance.
    Directions without signal (a flat channel, a common reference) become zero.

    Parameters
    ----------
    X : array of shape (n, C, T)
        All trials of one person; no label is needed.

    Returns
    -------
    array of float32 of shape (n, C, T)

    References
    ----------
    He and Wu (2020), Transfer learning for brain-computer interfaces: a Euclidean space data
    alignment approach. IEEE Trans. Biomed. Eng. 67, 399-410.
    """
    centred = np.asarray(X, np.float64)
    centred = centred - centred.mean(2, keepdims=True)
    mean = np.einsum("nct,ndt->cd", centred, centred, optimize=True) / (len(X) * X.shape[2])
    values, vectors = np.linalg.eigh(mean)
    there = values > 1e-10 * values[-1]
    scale = np.where(there, 1 / np.sqrt(np.where(there, values, 1)), 0)
    whitened: Array = ((vectors * scale) @ vectors.T @ centred).astype(np.float32)
    return whitened


def own_scale(X: Array) -> Array:
    """Divide every channel by its standard deviation over all trials (n, C, T) of one person."""
    centred = np.asarray(X, np.float32)
    centred = centred - centred.mean(2, keepdims=True)
    scale = np.sqrt(np.mean(centred**2, (0, 2), dtype=np.float64))[:, None]
    scaled: Array = (centred / np.where(scale > 0, scale, 1)).astype(np.float32)
    return scaled


def by_subject(data: at.SubjectDataset, way: Callable[[Array], Array]) -> Array:
    """Change the trials of every subject of a data set by themselves."""
    X = np.empty(data.trials.shape, np.float32)
    for who in data.subject_ids:
        trials = np.flatnonzero(data.subject == who)
        X[trials] = way(data.trials[trials])
    return X


def random_gains(X: Array, spread: float, seed: int) -> Array:
    """Multiply every channel of every trial (n, C, T) by exp(spread x a normal number)."""
    drawn = np.random.default_rng(seed).standard_normal(X.shape[:2])
    return (X * np.exp(spread * drawn)[..., None]).astype(np.float32)
