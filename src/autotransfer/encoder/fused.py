"""One training step of EEGNet's encoder as a single differentiable function, for a CPU.

Signals are laid out (filter, trial, time): a batch-norm channel is then one contiguous row, and
every matrix product is a single one. The gradient is written by hand, products are torch's and
the rest is numpy on the same memory, because a step of so small a network spends its time not in
arithmetic but in memory traffic and the overhead of operations: left to autograd, the same steps
took twice as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from autotransfer.data.trials import Array
from autotransfer.encoder.norm_pool import BatchNormEluPool, NormEluPool
from autotransfer.encoder.temporal import TemporalConv


class Plan:
    """What a step of an EEGNet needs that depends on its sizes alone, and its buffers.

    Parameters
    ----------
    n_times : int
        Length T of the signals.
    options : dict
        Of `autotransfer.encoder.EEGNet`.
    """

    def __init__(self, n_times: int, options: dict[str, Any]) -> None:
        o = options
        self.f1, self.depth, self.f2 = o["F1"], o["D"], o["F2"]
        self.f = self.f1 * self.depth
        self.max_norm, self.drop_prob = o["max_norm"], o["drop_prob"]
        self.eps = eps = o["batch_norm_eps"]
        self.conv1 = TemporalConv(self.f1, n_times, o["kernel_length"])
        self.norm1 = NormEluPool(self.conv1.n_out, o["pool1"], eps)
        self.conv2 = TemporalConv(self.f, max(1, self.norm1.n_out), o["depthwise_kernel_length"])
        self.norm2 = NormEluPool(self.conv2.n_out, o["pool2"], eps)
        self.dropout = DropoutBits()
        self.free: list[Arena] = []

    def shapes(self, b: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the buffers for b trials."""
        f, f2, t = self.f, self.f2, self.conv1.n_times
        t1, p1, t2, p2 = self.conv1.n_out, self.norm1.n_out, self.conv2.n_out, self.norm2.n_out
        long, short = (f, b * t1), (f2, b * t2)
        return {
            "v": (f, b * t), "u1": long, "q1": long, "e1": long, "h1": (f * b, p1),
            "mask1": (f * b, p1), "d": (f, b * t2), "u2": short, "q2": short, "e2": short,
            "h2": (f2 * b, p2), "mask2": (f2 * b, p2), "grad u1": long, "grad u2": short,
            "grad v": (f, b * t), "grad h1": (f * b, p1), "grad d": (f, b * t2),
        }  # fmt: skip


class Arena:
    """Buffers of one step, used again by a later one.

    New memory costs a page fault for every 4 KiB (2.5 us each on a virtual machine, several times
    what an elementwise operation then needs), so it is kept. A smaller batch uses the front.
    """

    def __init__(self) -> None:
        self.capacity = 0
        self.dtype = torch.float32
        self._flat: dict[str, Tensor] = {}
        self._views: dict[int, Buffers] = {}

    def buffers(self, plan: Plan, b: int, dtype: torch.dtype) -> Buffers:
        """Buffers for b trials, with arbitrary contents."""
        if b > self.capacity or dtype != self.dtype:
            self.capacity, self.dtype = b, dtype
            self._views.clear()
            # Memory made under torch.inference_mode could not be written to in a later step.
            with torch.inference_mode(False):
                self._flat = {
                    name: torch.empty(shape[0] * shape[1], dtype=dtype)
                    for name, shape in plan.shapes(b).items()
                }
        if b not in self._views:
            if len(self._views) >= 64:
                self._views.clear()
            with torch.inference_mode(False):
                self._views[b] = Buffers(self._flat, plan, b)
        return self._views[b]


class Buffers:
    """Views of an arena for one batch size: ``t[name]`` as tensor, ``a[name]`` as array."""

    def __init__(self, flat: dict[str, Tensor], plan: Plan, b: int) -> None:
        self.t = {name: flat[name][: s[0] * s[1]].view(s) for name, s in plan.shapes(b).items()}
        self.a = {name: tensor.numpy() for name, tensor in self.t.items()}
        # As the temporal convolutions see them: filter, signal, time.
        self.conv = {
            name: self.t[name].view(n, -1, length)
            for n, length, names in (
                (plan.f1, plan.conv1.n_times, ("v", "grad v")),
                (plan.f1, plan.conv1.n_out, ("u1", "grad u1")),
                (plan.f, plan.conv2.n_times, ("h1", "grad h1")),
                (plan.f, plan.conv2.n_out, ("d", "grad d")),
            )
            for name in names
        }


