"""A person's own scale and covariance of channels, by which their signals are made like others'.

All kinds take a person's trials, centred over time, to W x with W = R^(-1/2), where R is

- ``"person"``: the mean variance of each channel, on the diagonal;
- ``"euclidean"``: the mean covariance (He & Wu 2020, doi:10.1109/TBME.2019.2913914);
- ``"riemannian"``: the geometric mean of the covariances of trials (Zanini et al. 2018,
  doi:10.1109/TBME.2017.2742541), by pyRiemann.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.data.trials import TrialArray, evenly

Float64 = npt.NDArray[np.float64]

OWN = ("person", "euclidean", "riemannian")
"""Normalisers that go by statistics of each person."""

SHRINKAGE = 0.01
"""Share of the mean variance in a covariance: channels that depend on others stay invertible."""

MOST = 512
"""Trials of a person that are looked at, evenly: more tell little, and all are in memory."""


def covariances(X: npt.NDArray[Any]) -> Float64:
    """Covariance matrices of centred trials (n, C, T), shrunk towards the mean variance.

    By hand, because pyRiemann's shrunk estimators go trial by trial: a minute of processor time
    for the SSVEP recordings, whose networks take half a minute each; this takes two seconds.

    Examples
    --------
    >>> covariances(np.array([[[1.0, -1.0], [3.0, -3.0]]])).round(2)
    array([[[1.04, 2.97],
            [2.97, 8.96]]])
    """
    X = np.asarray(X, dtype=np.float64)
    matrices: Float64 = np.matmul(X, X.transpose(0, 2, 1)) / X.shape[2]
    size = np.trace(matrices, axis1=1, axis2=2) / X.shape[1]
    least = np.where(size > 0, size, 1.0)[:, None, None] * np.eye(X.shape[1])
    shrunk: Float64 = (1 - SHRINKAGE) * matrices + SHRINKAGE * least
    return shrunk


def covariance_of(kind: str, X: TrialArray) -> Float64:
    """Find R of one person.

    Parameters
    ----------
    kind : str
        One of `OWN`.
    X : TrialArray of shape (n_trials, C, T)
        All trials of the person that there are.

    Returns
    -------
    array of shape (C, C)
    """
    block = X[evenly(len(X), MOST)].astype(np.float64)
    block -= block.mean(-1, keepdims=True)
    return mean_of(kind, list(covariances(block)))


def mean_of(kind: str, matrices: Sequence[Float64]) -> Float64:
    """Find the mean of covariances (C, C), each counting once."""
    stack = np.stack(matrices)
    if kind == "riemannian" and len(stack) > 1:
        # Here and not above: it takes a second to import, and few need it.
        from pyriemann.geometry.mean import mean_riemann

        # In units near 1, because its stopping rule is absolute.
        size = np.trace(stack.mean(0)) / stack.shape[1]
        mean: Float64 = mean_riemann(stack / size) * size
    else:
        mean = stack.mean(0)
    return np.diag(np.diag(mean)) if kind == "person" else mean


def between(kind: str, known: Float64, new: Float64, share: float) -> Float64:
    """Go from one covariance to another by a share of the way, straight or on the geodesic."""
    if kind == "riemannian":
        from pyriemann.geometry.geodesic import geodesic_riemann

        point: Float64 = geodesic_riemann(known, new, share)
        return point
    return (1 - share) * known + share * new


def whitening(covariance: Float64) -> npt.NDArray[np.float32]:
    """Find W = R^(-1/2), which is symmetric, of shape (C, C).

    Examples
    --------
    >>> whitening(np.diag([4.0, 0.25]))
    array([[0.5, 0. ],
           [0. , 2. ]], dtype=float32)
    """
    values, vectors = np.linalg.eigh(covariance)
    floor = np.finfo(np.float64).eps * len(values) * max(values[-1], np.finfo(np.float64).tiny)
    scales = 1 / np.sqrt(np.maximum(values, floor))
    white: npt.NDArray[np.float32] = (vectors * scales @ vectors.T).astype(np.float32)
    return white
