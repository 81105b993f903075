"""Folds by subject: who trains, who validates, who tests.

`Fold` is the one place where subjects are kept apart. Everything that trains, stops early or
selects takes a `Fold`, and no `Fold` exists in which a subject stands on two sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from autotransfer.data.trials import Index
from autotransfer.data.validate import Labels, as_labels, as_seed, not_among
from autotransfer.errors import FoldError, MissingSubjectError, SubjectLeakageError, join_some


@dataclass(frozen=True)
class Fold:
    """Trial numbers of the training, validation and test subjects.

    Parameters
    ----------
    subject : array of shape (n_trials,)
        Subject of every trial of the data.
    train, validation, test : array of int
        Trial numbers. Validation and test may be empty.

    Raises
    ------
    SubjectLeakageError
        If a subject has trials on two sides.
    """

    subject: Labels
    train: Index
    validation: Index
    test: Index

    def __post_init__(self) -> None:
        sides = ("train", "validation", "test")
        people = {side: np.unique(self.subject[getattr(self, side)]) for side in sides}
        for side, other in combinations(sides, 2):
            both = np.intersect1d(people[side], people[other])
            if len(both):
                raise SubjectLeakageError(
                    f"Subject {join_some(both.tolist())} would be in {side} and in {other}. A "
                    "subject may stand on one side only: split by subject, for instance with "
                    "SubjectFolds."
                )
        if len(self.train) == 0:
            raise FoldError("No subject is left to train on. Hold out fewer subjects.")

    def subjects(self, side: str) -> list[Any]:
        """Ids of the subjects on a side: "train", "validation" or "test"."""
        ids: list[Any] = np.unique(self.subject[getattr(self, side)]).tolist()
        return ids


class SubjectFolds(BaseCrossValidator):  # type: ignore[misc]
    """Cross-validation by subject: fold i validates on subject i and tests on subject i + 1.

    With M subjects there are M folds (the subject after the last is the first); each subject
    validates once and tests once. With `n_folds` the subjects are put into that many groups of
    nearly equal size, and groups take the place of subjects.

    Parameters
    ----------
    n_folds : int, optional
        Number of groups of subjects. One subject each by default.
    shuffle : bool
        Put subjects into groups in random order. In the order of their ids by default.
    random_state : int, optional
        Seed of the shuffling.

    Notes
    -----
    Also a scikit-learn splitter, through `groups`: see `split`. Where scikit-learn routes metadata
    (``sklearn.set_config(enable_metadata_routing=True)``), `groups` is asked for without further
    words: ``cross_validate(..., params={"subject": subject, "groups": subject})``, or, after
    ``SubjectFolds().set_split_request(groups="subject")``, ``params={"subject": subject}``.

    Examples
    --------
    >>> folds = SubjectFolds()
    >>> for fold in folds.folds(["a", "a", "b", "c"]):
    ...     print(fold.subjects("train"), fold.subjects("validation"), fold.subjects("test"))
    ['c'] ['a'] ['b']
    ['a'] ['b'] ['c']
    ['b'] ['c'] ['a']
    """

    # What scikit-learn's metadata routing reads.
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(
        self, n_folds: int | None = None, *, shuffle: bool = False, random_state: int | None = None
    ) -> None:
        self.n_folds = n_folds
        self.shuffle = shuffle
        self.random_state = random_state

    def groups(self, subject: Any) -> list[Labels]:
        """Put the subjects into groups: a list of arrays of subject ids."""
        ids = np.unique(as_labels(subject, "subject"))
        n = len(ids) if self.n_folds is None else self.n_folds
        if len(ids) < 3:
            raise FoldError(
                f"Folds need at least 3 subjects (one to train on, one to validate, one to test), "
                f"but there are {len(ids)}: {join_some(ids.tolist())}."
            )
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 3 <= n <= len(ids):
            raise FoldError(
                f"n_folds must be a whole number from 3 to the number of subjects ({len(ids)}), "
                f"not {n!r}."
            )
        if self.shuffle:
            seed = None if self.random_state is None else as_seed(self.random_state)
            ids = np.random.default_rng(seed).permutation(ids)
        return np.array_split(ids, n)

    def folds(self, subject: Any) -> Iterator[Fold]:
        """Walk over the folds.

        Parameters
        ----------
        subject : array of shape (n_trials,)
            Subject of every trial.

        Yields
        ------
        Fold
        """
        subject = as_labels(subject, "subject")
        members = self._members(subject)
        for i in range(len(members)):
            j = (i + 1) % len(members)
            held_out = np.zeros(len(subject), bool)
            held_out[members[i]] = held_out[members[j]] = True
            yield Fold(subject, np.flatnonzero(~held_out), members[i], members[j])

    def held_out(self, subject: Any) -> Iterator[Fold]:
        """Walk over the folds in which a group validates, all others train and nobody tests.

        More people train than in `folds`. The scores of those who validate are test scores too, as
        long as nothing is chosen by a person's own score.
        """
        subject = as_labels(subject, "subject")
        for members in self._members(subject):
            held_out = np.zeros(len(subject), bool)
            held_out[members] = True
            yield Fold(subject, np.flatnonzero(~held_out), members, members[:0])

    def _members(self, subject: Labels) -> list[Index]:
        """List the trials of each group."""
        groups = self.groups(subject)
        # Groups and their trial numbers once for all, not once a fold: that would cost M N.
        ids = np.concatenate(groups)
        by_id = np.argsort(ids)
        group = np.repeat(np.arange(len(groups)), [len(g) for g in groups])[by_id]
        group_of = group[np.searchsorted(ids, subject, sorter=by_id)]
        order = np.argsort(group_of, kind="stable")
        starts = np.searchsorted(group_of[order], np.arange(len(groups) + 1))
        return [order[starts[g] : starts[g + 1]] for g in range(len(groups))]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Count the folds (scikit-learn's name)."""
        if self.n_folds is not None:
            return self.n_folds
        return len(self.groups(_need(groups)))

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Index, Index]]:
        """Give (training, test) trial numbers for scikit-learn; `groups` are the subjects.

        The validation subjects of a fold are part of its training side here, because
        scikit-learn knows two sides only: an estimator that stops early must choose its
        validation subjects among those it is given, as `CensoredClassifier` does.
        """
        subject = as_labels(_need(groups), "subject", None if X is None else len(X))
        for fold in self.folds(subject):
            yield np.union1d(fold.train, fold.validation), fold.test

    def __repr__(self) -> str:
        return f"SubjectFolds(n_folds={self.n_folds})"


