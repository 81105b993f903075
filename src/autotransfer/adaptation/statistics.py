"""Statistics taken from the new person's trials, without labels: of the input and of norms."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.encoder.beside import written_out
from autotransfer.encoder.network import Network
from autotransfer.errors import SettingError

PRIOR = 32
"""Trials that the statistics of training count for, by default: validation's choice of 0, 8 and 32
on two of three data sets, and no loss on average with as few as 4 trials (docs/level_tables.md)."""


def statistics(fitted: Fitted, person: Person, *, prior: int = PRIOR) -> Fitted:
    """Give the network statistics of the person's trials.

    A normaliser that goes by person takes theirs. Then the first batch norm takes mean and variance
    of what reaches it, then the next one of what reaches it after that, and so on. With n trials
    and `prior` N each becomes

        n / (n + N) * (statistic of the trials) + N / (n + N) * (statistic of training)

    Parameters
    ----------
    fitted : Fitted
        Trained; not changed.
    person : Person
        All trials are used, and no label.
    prior : int
        Trials that the statistics of training count for.

    References
    ----------
    Li et al. (2018), Adaptive batch normalization for practical domain adaptation. Pattern
    Recognition 80, 109-117. Schneider et al. (2020), Improving robustness against common
    corruptions by covariate shift adaptation. NeurIPS 33 (the prior).
    """
    copy = deepcopy(fitted.network).eval()
    layers = written_out(copy.encoder)
    norms = batch_norms(layers)
    if not norms:
        raise SettingError(
            "This encoder has no batch norm, so there is nothing to take from the new person's "
            "signals. Use the model as it is, or an encoder with batch norm."
        )
    share = person.n_trials / (person.n_trials + prior)
    fitted = fitted.with_normaliser(fitted.normaliser.adapted(person.trials, share))
    handles = [norm.register_forward_pre_hook(_taking(share)) for norm in norms]
    with torch.no_grad():
        layers(fitted.signals(person.trials))
    for handle in handles:
        handle.remove()
    if layers is not copy.encoder:
        copy.encoder.load_state_dict(layers.state_dict())
    return fitted.with_network(copy)


def adaptable(network: Network) -> bool:
    """Whether there is a batch norm whose statistics could be taken from somebody new."""
    return bool(batch_norms(network.encoder))


def batch_norms(layers: nn.Module) -> list[_BatchNorm]:
    """List the norms that keep statistics, in their order."""
    return [m for m in layers.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]


def moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of every feature of what reaches a norm, (B, features, ...)."""
    axes = [axis for axis in range(x.ndim) if axis != 1]
    var, mean = torch.var_mean(x, axes, correction=0)
    return mean, var


def _taking(share: float) -> Any:
    """Make a hook that moves a norm's statistics towards those of its input, before it is used."""

    def hook(norm: _BatchNorm, inputs: tuple[Tensor, ...]) -> None:
        mean, var = moments(*inputs)
        for statistic, new in ((norm.running_mean, mean), (norm.running_var, var)):
            assert statistic is not None
            statistic.lerp_(new, share)

    return hook
