"""Any torch module as an encoder: signals (B, C, T) to latents (B, n_latent).

What the latent of a network is, in this order:

1. the input of the layer that the user names (``latent="final_layer"``), or the module's own
   output (``latent="output"``);
2. what the module's method ``forward_features(x)`` returns, if it has one;
3. the input of a layer called ``final_layer``, as braindecode's networks have one;
4. the input of the last layer with weights, in the order of ``named_modules()``, if it is linear
   and not the only one: the classification layer of most networks (torchvision's);
5. the module's output.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor, nn

from autotransfer.errors import SettingError, join_some

OUTPUT = "output"
"""Value of `latent` that means the output of the module itself."""


class LatentOf(nn.Module):
    """A module seen as an encoder. Made by `wrap`.

    Parameters
    ----------
    module : nn.Module
        Takes signals (B, C, T).
    latent : str, optional
        Name of the layer whose input is the latent; ``"output"`` for the module's output; None to
        call ``forward_features``.

    Attributes
    ----------
    n_latent : int or None
        Length of the latent, once `measure` has been called.

    Notes
    -----
    The layer named by `latent` and what follows it are computed but not used, so their parameters
    get no gradient. They are kept, so that the module's state dict stays whole.
    """

    def __init__(self, module: nn.Module, latent: str | None) -> None:
        super().__init__()
        self.module, self.latent = module, latent
        self.n_latent: int | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Encode signals (B, C, T) to latents (B, n_latent)."""
        z: Any
        if self.latent is None:
            z = self.module.forward_features(x)  # type: ignore[operator]
        elif self.latent == OUTPUT:
            z = self.module(x)
        else:
            z = self._input_of(self.latent, x)
        if not isinstance(z, Tensor) or not z.is_floating_point():
            kind = f"a tensor of {z.dtype}" if isinstance(z, Tensor) else f"a {type(z).__name__}"
            raise SettingError(
                f"The latent must be a tensor of real numbers, but {self.source} is {kind}. "
                f"{_NAME_ANOTHER}"
            )
        # By shape and not by len, which would tie an exported graph to one number of trials.
        if z.ndim < 2 or z.shape[0] != x.shape[0]:
            raise SettingError(
                f"The latent must have the trials first, but {self.source} has the shape "
                f"{tuple(z.shape)} for {len(x)} trials. {_NAME_ANOTHER}"
            )
        return z.flatten(1)

    @property
    def source(self) -> str:
        """What the latent is, in words."""
        if self.latent is None:
            return "what forward_features returns"
        if self.latent == OUTPUT:
            return "the output of the module"
        return f"the input of the layer {self.latent!r}"

    def _input_of(self, name: str, x: Tensor) -> Any:
        """Run the module and give what its layer `name` was called with (last)."""
        # The hook lives for this call only: nothing is kept between calls, copied or pickled.
        # Of two threads in the same module, each sees its own call.
        thread = threading.get_ident()
        inputs: list[Any] = []

        def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if threading.get_ident() == thread:
                inputs[:] = [*args, *kwargs.values()][:1]

        layer = self.module.get_submodule(name)
        handle = layer.register_forward_pre_hook(hook, with_kwargs=True)
        try:
            self.module(x)
        finally:
            handle.remove()
        if not inputs:
            raise SettingError(
                f"The layer {name!r} was not called when the module ran, so its input cannot be "
                f"the latent. {_NAME_ANOTHER}"
            )
        return inputs[0]

    def measure(self, n_channels: int, n_times: int) -> LatentOf:
        """Find `n_latent` by encoding two trials of noise; returns itself."""
        self.n_latent = latent_length(self, n_channels, n_times)
        return self


_NAME_ANOTHER = (
    "Give latent the name of the layer whose input is the latent (as in named_modules()), or "
    f'"{OUTPUT}" for the output of the module.'
)


