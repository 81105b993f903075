"""`SubjectDataset`: labelled trials of many people."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.data.info import SignalInfo
from autotransfer.data.trials import Float32, Index, TrialArray
from autotransfer.data.validate import (
    Labels,
    as_channel_names,
    as_labels,
    as_list,
    as_names,
    as_sampling_rate,
    as_trial_numbers,
    as_trials,
    as_unit,
    not_among,
    require_finite,
)
from autotransfer.errors import (
    EmptyDataError,
    LabelError,
    ShapeError,
    UnknownSubjectError,
    join_some,
)


class SubjectDataset:
    """Labelled trials of many people: X, y and subject, with what is known about the recording.

    Parameters
    ----------
    X : array or `TrialArray` of shape (n_trials, n_channels, n_times)
        Signals. Any real dtype; float32 is kept as it is, memory maps stay on disk.
    y : array of shape (n_trials,)
        Task labels, of any hashable kind (numbers, strings).
    subject : array of shape (n_trials,)
        The person each trial comes from, of any kind.
    session, recording : array of shape (n_trials,), optional
        Session of the person; continuous recording that the trial was cut from.
    sfreq : float, optional
        Sampling rate in Hz.
    channels : sequence of str, optional
        Channel names.
    unit : str, optional
        Unit of the signals, such as "uV" or "V".
    classes : mapping or sequence of str, optional
        Names of the classes, in the order of the sorted labels, or label -> name.
    subjects : mapping, optional
        Names of the subjects: id -> name. Ids are their own names by default.

    Attributes
    ----------
    source : str or None
        Name of the file or data set that `autotransfer.load` read; reports are called so.

    Notes
    -----
    `select` makes views: the signals are not copied, whatever the selection.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> data = SubjectDataset(rng.normal(size=(6, 2, 50)), ["a", "b"] * 3, [1, 1, 2, 2, 3, 3])
    >>> data
    SubjectDataset(6 trials, 3 subjects, 2 classes, 2 channels x 50 times)
    >>> data.select(subjects=[1, 3]).y
    array(['a', 'b', 'a', 'b'], dtype='<U1')
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        subject: Any,
        *,
        session: Any = None,
        recording: Any = None,
        sfreq: float | None = None,
        channels: Sequence[str] | None = None,
        unit: str | None = None,
        classes: Any = None,
        subjects: Any = None,
    ) -> None:
        self.source: str | None = None
        self.trials = as_trials(X)
        n, n_channels, _ = self.trials.shape
        self.y = as_labels(y, "y", n)
        self.subject = as_labels(subject, "subject", n)
        self.session = None if session is None else as_labels(session, "session", n)
        self.recording = None if recording is None else as_labels(recording, "recording", n)
        self.sfreq = as_sampling_rate(sfreq)
        self.channels = as_channel_names(channels, n_channels)
        self.unit = as_unit(unit)
        self.labels, self.y_code = np.unique(self.y, return_inverse=True)
        self.subject_ids, self.subject_code = np.unique(self.subject, return_inverse=True)
        self.class_names = as_names(classes, self.labels, "classes")
        self.subject_names = as_names(subjects, self.subject_ids, "subjects")

    @property
    def X(self) -> Float32 | TrialArray:
        """Signals: a plain array where that needs no copy, else a lazy `TrialArray`."""
        t = self.trials
        whole = t.index is None and t.scale is None and t.channels is None
        plain = whole and t.base.dtype == np.float32
        return t.base if plain else t

    @property
    def n_trials(self) -> int:
        """Number of trials."""
        return self.trials.shape[0]

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return self.trials.shape[1]

    @property
    def n_times(self) -> int:
        """Number of time points in a trial."""
        return self.trials.shape[2]

    def __len__(self) -> int:
        return self.n_trials

    def __repr__(self) -> str:
        rate = "" if self.sfreq is None else f", {self.sfreq:g} Hz"
        return (
            f"SubjectDataset({self.n_trials} trials, {len(self.subject_ids)} subjects, "
            f"{len(self.labels)} classes, {self.n_channels} channels x {self.n_times} times{rate})"
        )

    def _repr_html_(self) -> str:
        # By the face of the room: the view says what the checks find, and they are built on this.
        html: str = import_module("autotransfer.data").dataset_html(self)
        return html

    def counts(self) -> npt.NDArray[np.int64]:
        """Count the trials of every (subject, class) cell: an n_subjects x n_classes table."""
        shape = len(self.subject_ids), len(self.labels)
        if shape[0] * shape[1] > 10**8:
            raise LabelError(
                f"{shape[0]} subjects and {shape[1]} classes are too many to count every cell. "
                "See that these are y and subject, and not numbers of the trials."
            )
        table = np.zeros(shape, np.int64)
        np.add.at(table, (self.subject_code, self.y_code), 1)
        return table

    def select(
        self,
        *,
        subjects: Iterable[Any] | None = None,
        labels: Iterable[Any] | None = None,
        trials: Any = None,
    ) -> SubjectDataset:
        """Select subjects, classes or trials; the signals are not copied.

        Parameters
        ----------
        subjects : iterable of subject ids or names, optional
            People to keep, in the order of the data.
        labels : iterable of labels or names of classes, optional
            Classes to keep.
        trials : array of int, boolean mask or slice, optional
            Trials to keep, by number.

        Returns
        -------
        SubjectDataset
            A view of the selected trials.
        """
        keep = np.arange(self.n_trials)
        if trials is not None:
            keep = as_trial_numbers(trials, self.n_trials)
        if subjects is not None:
            ids = _ids(subjects, self.subject_ids, self.subject_names, "subject")
            keep = keep[np.isin(self.subject[keep], ids)]
        if labels is not None:
            ids = _ids(labels, self.labels, self.class_names, "class")
            keep = keep[np.isin(self.y[keep], ids)]
        if len(keep) == 0:
            raise EmptyDataError(
                "The selection contains no trial. Check the subjects and classes asked for."
            )
        view = object.__new__(SubjectDataset)
        view.source = self.source
        view.trials = _take(self.trials, keep)
        view.y, view.subject = self.y[keep], self.subject[keep]
        view.session = None if self.session is None else self.session[keep]
        view.recording = None if self.recording is None else self.recording[keep]
        view.sfreq, view.channels, view.unit = self.sfreq, self.channels, self.unit
        view.labels, view.y_code = np.unique(view.y, return_inverse=True)
        view.subject_ids, view.subject_code = np.unique(view.subject, return_inverse=True)
        view.class_names = [self.class_names[i] for i in np.searchsorted(self.labels, view.labels)]
        where = np.searchsorted(self.subject_ids, view.subject_ids)
        view.subject_names = [self.subject_names[i] for i in where]
        return view

    def pick_channels(self, names: Sequence[str]) -> SubjectDataset:
        """Keep the named channels, in the order given; the signals are not copied."""
        names = as_list(names, "names")
        missing = [name for name in names if name not in self.channels]
        if missing:
            raise ShapeError(
                f"No channel named {join_some(missing)}. The channels are: "
                f"{join_some(self.channels, 80)}."
            )
        where = [self.channels.index(name) for name in names]
        picked = SubjectDataset(
            self.trials.pick(np.array(where, np.intp)),
            self.y,
            self.subject,
            session=self.session,
            recording=self.recording,
            sfreq=self.sfreq,
            channels=names,
            unit=self.unit,
            classes=self.class_names,
            subjects=self.subject_names,
        )
        picked.source = self.source
        return picked

    @property
    def info(self) -> SignalInfo:
        """What is known of the signals beside their numbers."""
        return SignalInfo.of(self.channels, self.sfreq, self.unit)

    def fingerprint(self) -> str:
        """Hash the signals, labels and subjects (not the names): the identity of the data."""
        return fingerprint(self.trials, self.y, self.subject)