class Lease:
    """Hold an arena until the step's graph is gone, so that ``retain_graph`` stays right."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.arena = plan.free.pop() if plan.free else Arena()

    def __del__(self) -> None:
        if len(self._plan.free) < 4:
            self._plan.free.append(self.arena)


def limit_norm(weight: Array, max_norm: float) -> tuple[Array, Array]:
    """Scale filters (F, C) down to a norm of at most `max_norm`; returns the norms (F, 1) too.

    As ``torch.renorm``, whose guard of 1e-7 it keeps.
    """
    norm = np.sqrt(np.vecdot(weight, weight))[:, None]
    return weight * np.where(norm > max_norm, max_norm / (norm + 1e-7), 1.0), norm


def limit_norm_gradient(grad: Array, weight: Array, norm: Array, max_norm: float) -> Array:
    """Gradient of `limit_norm`."""
    inv = 1 / (norm + 1e-7)
    along = np.vecdot(grad, weight)[:, None] * weight / np.maximum(norm, 1e-30)
    return np.where(norm > max_norm, (grad - along * inv) * (max_norm * inv), grad)


class DropoutBits:
    """Dropout masks drawn 16 bits at a time from a generator seeded by torch's.

    0.15 ms for 51,000 values where ``torch.bernoulli`` takes 1 ms.
    """

    def __init__(self) -> None:
        self._source = np.random.SFC64(0)
        self._random = np.random.Generator(self._source)

    def fill(self, p: float, *masks: Array) -> None:
        """Fill arrays: 0 with probability p (to a multiple of 2**-16), else 1 / (1 - p)."""
        seed = torch.empty(3, dtype=torch.int64).random_(-(2**63), None).numpy().view(np.uint64)
        state = self._source.state
        # 192 random bits and the counter are the whole state of SFC64.
        state["state"]["state"] = np.append(seed, np.uint64(1))
        self._source.state = {**state, "has_uint32": 0}
        dropped = min(round(p * 65536), 65535)
        for mask in masks:
            words = (mask.size + 3) // 4
            bits = self._random.integers(2**64 - 1, size=words, dtype=np.uint64, endpoint=True)
            keep = bits.view(np.uint16)[: mask.size].reshape(mask.shape) >= dropped
            np.multiply(keep, mask.dtype.type(65536 / (65536 - dropped)), out=mask)


class FusedStep(torch.autograd.Function):
    """EEGNet's encoder in training mode: signals (B, C, T) to latents and batch statistics.

    ``apply(x, mean, covariance, <4 weights>, <weight and bias of 3 norms>, plan, people)``, with
    the moments of `autotransfer.encoder.moments`, gives the latents, and the mean and variance of
    each of the three batch norms' inputs. With `people`, how many trials in a row are of each, the
    moments are None, the first norm is left out, and the others go by person; their statistics are
    then the mean over people.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, mean: Any, covariance: Any, *rest: Any) -> Any:
        """Encode a batch."""
        *parameters, plan, people = rest
        shapes = [p.shape for p in parameters[:4]]
        arrays = [p.detach().numpy() for p in parameters]
        filters, spatial, depthwise, pointwise = (w.reshape(len(w), -1) for w in arrays[:4])
        weight_t, bias_t, weight_1, bias_1, weight_2, bias_2 = arrays[4:]
        b, c, t = x.shape
        lease = Lease(plan)
        buffers = lease.arena.buffers(plan, b, x.dtype)
        tensor, array, conv = buffers.t, buffers.a, buffers.conv

        if people is None:
            # Batch norm of the temporal filters' output, from the moments of the windows.
            h = filters.astype(np.float64)
            h_cov = h @ covariance.detach().numpy()
            var_t, mean_t = np.vecdot(h_cov, h), h @ mean.detach().numpy()
            inv_t = 1 / np.sqrt(var_t + plan.eps)
            gain_t = (weight_t * inv_t).astype(filters.dtype)
        else:
            h = h_cov = None
            mean_t, var_t = np.zeros_like(weight_t), np.ones_like(weight_t)
            inv_t = gain_t = var_t
        gain = gain_t.repeat(plan.depth)

        # Spatial first, temporal after.
        w, norm = limit_norm(spatial, plan.max_norm)
        w = w.astype(spatial.dtype, copy=False)
        by_channel = x.detach().transpose(0, 1).reshape(c, b * t)
        torch.mm(torch.from_numpy(w), by_channel, out=tensor["v"])
        plan.conv1.forward(conv["v"], filters, conv["u1"])
        work = (array["u1"], array["q1"], array["e1"])
        own_1 = BatchNormEluPool(plan.norm1, people)
        mean_1, var_1 = own_1.forward(work, gain, weight_1, bias_1)
        plan.norm1.pool(tensor["e1"].view(plan.f * b, -1), tensor["h1"])
        array["h1"] -= 1
        if plan.drop_prob > 0:
            plan.dropout.fill(plan.drop_prob, array["mask1"], array["mask2"])
            array["h1"] *= array["mask1"]

        plan.conv2.forward(conv["h1"], depthwise, conv["d"])
        torch.mm(torch.from_numpy(pointwise), tensor["d"], out=tensor["u2"])
        work = (array["u2"], array["q2"], array["e2"])
        own_2 = BatchNormEluPool(plan.norm2, people)
        mean_2, var_2 = own_2.forward(work, np.ones_like(weight_2), weight_2, bias_2)
        plan.norm2.pool(tensor["e2"].view(plan.f2 * b, -1), tensor["h2"])
        array["h2"] -= 1
        if plan.drop_prob > 0:
            array["h2"] *= array["mask2"]
        z = tensor["h2"].view(plan.f2, b, -1).transpose(0, 1)
        # A copy always: for one trial or one filter a reshape would be a view of the buffer.
        z = z.clone(memory_format=torch.contiguous_format).view(b, -1)

        # What the second batch norm sees: gain u + shift of the first, summed over channels.
        shift = (bias_t - gain_t * mean_t).repeat(plan.depth) * w.sum(1) if people is None else 0.0
        statistics = (mean_t, var_t, gain * mean_1 + shift, gain * gain * var_1, mean_2, var_2)
        ctx.lease, ctx.plan, ctx.buffers, ctx.shapes = lease, plan, buffers, shapes
        ctx.norms = (own_1, own_2)
        ctx.weights = (filters, spatial, depthwise, pointwise, weight_t)
        ctx.kept = (by_channel, h, h_cov, inv_t, w, norm)
        # Saved only for autograd's check that nothing is changed between forward and backward.
        ctx.save_for_backward(x, *parameters)
        return z, statistics

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, *_: Any) -> Any:
        """Gradients of the signals, the covariance and every parameter."""
        _ = ctx.saved_tensors
        plan, tensor, array, conv = ctx.plan, ctx.buffers.t, ctx.buffers.a, ctx.buffers.conv
        own_1, own_2 = ctx.norms
        filters, spatial, depthwise, pointwise, weight_t = ctx.weights
        by_channel, h, h_cov, inv_t, w, norm = ctx.kept
        b = len(grad)

        grad_h2 = grad.reshape(b, plan.f2, -1).transpose(0, 1).reshape(plan.f2 * b, -1)
        if plan.drop_prob > 0:
            grad_h2 = grad_h2 * tensor["mask2"]
        plan.norm2.spread(grad_h2, tensor["grad u2"].view(plan.f2 * b, -1))
        work = (array["grad u2"], array["u2"], array["q2"], array["e2"])
        _, grad_w2, grad_b2 = own_2.backward(work)
        # (a b')' is b a' with the long side first: up to 4 times faster in all such products.
        grad_pointwise = (tensor["d"] @ tensor["grad u2"].mT).mT
        torch.mm(torch.from_numpy(pointwise).mT, tensor["grad u2"], out=tensor["grad d"])
        grad_depthwise = plan.conv2.filter_gradient(conv["grad d"], conv["h1"])
        plan.conv2.signal_gradient(conv["grad d"], depthwise, conv["grad h1"])

        if plan.drop_prob > 0:
            array["grad h1"] *= array["mask1"]
        plan.norm1.spread(tensor["grad h1"], tensor["grad u1"].view(plan.f * b, -1))
        work = (array["grad u1"], array["u1"], array["q1"], array["e1"])
        grad_gain, grad_w1, grad_b1 = own_1.backward(work)
        grad_filters = plan.conv1.filter_gradient(conv["grad u1"], conv["v"])
        plan.conv1.signal_gradient(conv["grad u1"], filters, conv["grad v"])
        grad_w = (by_channel @ tensor["grad v"].mT).mT.numpy()
        grad_spatial = limit_norm_gradient(grad_w, spatial, norm, plan.max_norm)

        grad_gain = grad_gain.reshape(plan.f1, -1).sum(1)
        if h is None:
            grad_gain = np.zeros_like(weight_t)
        else:
            # gain = weight_t (h' cov h + eps)^(-1/2), shared by the spatial filters of h.
            grad_var = -0.5 * grad_gain * weight_t * inv_t**3
            grad_filters += 2 * grad_var[:, None] * h_cov
        grad_x = grad_cov = None
        if ctx.needs_input_grad[0]:
            grad_x = torch.from_numpy(w).mT @ tensor["grad v"]
            grad_x = grad_x.view(-1, b, plan.conv1.n_times).transpose(0, 1)
        if ctx.needs_input_grad[2]:
            grad_cov = torch.from_numpy((h * grad_var[:, None]).T @ h)
        # The shift of the first batch norm is taken away by the second: no gradient.
        grads = (
            *(grad_filters, grad_spatial, grad_depthwise, grad_pointwise.numpy()),
            *(grad_gain * inv_t, np.zeros_like(weight_t), grad_w1, grad_b1, grad_w2, grad_b2),
        )
        tensors = [torch.from_numpy(g.astype(filters.dtype, copy=False)) for g in grads]
        for i, shape in enumerate(ctx.shapes):
            tensors[i] = tensors[i].reshape(shape)
        return grad_x, None, grad_cov, *tensors, None, None
