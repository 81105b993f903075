"""Files and folders that appear whole or not at all.

A run may be killed at any moment. Everything here is written to a hidden sibling first, flushed to
the disk and then renamed, so that whoever opens the final name sees the old content or the new,
never a half. A process killed on the way leaves a hidden sibling named ``.<name>.<hex>.tmp``, which
nothing opens and which may be deleted.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

PathLike = str | os.PathLike[str]


@contextlib.contextmanager
def file(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name only when the block ends well.

    Parameters
    ----------
    path : path
        Final name. A file that already has it is replaced.

    Yields
    ------
    binary file
        Where to write.
    """
    target = Path(path).expanduser().resolve()
    temp = _sibling(target, "tmp")
    try:
        with temp.open("xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temp, target)  # noqa: PTH105 -- the module is about this very call
    except BaseException:
        temp.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def write_bytes(path: PathLike, data: bytes) -> None:
    """Write a file in one step: other processes see the old content or all of the new."""
    with file(path) as handle:
        handle.write(data)


def write_json(path: PathLike, obj: Any) -> None:
    r"""Write an object as readable JSON (UTF-8, no NaN) in one step.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as there:
    ...     write_json(Path(there) / "a.json", {"sfreq": 200.0})
    ...     (Path(there) / "a.json").read_text()
    '{\n  "sfreq": 200.0\n}\n'
    """
    # Made before the file is touched: an object JSON cannot hold must not cost the old content.
    text = json.dumps(obj, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_bytes(path, text.encode())


@contextlib.contextmanager
def folder(path: PathLike, overwrite: bool = False) -> Iterator[Path]:
    """Fill a folder that takes its name only when the block ends well.

    Parameters
    ----------
    path : path
        Final name of the folder.
    overwrite : bool, default False
        Whether a folder that already has the name is replaced (all of it is deleted). Without it
        an existing path is a `FileExistsError`, raised before anything is written.

    Yields
    ------
    Path
        A temporary folder beside `path`, to write into.

    Notes
    -----
    No file system call that Python offers exchanges two full folders, so replacing takes two
    renames. A kill exactly between them leaves no folder of that name, and the old one whole as
    ``.<name>.<hex>.old``.
    """
    target = Path(path).expanduser().resolve()
    if target.exists() and not overwrite:
        raise FileExistsError(f"{target} already exists.")
    temp = _sibling(target, "tmp")
    # Not tempfile.mkdtemp: that makes folders which colleagues cannot read.
    temp.mkdir()
    try:
        yield temp
        for item in temp.rglob("*"):
            if item.is_file():
                _sync_file(item)
            else:
                sync_folder(item)
        sync_folder(temp)
        _move_in(temp, target, overwrite)
    except BaseException:
        shutil.rmtree(temp, ignore_errors=True)
        raise
    sync_folder(target.parent)


def _move_in(temp: Path, target: Path, overwrite: bool) -> None:
    """Rename `temp` to `target`, putting what stands there aside and back again on failure."""
    if not target.exists():
        temp.rename(target)
        return
    if not overwrite:  # it was made by somebody else while we were writing
        raise FileExistsError(f"{target} already exists.")
    old = _sibling(target, "old")
    target.rename(old)
    try:
        temp.rename(target)
    except BaseException:
        old.rename(target)
        raise
    if old.is_dir():
        shutil.rmtree(old, ignore_errors=True)
    else:
        old.unlink()


def _sibling(target: Path, ending: str) -> Path:
    """Make a hidden, unused name in the same folder (renames do not cross file systems)."""
    return target.with_name(f".{target.name}.{uuid.uuid4().hex}.{ending}")


def _sync_file(path: Path) -> None:
    # Opened for writing: Windows refuses to flush a file opened for reading.
    with path.open("r+b") as handle:
        os.fsync(handle.fileno())


def sync_folder(path: Path) -> None:
    """Make names in a folder survive a power cut; only POSIX lets a folder be opened for it."""
    if os.name == "nt":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
