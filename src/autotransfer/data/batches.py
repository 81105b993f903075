"""Batches of P subjects x K trials, drawn at a cost that does not grow with the data.

A kernel estimate needs several trials of each subject in a batch; a plain shuffle of a thousand
subjects gives one. The trials of a subject are cut into chunks of about K, every class in its
share; a batch is P chunks, of P different subjects as far as the data allow. In an epoch every
chunk is drawn once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.data.trials import Index
from autotransfer.errors import EmptyDataError, SettingError

TRIES = 4
"""Draws in search of a subject that is not in the batch yet, before a repeated one is taken."""


class SubjectBatches:
    """Batches of about P subjects x K trials; every trial once an epoch.

    Parameters
    ----------
    y, subject : array of shape (n_trials,)
        Class and subject of every trial, in any coding.
    subjects_per_batch : int
        P. With fewer subjects in the data, each brings several chunks.
    trials_per_subject : int
        K. A subject with n trials has ``max(1, round(n / K))`` chunks of equal size, between
        2/3 K and 3/2 K unless it has fewer trials than that in all.
    trials : array of int, optional
        Trial numbers to draw from (and to return). All by default.
    seed : int
        Epoch e under a seed is always the same sequence of batches, whatever was drawn before.

    Notes
    -----
    Within a chunk each class has its share of the subject's trials, rounded up or down, so
    classes are as balanced as they are in the subject; no trial is repeated to balance them (the
    task loss weighs classes). A subject that has more than its share of all chunks may bring
    several to one batch, ``ceil(P * share)`` at most, so that it is not left alone at the end of
    an epoch.

    Making the object sorts the trials once. Drawing a batch costs O(P K): chunks are drawn from a
    pool by swapping, and a subject's trials are shuffled when its first chunk is drawn.

    Examples
    --------
    >>> y, subject = np.tile([0, 1], 24), np.repeat([0, 1, 2], 16)
    >>> batches = SubjectBatches(y, subject, subjects_per_batch=2, trials_per_subject=8)
    >>> [len(batch) for batch in batches.epoch(0)]
    [16, 16, 16]
    """

    def __init__(
        self,
        y: Any,
        subject: Any,
        subjects_per_batch: int = 8,
        trials_per_subject: int = 16,
        *,
        trials: Index | None = None,
        seed: int = 0,
    ) -> None:
        for name, value in (
            ("subjects_per_batch", subjects_per_batch),
            ("trials_per_subject", trials_per_subject),
        ):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise SettingError(f"{name} must be a whole number of at least 1, not {value!r}.")
        y, subject = np.asarray(y), np.asarray(subject)
        trials = np.arange(len(subject)) if trials is None else np.asarray(trials, np.intp)
        if len(trials) == 0:
            raise EmptyDataError("There are no trials to draw batches from.")
        self.subjects_per_batch = int(subjects_per_batch)
        self.trials_per_subject = int(trials_per_subject)
        self.seed = seed
        s = np.unique(subject[trials], return_inverse=True)[1]
        c = np.unique(y[trials], return_inverse=True)[1]
        by_cell = np.lexsort((c, s))
        self._trials, s, c = trials[by_cell], s[by_cell], c[by_cell]
        n_subjects = int(s[-1]) + 1
        self._start = np.searchsorted(s, np.arange(n_subjects + 1))
        self._spread = _spread(s, c)
        counts = np.diff(self._start)
        self._chunks = np.maximum(1, np.round(counts / trials_per_subject).astype(np.intp))
        self._owner = np.repeat(np.arange(n_subjects), self._chunks)
        share = self._chunks / len(self._owner)
        self._quota = np.ceil(self.subjects_per_batch * share - 1e-9).astype(np.intp)

    @property
    def n_trials(self) -> int:
        """Number of trials in an epoch."""
        return len(self._trials)

    @property
    def n_batches(self) -> int:
        """Number of batches in an epoch."""
        return -(-len(self._owner) // self.subjects_per_batch)

    def __len__(self) -> int:
        return self.n_batches

    def epoch(self, number: int) -> Iterator[Index]:
        """Walk over the batches of an epoch.

        Parameters
        ----------
        number : int
            Number of the epoch.

        Yields
        ------
        array of int
            Trial numbers of a batch, subject by subject.
        """
        rng = np.random.default_rng([self.seed, number])
        pool = self._owner.copy()
        left = len(pool)
        shuffled: dict[int, Index] = {}
        taken: dict[int, int] = {}
        n_batches = self.n_batches
        for i in range(n_batches):
            # Batches of equal size, rather than a small one at the end.
            size = len(pool) * (i + 1) // n_batches - len(pool) * i // n_batches
            batch = []
            present: dict[int, int] = {}
            draws = rng.random(size * TRIES).tolist()
            for j in range(size):
                for draw in draws[j * TRIES : (j + 1) * TRIES]:
                    place = int(draw * left)
                    who = int(pool[place])
                    if present.get(who, 0) < self._quota[who]:
                        break
                left -= 1
                pool[place] = pool[left]
                present[who] = present.get(who, 0) + 1
                if who not in shuffled:
                    shuffled[who] = self._shuffle(who, rng)
                nth = taken[who] = taken.get(who, -1) + 1
                batch.append(self._chunk(shuffled[who], who, nth))
                if nth + 1 == self._chunks[who]:
                    del shuffled[who]  # all its chunks are drawn: memory stays O(subjects open)
                    taken[who] = -1
            yield np.concatenate(batch)

    def _shuffle(self, who: int, rng: np.random.Generator) -> Index:
        """Put the trials of a subject in random order, every class evenly spread."""
        start, stop = self._start[who], self._start[who + 1]
        cell, size = self._spread[0][start:stop], self._spread[1][start:stop]
        # Random order within a class, then position i of n_c at (i + u_c) / n_c of the way.
        noise = rng.random(stop - start)
        order = np.lexsort((noise, cell))
        rank = np.arange(stop - start) - self._spread[2][start:stop]
        offset = rng.random(int(cell[-1]) + 1)[cell]
        place = (rank + offset) / size
        mixed: Index = self._trials[start:stop][order[np.argsort(place, kind="stable")]]
        return mixed

    def _chunk(self, order: Index, who: int, nth: int) -> Index:
        n, chunks = len(order), int(self._chunks[who])
        return order[n * nth // chunks : n * (nth + 1) // chunks]


def _spread(s: Index, c: Index) -> tuple[Index, Index, Index]:
    """For trials sorted by (subject, class): class within the subject, its size, its start."""
    n = len(s)
    new_subject = np.r_[True, s[1:] != s[:-1]]
    new_cell = new_subject | np.r_[True, c[1:] != c[:-1]]
    subject_start = np.maximum.accumulate(np.where(new_subject, np.arange(n), 0))
    cell_number = np.cumsum(new_cell) - 1
    cell_start = np.flatnonzero(new_cell)
    size = np.diff(np.r_[cell_start, n])[cell_number]
    within: npt.NDArray[np.intp] = cell_number - cell_number[subject_start]
    return within, size, cell_start[cell_number] - subject_start
