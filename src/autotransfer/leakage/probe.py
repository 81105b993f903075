"""What all probes of the subject share: their data, their calibration, what they return.

A probe learns scores f, one for each subject, and says

    log p(s | z, y) = log p(s | y) + beta f_s(z, y) + const,

where p(s | y) is uniform if no labels are given. Its inner part, of recordings that it was not
trained on, chooses beta: a probe that has learned nothing of use then says nothing, rather than
something wrong with confidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from autotransfer.data.trials import Index

Floats = npt.NDArray[np.float64]

SCALES = (1e-3, 10.0)
"""Range of beta. Not down to 0, so that the most likely subject stays that of the probe."""


@dataclass(frozen=True)
class Part:
    """Trials of one side of a fold.

    Parameters
    ----------
    latent : array of shape (n, K)
        Standardised latents z.
    subject : array of int of shape (n,)
        Subject codes from 0 to M - 1.
    label : array of shape (n, n_classes)
        One-hot labels y; n_classes is 0 if they are not given.
    prior : array of shape (n, M)
        log p(s | y) of each trial.
    """

    latent: Floats
    subject: Index
    label: Floats
    prior: Floats

    @property
    def weight(self) -> Floats:
        """Weight of each trial: the same sum for every subject that is there, 1 in all."""
        counts = np.bincount(self.subject)
        return 1.0 / counts[self.subject] / np.count_nonzero(counts)

    def loss(self, scores: Floats, scale: float = 1.0) -> float:
        """Cross entropy of the subjects in nats; every subject weighs the same."""
        log_p = log_softmax(self.prior + scale * scores, axis=1)
        return float(-self.weight @ log_p[np.arange(len(scores)), self.subject])


Score = Callable[[Part], Floats]


@dataclass(frozen=True)
class FittedProbe:
    """Scores (n, M) of a part, their scale beta, and the loss on the inner part."""

    score: Score
    scale: float
    inner_loss: float

    def log_posterior(self, part: Part) -> Floats:
        """Give log p(s | z, y), of shape (n, M)."""
        return log_softmax(part.prior + self.scale * self.score(part), axis=1)


Probe = Callable[[Part, Part, Part, int], FittedProbe]
"""Makes a fitted probe from the training part, the inner part, both in one, and a seed."""


def calibrate(score: Score, inner: Part) -> FittedProbe:
    """Choose beta, with the lowest loss on the inner part (temperature scaling, [1]_).

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun, K. Q. Weinberger (2017). On calibration of modern neural
       networks. ICML. doi:10.48550/arXiv.1706.04599
    """
    scores = score(inner)
    # The loss is convex in beta, so it has one minimum in log beta too.
    minimum = minimize_scalar(
        lambda log_scale: inner.loss(scores, float(np.exp(log_scale))),
        bounds=(float(np.log(SCALES[0])), float(np.log(SCALES[1]))),
        method="bounded",
    )
    return FittedProbe(score, float(np.exp(minimum.x)), float(minimum.fun))
