"""A ledger in a file of JSON lines, written by one process and safe against a kill.

Each line is a trial or a plan, in ASCII. It begins with the id (empty for a plan) and ends with the
CRC-32 of the bytes before ``,"crc"``::

    {"id":"4b0c","stage":"search","run":"a","entry":{...},"curves":{...},"crc":"1a2b3c4d"}
    {"id":"","stage":"search","run":"a","plan":{...},"crc":"5e6f7a8b"}

It is on record when it is on the disk with its newline. What a kill, a power cut or a full disk
leaves of a line that was being written is cut off the end of the file. Any other damage is refused
by the number of the line, and the file is not touched. Opening compares checksums and reads ids
but parses no JSON, so that it takes seconds for a hundred thousand trials.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zlib import crc32

from autotransfer.atomic import sync_folder
from autotransfer.errors import LedgerError
from autotransfer.search.ledger.entry import Entry, entry_of
from autotransfer.search.ledger.lock import FileLock

START, CURVES = b'{"id":"', ',"curves":'
PLAIN = rb"[ !#-\[\]-~]*"  # ASCII without quotes and backslashes
TEXT = rb'"%b(?:\\(?:["\\/bfnrt]|u[0-9a-f]{4})%b)*"' % (PLAIN, PLAIN)
HEAD = re.compile(rb'\{"id":(%b),("stage":%b,"run":%b),"(?:entry|plan)":' % (TEXT, TEXT, TEXT))
TAIL = b',"crc":"%08x"}\n'
TAIL_LENGTH = len(TAIL % 0)
LONGEST = 2**25  # bytes of a line; what JSON makes of each can take twenty
FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)

_decoder = json.JSONDecoder()


class Line(NamedTuple):
    """A whole line."""

    text: bytes
    id: str
    place: tuple[str, str]  # run and stage
    start: int  # of the entry or the plan


class File:
    """The file of a ledger, and an index of what is in it; the parameters are those of `Ledger`.

    The index is made from the file alone, by `_catch_up`, also after our own writes. A write that
    failed or was interrupted therefore cannot set it apart from the file.
    """

    def __init__(self, path: Path, name: str, read_only: bool) -> None:
        self._path, self._run = path.expanduser().resolve(), name
        self._lock: FileLock | None = None
        self._file: int | None = None
        self._forget()
        if read_only:
            if not self._path.is_file():
                raise LedgerError(f"There is no ledger at {self._path}.")
            self._catch_up()
            return
        try:
            self._lock = FileLock(self._path)
            self._file = os.open(self._path, FLAGS, 0o666)
            sync_folder(self._path.parent)
            self._catch_up()
            self._cut(self._file)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError) and not isinstance(error, LedgerError):
                raise LedgerError(f"{self._path} cannot be opened for writing: {error}.") from error
            raise

    def stages(self) -> list[str]:
        """Return the stages in the order they were begun."""
        self._catch_up()
        return [stage for run, stage in self._ids if run == self._run]

    def ids(self, stage: str) -> set[str]:
        """Return the ids on record."""
        self._catch_up()
        return self._ids.get((self._run, stage), set()) - {""}

    def plan(self, stage: str) -> str | None:
        """Return the text of the plan of a stage."""
        self._catch_up()
        return self._plans.get((self._run, stage))

    def write_plan(self, stage: str, text: str) -> None:
        """Keep the text of the plan of a stage that has none."""
        self._write(stage, "", f'"plan":{text}')

    def append(self, stage: str, id: str, text: str, curves: str) -> bool:
        """Write a finished trial as one line; False if its id is on record."""
        self._catch_up()
        if id in self._ids.get((self._run, stage), ()):
            return False
        self._write(stage, id, f'"entry":{text}{CURVES}{curves}')
        return True

    @property
    def where(self) -> str:
        """The file."""
        return str(self._path)

    def entries(self, stage: str, curves: bool) -> Iterator[tuple[Entry, str]]:
        """Yield the entries of a stage in the order of recording, each with its text."""
        self._catch_up()
        last, place = self._lines, (self._run, stage)
        with self._open() as handle:
            for number, line in enumerate(self._read(handle, 0), 1):
                if number > last:
                    return
                if line.place == place and line.id:
                    try:
                        entry, text = _entry(line, curves)
                    except (TypeError, ValueError, RecursionError) as error:
                        raise self._damage(number, f"it holds no trial ({error})") from error
                    yield entry, text

    def close(self) -> None:
        """Let go of the file and the lock."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _write(self, stage: str, id: str, content: str) -> None:
        """Write a line to the disk, or raise and leave the file as it was."""
        if self._file is None:
            raise LedgerError(f"{self._path} is closed.")
        if not os.path.samestat(os.fstat(self._file), self._path.stat()):
            raise LedgerError(
                f"{self._path} was deleted or replaced while the run was going on. Put it back "
                "and run the same command again."
            )
        self._cut(self._file)
        names = (json.dumps(name) for name in (id, stage, self._run))
        body = ('{{"id":{},"stage":{},"run":{},'.format(*names) + content).encode("ascii")
        data = memoryview(body + TAIL % crc32(body))
        if len(data) > LONGEST:
            raise LedgerError(
                f"What is to be recorded of {id or 'the plan'} of {stage} has {len(data)} bytes, "
                f"and a line of {self._path} has at most {LONGEST}. Keep less of it."
            )
        try:
            while data:  # one write, but for a disk that is full
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):  # if this fails too, the next write or open cuts
                os.ftruncate(self._file, self._end)
                os.fsync(self._file)
            raise LedgerError(
                f"{self._path} cannot be written: {error.strerror}. Nothing that was recorded "
                "before is lost: make room and run the same command again."
            ) from error
        self._catch_up()

    def _cut(self, file: int) -> None:
        """Cut off what follows the last whole line."""
        if os.fstat(file).st_size > self._end:
            os.ftruncate(file, self._end)
            os.fsync(file)

    def _forget(self) -> None:
        """Begin the index anew: nothing of the file has been read."""
        self._end = self._lines = 0
        self._last = b""  # how the last line ends
        self._ids: dict[tuple[str, str], set[str]] = {}
        self._plans: dict[tuple[str, str], str] = {}

    def _catch_up(self) -> None:
        """Bring the index up to the last whole line of the file."""
        with self._open() as handle:
            handle.seek(self._end - len(self._last))
            if handle.read(len(self._last)) != self._last:
                if self._file is not None:
                    raise LedgerError(
                        f"{self._path} was shortened or changed by something else while the run "
                        "was going on. Run the same command again."
                    )
                # We look on, and a line was taken back because it could not be written whole.
                self._forget()
                handle.seek(0)
            for line in self._read(handle, self._lines):
                ids = self._ids.setdefault(line.place, set())
                if line.id in ids:
                    what = f"trial {line.id}" if line.id else "the plan"
                    raise self._damage(self._lines + 1, f"{what} of {line.place[1]} is there twice")
                ids.add(line.id)
                if not line.id:
                    self._plans[line.place] = line.text[line.start : -TAIL_LENGTH].decode("ascii")
                self._lines += 1
                self._end += len(line.text)
                self._last = line.text[-TAIL_LENGTH:]

    def _open(self) -> BinaryIO:
        try:
            return self._path.open("rb", buffering=1 << 17)
        except OSError as error:
            raise LedgerError(f"{self._path} is gone: {error.strerror}.") from error

    def _read(self, handle: BinaryIO, number: int) -> Iterator[Line]:
        """Yield whole lines, the first of which is line `number` + 1 of the file."""
        while text := handle.readline(LONGEST + 1):
            number += 1
            if len(text) > LONGEST:
                raise self._damage(number, f"it is longer than {LONGEST} bytes")
            head = HEAD.match(text)
            checksum = TAIL % crc32(memoryview(text)[:-TAIL_LENGTH])
            if head is None or text[-TAIL_LENGTH:] != checksum:
                # Without a newline it is the end, whatever a writer has added by now.
                if _half(text) and (not text.endswith(b"\n") or not handle.read(1)):
                    return
                raise self._damage(number, "it is not as the ledger wrote it")
            id = head[1]
            name = json.loads(id) if b"\\" in id else id[1:-1].decode("ascii")
            yield Line(text, name, _place(head[2]), head.end())

    def _damage(self, number: int, why: str) -> LedgerError:
        return LedgerError(
            f"{self._path} is damaged in line {number}: {why}. Put back a copy, or delete that "
            "line: its trial will run again."
        )


@lru_cache(100)
def _place(text: bytes) -> tuple[str, str]:
    names = json.loads(b"{%b}" % text)
    return names["run"], names["stage"]


def _half(text: bytes) -> bool:
    """Tell whether the end of a file is what is left of a line that was being written.

    It begins as a line does, or with zeros, and holds less than a line or just lacks the newline.
    Whatever is more, or something else, may be worth keeping: it is not ours to cut.
    """
    text = text.rstrip(b"\0")  # a power cut can leave zeros in place of what was not yet written
    if not START.startswith(text[: len(START)]) and not text.startswith(b"\0"):
        return False
    try:
        return _decoder.raw_decode(text.decode("latin-1"))[1] == len(text)
    except RecursionError:
        return False
    except ValueError:
        return True


def _entry(line: Line, curves: bool) -> tuple[Entry, str]:
    """Read a trial; its curves, which come last, only if they are asked for."""
    text = line.text.decode("ascii")
    fields, end = _decoder.raw_decode(text, line.start)
    lists = _decoder.raw_decode(text, end + len(CURVES))[0] if curves else {}
    return entry_of(line.id, line.place[1], fields, lists), text
