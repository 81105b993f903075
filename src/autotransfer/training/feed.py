"""Batches of normalised signals, with what the encoder prepared for them.

Where the trials fit the memory budget they are normalised once and kept; where they do not, each
batch is read and normalised when it is drawn. Nothing else in the house knows which.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from autotransfer.data.normalise import Normaliser
from autotransfer.data.trials import Array, Index, TrialArray
from autotransfer.encoder.network import Network


class Feed:
    """Supply of trials for a network, by trial number.

    Parameters
    ----------
    X : TrialArray of shape (n_all, C, T)
        Signals.
    trials : array of int
        Trials that will be asked for.
    normaliser : Normaliser
        Already fitted.
    network : Network
        Whose encoder may prepare statistics.
    device : torch.device
        Where batches go.
    memory_budget : int
        Bytes that may be kept. The choice depends on this and the data alone, not on the machine,
        so that a run repeats bit for bit elsewhere.
    statistics : bool
        Whether the encoder prepares statistics. Those of signals that are changed before they
        reach it would be wrong; see `autotransfer.training.augment.keeps_statistics`.
    subject : array of shape (n_all,), optional
        The person of each trial, for normalisers that go by person.

    Notes
    -----
    Kept signals are laid out by channel (C, n, T): the encoder's spatial filters are then one
    matrix product without a copy. A batch is a (B, C, T) view of that.
    """

    def __init__(
        self,
        X: TrialArray,
        trials: Index,
        normaliser: Normaliser,
        network: Network,
        device: torch.device,
        memory_budget: int,
        statistics: bool = True,
        subject: Array | None = None,
    ) -> None:
        self._X, self._normaliser, self._device = X, normaliser, device
        self._subject = subject if normaliser.by_person else None
        _, channels, times = X.shape
        # Statistics serve the CPU's fused step only.
        prepares = statistics and network.prepares and device.type == "cpu"
        prepare = network.encoder.prepare if prepares else None
        per_trial = 4 * channels * times
        if prepare is not None:
            per_trial += 8 * int(network.encoder.stats_size)  # type: ignore[arg-type]
        self.kept = per_trial * len(trials) <= memory_budget
        if not self.kept:
            return
        self._row = np.full(len(X), -1, np.int64)
        self._row[trials] = np.arange(len(trials))
        self._x = torch.empty(channels, len(trials), times, device=device)
        self._stats: Tensor | None = None
        if prepare is not None:
            size = int(network.encoder.stats_size)  # type: ignore[arg-type]
            self._stats = torch.empty(len(trials), size, dtype=torch.float64)
        for start, block in X.take(trials).chunks():
            x = self._normalised(block, trials[start : start + len(block)])
            self._x[:, start : start + len(x)] = x.transpose(0, 1).to(device)
            if self._stats is not None and prepare is not None:
                for i in range(0, len(x), 256):  # in pieces: transforms in float64 take memory
                    piece = prepare(x[i : i + 256])  # type: ignore[operator]
                    self._stats[start + i : start + i + len(piece)] = piece

    def _normalised(self, block: Array, trials: Index) -> Tensor:
        people = None if self._subject is None else self._subject[trials]
        return torch.from_numpy(self._normaliser.transform(block, people))

    def signals(self, trials: Index) -> Tensor:
        """Signals (B, C, T) of some trials."""
        if self.kept:
            rows = torch.from_numpy(self._row[trials]).to(self._device)
            return self._x.index_select(1, rows).transpose(0, 1)
        block = self._normalised(self._X[trials], trials)
        return block.to(self._device, non_blocking=True)

    def batch(self, trials: Index) -> tuple[Tensor, Tensor | None]:
        """Signals (B, C, T) and prepared statistics (B, S), if any, of some trials."""
        if not self.kept or self._stats is None:
            return self.signals(trials), None
        rows = torch.from_numpy(self._row[trials])
        return self.signals(trials), self._stats.index_select(0, rows)

    def blocks(self, trials: Index, size: int = 256) -> Iterator[tuple[slice, Tensor]]:
        """Walk over trials in order: (place in `trials`, signals)."""
        for start in range(0, len(trials), size):
            where = slice(start, min(start + size, len(trials)))
            # Statistics serve training steps only: none are fetched to validate.
            yield where, self.signals(trials[where])
