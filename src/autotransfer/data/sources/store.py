"""Data sets larger than memory: a folder of plain arrays, read from disk as needed.

A store is a folder with ``X.npy`` (float32, or int16 with a scale), ``y.npy``, ``subject.npy``,
perhaps ``session.npy`` and ``recording.npy``, and ``dataset.json``, which describes them and is
written last. Text labels are fixed-width arrays: nothing in a store is pickled.
"""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path
from typing import Any, BinaryIO, Literal, Self

import numpy as np
import numpy.typing as npt

from autotransfer import atomic
from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.sources import files
from autotransfer.data.sources.store_format import (
    DESCRIPTION,
    LABELS,
    describe,
    is_store,
    read_store,
)
from autotransfer.data.trials import TrialArray
from autotransfer.data.validate import (
    as_channel_names,
    as_labels,
    as_sampling_rate,
    as_trials,
    as_unit,
)
from autotransfer.errors import (
    ChannelMismatchError,
    DtypeError,
    EmptyDataError,
    SettingError,
    ShapeError,
    SourceError,
    join_some,
)

__all__ = ["StoreWriter", "read_store", "write_store"]

# Room for the description of any shape, so that it can be filled in when the shape is known.
_HEADER_BYTES = 192
_WRITE_BYTES = 16 * 2**20


def write_store(data: SubjectDataset, path: atomic.PathLike, overwrite: bool = False) -> None:
    """Write a data set to a folder store; signals on disk are never all in memory.

    Parameters
    ----------
    data : SubjectDataset
        What to write. Quantised signals stay int16 with their scale, all others become float32.
    path : path
        The folder. It appears only when it is complete.
    overwrite : bool, default False
        Whether an existing store is replaced. A folder that is not a store never is.
    """
    trials, dtype, scale = files.stored_form(data.trials)
    writer = StoreWriter(
        path,
        dtype="int16" if dtype == np.int16 else "float32",
        scale=scale,
        sfreq=data.sfreq,
        channels=data.channels,
        unit=data.unit,
        classes=data.class_names,
        subjects=data.subject_names,
        overwrite=overwrite,
    )
    with writer:
        writer._append(trials, data.y, data.subject, data.session, data.recording)


