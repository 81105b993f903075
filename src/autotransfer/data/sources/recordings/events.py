"""What happened in a recording: which events are trials, and what they are called."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from autotransfer.data.sources.recordings.files import by_mne, need_mne
from autotransfer.errors import DataWarning, LabelError, SettingError, SourceError, join_some

Wanted = dict[str, str] | Path | None
"""Events asked for: name of the class -> description or code; a file of events; or all of them."""

_MARK = re.compile("bad|edge", re.IGNORECASE)  # MNE's own, for stretches to be left out
_NAMES = ("trial_type", "description", "value")
_CODES = re.compile(r"[-_]eve\.fif(\.gz)?$|\.eve$|\.lst$")


class Events(NamedTuple):
    """The trials of a recording, as MNE wants them.

    Parameters
    ----------
    rows : array of int of shape (n_events, 3)
        Sample, previous value, code.
    codes : dict
        Name of the class -> code.
    """

    rows: npt.NDArray[np.int64]
    codes: dict[str, int]


def as_wanted(events: Any) -> Wanted:
    """Check the option ``events``.

    Parameters
    ----------
    events : mapping, sequence of str, path or None
        Name of a class -> description of an annotation or code of the stimulus channel; a list of
        descriptions, which are then the names; the path of a file of events; None for all.
    """
    if events is None:
        return None
    if isinstance(events, (str, os.PathLike)):
        path = Path(events).expanduser()
        if not path.is_file():
            raise SourceError(
                f"events={str(events)!r} is no file. Events are given by name as a list, "
                "events=['left', 'right'], or with names of your own, events={'left': 'T1', "
                "'right': 'T2'} (--events left,right or left=T1,right=T2)."
            )
        return path
    if isinstance(events, Mapping):
        wanted = {str(name): _text(value) for name, value in events.items()}
    elif isinstance(events, Sequence | np.ndarray):
        wanted = {_text(value): _text(value) for value in events}
        if len(wanted) < len(events):
            raise SettingError(f"An event is named twice in events={list(events)!r}.")
    else:
        raise SettingError(
            "events is a list of names, a mapping name -> name or number, or the path of a file of "
            f"events, not {events!r}."
        )
    values = list(wanted.values())
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice or not wanted:
        what = f"asks for {join_some(twice)} under two names" if twice else "is empty"
        raise SettingError(f"events {what}. Give every class an event of its own.")
    return wanted


def _text(value: Any) -> str:
    if isinstance(value, (bool, float)) or not isinstance(value, (str, int, np.integer)):
        raise SettingError(f"An event is a name or a whole number, not {value!r}.")
    return str(value)


def events_of(raw: Any, wanted: Wanted, name: str) -> Events:
    """Find the trials of a recording; there may be none.

    Annotations come first; where a recording has none of those asked for, the stimulus channel.

    Parameters
    ----------
    raw : mne.io.Raw
        The recording.
    wanted : as of `as_wanted`
        The events to find.
    name : str
        Of the recording, for messages.
    """
    mne = need_mne()
    with by_mne(f"the events of {name}", "Give them as events=..."):
        if isinstance(wanted, Path):
            return _from_file(raw, wanted, name)
        described = descriptions(raw)
        if wanted is None:
            names = {text: text for text in described}
        else:
            names = {own: text for own, text in wanted.items() if text in described}
        if names:
            codes = {own: number for number, own in enumerate(names, 1)}
            by_text = {text: codes[own] for own, text in names.items()}
            rows, _ = mne.events_from_annotations(raw, by_text, regexp=None, verbose="WARNING")
            return Events(rows, codes)
        if not _has_stimulus(raw) or not all(map(_is_code, (wanted or {}).values())):
            return Events(np.empty((0, 3), np.int64), {})
        rows = _stimuli(raw)
        present = [str(code) for code in np.unique(rows[:, 2])]
        all_codes = {code: code for code in present}
        found = {
            own: int(code) for own, code in (wanted or all_codes).items() if int(code) in rows[:, 2]
        }
        return Events(rows[np.isin(rows[:, 2], list(found.values()))], found)


def descriptions(raw: Any) -> list[str]:
    """List what annotations there are, without the stretches that MNE marks as bad."""
    return sorted({str(text) for text in raw.annotations.description if not _MARK.match(text)})


def known_events(raw: Any) -> list[str]:
    """List the events of a recording by which trials could be cut, for messages."""
    names = descriptions(raw)
    if not names and _has_stimulus(raw):
        names = [str(code) for code in np.unique(_stimuli(raw)[:, 2])]
    return names


def rename(names: Sequence[str], wanted: Wanted) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Choose among trials that have names already, those of epochs.

    Returns
    -------
    keep : array of int
        Numbers of the trials to keep.
    names : list of str
        Their names, as asked for.

    Examples
    --------
    >>> keep, names = rename(["T0", "T1", "T2", "T1"], {"left": "T1", "right": "T2"})
    >>> keep.tolist(), names
    ([1, 2, 3], ['left', 'right', 'left'])
    """
    if isinstance(wanted, Path):
        raise SettingError("Epochs have their events in them: a file of events is for recordings.")
    if wanted is None:
        return np.arange(len(names)), list(names)
    own = {text: name for name, text in wanted.items()}
    keep = [number for number, name in enumerate(names) if name in own]
    return np.array(keep, np.intp), [own[names[number]] for number in keep]


