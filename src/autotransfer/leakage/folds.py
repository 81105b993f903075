"""Folds for probes of the subject: every subject on both sides, no recording on both."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.data.trials import Index
from autotransfer.errors import DataWarning, SubjectError, join_some

Labels = npt.NDArray[Any]


@dataclass(frozen=True)
class ProbeFold:
    """Trial numbers to train a probe on, to calibrate it on, and to test it on."""

    train: Index
    inner: Index
    test: Index


@dataclass(frozen=True)
class Units:
    """Trials in a canonical order, put into units that are never split, and units into groups.

    Parameters
    ----------
    trials : array of int of shape (n,)
        Numbers of the trials that are used, in the data handed over.
    subject, unit, group : array of int of shape (n,)
        Codes of each such trial: the subject, the unit (a recording, or a block of trials) and,
        within the subject, the group of units that is tested in one fold.
    late : array of bool of shape (n,)
        The last quarter of each group.
    n_groups : array of int of shape (M,)
        Groups of each subject.
    ids, left_out : array
        Ids of the subjects used and left out.
    """

    trials: Index
    subject: Index
    unit: Index
    group: Index
    late: npt.NDArray[np.bool_]
    n_groups: Index
    ids: Labels
    left_out: Labels

    def folds(self) -> Iterator[ProbeFold]:
        """Walk over the folds.

        Fold k tests group k of every subject and calibrates on group k + 1, counted around. A
        subject with fewer groups than there are folds is tested again, so that every fold tests
        all; one with two groups, where nothing would be left to train on, calibrates on the late
        trials of its other group.
        """
        groups = self.n_groups[self.subject]
        for k in range(int(self.n_groups.max())):
            test = self.group == k % groups
            inner = np.where(groups == 2, self.late & ~test, self.group == (k + 1) % groups)
            yield ProbeFold(*map(np.flatnonzero, (~test & ~inner, inner, test)))


def make_units(
    latent: npt.NDArray[Any],
    subject: Labels,
    recording: Labels | None,
    n_folds: int,
    max_trials: int,
    rng: np.random.Generator,
) -> Units:
    """Put trials into units and groups; draw at most `max_trials` of each subject.

    Parameters
    ----------
    latent : array of shape (n_trials, K)
        Only orders the trials of a unit, so that the order of rows does not matter.
    subject : array of shape (n_trials,)
        Subject of each trial.
    recording : array of shape (n_trials,), optional
        Recording of each trial; ids may recur from subject to subject. Where a subject has one
        recording, or none are given, the units are `n_folds` blocks of successive trials.
    n_folds : int
        Most groups of a subject.
    max_trials : int
        Most trials of a subject. They are drawn evenly from its units.
    rng : Generator
        Draws the trials.

    Returns
    -------
    Units
    """
    ids, codes = np.unique(subject, return_inverse=True)
    recordings = (
        np.zeros_like(codes) if recording is None else np.unique(recording, return_inverse=True)[1]
    )
    # Recordings of each subject, counted from 0; a subject's only one is cut into blocks.
    pairs, unit = np.unique(np.c_[codes, recordings], axis=0, return_inverse=True)
    unit = unit.reshape(-1) - np.searchsorted(pairs[:, 0], np.arange(len(ids)))[codes]
    single = np.bincount(pairs[:, 0]) == 1
    if recording is not None and single.any():
        warnings.warn(
            f"Subject {join_some(ids[single].tolist())} has one recording only: its trials are "
            "split into blocks of successive trials, and what is peculiar to that recording counts "
            "as peculiar to the subject. Give more recordings of these subjects if there are any.",
            DataWarning,
            stacklevel=3,
        )
    for s in np.flatnonzero(single):
        rows = np.flatnonzero(codes == s)
        n_blocks = max(1, min(n_folds, len(rows) // 2))
        unit[rows] = np.arange(len(rows)) * n_blocks // len(rows)
    keep = _draw(latent, codes, unit, max_trials, rng)
    codes, unit = codes[keep], unit[keep]

    group, n_groups = np.zeros_like(unit), np.zeros(len(ids), np.intp)
    for number in range(len(ids)):
        rows = codes == number
        group[rows], n_groups[number] = _groups(unit[rows], n_folds)
    excluded = n_groups < 2
    if excluded.any():
        warnings.warn(
            f"Subject {join_some(ids[excluded].tolist())} has too few trials to train a probe on "
            "some and test it on others (two recordings or blocks of at least 2 trials each) and "
            "is left out.",
            DataWarning,
            stacklevel=3,
        )
    if (~excluded).sum() < 2:
        raise SubjectError(
            f"Leakage is about telling subjects apart, but only {(~excluded).sum()} of {len(ids)} "
            f"({join_some(ids.tolist())}) has enough trials (two recordings or blocks of at least "
            "2 trials each). Give trials of at least two subjects."
        )
    used = ~excluded[codes]
    keep, codes, unit, group = keep[used], codes[used], unit[used], group[used]
    codes = np.searchsorted(np.flatnonzero(~excluded), codes)
    unit = np.unique(np.c_[codes, unit], axis=0, return_inverse=True)[1].reshape(-1)
    late = _late(codes, unit, group, keep)
    return Units(keep, codes, unit, group, late, n_groups[~excluded], ids[~excluded], ids[excluded])


def _draw(
    latent: npt.NDArray[Any], subject: Index, unit: Index, max_trials: int, rng: np.random.Generator
) -> Index:
    """Order trials by subject, unit and latent, and draw evenly from the units of a subject."""
    # Any function of the latent will do to order by; one number sorts faster than K.
    key = np.einsum("nk,k->n", latent, np.cos(np.arange(1.0, latent.shape[1] + 1)))
    order = np.lexsort((key, unit, subject))
    subject, unit = subject[order], unit[order]
    # Ranks of shuffled trials within their unit: the lowest ranks are an even draw.
    shuffled = np.lexsort((rng.random(len(order)), unit, subject))
    rank = np.empty_like(order)
    rank[shuffled] = _count_within(subject[shuffled], unit[shuffled])
    by_rank = np.lexsort((unit, rank, subject))
    place = np.empty_like(order)
    place[by_rank] = _count_within(subject[by_rank])
    return order[place < max_trials]


def _count_within(*keys: Index) -> Index:
    """Count from 0 in each run of equal keys."""
    new = np.any([np.diff(key, prepend=-1) != 0 for key in keys], axis=0)
    starts = np.flatnonzero(new)
    return np.arange(len(new)) - np.repeat(starts, np.diff(np.append(starts, len(new))))


def _groups(unit: Index, max_groups: int) -> tuple[Index, int]:
    """Put a subject's units into as many groups of like size as have 2 trials each."""
    names, sizes = np.unique(unit, return_counts=True)
    for n_groups in range(min(max_groups, len(names)), 1, -1):
        load, where = np.zeros(n_groups, np.intp), np.zeros(len(names), np.intp)
        for u in np.argsort(-sizes, kind="stable"):
            where[u] = load.argmin()
            load[where[u]] += sizes[u]
        if load.min() >= 2:
            return where[np.searchsorted(names, unit)], n_groups
    return np.zeros_like(unit), 0


def _late(subject: Index, unit: Index, group: Index, position: Index) -> npt.NDArray[np.bool_]:
    """Mark the last quarter (at least one trial) of each group, by unit and given order."""
    order = np.lexsort((position, unit, group, subject))
    size = np.unique(np.c_[subject, group], axis=0, return_inverse=True, return_counts=True)
    total = size[2][size[1].reshape(-1)]
    place = np.empty_like(order)
    place[order] = _count_within(subject[order], group[order])
    return place >= total - np.maximum(1, total // 4)
