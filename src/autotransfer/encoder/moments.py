"""Window moments: what a temporal filter's batch statistics need, without applying the filter.

The output of filter h over all channels, trials and times has mean ``h . m`` and variance
``h' (R - m m') h``, where m_k and R_kl are the mean of ``xp[t + k]`` and ``xp[t + k] xp[t + l]``
over (trial, channel, t) and xp is the zero-padded signal. m and R do not depend on the filter, so
each trial's share is computed once for a whole data set (`WindowMoments.per_trial`).

A trial's share is not K x K numbers. Were the signal endless, R_kl would depend on k - l alone;
it differs only by the products that fall off the two ends of the window:

    R_kl = r_|k-l| - (left end, for k, l > p) - (right end, for k, l < K - 1 - p),   p = K // 2

which takes K + (q^2 + q) numbers with q = K - 1 - p: for K = 64, 1,056 and not 4,096.
"""

from __future__ import annotations

from typing import Any

import torch
from scipy.fft import next_fast_len
from torch import Tensor

from autotransfer.encoder.temporal import output_length


class WindowMoments:
    """First and second moments of the windows of zero-padded signals.

    Parameters
    ----------
    kernel_length, n_times : int
        Filter length K and signal length T.
    """

    def __init__(self, kernel_length: int, n_times: int) -> None:
        k = kernel_length
        self.kernel_length, self.n_times = k, n_times
        self.n_out = output_length(n_times, k)
        self.edge = q = k - 1 - k // 2
        self.n_fft = int(next_fast_len(n_times + k - 1, real=True))
        # Products at an end are wanted by lag d = b - a: position (a, a + d) of the q x q products
        # padded to q x 2q, then the upper triangle a + d < q of the result.
        every = torch.arange(q)
        self._skew = every[:, None] * (2 * q + 1) + every
        a, b = torch.triu_indices(q, q)
        d = b - a
        self._triangle = a * q + d
        self.size = k + 2 * len(a) + 1 + 2 * q + 1
        self._total = k + 2 * len(a)
        second, second_edge = self._second_index(a, d)
        self._index = (second, second_edge, self._first_index())
        self._index_array = tuple(index.numpy() for index in self._index)

    def _second_index(self, a: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
        """Where R_kl's endless part and its correction lie in a packed share."""
        k, q = self.kernel_length, self.edge
        i = torch.arange(k)
        lag = (i[:, None] - i[None, :]).abs()
        zero = self.size - 1
        position = torch.full((q, q), zero)
        position[a, a + d] = k + torch.arange(len(a))
        position = torch.minimum(position, position.mT)
        edge = torch.full((k, k), zero)
        if q:
            p = k // 2
            edge[p + 1 :, p + 1 :] = position
            # The right end is stored in reversed time.
            edge[:q, :q] = torch.where(position < zero, position + len(a), position).flip(0, 1)
        return lag.flatten(), edge.flatten()

    def _first_index(self) -> Tensor:
        """Where the parts of m_k that fall off an end lie in a packed share."""
        k, q, p = self.kernel_length, self.edge, self.kernel_length // 2
        edge = torch.full((k,), self.size - 1)
        edge[p + 1 :] = self._total + 1 + torch.arange(q)
        edge[:q] = self._total + 1 + q + torch.arange(q).flip(0)
        return edge

    def per_trial(self, x: Tensor) -> Tensor:
        """Share of each trial, summed over its channels and times.

        Parameters
        ----------
        x : Tensor of shape (B, C, T)
            Signals; computed in float64 whatever their dtype, so that an offset of the signal
            does not swallow its variance.

        Returns
        -------
        Tensor of shape (B, size), float64
        """
        x = x.double()
        q = self.edge
        spectrum = torch.fft.rfft(x, self.n_fft)
        power = (spectrum.real.square() + spectrum.imag.square()).sum(1)
        parts = [torch.fft.irfft(power, self.n_fft)[:, : self.kernel_length]]
        sums = [x.sum((1, 2))[:, None]]
        for end in (x[..., :q], x.flip(-1)[..., :q]):
            # A window shorter than q has nothing beyond it: zeros.
            end = torch.nn.functional.pad(end, (0, q - end.shape[-1]))
            products = torch.nn.functional.pad(end.mT @ end, (0, q)).flatten(1)
            by_lag = products[:, self._skew].cumsum(1)
            parts.append(by_lag.flatten(1)[:, self._triangle])
            sums.append(end.sum(1).cumsum(-1))
        return torch.cat([*parts, *sums, x.new_zeros(len(x), 1)], 1)

    def combine(self, share: Any, n_signals: int) -> tuple[Any, Any]:
        """Turn a sum of shares into moments.

        Parameters
        ----------
        share : Tensor or array of shape (size,)
            Sum of the shares of the trials. An array is faster; a tensor keeps the graph.
        n_signals : int
            Number of trials times channels in that sum.

        Returns
        -------
        mean : Tensor or array of shape (K,)
        covariance : Tensor or array of shape (K, K)
            ``R - m m'``.
        """
        k = self.kernel_length
        index = self._index if isinstance(share, Tensor) else self._index_array
        second, second_edge, first_edge = index
        share = share / (n_signals * self.n_out)
        mean = share[self._total] - share.take(first_edge)
        moment = (share.take(second) - share.take(second_edge)).reshape(k, k)
        return mean, moment - mean[:, None] * mean