def _has_stimulus(raw: Any) -> bool:
    return "stim" in raw.get_channel_types()


def _is_code(text: str) -> bool:
    return text.removeprefix("-").isdigit()


def _stimuli(raw: Any) -> npt.NDArray[np.int64]:
    # Recorders that set the channel for a single sample are common; MNE's default refuses them.
    rows: npt.NDArray[np.int64] = need_mne().find_events(raw, shortest_event=1, verbose="WARNING")
    return rows


def _from_file(raw: Any, path: Path, name: str) -> Events:
    """Read events from a file: MNE's own, or a table with onsets in seconds."""
    mne = need_mne()
    if _CODES.search(path.name.lower()):
        rows = mne.read_events(path, verbose="WARNING")
        _require_inside(rows[:, 0] - raw.first_samp, raw, path, name)
        return Events(rows, {str(code): int(code) for code in np.unique(rows[:, 2])})
    # Not MNE's reader of .csv, which takes seconds for milliseconds.
    table = path.suffix.lower() in (".tsv", ".csv")
    found = _read_table(path) if table else mne.read_annotations(path)
    annotated = raw.copy().set_annotations(found, verbose="WARNING")
    names = descriptions(annotated)
    codes = {text: number for number, text in enumerate(names, 1)}
    if not codes:
        raise LabelError(f"There is no event in {path} that lies within {name}.")
    rows, _ = mne.events_from_annotations(annotated, codes, regexp=None, verbose="WARNING")
    return Events(rows, codes)


def _require_inside(samples: npt.NDArray[Any], raw: Any, path: Path, name: str) -> None:
    outside = int(np.sum((samples < 0) | (samples >= raw.n_times)))
    if outside:
        raise LabelError(
            f"{outside} of {len(samples)} events of {path} lie outside of {name}, which has "
            f"samples {raw.first_samp} to {raw.last_samp}. See that they were written for this "
            "recording, at its sampling rate."
        )


def _read_table(path: Path) -> Any:
    """Read a table of events as BIDS has it: ``onset`` in seconds, ``trial_type`` or the like."""
    import pandas as pd

    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    table = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False)
    column = next((name for name in _NAMES if name in table.columns), None)
    if "onset" not in table.columns or column is None:
        raise LabelError(
            f"{path} has the columns {join_some(list(table.columns), 20)}. Needed are onset (in "
            f"seconds from the beginning of the recording) and one of {join_some(_NAMES)}."
        )
    nameless = table[column].isin(["n/a", ""])
    if nameless.any():
        warnings.warn(
            f"{int(nameless.sum())} of {len(table)} events in {path} have no {column} and are left "
            "out.",
            DataWarning,
            stacklevel=2,
        )
    table = table[~nameless]
    onset = pd.to_numeric(table["onset"], errors="coerce")
    if onset.isna().any():
        wrong = table["onset"][onset.isna()].iloc[0]
        raise LabelError(f"onset in {path} must be seconds, not {wrong!r}.")
    return need_mne().Annotations(onset.to_numpy(float), 0.0, table[column].to_list())
