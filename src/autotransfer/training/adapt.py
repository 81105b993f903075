"""A model's batch-norm statistics taken from one new person's trials, without labels."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from autotransfer.data.normalise import Normaliser
from autotransfer.data.trials import TrialArray, evenly
from autotransfer.data.validate import require_finite
from autotransfer.errors import SettingError
from autotransfer.training.network import Network

PRIOR = 32
"""Trials that the statistics of training count for, by default: validation's choice of 0, 8 and 32
on two of three data sets, and no loss on average with as few as 4 trials (docs/adapting.md)."""

MOST = 512
"""Trials that are looked at, evenly over all: statistics need no more, and all are in memory."""


def adapted(network: Network, normaliser: Normaliser, X: TrialArray, prior: int) -> Network:
    """Copy a network with batch-norm statistics of some trials.

    The first batch norm takes mean and variance of what reaches it, then the next one of what
    reaches it after that, and so on. With n trials and `prior` N each becomes

        n / (n + N) * (statistic of the trials) + N / (n + N) * (statistic of training)

    Parameters
    ----------
    network : Network
        Trained; not changed.
    normaliser : Normaliser
        As in training.
    X : TrialArray of shape (n_trials, C, T)
        Signals of one person.
    prior : int
        Trials that the statistics of training count for.

    Returns
    -------
    Network

    References
    ----------
    Li et al. (2018), Adaptive batch normalization for practical domain adaptation. Pattern
    Recognition 80, 109-117. Schneider et al. (2020), Improving robustness against common
    corruptions by covariate shift adaptation. NeurIPS 33 (the prior).
    """
    copy = deepcopy(network).eval()
    # EEGNet does not call its norms as layers unless it is written out.
    literal: Any = getattr(copy.encoder, "literal", None)
    layers: nn.Module = copy.encoder if literal is None else literal()
    norms = _norms(layers)
    if not norms:
        raise SettingError(
            "This encoder has no batch norm, so there is nothing to take from the new person's "
            "signals. Use the model as it is, or an encoder with batch norm."
        )
    trials = X[evenly(len(X), MOST)]
    require_finite(trials, 0)
    share = len(X) / (len(X) + prior)
    handles = [norm.register_forward_pre_hook(_taking(share)) for norm in norms]
    signals = torch.from_numpy(normaliser.transform(trials)).to(copy.head.weight.device)
    with torch.no_grad():
        layers(signals)
    for handle in handles:
        handle.remove()
    if literal is not None:
        copy.encoder.load_state_dict(layers.state_dict())
    return copy


def adaptable(network: Network) -> bool:
    """Whether there is a batch norm whose statistics could be taken from somebody new."""
    return bool(_norms(network.encoder))


def _norms(layers: nn.Module) -> list[_BatchNorm]:
    return [m for m in layers.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]


def _taking(share: float) -> Any:
    """Make a hook that moves a norm's statistics towards those of its input, before it is used."""

    def hook(norm: _BatchNorm, inputs: tuple[Tensor, ...]) -> None:
        (x,) = inputs
        axes = [axis for axis in range(x.ndim) if axis != 1]
        var, mean = torch.var_mean(x, axes, correction=0)
        for statistic, new in ((norm.running_mean, mean), (norm.running_var, var)):
            assert statistic is not None
            statistic.lerp_(new, share)

    return hook
