"""EEGNet, exactly, at a fraction of the cost of its layers.

The first block of EEGNet (temporal convolution over every channel, batch norm, depthwise spatial
convolution) is affine in the signal, so its steps can be reordered without changing the function,
its gradients or the running statistics: batch statistics from window moments, the spatial product
first, the temporal filter on the few signals that are left. `autotransfer.encoder.literal` holds
the same network layer by layer; tests hold the two together to 1e-10.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from functools import cached_property
from math import isfinite
from numbers import Real
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from autotransfer.data.trials import Array
from autotransfer.data.validate import as_count
from autotransfer.encoder.fused import FusedStep, Plan
from autotransfer.encoder.literal import MaxNormConv2d, eegnet_layers
from autotransfer.encoder.moments import WindowMoments
from autotransfer.encoder.temporal import Filtered, TemporalConv, output_length
from autotransfer.errors import KernelLengthWarning, SettingError, ShapeError, WindowTooShortError

PAPER_RATE, PAPER_LENGTH = 128.0, 64
"""Sampling rate (Hz) for which EEGNet's lengths were chosen, and its temporal filters' length."""


class EEGNet(nn.Module):
    """EEGNet without its last layer: signals (B, C, T) to latents (B, n_latent).

    The function and the parameters (names and shapes in the state dict) are those of
    braindecode 1.8's ``EEGNet`` up to its ``final_layer``, which is our linear classifier
    (`to_braindecode`, `from_braindecode`).

    Parameters
    ----------
    n_channels, n_times : int
        Shape of a trial.
    sfreq : float, optional
        Sampling rate in Hz; needed for lengths in seconds, and to warn when the default lengths
        (made for 128 Hz) do not fit.
    F1, D, F2 : int
        Temporal filters, spatial filters for each, pointwise filters (F1 * D by default).
    kernel_length, depthwise_kernel_length : int
        Length in samples of the temporal filters (64 by default, with a warning where that does
        not fit), and of the second temporal filters after the first pooling.
    pool1, pool2 : int
        Pooling windows.
    kernel_seconds : float, optional
        Length of the temporal filters in seconds, in place of `kernel_length`; the first pooling
        then brings the signal to 32 Hz, where the remaining lengths are what the paper chose.
    max_norm : float
        Largest Euclidean norm of a spatial filter.
    batch_norm_momentum : float
        Share of the newest batch in the running statistics. braindecode's 0.01 needs several
        hundred steps to forget its start, more than a short training on a small set has;
        ``benchmarks/accuracy/batch_norm_momentum.py`` measures what that costs.
    batch_norm_eps, drop_prob : float
        As in braindecode.
    person_norm : bool
        Train with the statistics of each person in the batch, not of all together, so that training
        agrees with a model that is adapted to somebody new. The running statistics are then the
        mean over people. There is no norm between temporal and spatial filters: both are linear,
        and the next norm takes its place.

    Notes
    -----
    Written for a CPU. The same code runs on a GPU, but was not run or measured on one.

    References
    ----------
    Lawhern et al. (2018), EEGNet: a compact convolutional neural network for EEG-based
    brain-computer interfaces. J. Neural Eng. 15, 056013. doi:10.1088/1741-2552/aace8c

    Examples
    --------
    >>> net = EEGNet(n_channels=8, n_times=128)
    >>> net(torch.zeros(5, 8, 128)).shape
    torch.Size([5, 64])
    """

    conv_temporal: nn.Conv2d
    bnorm_temporal: nn.BatchNorm2d
    conv_spatial: MaxNormConv2d
    bnorm_1: nn.BatchNorm2d
    conv_separable_depth: nn.Conv2d
    conv_separable_point: nn.Conv2d
    bnorm_2: nn.BatchNorm2d

    def __init__(
        self,
        n_channels: int,
        n_times: int,
        *,
        sfreq: float | None = None,
        F1: int = 8,
        D: int = 2,
        F2: int | None = None,
        kernel_length: int | None = None,
        depthwise_kernel_length: int = 16,
        pool1: int = 4,
        pool2: int = 8,
        kernel_seconds: float | None = None,
        max_norm: float = 1.0,
        batch_norm_momentum: float = 0.1,
        batch_norm_eps: float = 1e-3,
        drop_prob: float = 0.25,
        person_norm: bool = False,
    ) -> None:
        super().__init__()
        by_default = kernel_length is None and kernel_seconds is None
        if kernel_seconds is not None:
            kernel_length, pool1 = _in_samples(kernel_seconds, sfreq)
        elif kernel_length is None:
            kernel_length = PAPER_LENGTH
        counts = {
            "n_channels": n_channels,
            "n_times": n_times,
            "F1": F1,
            "D": D,
            "F2": F1 * D if F2 is None else F2,
            "kernel_length": kernel_length,
            "depthwise_kernel_length": depthwise_kernel_length,
            "pool1": pool1,
            "pool2": pool2,
        }
        sizes = {name: as_count(value, name) for name, value in counts.items()}
        numbers = {
            "max_norm": max_norm,
            "batch_norm_momentum": batch_norm_momentum,
            "batch_norm_eps": batch_norm_eps,
        }
        for name, number in numbers.items():
            if not isinstance(number, Real) or not (isfinite(number) and number > 0):
                raise SettingError(f"{name} must be a positive number, not {number!r}.")
        if not 0.0 <= drop_prob < 1.0:
            raise SettingError(f"drop_prob must lie in [0, 1), not {drop_prob}.")
        if not isinstance(person_norm, bool):
            raise SettingError(f"person_norm must be True or False, not {person_norm!r}.")
        self.n_channels, self.n_times = sizes.pop("n_channels"), sizes.pop("n_times")
        self.sfreq = sfreq
        if by_default:
            _warn_if_unfit(n_times, sfreq)
        self.options: dict[str, Any] = {**sizes, **numbers, "drop_prob": drop_prob}
        self.options["person_norm"] = self.person_norm = person_norm
        first = output_length(self.n_times, sizes["kernel_length"]) // sizes["pool1"]
        second = output_length(first, sizes["depthwise_kernel_length"]) // sizes["pool2"]
        if min(first, second) < 1:
            raise WindowTooShortError(
                f"Trials of {n_times} time points are too short for EEGNet with pooling over "
                f"{pool1} and then {pool2}: nothing is left. Use longer windows, or smaller pool1 "
                "and pool2."
            )
        self.n_latent = sizes["F2"] * second
        for name, layer in eegnet_layers(n_channels, **self.options).items():
            # Layers without parameters are computed by the fused form.
            if next(layer.parameters(), None) is not None:
                self.add_module(name, layer)

    # These two are made for the first signals, whose length is then known to be real: what a file
    # says of n_times costs nothing before.

    @cached_property
    def _plan(self) -> Plan:
        return Plan(self.n_times, self.options)

    @cached_property
    def _moments(self) -> WindowMoments:
        return WindowMoments(self.options["kernel_length"], self.n_times)

    def __getstate__(self) -> dict[str, Any]:
        # The plan's buffers belong to this process and object; a copy makes its own.
        return {name: value for name, value in self.__dict__.items() if name != "_plan"}

    def prepare(self, x: Tensor) -> Tensor:
        """Share of each trial in the window moments, which no weight changes.

        Parameters
        ----------
        x : Tensor of shape (B, C, T)

        Returns
        -------
        Tensor of shape (B, stats_size), float64
            Rows to hand to `forward` with their trials.
        """
        return self._moments.per_trial(x)

    adds_up = True
    """Whether only the sum of `prepare` over trials matters, which adds up over channels, too."""

    @property
    def stats_size(self) -> int:
        """Numbers that `prepare` gives for a trial."""
        return self._moments.size

    def forward(
        self, x: Tensor, stats: Tensor | None = None, people: Tensor | None = None
    ) -> Tensor:
        """Encode signals.

        Parameters
        ----------
        x : Tensor of shape (B, C, T)
            Fastest when its memory is laid out channel by channel.
        stats : Tensor of shape (B, stats_size), optional
            ``prepare(x)``, computed before. Only training uses it.
        people : Tensor of int of shape (B,), optional
            The person of each trial. Only training with `person_norm` uses it; without, all trials
            are of one person.

        Returns
        -------
        Tensor of shape (B, n_latent)
        """
        if x.ndim != 3 or x.shape[1:] != (self.n_channels, self.n_times) or len(x) == 0:
            raise ShapeError(
                f"This EEGNet takes trials of {self.n_channels} channels x {self.n_times} time "
                f"points, as an array (trials, channels, times) with at least one trial; it was "
                f"given the shape {tuple(x.shape)}."
            )
        if self.training and self.person_norm:
            return self._train_by_person(x, people)
        if x.device.type != "cpu":
            return self._layers(x)
        if self.training:
            return self._train(x, stats)
        tensors = (x, *self.parameters())
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            return self._differentiable(x)
        return self._infer(x)

    def _train(self, x: Tensor, stats: Tensor | None) -> Tensor:
        """Encode by the fused step and move the running statistics."""
        b, c, t = x.shape
        mean: Any
        covariance: Any
        if x.requires_grad:
            share = self._moments.per_trial(x.reshape(1, b * c, t))[0]
            mean, covariance = self._moments.combine(share, b * c)
        else:
            if stats is None:
                stats = self._moments.per_trial(x.reshape(1, b * c, t))
            elif stats.shape != (b, self.stats_size):
                raise ShapeError(
                    f"stats must be prepare(x) of the same {b} trials, shape "
                    f"{(b, self.stats_size)}, not {tuple(stats.shape)}."
                )
            moments = self._moments.combine(stats.numpy().sum(0), b * c)
            mean, covariance = map(torch.from_numpy, moments)
        return self._step(x, mean, covariance)

    def _step(
        self, x: Tensor, mean: Any = None, covariance: Any = None, people: list[int] | None = None
    ) -> Tensor:
        b, c, _ = x.shape
        norms = (self.bnorm_temporal, self.bnorm_1, self.bnorm_2)
        latent: Tensor
        latent, statistics = FusedStep.apply(  # type: ignore[no-untyped-call]
            x,
            mean,
            covariance,
            self.conv_temporal.weight,
            self.conv_spatial.parametrizations.weight.original,  # type: ignore[union-attr]
            self.conv_separable_depth.weight,
            self.conv_separable_point.weight,
            *(tensor for norm in norms for tensor in (norm.weight, norm.bias)),
            self._plan,
            people,
        )
        n_1, n_2 = b * self._plan.conv1.n_out, b * self._plan.conv2.n_out
        counts = (c * n_1, n_1, n_2)
        for norm, mean, var, n in zip(
            norms, statistics[::2], statistics[1::2], counts, strict=True
        ):
            if norm.track_running_stats:
                _track(norm, mean, var, n)
        return latent

    def _train_by_person(self, x: Tensor, people: Tensor | None) -> Tensor:
        """Encode with norms by the statistics of each person, and move the running ones."""
        if people is None:
            people = torch.zeros(len(x), dtype=torch.int64)
        if people.shape != (len(x),):
            raise ShapeError(
                f"people must name the person of each of {len(x)} trials, not have the shape "
                f"{tuple(people.shape)}."
            )
        names, counts = torch.unique_consecutive(people, return_counts=True)
        if len(names.unique()) < len(names):  # batches come person by person; others are sorted
            order = torch.argsort(people, stable=True).to(x.device)
            return self._train_by_person(x[order], people.sort().values)[torch.argsort(order)]
        if x.device.type == "cpu":
            return self._step(x, people=counts.tolist())
        return self._layers_by_person(x, counts.tolist())

    def _layers_by_person(self, x: Tensor, people: list[int]) -> Tensor:
        """Encode layer by layer, one person after the other: off the CPU."""
        norms = (self.bnorm_1, self.bnorm_2)
        try:
            for norm in norms:  # so that everybody counts about the same in the running statistics
                norm.momentum = self.options["batch_norm_momentum"] / len(people)
            return torch.cat([self._layers(some) for some in torch.split(x, people)])
        finally:
            for norm in norms:
                norm.momentum = self.options["batch_norm_momentum"]

    def observe(self, x: Tensor) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        """Encode in evaluation mode on the CPU, and look at what reaches the batch norms.

        Parameters
        ----------
        x : Tensor of shape (B, C, T)

        Returns
        -------
        latent : Tensor of shape (B, n_latent)
        seen : list of (Tensor, Tensor)
            Mean and mean square of the input of each batch norm that has statistics, for each of
            its channels.
        """
        plan, (b, c, _) = self._plan, x.shape
        with torch.no_grad():
            # The temporal filters first, because the first norm sees every channel: of one trial
            # this is a product with its windows, from which the spatial ones follow.
            length = self.options["kernel_length"]
            padded = functional.pad(x.transpose(0, 1), (length // 2, length // 2))
            filtered = padded.unfold(-1, length, 1).reshape(-1, length)
            filtered = self.conv_temporal.weight.flatten(1) @ filtered.T
            weight = self.conv_spatial.weight.flatten(1)
            u = weight.view(plan.f1, plan.depth, c) @ filtered.view(plan.f1, c, -1)
            seen = [_moments_of(filtered)]
            latent = self._rest(u.view(plan.f, -1), weight, b, seen)
            return latent, seen[1:] if self.person_norm else seen

    @torch.no_grad()
    def _infer(self, x: Tensor) -> Tensor:
        """Encode in evaluation mode: each norm is a scale and a shift by running statistics."""
        plan = self._plan
        weight = self.conv_spatial.weight.flatten(1)
        filters = self.conv_temporal.weight.flatten(1).numpy()
        by_channel = x.transpose(0, 1).reshape(x.shape[1], -1)
        v = (weight @ by_channel).view(plan.f1, -1, self.n_times)
        u = x.new_empty(*v.shape[:2], plan.conv1.n_out)
        plan.conv1.forward(v, filters, u)
        return self._rest(u.view(plan.f, -1), weight, len(x))

    def _rest(
        self,
        u: Tensor,
        weight: Tensor,
        b: int,
        seen: list[tuple[Tensor, Tensor]] | None = None,
    ) -> Tensor:
        """Go on from filtered signals (F, B T'), which are changed in place.

        Parameters
        ----------
        u : Tensor of shape (F, B T')
            After temporal and spatial filters, without the norm between them.
        weight : Tensor of shape (F, C)
            The spatial filters.
        b : int
            Number of trials.
        seen : list, optional
            Gets mean and mean square of what reaches the other norms.
        """
        plan = self._plan
        gain, shift = (a.repeat_interleave(plan.depth) for a in _affine(self.bnorm_temporal))
        scale, offset = _affine(self.bnorm_1)
        constant = shift * weight.sum(1)
        if seen is not None:
            mean, square = _moments_of(u)
            cross = 2 * gain * constant * mean + constant.square()
            seen.append((gain * mean + constant, gain.square() * square + cross))
        u.mul_((scale * gain)[:, None])
        u.add_((scale * constant + offset)[:, None])
        h = u.new_empty(plan.f, b, plan.norm1.n_out)
        plan.norm1.pool(functional.elu_(u).view(plan.f * b, -1), h.view(plan.f * b, -1))
        u = u.new_empty(plan.f, b, plan.conv2.n_out)
        plan.conv2.forward(h, self.conv_separable_depth.weight.flatten(1).numpy(), u)
        u = self.conv_separable_point.weight.flatten(1) @ u.view(plan.f, -1)
        if seen is not None:
            seen.append(_moments_of(u))
        scale, offset = _affine(self.bnorm_2)
        u.mul_(scale[:, None]).add_(offset[:, None])
        h = u.new_empty(plan.f2, b, plan.norm2.n_out)
        plan.norm2.pool(functional.elu_(u).view(plan.f2 * b, -1), h.view(plan.f2 * b, -1))
        return h.transpose(0, 1).flatten(1)

    def _differentiable(self, x: Tensor) -> Tensor:
        """Do the same with gradients, by a third of the time that layers take."""
        plan, b = self._plan, len(x)
        weight = self.conv_spatial.weight.flatten(1)
        gain, shift = (a.repeat_interleave(plan.depth) for a in _affine(self.bnorm_temporal))
        v = (weight @ x.transpose(0, 1).reshape(x.shape[1], -1)).view(plan.f1, -1, self.n_times)
        u = _filtered(v, self.conv_temporal.weight, plan.conv1).reshape(plan.f, -1)
        scale, offset = _affine(self.bnorm_1)
        offset = offset + scale * shift * weight.sum(1)
        h = functional.elu(torch.addcmul(offset[:, None], u, (scale * gain)[:, None]))
        h = _pooled(h.view(plan.f, b, -1), self.options["pool1"])
        u = _filtered(h, self.conv_separable_depth.weight, plan.conv2).reshape(plan.f, -1)
        u = self.conv_separable_point.weight.flatten(1) @ u
        scale, offset = _affine(self.bnorm_2)
        h = functional.elu(torch.addcmul(offset[:, None], u, scale[:, None]))
        h = _pooled(h.view(plan.f2, b, -1), self.options["pool2"])
        return h.transpose(0, 1).flatten(1)

    def _layers(self, x: Tensor) -> Tensor:
        """Encode layer by layer: off the CPU."""
        o, training = self.options, self.training
        by_layers = training and not self.person_norm
        first = self._first_layers if by_layers else self._spatial_first
        h = functional.elu(self.bnorm_1(first(x)))
        h = functional.avg_pool2d(h, (1, o["pool1"]))
        h = functional.dropout(h, o["drop_prob"], training)
        h = self.conv_separable_point(self.conv_separable_depth(h))
        h = functional.elu(self.bnorm_2(h))
        h = functional.avg_pool2d(h, (1, o["pool2"]))
        return functional.dropout(h, o["drop_prob"], training).flatten(1)

    def _first_layers(self, x: Tensor) -> Tensor:
        """Filter every channel, norm, and take the spatial products: (B, F, 1, T')."""
        h: Tensor = self.conv_spatial(self.bnorm_temporal(self.conv_temporal(x[:, None])))
        return h

    def _spatial_first(self, x: Tensor) -> Tensor:
        """Do the same in evaluation mode, where the norm is affine: filters of fewer signals."""
        weight = self.conv_spatial.weight.flatten(1)
        depth, length = self.options["D"], self.options["kernel_length"]
        filters = self.conv_temporal.weight.flatten(1).repeat_interleave(depth, 0)
        gain, shift = (a.repeat_interleave(depth) for a in _affine(self.bnorm_temporal))
        u = functional.conv1d(
            weight @ x, filters[:, None], padding=length // 2, groups=len(filters)
        )
        h: Tensor = (u * gain[:, None] + (shift * weight.sum(1))[:, None])[:, :, None]
        return h

    def literal(self) -> nn.Sequential:
        """Write this encoder out layer by layer, with a copy of its weights."""
        # Layers draw weights when they are made, which must not move the caller's random stream.
        with torch.random.fork_rng(devices=[]):
            layers = eegnet_layers(self.n_channels, **self.options)
        net = nn.Sequential(OrderedDict(layers)).to(self.conv_temporal.weight)
        net.load_state_dict(self.state_dict())
        return net.train(self.training)


def _track(norm: nn.BatchNorm2d, mean: Array, var: Array, n: int) -> None:
    """Move the running statistics of a batch norm, as torch does (unbiased variance).

    By way of numpy and the buffers' own dictionary: through the module this took 0.1 ms a norm.
    """
    buffers = norm._buffers
    new = {"running_mean": mean, "running_var": var * (n / max(n - 1, 1))}
    for name, value in new.items():
        running = buffers[name].numpy()  # type: ignore[union-attr]
        running += norm.momentum * (value - running)
    count = buffers["num_batches_tracked"].numpy()  # type: ignore[union-attr]
    count += 1


def _moments_of(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and mean square of each row, in float64."""
    rows = rows.double()
    return rows.mean(1), rows.square().mean(1)


def _filtered(v: Tensor, weight: Tensor, conv: TemporalConv) -> Tensor:
    """Filter signals (F, n, T) along time."""
    out: Tensor = Filtered.apply(v, weight.flatten(1), conv)  # type: ignore[no-untyped-call]
    return out


def _pooled(h: Tensor, pool: int) -> Tensor:
    """Average windows of time; what fills no whole window is left out."""
    n = h.shape[-1] // pool
    return h[..., : n * pool].reshape(*h.shape[:-1], n, pool).mean(-1)


def _affine(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """Scale and shift of a batch norm in evaluation mode."""
    mean, var = norm.running_mean, norm.running_var
    assert mean is not None
    assert var is not None
    scale = norm.weight * torch.rsqrt(var + norm.eps)
    return scale, norm.bias - scale * mean


def _in_samples(kernel_seconds: float, sfreq: float | None) -> tuple[int, int]:
    """Length of the temporal filters and first pooling window, in samples."""
    if sfreq is None:
        raise SettingError(
            "kernel_seconds needs the sampling rate: give sfreq (in Hz), or kernel_length in "
            "samples."
        )
    if kernel_seconds <= 0:
        raise SettingError(f"kernel_seconds must be positive, not {kernel_seconds}.")
    return max(1, round(kernel_seconds * sfreq)), max(1, round(sfreq * 4 / PAPER_RATE))


def _warn_if_unfit(n_times: int, sfreq: float | None) -> None:
    """Say when EEGNet's default of 64 samples is not half a second, or not within the window."""
    if sfreq is not None and not 1 / 1.6 <= sfreq / PAPER_RATE <= 1.6:
        warnings.warn(
            f"EEGNet's default temporal filter of 64 samples is half a second at 128 Hz, but "
            f"{64 / sfreq:.3g} s at your {sfreq:g} Hz. Say what you want: kernel_seconds=0.5 for "
            "the paper's, or kernel_length in samples.",
            KernelLengthWarning,
            stacklevel=3,
        )
    elif n_times < PAPER_LENGTH:
        warnings.warn(
            f"EEGNet's default temporal filter of 64 samples is longer than the trials "
            f"({n_times} time points). Give a smaller kernel_length (or kernel_seconds).",
            KernelLengthWarning,
            stacklevel=3,
        )
