"""Data sets in one ``.npz`` file, perhaps with a JSON of the same name beside it.

The file holds ``X``, ``y`` and ``subject``; ``session``, ``recording``, ``sfreq``, ``channels``,
``unit``, ``class_names`` and ``subject_names`` are optional. Signals may be int16 with a ``scale``:
they stay int16 in memory. What the ``.npz`` does not say is taken from the JSON (``sfreq``,
``channel_names``, ``unit``, ``class_names``, ``subject_names``). Nothing in them is executed.
"""

from __future__ import annotations

import contextlib
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer import atomic
from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.info import VOLTS, Recording, SignalInfo
from autotransfer.data.sources import files, npy
from autotransfer.data.trials import TrialArray
from autotransfer.data.validate import as_channel_names, as_sampling_rate, as_trials, as_unit
from autotransfer.errors import SettingError, SourceError, join_some

NEEDED = ("X", "y", "subject")
# Our words first, then those found in files that other people wrote.
CHANNEL_KEYS = ("channels", "channel_names")
CLASS_KEYS = ("classes", "class_names")
SUBJECT_KEYS = ("subjects", "subject_names")

_LONGEST_READ = 2**26


def read_npz(path: atomic.PathLike, subject: str | None = None) -> SubjectDataset:
    """Read a data set from a ``.npz`` file.

    Parameters
    ----------
    path : path
        The file. ``<stem>.json`` beside it is read too, if it exists.
    subject : str, optional
        Whose trials these are, for a file of one person that does not say it.

    Returns
    -------
    SubjectDataset
        Signals in memory; int16 signals with a scale are not blown up to float32.

    Raises
    ------
    SourceError
        The file is missing, damaged, holds pickled objects or lacks X, y or subject, or the JSON
        beside it is not as described above.

    Examples
    --------
    >>> import tempfile
    >>> data = SubjectDataset(np.ones((4, 2, 9)), ["fist", "rest"] * 2, [1, 1, 2, 2], sfreq=200)
    >>> with tempfile.TemporaryDirectory() as there:
    ...     write_npz(data, Path(there) / "gestures.npz")
    ...     read_npz(Path(there) / "gestures.npz")
    SubjectDataset(4 trials, 2 subjects, 2 classes, 2 channels x 9 times, 200 Hz)
    """
    file = Path(path).expanduser()
    with _opened(file, NEEDED if subject is None else NEEDED[:2]) as arrays, files.about(file):
        if subject is not None and "subject" in arrays.members:
            raise SettingError(f"{file} says itself whose trials it holds: leave subject out.")
        y = arrays["y"]
        return SubjectDataset(
            arrays.signals(),
            y,
            np.full(len(y), subject) if subject is not None else arrays["subject"],
            session=arrays.get("session"),
            recording=arrays.get("recording"),
            sfreq=arrays.number("sfreq"),
            channels=arrays.names(CHANNEL_KEYS),
            unit=arrays.unit(),
            classes=arrays.names(CLASS_KEYS),
            subjects=arrays.names(SUBJECT_KEYS) if subject is None else None,
        )


def members(path: atomic.PathLike) -> list[str]:
    """Name the arrays of a ``.npz`` file."""
    with _opened(Path(path).expanduser(), required=()) as arrays:
        return list(arrays.members)


def read_recording(path: atomic.PathLike) -> Recording:
    """Read a ``.npz`` file without labels: trials of a new person, to predict.

    Returns
    -------
    Recording
        Trials x channels x times.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as there:
    ...     np.savez(Path(there) / "new.npz", X=np.ones((4, 2, 9)))
    ...     read_recording(Path(there) / "new.npz").trials.shape
    (4, 2, 9)
    """
    file = Path(path).expanduser()
    with _opened(file, required=("X",)) as arrays, files.about(file):
        trials = arrays.signals()
        channels = arrays.names(CHANNEL_KEYS)
        names = None if channels is None else as_channel_names(channels, trials.shape[1])
        rate = as_sampling_rate(arrays.number("sfreq"))
        return Recording(trials, SignalInfo.of(names, rate, arrays.unit()))


def write_npz(data: SubjectDataset, path: atomic.PathLike) -> None:
    """Write a data set to a ``.npz`` file, all at once: a crash leaves the old file or none.

    Parameters
    ----------
    data : SubjectDataset
        What to write. Quantised signals stay int16 with their scale, all others become float32.
    path : path
        The file, ending in ``.npz``. An existing one is replaced.

    Notes
    -----
    The signals are held in memory; for data larger than that see `write_store`.
    """
    file = Path(path).expanduser()
    if file.suffix.lower() != ".npz":
        raise SourceError(f"{file} must end in .npz, so that it can be found as such again.")
    if not file.parent.is_dir():
        raise SourceError(f"{file} cannot be written: there is no folder {file.parent}. Make it.")
    trials, dtype, scale = files.stored_form(data.trials)
    arrays = {
        "X": np.concatenate([block.astype(dtype, copy=False) for _, block in trials.chunks()]),
        "y": data.y,
        "subject": data.subject,
        "session": data.session,
        "recording": data.recording,
        "scale": scale,
        "sfreq": data.sfreq,
        "channels": data.channels,
        "unit": data.unit,
        "class_names": data.class_names,
        "subject_names": data.subject_names,
    }
    present: dict[str, Any] = {key: value for key, value in arrays.items() if value is not None}
    with atomic.file(file) as handle:
        np.savez(handle, **present)