def wrap(
    module: nn.Module,
    latent: str | None = None,
    *,
    n_channels: int | None = None,
    n_times: int | None = None,
) -> LatentOf:
    """Make an encoder of any torch module that takes signals (B, C, T).

    Parameters
    ----------
    module : nn.Module
        The network; used, not copied.
    latent : str, optional
        Name (as in ``module.named_modules()``) of the network's last layer: its input, flattened
        to (B, n_latent), is the latent. ``"output"``: the module's output is the latent. None:
        ``module.forward_features(x)`` if there is one; else the input of ``final_layer`` or of a
        last linear layer after others; else the output.
    n_channels, n_times : int, optional
        Shape of a trial. If given, `n_latent` is found at once (in evaluation mode, without a
        change to running statistics or to the state of the random generators).

    Returns
    -------
    LatentOf

    Examples
    --------
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(40, 7), nn.ELU(), nn.Linear(7, 3))
    >>> encoder = wrap(net, n_channels=4, n_times=10)
    >>> encoder.latent, encoder.n_latent
    ('3', 7)
    >>> encoder(torch.zeros(5, 4, 10)).shape
    torch.Size([5, 7])
    """
    if not isinstance(module, nn.Module):
        raise SettingError(f"An encoder must be a torch nn.Module, not a {type(module).__name__}.")
    names = [name for name, _ in module.named_modules() if name]
    if latent == OUTPUT and OUTPUT in names:
        raise SettingError(
            f"latent={OUTPUT!r} could mean the module's output or its layer of that name. Wrap "
            f"nn.Sequential(module): its {OUTPUT!r} is the output, and '0.{OUTPUT}' the layer."
        )
    if latent is None and not callable(getattr(module, "forward_features", None)):
        latent = _last_layer(module)
    if latent not in (None, OUTPUT, *names):
        near = get_close_matches(str(latent), names, n=5, cutoff=0.4) or names
        raise SettingError(
            f"The module has no layer {latent!r}. Names like it: {join_some(near)}. {_NAME_ANOTHER}"
        )
    encoder = LatentOf(module, latent)
    if n_channels is not None and n_times is not None:
        encoder.measure(n_channels, n_times)
    return encoder


def latent_source(encoder: nn.Module) -> str:
    """Say in words what the latent of an encoder is."""
    return encoder.source if isinstance(encoder, LatentOf) else "the output of the encoder"


def _last_layer(module: nn.Module) -> str:
    """Find the classification layer of a network by its name or place; "output" without one."""
    layers: list[tuple[str, nn.Module]] = [*module.named_modules()][1:]
    final = [name for name, _ in layers if name.rpartition(".")[2] == "final_layer"]
    if final:
        return final[-1]
    weighted = [
        (name, layer)
        for name, layer in layers
        # Weights of a parametrized layer lie in parts of it, which are never called.
        if ".parametrizations." not in f"{name}."
        and (isinstance(layer, nn.Linear) or any(True for _ in layer.parameters(recurse=False)))
    ]
    if len(weighted) > 1 and isinstance(weighted[-1][1], nn.Linear):
        return weighted[-1][0]
    return OUTPUT


def latent_length(encoder: nn.Module, n_channels: int, n_times: int) -> int:
    """Find the length of an encoder's latent by encoding two trials of noise, (2, C, T)."""
    tensors = (*encoder.parameters(), *encoder.buffers())
    like = next((t for t in tensors if t.is_floating_point()), torch.empty(0))
    x = torch.zeros(2, n_channels, n_times, dtype=like.dtype, device=like.device)
    if not x.is_meta:
        # Some of it, because zeros take no memory until they are written to; from a generator of
        # its own, so that the seeds of the caller's stay what they are.
        some = x[:, :, :16]
        some.copy_(torch.randn(some.shape, generator=torch.Generator().manual_seed(0)))
    cuda = sorted({t.device.index for t in tensors if t.device.type == "cuda"})
    with _evaluating(encoder), torch.random.fork_rng(cuda), torch.no_grad():
        try:
            z = encoder(x)
        except SettingError:
            raise
        except Exception as error:
            raise SettingError(
                f"The encoder could not encode trials of {n_channels} channels x {n_times} time "
                f"points, given as a tensor {tuple(x.shape)}: {error}"
            ) from error
    if not isinstance(z, Tensor) or not z.is_floating_point() or z.ndim != 2 or len(z) != 2:
        shape = tuple(z.shape) if isinstance(z, Tensor) else type(z).__name__
        raise SettingError(
            f"An encoder must turn 2 trials into a tensor of real numbers (2, n_latent), but this "
            f"{type(encoder).__name__} gave {shape}."
        )
    if z.shape == x.flatten(1).shape and not x.is_meta and torch.equal(z, x.flatten(1)):
        raise SettingError(
            f"The latent of this {type(encoder).__name__} would be the raw signal itself "
            f"({latent_source(encoder)}), so no encoder would be trained. {_NAME_ANOTHER}"
        )
    return z.shape[1]


@contextmanager
def _evaluating(module: nn.Module) -> Iterator[None]:
    """Put a module in evaluation mode, and each of its parts back as it was."""
    modes = [(m, m.training) for m in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for m, training in modes:
            m.training = training
