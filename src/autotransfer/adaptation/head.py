"""The linear head refitted on a few labelled trials, with a prior around the trained one."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import logsumexp

from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.data.trials import Array

STRENGTH, FIRM = 1.0, 30.0
"""Trials' worth that the trained head is believed: as a rule, and where that is too little."""


def head(fitted: Fitted, person: Person, *, strength: float = STRENGTH) -> Fitted:
    r"""Refit the head g on labelled trials, with a Gaussian prior around the trained head.

    With latents z_i scaled to unit mean square s, class weights w_i that make the classes given
    count equally, and the trained weights W_0 and biases b_0, the head is the one minimum of

        sum_i w_i cross_entropy(W z_i + b, y_i)
        + strength / 2 * (s^2 norm(W - W_0)^2 + norm(b - b_0)^2),

    where the cross entropy is over the classes of which there are labelled trials: nothing is
    learned about others, and from labels of one class nothing at all.

    Parameters
    ----------
    fitted : Fitted
        Trained; not changed.
    person : Person
        With labelled trials.
    strength : float
        Weight of the prior: how many trials' worth the trained head is believed.
    """
    labelled, codes = person.with_labels()
    with torch.inference_mode():
        z = fitted.network.encode(fitted.signals(labelled)).double().cpu().numpy()
    copy = deepcopy(fitted.network)
    weight = copy.head.weight.detach().double().cpu().numpy()
    bias = copy.head.bias.detach().double().cpu().numpy()
    new_weight, new_bias = refit(z, codes, weight, bias, strength)
    with torch.no_grad():
        copy.head.weight.copy_(torch.from_numpy(new_weight))
        copy.head.bias.copy_(torch.from_numpy(new_bias))
    return fitted.with_network(copy)


def refit(
    z: Array, codes: Array, weight: Array, bias: Array, strength: float
) -> tuple[Array, Array]:
    """Find the minimum that `head` describes.

    Parameters
    ----------
    z : array of shape (n, n_latent)
        Latents.
    codes : array of int of shape (n,)
        Class numbers.
    weight, bias : arrays of shape (n_classes, n_latent) and (n_classes,)
        The trained head.
    strength : float
        Weight of the prior; with an infinite one the trained head stays.

    Returns
    -------
    weight, bias : arrays of the same shapes
    """
    if np.isinf(strength):
        return weight.copy(), bias.copy()
    n = len(z)
    given, codes = np.unique(codes, return_inverse=True)
    scale = max(float(np.sqrt(np.mean(np.square(z)))), 1e-12)
    features = np.hstack([z / scale, np.ones((n, 1))])
    trained = np.hstack([weight * scale, bias[:, None]])
    start = trained[given]
    weights = n / (len(given) * np.bincount(codes)[codes])
    truth = np.eye(len(given))[codes]

    def loss(flat: Array) -> tuple[float, Array]:
        difference = flat.reshape(start.shape)
        logits = features @ (start + difference).T
        total = logsumexp(logits, axis=1, keepdims=True)
        value = weights @ (total[:, 0] - logits[np.arange(n), codes])
        residual = weights[:, None] * (np.exp(logits - total) - truth)
        gradient = residual.T @ features + strength * difference
        return float(value + 0.5 * strength * (flat @ flat)), gradient.ravel()

    found = minimize(loss, np.zeros(start.size), jac=True, method="L-BFGS-B")
    trained[given] += found.x.reshape(start.shape)
    return trained[:, :-1] / scale, trained[:, -1]
