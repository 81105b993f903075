"""pyRiemann: covariances in tangent space and logistic regression, with and without recentring.

Covariances are those that pyRiemann's documentation shows for the kind of signal: of a bank of
filters around the flicker frequencies (SSVEP), of Xdawn-filtered trials stacked on the class
averages (ERP), of the channels (EMG).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from pyriemann.estimation import Covariances, XdawnCovariances
from pyriemann.tangentspace import TangentSpace
from pyriemann.transfer import TLCenter, encode_domains
from scipy.signal import butter, sosfiltfilt
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from benchmarks.peers.known import Array, Known, Model

FLICKER = (13.0, 17.0, 21.0)
"""Frequencies of the SSVEP data set, in Hz."""

HALF_BAND = 1.0
"""Half width of a filter in Hz. pyRiemann's example has 0.1 on whole recordings, which windows of
2 s cannot resolve."""


class _Estimator(Protocol):
    """What makes matrices of trials."""

    def fit(self, X: Array, y: Array) -> Any:
        """Learn from trials."""

    def transform(self, X: Array) -> Array:
        """Make matrices."""


class FilterBankCovariances:
    """Covariances of copies of the signal, each filtered around one flicker frequency.

    Parameters
    ----------
    sfreq : float
        Sampling rate in Hz.
    """

    def __init__(self, sfreq: float) -> None:
        self.filters = [
            butter(4, (f - HALF_BAND, f + HALF_BAND), "bandpass", fs=sfreq, output="sos")
            for f in FLICKER
        ]
        self.covariances = Covariances("lwf")

    def fit(self, X: Array, y: Array) -> FilterBankCovariances:
        """Learn nothing."""
        return self

    def transform(self, X: Array) -> Array:
        """Make matrices (n, 3 C, 3 C) of trials (n, C, T)."""
        bank = np.concatenate([sosfiltfilt(sos, X, axis=2) for sos in self.filters], axis=1)
        matrices: Array = self.covariances.transform(bank)
        return matrices


def estimator(known: Known) -> _Estimator:
    """Choose the covariances that suit a data set."""
    if known.name == "ssvep":
        assert known.data.sfreq is not None
        return FilterBankCovariances(known.data.sfreq)
    if known.name == "erp":
        # 2 filters as in pyRiemann's ERP example; regularised, as its docstring asks.
        made: _Estimator = XdawnCovariances(2, estimator="oas", xdawn_estimator="oas")
        return made
    made = Covariances("oas")
    return made


def fit(known: Known, new: Any, *, C: float, recentre: bool) -> Model:
    """Fit tangent space and logistic regression on the training subjects.

    Parameters
    ----------
    known : Known
        Labelled trials.
    new : None
        Nothing of the new person is needed to fit.
    C : float
        Of the logistic regression.
    recentre : bool
        Bring the Riemannian mean of every subject's covariances to the identity: at prediction
        that of the new person's unlabelled trials.

    Returns
    -------
    Model
        With `recentre`, it needs all trials of one person at once.
    """
    train = known.train
    X = train.trials[:].astype(np.float64)
    scale = X.std()  # affects no answer; keeps matrices away from the limits of numbers
    covariances = estimator(known)
    covariances.fit(X / scale, train.y)
    matrices = covariances.transform(X / scale)
    if recentre:
        people = train.subject.astype(str)
        matrices = TLCenter("").fit_transform(*encode_domains(matrices, train.y, people))
    # The weights of classes that the networks' loss has, too.
    pipeline = make_pipeline(
        TangentSpace(metric="riemann"),
        LogisticRegression(C=C, class_weight="balanced", max_iter=2000),
    )
    pipeline.fit(matrices, train.y)

    def predict(X: Array) -> Array:
        found = covariances.transform(np.asarray(X, np.float64) / scale)
        if recentre:
            # One domain without labels: the person that is predicted.
            nobody = np.zeros(len(found), int)
            found = TLCenter("").fit_transform(*encode_domains(found, nobody, ["new"] * len(found)))
        predicted: Array = pipeline.predict(found)
        return predicted

    return predict
