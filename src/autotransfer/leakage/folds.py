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
    most: int,
    rng: np.random.Generator,
) -> Units:
    """Put trials into units and groups; draw at most `most` trials of each subject.

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
    most : int
        Most trials of a subject. They are drawn evenly from its units.
    rng : Generator
        Draws the trials.

    Returns
    -------
    Units
    """
    ids, who = np.unique(subject, return_inverse=True)
    what = np.zeros_like(who) if recording is None else np.unique(recording, return_inverse=True)[1]
    # Recordings of each subject, counted from 0; a subject's only one is cut into blocks.
    pairs, unit = np.unique(np.c_[who, what], axis=0, return_inverse=True)
    starts = np.searchsorted(pairs[:, 0], np.arange(len(ids)))
    unit = unit.reshape(-1) - starts[who]
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
        own = np.flatnonzero(who == s)
        n_blocks = max(1, min(n_folds, len(own) // 2))
        unit[own] = np.arange(len(own)) * n_blocks // len(own)
    keep = _draw(latent, who, unit, most, rng)
    who, unit = who[keep], unit[keep]

    group, n_groups = np.zeros_like(unit), np.zeros(len(ids), np.intp)
    for number in range(len(ids)):
        mine = who == number
        group[mine], n_groups[number] = _groups(unit[mine], n_folds)
    left = n_groups < 2
    if left.any():
        warnings.warn(
            f"Subject {join_some(ids[left].tolist())} has too few trials to train a probe on some "
            "and test it on others (two recordings or blocks of at least 2 trials each) and is "
            "left out.",
            DataWarning,
            stacklevel=3,
        )
    if (~left).sum() < 2:
        raise SubjectError(
            f"Leakage is about telling subjects apart, but only {(~left).sum()} of {len(ids)} "
            f"({join_some(ids.tolist())}) has enough trials (two recordings or blocks of at least "
            "2 trials each). Give trials of at least two subjects."
        )
    used = ~left[who]
    keep, who, unit, group = keep[used], who[used], unit[used], group[used]
    who = np.searchsorted(np.flatnonzero(~left), who)
    unit = np.unique(np.c_[who, unit], axis=0, return_inverse=True)[1].reshape(-1)
    late = _late(who, unit, group, keep)
    return Units(keep, who, unit, group, late, n_groups[~left], ids[~left], ids[left])


def _draw(
    latent: npt.NDArray[Any], who: Index, unit: Index, most: int, rng: np.random.Generator
) -> Index:
    """Order trials by subject, unit and latent, and draw evenly from the units of a subject."""
    # Any function of the latent will do to order by; one number sorts faster than K.
    key = np.einsum("nk,k->n", latent, np.cos(np.arange(1.0, latent.shape[1] + 1)))
    order = np.lexsort((key, unit, who))
    who, unit = who[order], unit[order]
    # Ranks of shuffled trials within their unit: the lowest ranks are an even draw.
    shuffled = np.lexsort((rng.random(len(order)), unit, who))
    rank = np.empty_like(order)
    rank[shuffled] = _count_within(who[shuffled], unit[shuffled])
    by_rank = np.lexsort((unit, rank, who))
    place = np.empty_like(order)
    place[by_rank] = _count_within(who[by_rank])
    return order[place < most]


def _count_within(*keys: Index) -> Index:
    """Count from 0 in each run of equal keys."""
    new = np.any([np.diff(key, prepend=-1) != 0 for key in keys], axis=0)
    starts = np.flatnonzero(new)
    return np.arange(len(new)) - np.repeat(starts, np.diff(np.append(starts, len(new))))


def _groups(unit: Index, most: int) -> tuple[Index, int]:
    """Put a subject's units into as many groups of like size as have 2 trials each."""
    names, sizes = np.unique(unit, return_counts=True)
    for n_groups in range(min(most, len(names)), 1, -1):
        load, where = np.zeros(n_groups, np.intp), np.zeros(len(names), np.intp)
        for u in np.argsort(-sizes, kind="stable"):
            where[u] = load.argmin()
            load[where[u]] += sizes[u]
        if load.min() >= 2:
            return where[np.searchsorted(names, unit)], n_groups
    return np.zeros_like(unit), 0


def _late(who: Index, unit: Index, group: Index, position: Index) -> npt.NDArray[np.bool_]:
    """Mark the last quarter (at least one trial) of each group, by unit and given order."""
    order = np.lexsort((position, unit, group, who))
    size = np.unique(np.c_[who, group], axis=0, return_inverse=True, return_counts=True)
    total = size[2][size[1].reshape(-1)]
    place = np.empty_like(order)
    place[order] = _count_within(who[order], group[order])
    return place >= total - np.maximum(1, total // 4)
