"""Batches of P subjects x K trials, drawn at a cost that does not grow with the data.

A kernel estimate needs several trials of each subject in a batch; a plain shuffle of a thousand
subjects gives one. The trials of a subject are dealt like cards into chunks of about K, so that
every class has its share in each; the chunks of all subjects are dealt in the same way to batches
of about P, so that a batch has as many different subjects as the data allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from autotransfer.data.trials import Index
from autotransfer.data.validate import as_count, as_labels, as_seed, as_trial_numbers
from autotransfer.errors import EmptyDataError


class SubjectBatches:
    """Batches of about P subjects x K trials; every trial once an epoch.

    Parameters
    ----------
    y, subject : array of shape (n_trials,)
        Class and subject of every trial, in any coding.
    subjects_per_batch : int
        P. With fewer subjects in the data, each brings several chunks.
    trials_per_subject : int
        K. A subject with n trials has ``m = max(1, round(n / K))`` chunks of n / m trials, rounded
        up or down: between 3/4 K and 3/2 K, unless it has fewer trials than that in all.
    trials : array of int, optional
        Trial numbers to draw from (and to return). All by default.
    by_class : bool
        Give every chunk of a subject its share of the classes. False cuts at random.
    seed : int
        Epoch e under a seed is always the same sequence of batches, whatever was drawn before.

    Notes
    -----
    With n_c trials of class c, each of the m chunks of a subject has n_c / m of them, rounded up
    or down: classes are as balanced as they are in the subject. No trial is repeated to balance
    them (the task loss weighs classes).

    Chunks with their share of the classes are not random samples of a subject: two trials of a
    chunk are of one class less often than two trials of the batch. An estimate of dependence that
    takes them for random samples is then biased towards tight classes, whoever the subjects are
    (docs/corrections.md): for penalties that do not look at the class, use ``by_class=False``.

    With B batches in an epoch, a subject of m chunks brings m / B to every batch, rounded up or
    down: at most one while m <= B, and more only where a subject has more than its share of the
    data. It then stands alone in a batch only where the others have fewer chunks than there are
    batches.

    Making the object sorts the trials once. Drawing a batch costs O(P K): a subject's trials are
    cut into chunks when the first is drawn. The start of an epoch deals the chunks, in some 60 ns
    each; drawing one takes some 20 us (``benchmarks/speed/batches.py``).

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
        trials_per_subject: int = 8,
        *,
        trials: Index | None = None,
        by_class: bool = True,
        seed: int = 0,
    ) -> None:
        self.subjects_per_batch = as_count(subjects_per_batch, "subjects_per_batch")
        self.trials_per_subject = as_count(trials_per_subject, "trials_per_subject")
        subject = as_labels(subject, "subject")
        y = as_labels(y, "y", len(subject))
        n = len(subject)
        trials = np.arange(n) if trials is None else as_trial_numbers(trials, n)
        if len(trials) == 0:
            raise EmptyDataError("There are no trials to draw batches from. Give at least one.")
        self.seed, self.by_class = as_seed(seed, "seed"), by_class
        s = np.unique(subject[trials], return_inverse=True)[1]
        c = np.unique(y[trials], return_inverse=True)[1]
        by_cell = np.lexsort((c, s))
        self._trials, s, c = trials[by_cell], s[by_cell], c[by_cell]
        n_subjects = int(s[-1]) + 1
        self._start = np.searchsorted(s, np.arange(n_subjects + 1))
        self._class = c.astype(np.int32)
        counts = np.diff(self._start)
        self._chunks = np.maximum(1, np.round(counts / trials_per_subject).astype(np.intp))
        self._n_chunks = int(self._chunks.sum())

    @property
    def n_trials(self) -> int:
        """Number of trials in an epoch."""
        return len(self._trials)

    @property
    def n_batches(self) -> int:
        """Number of batches in an epoch."""
        return -(-self._n_chunks // self.subjects_per_batch)

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
        always, table = self._deal(rng)
        hands: dict[int, list[Index]] = {}
        for places in table:
            batch = []
            for subject in [*always, *places[places >= 0].tolist()]:
                if subject not in hands:
                    hands[subject] = self._cut(subject, rng)
                batch.append(hands[subject].pop())
                if not hands[subject]:
                    del hands[subject]  # all its chunks are drawn: memory stays O(subjects open)
            yield np.concatenate(batch)

    def _deal(self, rng: np.random.Generator) -> tuple[list[int], Index]:
        """Deal chunks to batches: subjects in every batch, and a table of batches x places.

        A place holds the number of a subject, or -1 for nobody.
        """
        n = self.n_batches
        order = rng.permutation(len(self._chunks))
        # A subject with n chunks or more is in all batches. Its rest, less than n, is dealt last:
        # the first place in each batch is then somebody else's, as far as the others go.
        large = self._chunks[order] >= n
        order = np.concatenate([order[~large], order[large]])
        chunks = self._chunks[order]
        always = np.repeat(order, chunks // n).tolist()
        remainder = np.repeat(order, chunks % n)
        rows = np.full((-(-len(remainder) // n), n), -1, np.intp)
        rows.reshape(-1)[: len(remainder)] = remainder
        # A row gives one chunk to each batch, so no two of its chunks meet. Only the subject that
        # ends one row and begins the next could meet itself: it then changes places.
        mixed = rng.permuted(rows, axis=1)
        for r in range(1, len(rows)):
            subject = rows[r, 0]
            if rows[r - 1, -1] == subject:
                above, below = mixed[r - 1] == subject, mixed[r] == subject
                clash = np.flatnonzero(above & below)
                free = np.flatnonzero(~above & ~below)[: len(clash)]
                mixed[r, clash], mixed[r, free] = mixed[r, free], mixed[r, clash]
        return always, np.ascontiguousarray(mixed.T)

    def _cut(self, subject: int, rng: np.random.Generator) -> list[Index]:
        """Cut the trials of a subject at random into chunks, each with its share of the classes.

        Of trials in the order of their classes, every m-th belongs to the same chunk.
        """
        rows = slice(self._start[subject], self._start[subject + 1])
        order = rng.permutation(rows.stop - rows.start)
        if self.by_class:
            # Stable, because other sorts differ between processors where values are equal.
            order = order[np.argsort(self._class[rows][order], kind="stable")]
        mixed = self._trials[rows][order]
        n = int(self._chunks[subject])
        return [mixed[i::n] for i in rng.permutation(n).tolist()]
