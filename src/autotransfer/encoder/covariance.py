"""Covariances of the channels in tangent space: the field's classical pipeline as an encoder.

Nothing before the norm is learned, so what a trial gives is computed once for a whole training.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from autotransfer.errors import SettingError, ShapeError

BAND, LOWEST, HIGHEST = 4.0, 4.0, 40.0
"""Width of the bands of "auto", and where they begin and end, in Hz."""

MOST_CHANNELS = 24
"""With more channels "auto" has no bands: there would be more numbers than trials."""

SQUARE_ROOTS, TERMS = 5, 12
"""Of the logarithm by products: of matrices whose eigenvalues are from 1e-4 to 1, the error is
below 1e-4 (tests/encoder/test_covariance.py)."""


class CovarianceNet(nn.Module):
    r"""Logarithms of covariance matrices, of the whole signal and of bands of it, and a norm.

    With the centred signals x of a trial, (C, T), and W_b the cosines and sines of the frequencies
    of a band, under a Hann window,

        S = (1 - a) x x' / T + a tr(x x' / T) / C I,    z = dropout(norm(triangle(log S)))

    and likewise of every ``x W_b``. `triangle` takes the entries on and above the diagonal, those
    above times the square root of 2, so that distances stay what they were. The mean that the norm
    takes away is the log-Euclidean mean of the training trials; adapted statistics put that of the
    new person in its place.

    Parameters
    ----------
    n_channels, n_times : int
        Shape of a trial.
    sfreq : float, optional
        Sampling rate in Hz; bands need it.
    bands : "auto", None or sequence of (low, high)
        Bands in Hz beside the whole signal. "auto" has bands of 4 Hz from 4 to 40 Hz, as far as the
        sampling rate reaches, and none where that is not known or there are more than 24 channels.
    bins : sequence of (first, last), optional
        The same in cycles of a trial, from the first to before the last, instead of `bands`: what a
        model folder keeps.
    shrinkage : float
        The share a of the identity, above 0 and at most 1.
    drop_prob : float
        Of dropout.

    References
    ----------
    Barachant et al. (2012), Multiclass brain-computer interface classification by Riemannian
    geometry. IEEE Trans. Biomed. Eng. 59, 920-928. Arsigny et al. (2007), Geometric means in a
    novel vector space structure on symmetric positive-definite matrices. SIAM J. Matrix Anal. Appl.
    29, 328-347.

    Examples
    --------
    >>> net = CovarianceNet(n_channels=4, n_times=128, sfreq=128.0)
    >>> net.n_latent  # ten matrices of ten different entries
    100
    >>> net(torch.randn(3, 4, 128)).shape
    torch.Size([3, 100])
    """

    waves: Tensor
    rows: Tensor
    columns: Tensor
    scale: Tensor

    def __init__(
        self,
        n_channels: int,
        n_times: int,
        sfreq: float | None = None,
        *,
        bands: Literal["auto"] | Sequence[tuple[float, float]] | None = "auto",
        bins: Sequence[tuple[int, int]] | None = None,
        shrinkage: float = 0.05,
        drop_prob: float = 0.25,
    ) -> None:
        super().__init__()
        self.n_channels, self.n_times = n_channels, n_times
        if not 0.0 < shrinkage <= 1.0:
            raise SettingError(f"shrinkage must be above 0 and at most 1, not {shrinkage}.")
        if not 0.0 <= drop_prob < 1.0:
            raise SettingError(f"drop_prob must lie in [0, 1), not {drop_prob}.")
        self.shrinkage = shrinkage
        if bins is None:
            bins = _bins(bands, n_channels, n_times, sfreq)
        self.bins = [(int(first), int(last)) for first, last in bins]
        if any(not 0 < first < last <= (n_times + 1) // 2 for first, last in self.bins):
            raise SettingError(
                f"bins are pairs of whole numbers from 1 to {(n_times + 1) // 2}, not {self.bins}."
            )
        self.options: dict[str, Any] = {
            **{"bands": None, "bins": [list(pair) for pair in self.bins]},
            **{"shrinkage": shrinkage, "drop_prob": drop_prob},
        }
        rows, columns = torch.triu_indices(n_channels, n_channels)
        self.n_latent = (1 + len(self.bins)) * len(rows)
        # Known from the options: a model folder need not hold them.
        for name, values in (
            ("waves", _waves(self.bins, n_times)),
            ("rows", rows),
            ("columns", columns),
            ("scale", torch.where(rows == columns, 1.0, 2**0.5)),
        ):
            self.register_buffer(name, values, persistent=False)
        self.norm = nn.BatchNorm1d(self.n_latent)
        self.drop = nn.Dropout(drop_prob)
        self._by_products = False

    @property
    def stats_size(self) -> int:
        """Numbers that `prepare` gives for a trial."""
        return self.n_latent

    def prepare(self, x: Tensor) -> Tensor:
        """Give what reaches the norm, which no weight changes: (B, stats_size), float64."""
        with torch.no_grad():
            return self._logarithms(x).double()

    def forward(self, x: Tensor, stats: Tensor | None = None) -> Tensor:
        """Encode signals.

        Parameters
        ----------
        x : Tensor of shape (B, C, T)
        stats : Tensor of shape (B, stats_size), optional
            ``prepare(x)``, computed before.

        Returns
        -------
        Tensor of shape (B, n_latent)
        """
        found = self._logarithms(x) if stats is None else stats.to(x.dtype)
        z: Tensor = self.drop(self.norm(found))
        return z

    def exported(self) -> CovarianceNet:
        """Make itself fit for ONNX, which has no eigenvalues: logarithms by matrix products."""
        self._by_products = True
        return self

    def _logarithms(self, x: Tensor) -> Tensor:
        if x.ndim != 3 or x.shape[1] != self.n_channels or x.shape[2] != self.n_times:
            raise ShapeError(
                f"This encoder takes trials of {self.n_channels} channels x {self.n_times} time "
                f"points, as an array (trials, channels, times); it was given the shape "
                f"{tuple(x.shape)}."
            )
        x = x - x.mean(2, keepdim=True)
        matrices = [x @ x.mT / self.n_times]
        if self.bins:
            inside = x[:, None] @ self.waves
            matrices.append(inside @ inside.mT / self.n_times)
        S = torch.cat([matrices[0][:, None], *matrices[1:]], 1)
        size = torch.diagonal(S, dim1=-2, dim2=-1).mean(-1)[..., None, None]
        eye = torch.eye(self.n_channels, dtype=x.dtype, device=x.device)
        # The least number keeps a trial without any signal finite.
        S = (1 - self.shrinkage) * S + (self.shrinkage * size + 1e-12) * eye
        logs: Tensor = log_by_products(S) if self._by_products else _Log.apply(S)  # type: ignore[no-untyped-call]
        triangle: Tensor = logs[..., self.rows, self.columns] * self.scale
        return triangle.flatten(1)


def auto_bands(n_channels: int, n_times: int, sfreq: float | None) -> list[tuple[float, float]]:
    """List the bands of "auto", in Hz."""
    if sfreq is None or n_channels > MOST_CHANNELS or n_times / sfreq * BAND < 2:
        return []
    lows = np.arange(LOWEST, min(HIGHEST, 0.45 * sfreq) - BAND + 1e-9, BAND)
    return [(float(low), float(low + BAND)) for low in lows]


def _bins(
    bands: Literal["auto"] | Sequence[tuple[float, float]] | None,
    n_channels: int,
    n_times: int,
    sfreq: float | None,
) -> list[tuple[int, int]]:
    """Turn bands in Hz into cycles in a trial: from the first to before the last."""
    if bands is None:
        return []
    if isinstance(bands, str):
        if bands != "auto":
            raise SettingError(f'bands is "auto", None, or pairs of Hz, not {bands!r}.')
        bands = auto_bands(n_channels, n_times, sfreq)
    if not bands:
        return []
    if sfreq is None:
        raise SettingError("bands needs the sampling rate: give sfreq (in Hz), or bands=None.")
    found = []
    for low, high in bands:
        first, last = (math.ceil(edge * n_times / sfreq - 1e-9) for edge in (low, high))
        if not 0 < low < high <= sfreq / 2 or first == last:
            raise SettingError(
                f"A band lies between 0 and half the sampling rate ({sfreq / 2:g} Hz) and holds at "
                f"least one of the frequencies of a trial, which are {sfreq / n_times:g} Hz apart; "
                f"{low:g} to {high:g} Hz is none."
            )
        found.append((first, last))
    return found


def _waves(bins: Sequence[tuple[int, int]], n_times: int) -> Tensor | None:
    """Make cosines and sines of each band: (bands, T, 2 x most frequencies), zeros where fewer."""
    if not bins:
        return None
    made = np.zeros((len(bins), n_times, 2 * max(last - first for first, last in bins)))
    time, window = np.arange(n_times), np.hanning(n_times + 2)[1:-1]
    window = window * np.sqrt(2 / np.square(window).mean() / n_times)
    for band, (first, last) in enumerate(bins):
        angles = 2 * np.pi * np.outer(time, np.arange(first, last)) / n_times
        both = np.hstack([np.cos(angles), np.sin(angles)]) * window[:, None]
        made[band, :, : both.shape[1]] = both
    return torch.from_numpy(made).float()


class _Log(torch.autograd.Function):
    """Logarithm of symmetric positive definite matrices; equal eigenvalues do no harm to gradients.

    By the formula of Daleckii and Krein: with S = U diag(s) U', the gradient is
    ``U (L * (U' G U)) U'`` where ``L_ij = (log s_i - log s_j) / (s_i - s_j)``, and ``1 / s_i``
    where both are equal. That of `torch.linalg.eigh` divides by their difference.
    """

    @staticmethod
    def forward(ctx: Any, S: Tensor) -> Any:
        values, vectors = torch.linalg.eigh(S)
        values = values.clamp_min(torch.finfo(S.dtype).tiny)
        ctx.save_for_backward(values, vectors)
        return (vectors * values.log().unsqueeze(-2)) @ vectors.mT

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        values, vectors = ctx.saved_tensors
        ratio = values.unsqueeze(-1) / values.unsqueeze(-2)
        # log(a) - log(b) over a - b, by its power series where a and b are nearly equal.
        apart = ratio - 1
        close = apart.abs() < 1e-4
        safe = torch.where(close, torch.ones_like(apart), apart)
        quotient = torch.where(close, 1 - apart / 2 + apart**2 / 3, ratio.log() / safe)
        inner = vectors.mT @ ((grad + grad.mT) / 2) @ vectors
        return vectors @ (quotient / values.unsqueeze(-2) * inner) @ vectors.mT


def log_by_products(S: Tensor) -> Tensor:
    """Logarithm of symmetric positive definite matrices (..., C, C) by products alone.

    The matrix is divided by its trace, square roots of square roots are taken (Newton and Schulz),
    and of what is then near the identity the power series of the logarithm. Slower and less exact
    than eigenvalues; for formats that have none.

    References
    ----------
    Higham (2008), Functions of Matrices, chapters 6 and 11. SIAM.
    """
    eye = torch.eye(S.shape[-1], dtype=S.dtype, device=S.device)
    trace = (S * eye).sum((-2, -1))[..., None, None]
    root = S / trace
    for number in range(SQUARE_ROOTS):
        root = _square_root(root, eye, 18 if number == 0 else 12)  # the first has furthest to go
    apart = eye - root
    power, total = apart, apart
    for k in range(2, TERMS + 1):
        power = power @ apart
        total = total + power / k
    found: Tensor = trace.log() * eye - 2**SQUARE_ROOTS * total
    return found


def _square_root(S: Tensor, eye: Tensor, steps: int) -> Tensor:
    """Square root of matrices whose eigenvalues are above 0 and at most 1."""
    root, inverse = S, eye.expand_as(S)
    for _ in range(steps):
        half = (3 * eye - inverse @ root) / 2
        root, inverse = root @ half, half @ inverse
    return root
