"""How often each class comes: estimated from predictions, and what predictions tell."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

SMALLEST = 1e-12
"""Probability below which the logarithm is not followed."""

EQUAL = 0.5
"""Weight of equal shares beside estimated ones, where predictions are to be varied."""


def class_shares(probabilities: Tensor, *, prior: float = 1.0, steps: int = 50) -> Tensor:
    r"""Estimate how often each class comes, from predictions made for equal shares.

    The posterior mode of the shares q under a Dirichlet prior, found by expectation maximisation:

        r_ic = q_c p_ic / sum_k q_k p_ik,     q_c = (prior + sum_i r_ic) / (n_classes prior + n)

    Parameters
    ----------
    probabilities : Tensor of shape (n_trials, n_classes)
        Of a classifier trained with equally weighted classes.
    prior : float
        Trials of each class that are believed to have been seen besides.
    steps : int
        Rounds.

    Returns
    -------
    Tensor of shape (n_classes,)

    References
    ----------
    Saerens, Latinne & Decaestecker (2002), Adjusting the outputs of a classifier to new a priori
    probabilities. Neural Computation 14, 21-41.

    Examples
    --------
    >>> import torch
    >>> sure = torch.tensor([[1.0, 0.0]] * 7 + [[0.0, 1.0]])
    >>> class_shares(sure)
    tensor([0.8000, 0.2000])
    """
    # In numpy: of a few hundred trials a round takes a third of torch's time.
    p = probabilities.detach().cpu().double().numpy()
    n, classes = p.shape
    shares = np.full(classes, 1 / classes)
    for _ in range(steps):
        # The sum over trials of the posterior shares is a product with the inverse evidence.
        evidence = np.maximum(p @ shares, SMALLEST)
        shares = (prior + shares * ((1 / evidence) @ p)) / (classes * prior + n)
    return torch.from_numpy(shares).to(probabilities)


def expected_shares(probabilities: Tensor, *, equal: float = EQUAL, steps: int = 50) -> Tensor:
    """Give shares between equal ones and those estimated from predictions, in float32.

    People do not give every class equally often, but a class that was taken for another should come
    back.

    Parameters
    ----------
    probabilities : Tensor of shape (n_trials, n_classes)
        As for `class_shares`.
    equal : float
        Weight of equal shares beside the estimated ones.
    steps : int
        Rounds of the estimate.
    """
    shares = class_shares(probabilities, steps=steps).float()
    return equal / len(shares) + (1 - equal) * shares


def divergence(shares: Tensor, expected: Tensor) -> Tensor:
    """Kullback-Leibler divergence in nats of shares from those expected, of shape (n_classes,)."""
    return (shares * (shares.clamp_min(SMALLEST) / expected).log()).sum()


def entropy(probabilities: Tensor) -> Tensor:
    """Entropy in nats over the last axis."""
    return -(probabilities * probabilities.clamp_min(SMALLEST).log()).sum(-1)


def effective_classes(shares: Tensor) -> float:
    """Tell of how many classes shares are: all of them if equal, 1 if there is one class only.

    Examples
    --------
    >>> import torch
    >>> effective_classes(torch.tensor([0.5, 0.5, 0.0]))
    2.0
    """
    return float(entropy(shares).exp())


def mutual_information(probabilities: Tensor) -> Tensor:
    """Measure in nats what predictions tell: entropy of their mean less mean of their entropies.

    Parameters
    ----------
    probabilities : Tensor of shape (n_trials, n_classes)

    References
    ----------
    Bridle, Heading & MacKay (1991), Unsupervised classifiers, mutual information and 'phantom
    targets'. NIPS 4.
    """
    return entropy(probabilities.mean(0)) - entropy(probabilities).mean()
