"""`combine`: one data set out of several, with a word about everything that does not fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.info import unit_factor
from autotransfer.data.validate import Labels
from autotransfer.errors import (
    AutoTransferError,
    ChannelMismatchError,
    DataError,
    EmptyDataError,
    LabelError,
    SamplingRateError,
    ShapeError,
    SubjectError,
    UnitError,
    join_some,
)


def combine(
    datasets: Sequence[SubjectDataset],
    channels: Literal["common"] | Sequence[str] | None = None,
    *,
    same_subjects: bool = False,
) -> SubjectDataset:
    """Put data sets (of one person each, or of many) together.

    Parameters
    ----------
    datasets : sequence of SubjectDataset
        Data sets with the same sampling rate, window length and kind of labels.
    channels : "common" or sequence of str, optional
        Which channels to keep: those that all data sets have, in the order of the first, or the
        named ones. By default all data sets must have the same channels; where only their order
        differs, they are put in the order of the first.
    same_subjects : bool
        Whether a subject id that stands in two data sets is the same person. By default it is
        an error, because people are often numbered from 1 in each data set.

    Returns
    -------
    SubjectDataset
        All trials, in the order given. `session` and `recording` are kept as they are where all
        data sets have them, and left out where one lacks them.

    Notes
    -----
    The signals are copied into one float32 array in memory.

    Examples
    --------
    >>> one = SubjectDataset(np.zeros((2, 2, 5)), [0, 1], ["a", "a"], channels=["C3", "C4"])
    >>> two = SubjectDataset(np.ones((2, 3, 5)), [0, 1], ["b", "b"], channels=["Cz", "C4", "C3"])
    >>> combine([one, two], channels="common")
    SubjectDataset(4 trials, 2 subjects, 2 classes, 2 channels x 5 times)
    """
    if isinstance(datasets, SubjectDataset):
        raise DataError("combine takes a list of SubjectDataset, not a single one.")
    parts = list(datasets)
    for part in parts:
        if not isinstance(part, SubjectDataset):
            raise DataError(
                f"combine takes a list of SubjectDataset, but one is a {type(part).__name__}. Make "
                "them with load or SubjectDataset(X, y, subject)."
            )
    if not parts:
        raise EmptyDataError("There is no data set to combine. Hand over at least one.")
    sfreq = _one_rate(parts)
    n_times = _one_length(parts)
    names = _one_montage(parts, channels)
    if not same_subjects:
        _no_subject_twice(parts)
    y = _join([part.y for part in parts], "y", LabelError)
    subject = _join([part.subject for part in parts], "subject", SubjectError)
    classes = _one_naming([(p.labels, p.class_names) for p in parts], "Class", LabelError)
    subjects = _one_naming(
        [(p.subject_ids, p.subject_names) for p in parts], "Subject", SubjectError
    )
    unit, factors = _one_unit(parts)
    X = np.empty((len(y), len(names), n_times), np.float32)
    start = 0
    for part, factor in zip(parts, factors, strict=True):
        where = np.array([part.channels.index(name) for name in names], np.intp)
        trials = part.trials.pick(where)
        for first, block in (trials if factor == 1 else trials.times(factor)).chunks():
            X[start + first : start + first + len(block)] = block
        start += part.n_trials
    return SubjectDataset(
        X,
        y,
        subject,
        session=_join_all([part.session for part in parts], "session"),
        recording=_join_all([part.recording for part in parts], "recording"),
        sfreq=sfreq,
        channels=names,
        unit=unit,
        classes=classes,
        subjects=subjects,
    )


def _one_rate(parts: list[SubjectDataset]) -> float | None:
    groups = _grouped(parts, lambda part: part.sfreq)
    if len(groups) > 1:
        rates = [
            f"{people} {'of unknown rate' if rate is None else f'at {rate:g} Hz'}"
            for rate, people in groups.items()
        ]
        numbers = [rate for rate in groups if rate is not None]
        raise SamplingRateError(
            f"The data sets have different sampling rates: {'; '.join(rates)}. Resample them to "
            f"one rate ({min(numbers):g} Hz loses nothing that all have), or set sfreq where it is "
            "missing."
        )
    return parts[0].sfreq


def _one_unit(parts: list[SubjectDataset]) -> tuple[str | None, list[float]]:
    """Choose the unit of the result, that of the first, and the factors that lead to it."""
    wanted = parts[0].unit
    factors = [factor for p in parts if (factor := unit_factor(p.unit, wanted)) is not None]
    if len(factors) < len(parts):
        groups = _grouped(parts, lambda part: part.unit)
        units = [f"{people} in {unit or 'an unknown unit'}" for unit, people in groups.items()]
        raise UnitError(
            f"The data sets have different units: {'; '.join(units)}. Convert them to one unit, "
            "or set unit where it is missing."
        )
    return wanted, factors


def _one_length(parts: list[SubjectDataset]) -> int:
    groups = _grouped(parts, lambda part: part.n_times)
    if len(groups) > 1:
        lengths = "; ".join(f"{people} with {n} time points" for n, people in groups.items())
        raise ShapeError(
            f"The data sets have windows of different lengths: {lengths}. Cut all to one length, "
            f"for instance the first {min(groups)} time points."
        )
    return parts[0].n_times


def _one_montage(parts: list[SubjectDataset], channels: str | Sequence[str] | None) -> list[str]:
    """Choose the channels of the result; complain, by subject, about those that are missing."""
    common = [name for name in parts[0].channels if all(name in p.channels for p in parts)]
    if channels == "common":
        names = common
    elif isinstance(channels, str):
        raise ChannelMismatchError(
            f'channels must be "common", a list of channel names or None, not {channels!r}.'
        )
    elif channels is not None:
        names = [str(name) for name in channels]
    else:
        names = list(dict.fromkeys(name for part in parts for name in part.channels))
    offer = (
        f'All have {join_some(common, 80)}: use channels="common" to keep these.'
        if common
        else "No channel name is in all of them: give the channels the same names first."
    )
    groups = _grouped(parts, lambda part: tuple(n for n in names if n not in part.channels))
    lacks = [
        f"{people} without {join_some(missing)}" for missing, people in groups.items() if missing
    ]
    if lacks:
        raise ChannelMismatchError(
            f"The data sets have different channels: {'; '.join(lacks)}. {offer}"
        )
    if not names:
        raise ChannelMismatchError(f"There is no channel to keep. {offer}")
    return names


def _no_subject_twice(parts: list[SubjectDataset]) -> None:
    first_in: dict[str, int] = {}
    twice: dict[str, tuple[int, int]] = {}
    for number, part in enumerate(parts):
        for name in map(str, part.subject_ids.tolist()):
            if name in first_in:
                twice[name] = (first_in[name], number)
            first_in.setdefault(name, number)
    if twice:
        where = join_some([f"{name} (data sets {a} and {b})" for name, (a, b) in twice.items()])
        raise SubjectError(
            f"The same subject id stands in two data sets: {where}. If it is the same person, say "
            "same_subjects=True; if not, give each person an id of their own."
        )


def _one_naming(
    parts: list[tuple[Labels, list[str]]], what: str, error: type[DataError]
) -> dict[str, str]:
    """Merge label -> name tables: a label must not have two names, nor a name two labels."""
    names: dict[str, str] = {}
    owners: dict[str, str] = {}
    for labels, display_names in parts:
        for label, name in zip(map(str, labels.tolist()), display_names, strict=True):
            if label == name:  # not named
                continue
            if names.setdefault(label, name) != name:
                raise error(
                    f"{what} {label} is called {names[label]!r} in one data set and {name!r} in "
                    "another. Make the ids mean the same in all data sets."
                )
            if owners.setdefault(name, label) != label:
                raise error(
                    f"{what} {name!r} has the id {owners[name]} in one data set and {label} in "
                    "another. Make the ids mean the same in all data sets."
                )
    return names


def _join(values: list[Labels], name: str, error: type[AutoTransferError]) -> Labels:
    kinds = {"text" if value.dtype.kind in "US" else "numbers" for value in values}
    if len(kinds) > 1:
        raise error(
            f"{name} is text in some data sets and numbers in others, so 1 and '1' would become "
            f"the same. Use one kind, for instance {name}.astype(str)."
        )
    return np.concatenate(values)


def _join_all(values: list[Labels | None], name: str) -> Labels | None:
    present = [value for value in values if value is not None]
    return _join(present, name, SubjectError) if len(present) == len(values) else None


def _grouped(parts: list[SubjectDataset], key: Callable[[SubjectDataset], Any]) -> dict[Any, str]:
    """Group the subjects by a property of their data set: value -> who."""
    groups: dict[Any, list[SubjectDataset]] = {}
    for part in parts:
        groups.setdefault(key(part), []).append(part)
    return {value: _people(members) for value, members in groups.items()}


def _people(parts: list[SubjectDataset]) -> str:
    names = list(dict.fromkeys(name for part in parts for name in part.subject_names))
    return f"subject{'s' if len(names) > 1 else ''} {join_some(names)}"