def fingerprint(X: TrialArray, y: Labels, subject: Labels, finite: bool = False) -> str:
    """Hash (X, y, subject) to 32 hexadecimal digits; reads the signals once.

    Equal for a view and a copy of the same trials, whatever dtype they are stored in, because
    trials are hashed as float32. With `finite`, NaN and infinite values are looked for on the way
    (a large data set is read once, not twice).
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr(X.shape).encode())
    for labels in (y, subject):
        # Lengths first, so that no two different lists of labels give the same bytes.
        words = [str(label).encode() for label in labels.tolist()]
        digest.update(",".join(str(len(word)) for word in words).encode() + b";" + b"".join(words))
    for start, block in X.chunks():
        if finite:
            require_finite(block, start, subject)
        digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()


def _ids(requested: Iterable[Any], valid: Labels, names: list[str], what: str) -> Labels:
    """Turn ids or names into ids; what is neither is an error."""
    alone = isinstance(requested, str) or np.ndim(requested) == 0  # type: ignore[arg-type]
    items: list[Any] = [requested] if alone else list(requested)
    by_name: dict[Any, Any] = dict(zip(names, valid.tolist(), strict=True))
    named = [isinstance(item, str) and bool(not_among([item], valid)) for item in items]
    ids = [by_name.get(i, i) if name else i for i, name in zip(items, named, strict=True)]
    missing = not_among(ids, valid)
    if missing:
        error = UnknownSubjectError if what == "subject" else LabelError
        known = [
            f"{label!r} ({name})" if str(label) != name else label
            for label, name in zip(valid.tolist(), names, strict=True)
        ]
        raise error(f"No {what} {join_some(missing)}. Known: {join_some(known, 40)}.")
    return np.asarray(ids, dtype=valid.dtype)


def _take(trials: TrialArray, keep: Index) -> TrialArray:
    """Select trials; a run of neighbours of plain signals stays a plain array (a numpy view)."""
    run = len(keep) == keep[-1] - keep[0] + 1 and bool(np.all(np.diff(keep) == 1))
    if run and trials.index is None:
        run_of_base = trials.base[keep[0] : keep[-1] + 1]
        return TrialArray(run_of_base, None, trials.scale, trials.channels)
    return trials.take(keep)
