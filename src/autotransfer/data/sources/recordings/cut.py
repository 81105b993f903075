"""How trials are cut out of recordings that are open: filtered, resampled, around events."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.sources.mne import (
    Recorded,
    check_rates_and_times,
    common_channels,
    data_channels,
    unit_of,
)
from autotransfer.data.sources.recordings.events import (
    Wanted,
    as_wanted,
    events_of,
    known_events,
    rename,
)
from autotransfer.data.sources.recordings.files import by_mne, need_mne
from autotransfer.data.trials import Float32
from autotransfer.data.validate import as_sampling_rate
from autotransfer.errors import (
    DataWarning,
    EmptyDataError,
    LabelError,
    SamplingRateError,
    SettingError,
    SourceError,
    UnitError,
    join_some,
)

OPTIONS = ("events", "tmin", "tmax", "band", "sfreq", "channels")
"""What can be set for recordings wherever they are; `subject` is for files that do not tell it."""


class Opened(NamedTuple):
    """A recording whose signals are not read yet.

    Parameters
    ----------
    name : str
        Of the recording, among those of a data set.
    subject : subject id
        Whose it is.
    data : mne.io.Raw or mne.Epochs
        What MNE opened.
    session : str or None
        Session of the person, if known.
    """

    name: str
    subject: Any
    data: Any
    session: str | None = None

    @property
    def is_cut(self) -> bool:
        """Whether these are epochs already."""
        return hasattr(self.data, "drop_log")

    @property
    def sfreq(self) -> float:
        """Sampling rate in Hz."""
        return float(self.data.info["sfreq"])


@dataclass(frozen=True)
class Cutting:
    """How trials are cut out of recordings; the parameters are those of `read_recordings`."""

    events: Wanted
    tmin: float | None
    tmax: float | None
    band: tuple[float | None, float | None] | None
    sfreq: float | None
    channels: Sequence[str] | str | None


def cutting(
    events: Any = None,
    tmin: float | None = None,
    tmax: float | None = None,
    band: Sequence[float | None] | None = None,
    sfreq: float | None = None,
    channels: Sequence[str] | str | None = None,
) -> Cutting:
    """Check the options that say how trials are cut."""
    for name, value in (("tmin", tmin), ("tmax", tmax)):
        if value is not None and not _is_real(value):
            raise SettingError(f"{name} must be seconds, not {value!r}.")
    if tmax is not None and not (tmin or 0.0) < tmax:
        raise SettingError(f"tmin must be below tmax, not {tmin or 0.0:g} and {tmax:g} s.")
    edges = None if band is None else _edges(band)
    rate = as_sampling_rate(sfreq)
    high = None if edges is None else edges[1]
    if high is not None and rate is not None and high >= rate / 2:
        raise SettingError(
            f"At {rate:g} Hz there is nothing above {rate / 2:g} Hz, but the band goes up to "
            f"{high:g} Hz. Give a lower band or a higher sfreq."
        )
    return Cutting(as_wanted(events), tmin, tmax, edges, rate, channels)


def _same_rate(rate: float, other: float) -> bool:
    return math.isclose(rate, other, rel_tol=1e-6)


def _is_real(value: Any) -> bool:
    real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return real and math.isfinite(value)


def _edges(band: Any) -> tuple[float | None, float | None]:
    """Check a pass band. MNE would take a low edge above the high one for a band to be removed."""
    edges = list(band) if isinstance(band, Sequence | np.ndarray) else []
    right = len(edges) == 2 and all(one is None or (_is_real(one) and one > 0) for one in edges)
    if right:
        low, high = edges
        right = low != high and (low is None or high is None or low < high)
    if not right or isinstance(band, str):
        raise SettingError(
            f"band must be (low, high) in Hz, with low below high, not {band!r}. Either may be "
            "None: (1, None) only takes away what is slower than 1 Hz."
        )
    return edges[0], edges[1]


def cut_all(opened: Sequence[Opened], how: Cutting) -> SubjectDataset:
    """Cut trials out of recordings that are open.

    Parameters
    ----------
    opened : sequence of Opened
        At least one.
    how : Cutting
        As of `cutting`.
    """
    _require_one_kind(opened, how)
    _require_rates(opened, how)
    names = _channels(opened, how)
    parts: list[Float32] = []
    y: list[str] = []
    used: list[Opened] = []
    recorded: list[Recorded] = []
    units: list[str | None] = []
    left_out: Counter[str] = Counter()
    empty: list[str] = []
    for one in opened:
        epochs, labels = (_crop if one.is_cut else _cut)(one, how, names, left_out)
        if not labels:
            empty.append(one.name)
            continue
        with by_mne(one.name):
            signals = epochs.get_data(picks=names, verbose="WARNING")
        parts.append(signals.astype(np.float32))
        recorded.append(Recorded(one.subject, names, float(epochs.info["sfreq"]), epochs.times))
        units.append(unit_of(epochs, names))
        used.append(one)
        y += labels
        del epochs, signals  # one recording is in memory as a whole, not two
    _require_events(opened, how, empty, y)
    check_rates_and_times(recorded)
    if len(set(units)) > 1:
        raise UnitError(
            f"Channels {join_some(names)} are in volts in some recordings and in others not. See "
            "their types: raw.get_channel_types()."
        )
    _warn(left_out, len(y), empty)
    lengths = [len(part) for part in parts]
    sessions = [one.session for one in used]
    return SubjectDataset(
        np.concatenate(parts) if len(parts) > 1 else parts[0],
        y,
        _each([one.subject for one in used], lengths),
        session=None if None in sessions else _each(sessions, lengths),
        recording=_each([one.name for one in used], lengths),
        sfreq=how.sfreq or recorded[0].sfreq,
        channels=names,
        unit=units[0],
    )


def _each(values: Sequence[Any], lengths: Sequence[int]) -> Any:
    # As objects, so that a mix of numbers and text is refused and not turned into text.
    return np.array(values, dtype=object).repeat(lengths)


def _require_one_kind(opened: Sequence[Opened], how: Cutting) -> None:
    epochs = [one.name for one in opened if one.is_cut]
    raw = [one for one in opened if not one.is_cut]
    if epochs and raw:
        raise SourceError(
            f"Some files hold epochs ({join_some(epochs)}) and some continuous recordings "
            f"({join_some([one.name for one in raw])}), perhaps of the same trials. Name the files "
            "of one kind."
        )
    if epochs and how.band is not None:
        raise SettingError(
            "Epochs are too short to be filtered well: give band=... (--band) with the recordings "
            "that they were cut from."
        )
    if raw and how.tmax is None:
        there = sorted({name for one in raw for name in known_events(one.data)})
        raise SettingError(
            "How long is a trial? Give tmax=... (--tmax), its end in seconds after the event, and "
            f"tmin=... if it does not begin with it. Events: {join_some(there, 20) or 'none'}."
        )


def _require_rates(opened: Sequence[Opened], how: Cutting) -> None:
    rates: dict[float, list[str]] = {}
    for one in opened:
        rates.setdefault(one.sfreq, []).append(one.name)
    if how.sfreq is None and not _same_rate(max(rates), min(rates)):
        listed = "; ".join(f"{rate:g} Hz: {join_some(names)}" for rate, names in rates.items())
        raise SamplingRateError(
            f"Sampling rates differ: {listed}. Resample to one of them with sfreq={min(rates):g} "
            f"(--sfreq {min(rates):g})."
        )
    high = None if how.band is None else how.band[1]
    if high is not None and high >= min(rates) / 2:
        raise SettingError(
            f"At {min(rates):g} Hz ({join_some(rates[min(rates)])}) there is nothing above "
            f"{min(rates) / 2:g} Hz, but the band goes up to {high:g} Hz. Give a lower one, or no "
            "upper edge."
        )
    if how.sfreq is not None and how.sfreq > min(rates) and not _same_rate(how.sfreq, min(rates)):
        warnings.warn(
            f"{join_some(rates[min(rates)])} has {min(rates):g} Hz: resampling it to {how.sfreq:g} "
            "Hz adds time points and no knowledge.",
            DataWarning,
            stacklevel=4,
        )


def _channels(opened: Sequence[Opened], how: Cutting) -> list[str]:
    """Choose the channels before anything is read."""
    recorded = [
        Recorded(
            one.subject, data_channels(one.data, one.subject, how.channels), one.sfreq, np.empty(0)
        )
        for one in opened
    ]
    return common_channels(recorded, how.channels)


def _cut(
    one: Opened, how: Cutting, names: list[str], left_out: Counter[str]
) -> tuple[Any, list[str]]:
    """Filter, resample and cut a recording."""
    mne = need_mne()
    events = events_of(one.data, how.events, one.name)
    if not len(events.rows):
        return None, []
    with by_mne(f"{one.name} with these options", ""):
        # The signals that are used, and no others, are read, filtered and resampled. Filtered by
        # name: by default MNE passes over EMG.
        raw = one.data.copy().pick(names, verbose="WARNING").load_data(verbose="WARNING")
        if how.band is not None:
            raw.filter(*how.band, picks=names, verbose="WARNING")
        rows = events.rows
        if how.sfreq is not None and not _same_rate(how.sfreq, one.sfreq):
            raw, rows = raw.resample(how.sfreq, events=rows, verbose="WARNING")
        epochs = mne.Epochs(
            raw,
            rows,
            events.codes,
            tmin=how.tmin or 0.0,
            tmax=how.tmax,
            baseline=None,
            preload=True,
            on_missing="ignore",
            verbose="WARNING",
        )
    # The reasons of MNE: BAD_... of an annotation, TOO_SHORT, NO_DATA.
    left_out.update(reasons[0] for reasons in epochs.drop_log if reasons)
    return epochs, _names(epochs)


def _crop(
    one: Opened, how: Cutting, names: list[str], left_out: Counter[str]
) -> tuple[Any, list[str]]:
    """Take epochs as they are, or the part of them that is asked for."""
    del names, left_out  # those that were rejected, were rejected knowingly
    with by_mne(f"{one.name} with these options", ""):
        epochs = one.data.copy()
        epochs.drop_bad(verbose="WARNING")  # which gives nothing in MNE 1.8
        keep, labels = rename(_names(epochs), how.events)
        if not labels:
            return None, []
        epochs = epochs[keep].load_data()
        # Before they are cropped: resampling spoils the ends.
        if how.sfreq is not None and not _same_rate(how.sfreq, one.sfreq):
            epochs.resample(how.sfreq, verbose="WARNING")
        if how.tmin is not None or how.tmax is not None:
            first, last = epochs.times[[0, -1]]
            step = 0.5 / one.sfreq
            start = first if how.tmin is None else how.tmin
            stop = last if how.tmax is None else how.tmax
            if start < first - step or stop > last + step:
                raise SettingError(
                    f"The epochs of {one.name} go from {first:g} to {last:g} s: they cannot be "
                    f"cropped to {start:g} to {stop:g} s."
                )
            epochs.crop(how.tmin, how.tmax, verbose="WARNING")
    return epochs, labels


def _names(epochs: Any) -> list[str]:
    by_code = {code: name for name, code in epochs.event_id.items()}
    return [by_code[code] for code in epochs.events[:, 2].tolist()]


def _require_events(
    opened: Sequence[Opened], how: Cutting, empty: Sequence[str], y: Sequence[str]
) -> None:
    """See that there are trials, and of every class that was asked for."""
    wanted = how.events if isinstance(how.events, dict) else {}
    missing = [name for name in wanted if name not in y]
    if not missing and y:
        return
    if opened[0].is_cut:
        there = sorted({name for one in opened for name in one.data.event_id})
    else:
        there = sorted({name for one in opened for name in known_events(one.data)})
    lacking = [wanted[name] for name in missing if wanted[name] not in there]
    if lacking:
        raise LabelError(
            f"No recording has the event {join_some(lacking)}. Events: "
            f"{join_some(there, 20) or 'none'}."
        )
    if not there and not isinstance(how.events, Path):
        raise LabelError(
            f"There is neither an annotation nor a stimulus channel in {join_some(empty)}, so "
            "nobody knows where trials begin. Give a file of events: events='...' (--events)."
        )
    raise EmptyDataError(
        f"No trial of {join_some(missing) or 'any kind'} is left of {join_some(empty)}: all lie in "
        "stretches marked as bad or reach beyond the recording. See tmin and tmax."
    )


def _warn(left_out: Counter[str], kept: int, empty: Sequence[str]) -> None:
    if left_out:
        total = kept + left_out.total()
        reasons = ", ".join(f"{n} {reason}" for reason, n in left_out.most_common())
        warnings.warn(
            f"{left_out.total()} of {total} trials were left out; MNE's reasons: {reasons}.",
            DataWarning,
            stacklevel=4,
        )
    if empty:
        warnings.warn(f"There is no trial in {join_some(empty)}.", DataWarning, stacklevel=4)
