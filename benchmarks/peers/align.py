"""What makes people alike by their own unlabelled signals, and what imitates their differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from known import Array

import autotransfer as at
from autotransfer.data.validate import as_trials
from autotransfer.training.infer import encode_trials
from autotransfer.training.network import Network


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
    return ((vectors * scale) @ vectors.T @ centred).astype(np.float32)


def own_scale(X: Array) -> Array:
    """Divide every channel by its standard deviation over all trials (n, C, T) of one person."""
    centred = np.asarray(X, np.float32)
    centred = centred - centred.mean(2, keepdims=True)
    scale = np.sqrt(np.mean(centred**2, (0, 2), dtype=np.float64))[:, None]
    return (centred / np.where(scale > 0, scale, 1)).astype(np.float32)


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


def with_statistics_of(clf: at.CensoredClassifier, X: Any) -> Array:
    """Predict one person's trials with batch-norm statistics of these same trials.

    All of them pass once through the network in training mode, without dropout and with the
    running statistics replaced; they are then predicted. The classifier itself is not changed.

    References
    ----------
    Li et al. (2018), Adaptive batch normalization for practical domain adaptation. Pattern
    Recognition 80, 109-117.
    """
    old = clf.network_.encoder
    options = {**old.options, "drop_prob": 0.0, "batch_norm_momentum": 1.0}
    network = Network(at.EEGNet(old.n_channels, old.n_times, **options), len(clf.classes_))
    network.load_state_dict(clf.network_.state_dict())
    network.train()
    trials = as_trials(X)
    with torch.no_grad():
        network(torch.from_numpy(clf.normaliser_.transform(trials[:])))
    codes = encode_trials(network, clf.normaliser_, trials, logits=True).argmax(1)
    predicted: Array = clf.classes_[codes]
    return predicted
