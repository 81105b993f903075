"""Files that MNE reads: which they are, and how they are opened."""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from autotransfer.errors import (
    AutoTransferError,
    AutoTransferWarning,
    DataWarning,
    MissingExtraError,
    SourceError,
    join_some,
)

FIF = (".fif", ".fif.gz")

ENDINGS = (
    *FIF,
    *(".edf", ".bdf", ".gdf", ".vhdr", ".ahdr", ".set", ".cnt", ".mff", ".nxe", ".nedf"),
    *(".cdt", ".lay", ".mefd", ".con", ".sqd", ".ds"),
)
"""Endings of recordings: those of MNE's formats that are used for nothing else. Where a recording
is several files (BrainVision, EEGLAB), the one that is opened."""

# A recording longer than a file may be goes on in files that MNE opens by itself.
_SPLIT = re.compile(r"_split-0*(?!1_|0)\d+_")
_NUMBERED = re.compile(r"-\d+(?=\.fif(\.gz)?$)")

# That MNE would call the file otherwise; that no trial is left, which we say ourselves.
_IDLE = re.compile("naming conventions|All epochs were dropped")


def ending(path: Path) -> str:
    """Give the ending of a recording, such as ".edf"; "" where it is no recording by its name.

    Examples
    --------
    >>> ending(Path("anna_raw.fif.gz")), ending(Path("a.EDF")), ending(Path("a.npz"))
    ('.fif.gz', '.edf', '')
    """
    name = path.name.lower()
    return next((end for end in reversed(ENDINGS) if name.endswith(end)), "")


def stem(path: Path) -> str:
    """Give the name of a recording without its ending."""
    return path.name[: len(path.name) - len(ending(path))]


def files_below(folder: Path) -> list[Path]:
    """List the recordings in a folder and the folders in it, sorted; hidden ones are left out.

    Of FIF files only those are listed that hold signals: covariances, events and the like have the
    same ending.
    """
    found = sorted(_walk(folder))
    first = [path for path in found if not _goes_on(path)]
    return [path for path in first if ending(path) not in FIF or kind(path) in ("raw", "epochs")]


def has_recordings(folder: Path) -> bool:
    """Tell by names whether there are recordings in a folder, without looking into them."""
    return next(_walk(folder), None) is not None


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            if not name.startswith(".") and ending(Path(name)):
                yield Path(place, name)
        # Some recordings (.mff, .ds) are folders themselves.
        folders[:] = [one for one in folders if not one.startswith(".") and not ending(Path(one))]


def _goes_on(path: Path) -> bool:
    """Whether a file is a later part of a recording that another file begins."""
    begins = _NUMBERED.sub("", path.name)
    begun = begins != path.name and path.with_name(begins).exists()
    return begun or bool(_SPLIT.search(path.name))


def kind(path: Path) -> str:
    """Tell whether a file holds "raw" signals or "epochs"; or what else a FIF file holds."""
    if ending(path) not in FIF:
        return "raw"
    mne = need_mne()
    with by_mne(path):
        return str(mne.what(path))


def open_file(path: Path) -> Any:
    """Open a recording or epochs; the signals are not read yet."""
    mne = need_mne()
    what = kind(path)
    with by_mne(path):
        if what == "epochs":
            return mne.read_epochs(path, preload=False, verbose="WARNING")
        if what == "raw":
            return mne.io.read_raw(path, preload=False, verbose="WARNING")
    raise SourceError(
        f"{path} holds neither a recording nor epochs (what MNE finds in it: {what}). Hand over a "
        "file of signals, such as one that raw.save or epochs.save wrote."
    )


def need_mne() -> Any:
    """Import MNE, or say how to install it."""
    try:
        import mne
    except ImportError as error:
        raise MissingExtraError(
            "MNE is needed to read recordings. Install it with pip install mne."
        ) from error
    return mne


@contextlib.contextmanager
def by_mne(what: Any, advice: str = "See that the file is whole.") -> Iterator[None]:
    """Let MNE work on a file; where it fails or warns, say which file it was.

    Parameters
    ----------
    what : path or str
        The file.
    advice : str
        What to do if MNE fails, as a sentence.
    """
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    except (AutoTransferError, MemoryError):
        raise
    except ImportError as error:
        raise MissingExtraError(f"MNE needs another library for {what}: {error}") from error
    # Two dozen readers of formats by as many authors: anything may come of a damaged file.
    except Exception as error:
        raise SourceError(f"MNE cannot read {what}: {_line(error)} {advice}") from error
    for one in caught:
        if issubclass(one.category, RuntimeWarning) and not _IDLE.search(str(one.message)):
            # As ours, which show nothing that could steer a terminal.
            warnings.warn(f"{what}: {_line(one.message)}", DataWarning, stacklevel=3)
        elif issubclass(one.category, AutoTransferWarning):
            warnings.warn(one.message, stacklevel=3)


def _line(message: Any) -> str:
    """Give the first line of what MNE says, up to a length that can be read."""
    words = (str(message).strip().splitlines() or [type(message).__name__])[0]
    return words if len(words) <= 300 else f"{words[:300]}..."


def no_recordings(folder: Path) -> SourceError:
    """Say that a folder holds no recordings."""
    inside = sorted(path.name for path in folder.iterdir())
    return SourceError(
        f"There are no recordings in {folder}, only {join_some(inside) or 'nothing'}. Recordings "
        f"are files ending in {join_some(ENDINGS, 20)}."
    )


def unique_names(paths: Iterable[Path]) -> list[str]:
    """Name recordings: by their files' names or, where two have the same, by their paths.

    Examples
    --------
    >>> unique_names([Path("a/one.edf"), Path("a/two.edf")])
    ['one', 'two']
    >>> unique_names([Path("a/one.edf"), Path("b/one.edf")])
    ['a/one', 'b/one']
    """
    files = list(paths)
    names = [stem(path) for path in files]
    if len(set(names)) == len(names):
        return names
    return [path.with_name(stem(path)).as_posix() for path in files]
