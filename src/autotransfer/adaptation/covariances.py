"""The person's own covariances beside the network's latents, weighed by their labelled trials."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import log_softmax, softmax
from sklearn.model_selection import StratifiedKFold
from torch import nn

from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.adaptation.head import FIRM, STRENGTH, refit
from autotransfer.data.trials import Array, Index
from autotransfer.encoder.beside import Beside
from autotransfer.encoder.covariance import CovarianceNet
from autotransfer.encoder.network import Network

STRENGTHS = (STRENGTH, FIRM, np.inf)
"""Trials' worth that the trained head is believed. Without the last, by which it stays as it is,
five labels of a class made 0.45 instead of 0.47 of the set `stress`, where they say little; on six
others as much within 0.01 (one seed)."""

WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
"""What the covariances count for beside the network."""

SCALES = (0.1, 0.25, 0.5, 1.0)
"""Of both together: from few trials either is too certain of itself. Without it cross-validation
took what was less certain: with five labels of a class 0.38 instead of 0.41 on the set `stress`,
0.83 instead of 0.86 on Myo disco, and on seven others as much within 0.01 (one seed)."""

PARTS = 5
"""Into which labelled trials are cut, or fewer where a class has fewer."""

ALONE = 1 / 3
"""Share of the covariances where no class can be left out: with one label of each class, equal
shares took 0.04 from SSVEP, and these nothing."""


def covariances(fitted: Fitted, person: Person) -> Fitted:
    r"""Refit the head on labelled trials, and let the person's own covariances have their say.

    Two linear classifiers learn from the labelled trials: the head g on the network's latents z,
    near the trained one (`head`, with a strength A; with an infinite one it stays as it is), and
    another h on c, logarithms of covariances of the normalised signals, centred and of unit
    variance over the labelled trials, near zero (strength 1). The new head has the logits

        t (g(z) + w h(c))

    Of a class without labelled trials h says nothing. It is the mean of such logits over all A, w
    and t of `STRENGTHS`, `WEIGHTS` and `SCALES`, with weights ``exp(-loss)``, where the loss is the
    cross entropy summed over labelled trials left out, the classes counting the same. (The one with
    the least loss is as good with five labels of each class, and worse with two: SSVEP 0.74, the
    mean 0.78.) Where some class has one labelled trial only, it is ``2/3 g(z) + 1/3 h(c)``, with
    A = 1. From labels of one class nothing is learned.

    Parameters
    ----------
    fitted : Fitted
        Trained; not changed.
    person : Person
        With labelled trials. Others are not looked at.

    References
    ----------
    Barachant et al. (2012), Multiclass brain-computer interface classification by Riemannian
    geometry. IEEE Trans. Biomed. Eng. 59, 920-928 (h alone). Genest and Zidek (1986), Combining
    probability distributions: a critique and an annotated bibliography. Statistical Science 1,
    114-135 (the logarithmic pool).
    """
    labelled, codes = person.with_labels()
    if len(np.unique(codes)) < 2:
        return fitted
    signals = fitted.signals(labelled)
    encoder, head = _without_covariances(fitted.network)
    own = CovarianceNet(*signals.shape[1:], bands=None, drop_prob=0.0).to(signals.device).eval()
    with torch.no_grad():
        logs = own.prepare(signals)
        own.norm.running_mean.copy_(logs.mean(0))  # type: ignore[union-attr]
        # One variance for all: distances between matrices stay what they were.
        own.norm.running_var.fill_(float(logs.var(0, correction=0).mean()))  # type: ignore[union-attr]
        both = _Latents(
            *(part.double().cpu().numpy() for part in (encoder(signals), own(signals))),
            *(part.detach().double().cpu().numpy() for part in (head.weight, head.bias)),
        )
    weight, bias = both.joined(codes, *_shares(both, codes))
    with torch.random.fork_rng(devices=[]):  # a layer draws weights when it is made
        network = Network(Beside(encoder, own), len(bias))
    network = network.to(head.weight)
    with torch.no_grad():
        network.head.weight.copy_(torch.from_numpy(weight))
        network.head.bias.copy_(torch.from_numpy(bias))
    return fitted.with_network(network)


@dataclass(frozen=True)
class _Latents:
    """Latents z and covariances c of the labelled trials, and the trained head."""

    z: Array
    c: Array
    weight: Array
    bias: Array

    def of_network(self, trials: Index, codes: Index, strength: float) -> tuple[Array, Array]:
        """Refit the trained head on some of the trials."""
        return refit(self.z[trials], codes[trials], self.weight, self.bias, strength)

    def of_covariances(self, trials: Index, codes: Index) -> tuple[Array, Array]:
        """Fit a head on the covariances of some of the trials."""
        nothing = np.zeros((len(self.bias), self.c.shape[1])), np.zeros(len(self.bias))
        return refit(self.c[trials], codes[trials], *nothing, STRENGTH)

    def joined(self, codes: Index, network: Array, own: float) -> tuple[Array, Array]:
        """Make one head of those of the network, one for each strength, and of the covariances."""
        trials = np.arange(len(codes))
        V, b = self.of_covariances(trials, codes)
        W, a = np.zeros_like(self.weight), np.zeros_like(self.bias)
        for share, strength in zip(network, STRENGTHS, strict=True):
            more, bias = self.of_network(trials, codes, strength)
            W, a = W + share * more, a + share * bias
        return np.hstack([W, own * V]), a + own * b


def _shares(both: _Latents, codes: Index) -> tuple[Array, float]:
    """Find what the network's heads count for, one for each strength, and the covariances."""
    counts = np.bincount(codes)
    parts = min(PARTS, int(counts[counts > 0].min()))
    if parts < 2:
        return np.array([1 - ALONE] + [0.0] * (len(STRENGTHS) - 1)), ALONE
    losses = np.zeros((len(STRENGTHS), len(WEIGHTS), len(SCALES)))
    weights = len(codes) / (np.count_nonzero(counts) * counts[codes])
    cut = StratifiedKFold(parts, shuffle=True, random_state=0)
    for kept, left in cut.split(both.z, codes):
        V, b = both.of_covariances(kept, codes)
        own = both.c[left] @ V.T + b
        for i, strength in enumerate(STRENGTHS):
            W, a = both.of_network(kept, codes, strength)
            theirs = both.z[left] @ W.T + a
            for j, weight in enumerate(WEIGHTS):
                for k, scale in enumerate(SCALES):
                    told = log_softmax(scale * (theirs + weight * own), axis=1)
                    losses[i, j, k] -= weights[left] @ told[np.arange(len(left)), codes[left]]
    scaled = softmax(-losses) * np.array(SCALES)
    return scaled.sum((1, 2)), float((scaled.sum((0, 2)) * np.array(WEIGHTS)).sum())


def _without_covariances(network: Network) -> tuple[nn.Module, nn.Linear]:
    """Give encoder and head of a network, without covariances of an adaptation before."""
    if not isinstance(network.encoder, Beside):
        return network.encoder, network.head
    encoder, n = network.encoder.encoder, network.encoder.n
    with torch.random.fork_rng(devices=[]):
        head = nn.Linear(n, network.head.out_features).to(network.head.weight)
    with torch.no_grad():
        head.weight.copy_(network.head.weight[:, :n])
        head.bias.copy_(network.head.bias)
    return encoder, head
