"""Data sets from MNE epochs, one or more objects per subject."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from autotransfer.data.dataset import SubjectDataset
from autotransfer.errors import (
    ChannelMismatchError,
    DataWarning,
    DtypeError,
    EmptyDataError,
    LabelError,
    MissingExtraError,
    MissingSubjectError,
    SamplingRateError,
    SettingError,
    ShapeError,
    SubjectError,
    join_some,
)

DATA_TYPES = {"eeg", "csd", "mag", "grad", "ecog", "seeg", "dbs"}
"""Channel types used unless channels are named: no EOG, ECG, stimulus channels and the like."""


_VOLT_TYPES = {"eeg", "ecog", "seeg", "dbs", "emg", "ecg", "eog"}


class Recorded(NamedTuple):
    """How the trials of one subject were recorded: what must agree between subjects."""

    subject: Any
    channels: list[str]
    sfreq: float
    times: npt.NDArray[np.float64]


def from_mne(
    epochs: Any,
    subject: Any = None,
    label: str | None = None,
    channels: Sequence[str] | str | None = None,
) -> SubjectDataset:
    """Make a data set from MNE epochs.

    Parameters
    ----------
    epochs : list of mne.Epochs, or mapping subject id -> mne.Epochs or list of them
        The trials. Any kind of epochs will do; those rejected are left out.
    subject : str or sequence of subject ids, optional
        Column of the metadata that holds the person of each trial; or the person of each epochs
        object of a list (one id for a single object without metadata). By default
        ``epochs.info["subject_info"]["his_id"]``.
    label : str, optional
        Column of the metadata that holds the task label. By default the label is the name of the
        event (from ``epochs.event_id``).
    channels : sequence of str or "common", optional
        Channels to use, in this order; "common" uses those that all subjects have. By default all
        EEG, MEG, ECoG, sEEG and DBS channels or, where there are none, the EMG channels; they
        must then be the same for all subjects, in any order.

    Returns
    -------
    SubjectDataset
        Signals as float32 in MNE's units (volts for EEG and EMG); ``recording`` is the number of
        the epochs object that a trial comes from.

    Raises
    ------
    ChannelMismatchError, SamplingRateError, ShapeError
        Subjects differ in channels, sampling rate or time window.
    MissingSubjectError
        It is not known whose epochs these are.
    MissingExtraError
        MNE is not installed.
    """
    column = _subject_column(epochs, subject)
    parts = _parts(epochs, subject if column is None else None, column)
    picked = [data_channels(part, person, channels) for person, part in parts]
    recorded = [
        Recorded(person, names, float(part.info["sfreq"]), part.times)
        for (person, part), names in zip(parts, picked, strict=True)
    ]
    names = common_channels(recorded, channels)
    check_rates_and_times(recorded)
    parts = [(person, _without_rejected(part, person)) for person, part in parts]
    lengths = [len(part) for _, part in parts]
    people: list[Any] = []
    X = np.empty((sum(lengths), len(names), len(recorded[0].times)), np.float32)
    y: list[Any] = []
    for end, (person, part) in zip(np.cumsum(lengths), parts, strict=True):
        # By name: the order of the channels may differ between subjects.
        X[end - len(part) : end] = part.get_data(picks=names, verbose="ERROR")
        y.extend(_labels(part, person, label))
        own = [person] * len(part) if column is None else _column(part, column)
        people.extend(own)
    return SubjectDataset(
        X,
        # As objects, so that a mix of numbers and text is refused and not turned into text.
        np.array(y, dtype=object),
        np.array(people, dtype=object),
        recording=np.arange(len(parts)).repeat(lengths),
        sfreq=recorded[0].sfreq,
        channels=names,
        unit=unit_of(parts[0][1], names),
    )


def common_channels(
    recorded: Sequence[Recorded], channels: Sequence[str] | str | None
) -> list[str]:
    """Choose the channels to use and make sure that every subject has them."""
    first = recorded[0].channels
    shared = [name for name in first if all(name in part.channels for part in recorded)]
    if channels is None:
        names = list(dict.fromkeys(name for part in recorded for name in part.channels))
    elif channels == "common":
        names = shared
    elif isinstance(channels, str):
        raise SettingError(f'channels must be a list of names or "common", not {channels!r}.')
    else:
        names = list(channels)
    lacking = {
        str(part.subject): f"subject {part.subject} lacks {join_some(missing)}"
        for part in recorded
        if (missing := [name for name in names if name not in part.channels])
    }
    if lacking or not names:
        offer = (
            f'Pass channels="common" or channels={shared} to use the {len(shared)} that all have.'
            if shared
            else "They have no channel in common: rename or interpolate channels in MNE first."
        )
        raise ChannelMismatchError(
            "Not all subjects have the same channels: "
            f"{join_some(list(lacking.values())) or 'no channel is left'}. {offer}"
        )
    return first if channels is None else names


def check_rates_and_times(recorded: Sequence[Recorded]) -> None:
    """Make sure that all subjects have one sampling rate and one time window."""
    rates: dict[float, list[Any]] = {}
    windows: dict[str, list[Any]] = {}
    for part in recorded:
        equal = (rate for rate in rates if np.isclose(rate, part.sfreq, rtol=1e-6))
        rates.setdefault(next(equal, part.sfreq), []).append(part.subject)
    if len(rates) > 1:
        raise SamplingRateError(
            f"Sampling rates differ: {_listed(rates, '{:g} Hz')}. Resample to one rate first, for "
            f"instance with epochs.resample({min(rates):g})."
        )
    for part in recorded:
        # To the sample: the same window cut from different recordings differs by rounding.
        start = round(part.times[0] * recorded[0].sfreq) / recorded[0].sfreq
        window = f"{len(part.times)} time points from {start:g} s"
        windows.setdefault(window, []).append(part.subject)
    if len(windows) > 1:
        raise ShapeError(
            f"The time windows differ: {_listed(windows, '{}')}. Cut them alike first, for "
            "instance with epochs.crop(tmin, tmax)."
        )


def unit_of(part: Any, names: list[str]) -> str | None:
    """Volts, where all channels are of types that MNE keeps in volts."""
    types = part.get_channel_types(picks=names)
    return "V" if set(types) <= _VOLT_TYPES else None


def _subject_column(epochs: Any, subject: Any) -> str | None:
    """Tell whether `subject` names a column of the metadata, which all epochs must then have."""
    if not isinstance(subject, str) or isinstance(epochs, Mapping):
        return None
    parts = epochs if isinstance(epochs, (list, tuple)) else [epochs]
    tables = [getattr(part, "metadata", None) for part in parts]
    if all(table is None for table in tables):
        return None
    for number, table in enumerate(tables):
        columns = [] if table is None else list(table.columns)
        if subject not in columns:
            raise SubjectError(
                f"The epochs number {number} have no metadata column {subject!r} that could tell "
                f"the person of each trial. {_columns(columns)} If {subject!r} is the id of one "
                f"person, pass subject=[{subject!r}]."
            )
    return subject


def _columns(columns: list[str]) -> str:
    return f"The columns are: {join_some(columns, 40)}." if columns else "They have no metadata."


def _column(part: Any, name: str) -> list[Any]:
    values: list[Any] = part.metadata[name].tolist()
    return values


def _parts(epochs: Any, subject: Any, column: str | None) -> list[tuple[Any, Any]]:
    """Pair every epochs object with its subject id, or with the column that tells it."""
    try:
        import mne
    except ImportError as error:
        raise MissingExtraError(
            "MNE is needed to read epochs. Install it with pip install mne."
        ) from error
    if isinstance(epochs, Mapping):
        if subject is not None:
            raise SubjectError("The keys of the mapping are the subject ids: leave subject out.")
        pairs = [
            (person, part)
            for person, value in epochs.items()
            for part in (value if isinstance(value, (list, tuple)) else [value])
        ]
    else:
        parts = epochs if isinstance(epochs, (list, tuple)) else [epochs]
        ids = [None] * len(parts) if subject is None else [subject]
        if subject is not None and not np.isscalar(subject):
            ids = list(subject)
        if len(ids) != len(parts):
            raise SubjectError(
                f"subject has {len(ids)} ids for {len(parts)} epochs objects. Give one each."
            )
        pairs = list(zip(ids, parts, strict=True))
    if not pairs:
        raise EmptyDataError("There are no epochs. Hand over at least one mne.Epochs object.")
    for number, (person, part) in enumerate(pairs):
        if not isinstance(part, mne.BaseEpochs):
            raise DtypeError(
                f"Item {number} is a {type(part).__name__}, not mne.Epochs. Cut continuous "
                "recordings into labelled epochs first, for instance with mne.Epochs(raw, events)."
            )
        if person is None:
            person = column or (part.info["subject_info"] or {}).get("his_id")
        pairs[number] = (person.item() if isinstance(person, np.generic) else person, part)
        if person is None:
            raise MissingSubjectError(
                f"Whose are the epochs number {number}? Pass subject=[one id per epochs object], a "
                'mapping id -> epochs, or set epochs.info["subject_info"] = {"his_id": ...}.'
            )
    return pairs


def data_channels(part: Any, person: Any, channels: Sequence[str] | str | None) -> list[str]:
    """List the channels to choose from: every one if names are asked for, else data channels."""
    if channels is not None and channels != "common":
        return list(part.ch_names)
    types = part.get_channel_types()
    for kinds in (DATA_TYPES, {"emg"}):
        names = [name for name, kind in zip(part.ch_names, types, strict=True) if kind in kinds]
        if names:
            return names
    kinds_present = join_some(sorted(set(types)))
    raise EmptyDataError(
        f"Subject {person} has no EEG, MEG, ECoG or EMG channel, only channels of type "
        f"{kinds_present}. Set the types with epochs.set_channel_types, or name the channels with "
        "channels=[...]."
    )


def _without_rejected(part: Any, person: Any) -> Any:
    """Drop the epochs that MNE rejects, without changing the user's object."""
    # Until epochs are loaded, their events still list those that will be rejected.
    accepted = part if part.preload else part.copy().drop_bad(verbose="ERROR")
    if len(accepted) == 0:
        warnings.warn(f"Subject {person} has epochs without any trial.", DataWarning, stacklevel=3)
    return accepted


def _labels(part: Any, person: Any, label: str | None) -> list[Any]:
    """One task label per trial: the event's name, or a column of the metadata."""
    if label is None:
        names = {code: name for name, code in part.event_id.items()}
        return [names[code] for code in part.events[:, 2].tolist()]
    columns = [] if part.metadata is None else list(part.metadata.columns)
    if label not in columns:
        raise LabelError(
            f"The epochs of subject {person} have no metadata column {label!r}. {_columns(columns)}"
        )
    return _column(part, label)


def _listed(groups: Mapping[Any, Sequence[Any]], form: str) -> str:
    return "; ".join(
        f"{form.format(value)} for subject {join_some(people)}" for value, people in groups.items()
    )