class StoreWriter:
    """Build a store block by block, for instance person by person.

    Parameters
    ----------
    path : path
        The folder. It appears when the ``with`` block ends well, and not at all otherwise.
    dtype : {"float32", "int16"}, default "float32"
        How signals are stored.
    scale : float, optional
        Factor that turns stored int16 into signal units.
    sfreq, channels, unit, classes, subjects
        As of `SubjectDataset`.
    overwrite : bool, default False
        Whether an existing store is replaced. A folder that is not a store never is.

    Notes
    -----
    Memory holds one block and the labels of all trials. When all is written, the signals are read
    once more for the fingerprint.

    Examples
    --------
    >>> import tempfile
    >>> rng = np.random.default_rng(0)
    >>> with tempfile.TemporaryDirectory() as there:
    ...     with StoreWriter(Path(there) / "study", sfreq=100) as writer:
    ...         for person in ("ann", "bob"):
    ...             writer.append(rng.normal(size=(3, 2, 50)), y=[0, 1, 1], subject=person)
    ...     read_store(Path(there) / "study")
    SubjectDataset(6 trials, 2 subjects, 2 classes, 2 channels x 50 times, 100 Hz)
    """

    def __init__(
        self,
        path: atomic.PathLike,
        *,
        dtype: Literal["float32", "int16"] = "float32",
        scale: float | None = None,
        sfreq: float | None = None,
        channels: Any = None,
        unit: str | None = None,
        classes: Any = None,
        subjects: Any = None,
        overwrite: bool = False,
    ) -> None:
        if dtype not in ("float32", "int16"):
            raise SettingError(f'dtype must be "float32" or "int16", not {dtype!r}.')
        real = isinstance(scale, int | float | np.number)
        if scale is not None and (dtype != "int16" or not real or not 0 < scale < np.inf):
            raise SettingError(
                f"scale={scale!r} must be a positive number, and goes with dtype='int16' only."
            )
        if not isinstance(path, str | os.PathLike):
            raise SettingError(f"path must be the path of a folder, not {path!r}.")
        self.path = Path(path).expanduser()
        self.overwrite = overwrite
        self._dtype = np.dtype("<i2" if dtype == "int16" else "<f4")
        self._scale = None if scale is None else float(scale)
        self._known: dict[str, Any] = {
            "sfreq": as_sampling_rate(sfreq),
            "channels": channels,
            "unit": as_unit(unit),
            "classes": classes,
            "subjects": subjects,
        }
        self._labels: dict[str, list[npt.NDArray[Any]]] = {}
        self._shape = (0, 0, 0)
        self._file: BinaryIO | None = None

    def __enter__(self) -> Self:
        _refuse(self.path, self.overwrite)
        with contextlib.ExitStack() as stack:
            self._folder = stack.enter_context(atomic.folder(self.path, self.overwrite))
            stack.push(self._finish)
            self._file = (self._folder / "X.npy").open("wb")
            self._file.write(bytes(_HEADER_BYTES))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def append(
        self, X: Any, y: Any, subject: Any, session: Any = None, recording: Any = None
    ) -> None:
        """Add trials.

        Parameters
        ----------
        X : array of shape (n_trials, n_channels, n_times)
            Signals; whole numbers within int16 if the store holds int16.
        y, subject, session, recording : array of shape (n_trials,), or one value for all
            Labels as of `SubjectDataset`; session and recording in every block or in none.
        """
        self._append(as_trials(X), y, subject, session, recording)

    def _append(self, trials: TrialArray, *values: Any) -> None:
        if self._file is None:
            raise SettingError(
                "StoreWriter writes inside a with block: with StoreWriter(...) as writer."
            )
        n = len(trials)
        labels = {
            name: as_labels(np.full(n, value) if np.isscalar(value) else value, name, n)
            for name, value in zip(LABELS, values, strict=True)
            if value is not None or name in ("y", "subject")
        }
        self._check(trials, labels)
        for _, block in trials.chunks(_WRITE_BYTES):
            self._file.write(np.ascontiguousarray(block, self._dtype).data)
        for name, array in labels.items():
            self._labels.setdefault(name, []).append(array)
        self._shape = (self._shape[0] + n, *trials.shape[1:])

    def _check(self, trials: TrialArray, labels: dict[str, npt.NDArray[Any]]) -> None:
        """Refuse a block that does not fit the ones before, before a byte of it is written."""
        block = f"The block of subject {join_some(np.unique(labels['subject']).tolist())}"
        if self._dtype.kind == "i" and not np.can_cast(trials.base.dtype, np.int16):
            raise DtypeError(
                f"{block} has signals of dtype {trials.base.dtype}, which int16 cannot hold "
                "exactly. Round and convert them, or make the store with dtype='float32'."
            )
        if self._dtype.kind == "i" and trials.scale is not None:
            raise DtypeError(
                f"{block} is a TrialArray with a scale of its own. Append its stored numbers, "
                "and give the scale to StoreWriter."
            )
        if self._shape[0] == 0:
            as_channel_names(self._known["channels"], trials.shape[1])
            return
        _, channels, times = self._shape
        if trials.shape[1] != channels:
            raise ChannelMismatchError(
                f"{block} has {trials.shape[1]} channels, the ones before have {channels}. Use the "
                "channels that all subjects have."
            )
        if trials.shape[2] != times:
            raise ShapeError(
                f"{block} has {trials.shape[2]} time points, the ones before have {times}. Cut all "
                "trials to one length."
            )
        if labels.keys() != self._labels.keys():
            incomplete = sorted(labels.keys() ^ self._labels.keys())
            raise ShapeError(f"{block}: give {join_some(incomplete)} in every block or in none.")
        for name, array in labels.items():
            before = self._labels[name][0]
            # numpy would turn numbers into text without a word.
            if (array.dtype.kind in "US") != (before.dtype.kind in "US"):
                raise DtypeError(
                    f"{block} has {name} of dtype {array.dtype}, the ones before of "
                    f"{before.dtype}. Use numbers or text in all blocks."
                )

    def _finish(self, kind: type[BaseException] | None, *_: object) -> None:
        """Complete the arrays and describe them, unless the block ended with an error."""
        file, self._file = self._file, None
        if file is not None:
            with file:
                file.seek(0)
                file.write(_header(self._dtype, self._shape))
        if kind is not None:
            return
        if self._shape[0] == 0:
            raise EmptyDataError(f"No trials were appended, so {self.path} is not written.")
        labels: dict[str, Any] = {k: np.concatenate(v) for k, v in self._labels.items()}
        for name, array in labels.items():
            np.save(self._folder / f"{name}.npy", array, allow_pickle=False)
        signals = np.load(self._folder / "X.npy", mmap_mode="r", allow_pickle=False)
        data = SubjectDataset(TrialArray(signals, scale=self._scale), **labels, **self._known)
        atomic.write_json(self._folder / DESCRIPTION, describe(data))


def _refuse(path: Path, overwrite: bool) -> None:
    """Say no, before hours of writing, to a place where the store could not or must not stand."""
    if not path.parent.is_dir():
        raise SourceError(f"{path} cannot be written: there is no folder {path.parent}. Make it.")
    if not path.exists():
        return
    if not overwrite:
        raise SourceError(f"{path} already exists. Choose another name or pass overwrite=True.")
    if not is_store(path) and not (path.is_dir() and not any(path.iterdir())):
        raise SourceError(
            f"{path} is not a store, so it is not overwritten: what is in it would be lost. "
            "Choose another name, or delete it yourself."
        )


def _header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Make the head of a ``.npy`` file (format 1.0) of a fixed length, whatever the shape."""
    fields = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    room = _HEADER_BYTES - len(np.lib.format.MAGIC_PREFIX) - 4
    text = repr(fields).ljust(room - 1) + "\n"
    return np.lib.format.magic(1, 0) + struct.pack("<H", room) + text.encode("ascii")
