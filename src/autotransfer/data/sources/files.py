"""What the file formats share: checked JSON descriptions, and how signals are stored.

A file comes from somebody else, so nothing in it is believed: every value is checked for its type
and an error names the file.
"""

from __future__ import annotations

import contextlib
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.data.trials import Float32, Index, TrialArray
from autotransfer.documents import read_object
from autotransfer.errors import AutoTransferError, DataError, SettingError, SourceError

_DAMAGE = (
    *(ValueError, OSError, EOFError, RuntimeError, OverflowError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)


def read_json_object(path: Path) -> dict[str, Any]:
    """Read a JSON file that must hold an object (``{...}``)."""
    return read_object(path, SourceError, "Repair the file or write it again.")


def number(value: Any, key: str, path: Path) -> float | None:
    """Check that a described value is a finite number, or not given."""
    if value is None:
        return None
    real = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not real or not math.isfinite(value):
        raise SourceError(f'"{key}" in {path} must be a number, not {short(value)}.')
    return float(value)


def names(value: Any, key: str, path: Path) -> list[str] | dict[str, str] | None:
    """Check that a described value is a list of names or a mapping id -> name, or not given."""
    if value is None:
        return None
    items = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise SourceError(
            f'"{key}" in {path} must be a list of names (strings), not {short(value)}.'
        )
    return value  # type: ignore[no-any-return]


def name_list(value: Any, key: str, path: Path) -> list[str] | None:
    """Check that a described value is a list of names, or not given."""
    if isinstance(value, dict):
        raise SourceError(f'"{key}" in {path} must be a list of names, not {short(value)}.')
    return names(value, key, path)  # type: ignore[return-value]


@contextlib.contextmanager
def about(path: Path) -> Iterator[None]:
    """Put the file's name before the message of an error about its data."""
    try:
        yield
    except DataError as error:
        raise type(error)(f"{path}: {error}") from error


@contextlib.contextmanager
def damage(what: str, advice: str) -> Iterator[None]:
    """Turn what numpy, zipfile and zlib raise on damaged files into a `SourceError`."""
    try:
        yield
    except AutoTransferError:
        raise
    except _DAMAGE as error:
        raise SourceError(f"{what} ({error}). {advice}") from error


def require_seconds(seconds: float) -> None:
    """Refuse a length of trials that is not above 0."""
    if not seconds > 0:
        raise SettingError(f"seconds must be above 0, not {seconds!r}.")


def as_ids(subjects: Sequence[str] | str) -> list[str]:
    """List the ids of the subjects that a person asks for."""
    return [str(subject) for subject in np.atleast_1d(np.asarray(subjects))]


def cut(signals: npt.NDArray[Any], starts: Index, n_times: int) -> Float32:
    """Cut trials (n_trials, n_channels, n_times) out of signals (n_all, n_channels)."""
    rows = starts[:, None] + np.arange(n_times)
    return np.array(signals[rows].transpose(0, 2, 1), np.float32, order="C")


def stored_form(trials: TrialArray) -> tuple[TrialArray, npt.DTypeLike, float | None]:
    """Choose how signals go to disk: int16 with a scale where that is exact, else float32.

    Returns
    -------
    trials : TrialArray of shape (n_trials, n_channels, n_times)
        The signals as the numbers to be written (an int16 is exact as the float32 it is read as).
    dtype : numpy dtype
        ``int16`` or ``float32``, little-endian.
    scale : float or None
        Factor from written numbers to signal units.

    Examples
    --------
    >>> quantised = TrialArray(np.full((1, 1, 2), 7, np.int16), scale=0.5)
    >>> stored_form(quantised)[1:]
    (dtype('int16'), 0.5)
    """
    if np.can_cast(trials.base.dtype, np.int16):
        return (
            TrialArray(trials.base, trials.index, None, trials.channels),
            np.dtype("<i2"),
            trials.scale,
        )
    return trials, np.dtype("<f4"), None


def short(value: Any) -> str:
    """Write a value for a message, however long it is."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
