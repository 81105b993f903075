"""`read_recordings`: from continuous recordings in files to labelled trials, by MNE."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.sources.recordings.cut import Opened, cut_all, cutting
from autotransfer.data.sources.recordings.files import (
    ending,
    files_below,
    no_recordings,
    open_file,
    unique_names,
)
from autotransfer.data.sources.recordings.people import subjects_of
from autotransfer.errors import SettingError, SourceError, SubjectError, join_some


def read_recordings(
    source: Any,
    subject: Any = None,
    events: Any = None,
    tmin: float | None = None,
    tmax: float | None = None,
    band: Sequence[float | None] | None = None,
    sfreq: float | None = None,
    channels: Sequence[str] | str | None = None,
) -> SubjectDataset:
    """Read recordings of one or more people and cut them into trials, by MNE.

    Each recording is filtered, resampled and cut around its events, in this order. Epochs that were
    cut before are taken as they are.

    Parameters
    ----------
    source : path, sequence of paths, or mapping subject id -> path or sequence of paths
        Files that ``mne.io.read_raw`` reads (``.fif``, ``.edf``, ``.bdf``, ``.vhdr``, ``.set`` and
        so on), epochs in FIF files, or a folder of either.
    subject : subject id or sequence of them, optional
        Whose the files are: one id for all of them, or one for each. By default what a recording
        tells (``info["subject_info"]["his_id"]``), or its name as in BIDS (``sub-anna_...``).
    events : mapping, sequence of str or path, optional
        What trials are cut around. Name of a class -> description of an annotation, or code of the
        stimulus channel; a list of descriptions; or a file of events for a single recording: a
        table (``.tsv``, ``.csv``) with ``onset`` in seconds and ``trial_type``, or what MNE reads.
        By default all annotations or, where there are none, all codes of the stimulus channel.
    tmin, tmax : float, optional
        Beginning and end of a trial in seconds from its event; both ends belong to it, as in MNE.
        ``tmax`` is needed for recordings; ``tmin`` is 0 by default. Epochs are cropped to them.
    band : (low, high), optional
        Pass band in Hz; either may be None. The filter is MNE's default: FIR, without phase. Not
        for epochs, which are too short to be filtered well.
    sfreq : float, optional
        Sampling rate in Hz to resample to. By default that of the recordings, which must agree.
    channels : sequence of str or "common", optional
        As of `from_mne`.

    Returns
    -------
    SubjectDataset
        Signals as float32 in MNE's units (volts for EEG and EMG); ``recording`` is the file's name
        without its ending.

    Raises
    ------
    SourceError
        A file cannot be read.
    MissingSubjectError
        It is not known whose a recording is.
    LabelError
        There are no such events.
    SettingError
        An option is missing, or has a value outside what is possible.
    ChannelMismatchError, SamplingRateError, ShapeError
        Recordings differ in channels, sampling rate or time window.
    MissingExtraError
        MNE is not installed.

    Notes
    -----
    All recordings are opened and compared before the first is read. Then they are read one after
    the other, so that only one is in memory as a whole. Trials that lie in stretches marked as bad,
    or not wholly within the recording, are left out with a warning. No baseline is subtracted.
    """
    how = cutting(events, tmin, tmax, band, sfreq, channels)
    paths, people = _paths(source)
    if people is not None and subject is not None:
        raise SubjectError("The keys of the mapping are the subject ids: leave subject out.")
    if isinstance(how.events, Path) and len(paths) > 1:
        raise SettingError(
            f"events is one file ({how.events}), but there are {len(paths)} recordings. Load them "
            "one by one, each with its own, and join them with autotransfer.combine."
        )
    opened = [open_file(path) for path in paths]
    ids = subjects_of(paths, opened, subject) if people is None else people
    rows = zip(unique_names(paths), ids, opened, strict=True)
    return cut_all([Opened(*row) for row in rows], how)


def _paths(source: Any) -> tuple[list[Path], list[Any] | None]:
    """List the files, and whose they are if a mapping tells it."""
    if not isinstance(source, Mapping):
        return _files(source), None
    pairs = [(person, path) for person, value in source.items() for path in _files(value)]
    return [path for _, path in pairs], [person for person, _ in pairs]


def _files(source: Any) -> list[Path]:
    given = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    files: list[Path] = []
    for path in (Path(one).expanduser() for one in given):
        if not path.exists():
            raise SourceError(f"{path} does not exist. Check the path.")
        if path.is_dir() and not ending(path):
            found = files_below(path)
            if not found:
                raise no_recordings(path)
            files += found
        elif ending(path):
            files.append(path)
        else:
            raise SourceError(f"{path} is no recording that MNE reads, by its name.")
    twice = [str(path) for path, n in Counter(path.resolve() for path in files).items() if n > 1]
    if twice or not files:
        raise SourceError(
            f"The same file is given twice: {join_some(twice)}." if twice else "There are no files."
        )
    return files
