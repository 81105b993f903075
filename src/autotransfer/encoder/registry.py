"""Encoders by name, and the one way in which an encoder is made from what a user gives."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from autotransfer.encoder.covariance import CovarianceNet
from autotransfer.encoder.eegnet import EEGNet
from autotransfer.encoder.wrap import latent_length, wrap
from autotransfer.errors import SettingError, join_some
from autotransfer.registry import check_options, lookup

ENCODERS: dict[str, Callable[..., nn.Module]] = {"eegnet": EEGNet, "covariance": CovarianceNet}
"""Encoders that can be asked for by name: called with ``(n_channels, n_times, **options)``."""

_SHAPE = ("n_channels", "n_times", "sfreq")


def make_encoder(
    spec: str | nn.Module | Callable[..., nn.Module],
    n_channels: int,
    n_times: int,
    sfreq: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> nn.Module:
    """Make an encoder for trials of a given shape.

    Parameters
    ----------
    spec : str, nn.Module or callable
        A name in `ENCODERS`; or a module, of which a copy is made, so that every training starts
        from the same weights; or a function ``(n_channels, n_times, **options)`` that makes one.
    n_channels, n_times : int
        Shape of a trial.
    sfreq : float, optional
        Sampling rate in Hz, handed to encoders that take one.
    options : mapping, optional
        The encoder's. For a module or function of your own, ``latent`` is handed to
        `autotransfer.encoder.wrap`.

    Returns
    -------
    nn.Module
        With an attribute `n_latent`. A module that has none is seen through
        `autotransfer.encoder.wrap`.

    Examples
    --------
    >>> make_encoder("eegnet", n_channels=8, n_times=128, options={"F1": 4}).n_latent
    32
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(40, 7), nn.ELU(), nn.Linear(7, 3))
    >>> make_encoder(net, n_channels=4, n_times=10, options={"latent": "output"}).n_latent
    3
    """
    own_options = dict(options or {})
    if isinstance(spec, str):
        return _by_name(spec, n_channels, n_times, sfreq, own_options)
    latent = own_options.pop("latent", None)
    if isinstance(spec, nn.Module):
        check_options(own_options, {"latent"}, "An encoder handed over as a module")
        module = copy.deepcopy(spec)
    elif callable(spec):
        names = _options_of(spec)
        if names is not None:
            check_options(own_options, {*names, "latent"}, "The function that makes the encoder")
        module = _call(spec, n_channels, n_times, own_options)
        if not isinstance(module, nn.Module):
            raise SettingError(
                "The function that makes the encoder must return a torch nn.Module; it returned "
                f"a {type(module).__name__}."
            )
    else:
        raise SettingError(
            f"An encoder is a name ({join_some(sorted(ENCODERS))}), a torch nn.Module, or a "
            f"function (n_channels, n_times) that makes one; not a {type(spec).__name__}."
        )
    declared = getattr(module, "n_latent", None)
    if latent is not None or not isinstance(declared, int):
        return wrap(module, latent, n_channels=n_channels, n_times=n_times)
    actual = latent_length(module, n_channels, n_times)
    if actual != declared:
        raise SettingError(
            f"The encoder says n_latent={declared}, but gives latents of length {actual} for "
            f"trials of {n_channels} channels x {n_times} time points."
        )
    return module


def _call(make: Callable[..., Any], n_channels: int, n_times: int, options: dict[str, Any]) -> Any:
    """Call what makes an encoder; a class or function that cannot be called so is told."""
    try:
        inspect.signature(make).bind(n_channels, n_times, **options)
    except TypeError as error:
        name = getattr(make, "__name__", type(make).__name__)
        raise SettingError(
            f"encoder={name} is called as {name}(n_channels, n_times), which it does not take "
            f"({error}). Hand over a module that is made already, encoder={name}(...), or a "
            "function (n_channels, n_times) that makes one."
        ) from None
    return make(n_channels, n_times, **options)


def _by_name(
    name: str, n_channels: int, n_times: int, sfreq: float | None, options: dict[str, Any]
) -> nn.Module:
    """Make a registered encoder."""
    make = lookup("encoder", name, ENCODERS, "hand over a torch nn.Module of your own")
    names = _options_of(make)
    if names is not None:
        check_options(options, set(names), f"The encoder {name!r}")
    if "sfreq" in inspect.signature(make).parameters:
        options = {**options, "sfreq": sfreq}
    return make(n_channels, n_times, **options)


def _options_of(make: Callable[..., Any]) -> list[str] | None:
    """Names of a maker's options, without the shape of the data; None if it takes any."""
    parameters = list(inspect.signature(make).parameters.values())
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    # The first two are the shape, whatever they are called.
    return [name for name in names[2:] if name not in _SHAPE]