def _need(groups: Any) -> Any:
    if groups is None:
        raise MissingSubjectError(
            "SubjectFolds splits by subject: pass the subject of every trial as groups=subject."
        )
    return groups


def hold_out(subject: Any, validation: Any, random_state: int | None = None) -> Fold:
    """Hold out validation subjects, given by id or by number, from data to be fitted.

    Parameters
    ----------
    subject : array of shape (n_trials,)
        Subject of every trial.
    validation : int, float, list of subject ids, or None
        How many subjects validate (chosen by seed), which share of them (a float in (0, 1)),
        which ones by id, or none of them (None).
    random_state : int, optional
        Seed of the choice.

    Returns
    -------
    Fold
        With an empty test side.

    Examples
    --------
    >>> hold_out(["a", "b", "b", "c"], ["b"]).train
    array([0, 3])
    """
    subject = as_labels(subject, "subject")
    ids = np.unique(subject)
    if validation is None:
        validation_ids = ids[:0]
    elif isinstance(validation, float) or (
        isinstance(validation, int | np.integer) and not isinstance(validation, bool)
    ):
        share = isinstance(validation, float)
        if share and not 0 < validation < 1:
            raise FoldError(
                f"validation={validation!r} is not a share of the subjects: give a number between "
                "0 and 1, a whole number of subjects, or a list of subject ids."
            )
        n = max(1, round(validation * len(ids))) if share else int(validation)
        if not 1 <= n < len(ids):
            raise FoldError(
                f"validation={validation!r} asks for {n} of {len(ids)} subjects to validate on; "
                f"give a number from 1 to {len(ids) - 1}, or a list of subject ids. A list of one "
                "id holds out that subject."
            )
        validation_ids = np.random.default_rng(random_state).choice(ids, n, replace=False)
    elif isinstance(validation, bool) or not isinstance(validation, str | Iterable):
        raise FoldError(
            f"validation={validation!r} does not say who validates: give a number or share of "
            "subjects, a list of subject ids, or None."
        )
    else:
        requested = [validation] if isinstance(validation, str) else list(validation)
        missing = not_among(requested, ids)
        if missing:
            raise FoldError(
                f"Validation subject {join_some(missing)} is not in the data. The subjects are: "
                f"{join_some(ids.tolist(), 40)}."
            )
        validation_ids = np.asarray(requested, dtype=ids.dtype)
    validates = np.isin(subject, validation_ids)
    if validates.all():
        raise FoldError("All subjects validate and none is left to train on. Hold out fewer.")
    return Fold(
        subject, np.flatnonzero(~validates), np.flatnonzero(validates), np.zeros(0, np.intp)
    )
