"""`read_bids`: people, sessions and runs of a BIDS folder, by MNE-BIDS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.sources.recordings.cut import Opened, cut_all, cutting
from autotransfer.data.sources.recordings.files import by_mne, ending, need_mne
from autotransfer.errors import MissingExtraError, SettingError, SourceError, join_some

KINDS = ("eeg", "emg", "ieeg", "meg")
"""Kinds of recordings (BIDS: datatypes) that are read."""

_DESCRIPTION = "dataset_description.json"


def is_bids(folder: Path) -> bool:
    """Tell whether a folder is one of BIDS: it describes itself, or holds folders of subjects."""
    if (folder / _DESCRIPTION).is_file():
        return True
    return any(
        (one / kind).is_dir() or any(one.glob(f"ses-*/{kind}"))
        for one in folder.glob("sub-*")
        for kind in KINDS
    )


def read_bids(
    root: str | Path,
    task: str | None = None,
    events: Any = None,
    tmin: float | None = None,
    tmax: float | None = None,
    band: Sequence[float | None] | None = None,
    sfreq: float | None = None,
    channels: Sequence[str] | str | None = None,
) -> SubjectDataset:
    """Read the recordings of a BIDS folder and cut them into trials, by MNE-BIDS and MNE.

    Parameters
    ----------
    root : path
        The folder that holds the folders of the subjects.
    task : str, optional
        Task of the recordings to read, needed where there are several.
    events, tmin, tmax, band, sfreq, channels
        As of `read_recordings`; events are by default all in the ``events.tsv`` files.

    Returns
    -------
    SubjectDataset
        Subjects and sessions by their names in BIDS, without ``sub-`` and ``ses-``; ``recording``
        is subject, session and run, as in "01/day1/2".

    Raises
    ------
    SourceError
        There are no such recordings, or recordings of several kinds.
    SettingError
        There are several tasks, or not this one.
    MissingExtraError
        MNE-BIDS is not installed.
    """
    how = cutting(events, tmin, tmax, band, sfreq, channels)
    if isinstance(how.events, Path):
        raise SettingError("A BIDS folder has a file of events for each recording: give names.")
    mne_bids = _need_mne_bids()
    root = Path(root).expanduser()
    with by_mne(root, "See that the folder is as BIDS asks."):
        found = mne_bids.find_matching_paths(root, ignore_nosub=True)
    found = [path for path in found if _is_recording(path)]
    chosen = _of_task(found, task, root)
    kinds = sorted({path.suffix for path in chosen})
    if len(kinds) > 1:
        raise SourceError(
            f"{root} has recordings of several kinds: {join_some(kinds)}. Hand over the files of "
            "one of them: load([file, file, ...])."
        )
    return cut_all([_open(path) for path in chosen], how)


def _need_mne_bids() -> Any:
    need_mne()
    try:
        import mne_bids
    except ImportError as error:
        raise MissingExtraError(
            "MNE-BIDS is needed to read a BIDS folder. Install it with pip install mne-bids "
            "(or autotransfer[bids])."
        ) from error
    return mne_bids


def _is_recording(path: Any) -> bool:
    """Whether a file is what is opened of a recording: no table beside it, no later part of it."""
    kind = path.fpath.parent.name
    main = kind in KINDS and path.suffix == kind and bool(ending(path.fpath))
    return main and path.split in (None, "01", "1")


def _of_task(found: Sequence[Any], task: str | None, root: Path) -> list[Any]:
    if not found:
        raise SourceError(
            f"{root} looks like a BIDS folder, but no {join_some(KINDS)} recording is in it."
        )
    tasks = sorted({path.task for path in found if path.task is not None})
    if task is None and len(tasks) > 1:
        raise SettingError(
            f"{root} has several tasks: {join_some(tasks, 20)}. Choose one by task=... (--task)."
        )
    if task is not None and task not in tasks:
        raise SettingError(
            f"{root} has no task {task!r}. It has: {join_some(tasks, 20) or 'none with a name'}."
        )
    return [path for path in found if task is None or path.task == task]


def _open(path: Any) -> Opened:
    with by_mne(path.fpath):
        raw = _need_mne_bids().read_raw_bids(path, verbose="WARNING")
    # Of two recordings of a run that differ in something else, neither may be lost.
    others = [path.acquisition, path.processing, path.recording]
    parts = [path.subject, path.session, path.run, *others]
    name = "/".join(part for part in parts if part is not None)
    return Opened(name, path.subject, raw, path.session)