class _Archive(io.FileIO):
    """A file for zipfile, which reads the list of members at once, however long it says it is."""

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > _LONGEST_READ:
            raise ValueError(f"its list of members has {size} bytes")
        return super().read(size)


@contextlib.contextmanager
def _opened(path: Path, required: tuple[str, ...] = NEEDED) -> Iterator[_Arrays]:
    """Open a ``.npz`` file that has some arrays."""
    if not path.is_file():
        raise SourceError(f"There is no file {path}. Check the path.")
    with contextlib.ExitStack() as stack:
        with files.damage(
            f"{path} is damaged or not a .npz file",
            "Copy it again, or write it with numpy.savez or write_npz.",
        ):
            handle = stack.enter_context(_Archive(path))
            if handle.read(6) == np.lib.format.MAGIC_PREFIX:
                raise SourceError(
                    f"{path} holds a single array, not a .npz archive. Write X, y and subject "
                    "together with numpy.savez(path, X=X, y=y, subject=subject)."
                )
            arrays = _Arrays(path, stack.enter_context(zipfile.ZipFile(handle)))
        missing = [key for key in required if key not in arrays.members]
        if missing:
            raise SourceError(
                f"{path} lacks {join_some(missing)}. It holds: "
                f"{join_some(list(arrays.members), 40) or 'nothing'}. Needed are: "
                f"{join_some(required)}."
            )
        yield arrays


class _Arrays:
    """The arrays of a ``.npz`` file, each read when asked for, with errors that name the file.

    What the archive does not hold is looked for in the JSON of the same name beside it.
    """

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self._archive = path, archive
        self.members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        self.side = path.with_suffix(".json")
        self.beside = files.read_json_object(self.side) if self.side.is_file() else {}

    def __getitem__(self, key: str) -> npt.NDArray[Any]:
        what, member = f'"{key}" of {self.path}', self.members[key]
        with files.damage(f"{what} is damaged", "Copy or write the file again."):
            # Others take memory as they please to unpack, and numpy writes none.
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError("it is packed in a way that numpy does not know")
            with self._archive.open(member) as handle:
                header = npy.read_header(handle)
            if header.dtype.hasobject:
                raise SourceError(
                    f"{what} is an array of Python objects (a pickle). Reading it could execute "
                    "code, so it is refused: write it as numbers or as strings, for instance "
                    f"{key}.astype(str)."
                )
            header.check(member.file_size)
            npy.check_packing(min(member.compress_size, self.path.stat().st_size), member.file_size)
            try:
                with self._archive.open(member) as handle:
                    array: npt.NDArray[Any] = np.lib.format.read_array(handle, allow_pickle=False)
            except MemoryError as error:
                raise SourceError(
                    f"{what} does not fit memory ({error}). Write the data as a folder store with "
                    "StoreWriter, which is read from disk as needed."
                ) from error
            return array

    def get(self, key: str) -> npt.NDArray[Any] | None:
        """Array of this name, if there is one."""
        return self[key] if key in self.members else None

    def signals(self) -> TrialArray:
        """Read the signals, with their scale."""
        signals = as_trials(self["X"]).base
        # Beside signals that are no integers, a scale only tells how they were once recorded.
        scale = self.number("scale", beside=signals.dtype.kind in "iu")
        if scale is not None and not scale > 0:
            raise SourceError(f'"scale" of {self.path} must be positive, not {scale}.')
        return TrialArray(signals, scale=scale)

    def number(self, key: str, beside: bool = True) -> float | None:
        """Single number of this name, if there is one."""
        array = self.get(key)
        if array is None:
            return files.number(self.beside.get(key), key, self.side) if beside else None
        if array.size != 1 or array.dtype.kind not in "fiu":
            raise SourceError(
                f'"{key}" of {self.path} must be one number, not {array.dtype} of shape '
                f"{array.shape}."
            )
        return files.number(array.reshape(-1)[0].item(), key, self.path)

    def unit(self) -> str | None:
        """Read the unit of the signals; words of others are believed if they are a plain unit."""
        array = self.get("unit")
        if array is not None:
            return as_unit(array.item() if array.size == 1 else array.tolist())
        if "unit" in self.beside:
            return as_unit(self.beside["unit"])
        word = self.beside.get("x_units")
        return word if isinstance(word, str) and word in VOLTS else None

    def names(self, keys: tuple[str, ...]) -> Any:
        """Names stored under the first of these keys that is there."""
        inside = self.text(keys)
        if inside is not None:
            return inside
        key = next((key for key in keys if key in self.beside), keys[-1])
        check = files.name_list if keys is CHANNEL_KEYS else files.names
        return check(self.beside.get(key), key, self.side)

    def text(self, keys: tuple[str, ...]) -> list[str] | None:
        """List of names stored under the first of these keys that is there."""
        first = next((key for key in keys if key in self.members), None)
        if first is None:
            return None
        array = self[first]
        if array.ndim != 1 or array.dtype.kind not in "US":
            raise SourceError(
                f'"{first}" of {self.path} must be a list of names (strings), not {array.dtype} of '
                f"shape {array.shape}."
            )
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf-8", "replace")
        return [str(name) for name in array]
