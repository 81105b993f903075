"""The ledger of a run, in a file or in PostgreSQL."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autotransfer.errors import LedgerError
from autotransfer.search.ledger.connection import is_address
from autotransfer.search.ledger.entry import Entry, entry_texts, to_text
from autotransfer.search.ledger.file import File
from autotransfer.search.ledger.postgres import Postgres


class Ledger:
    """The record of all trials of a run, open in one process for writing.

    A trial enters the ledger once, finished, in one write that is on the disk when `record`
    returns. A run that was killed has the trials that were recorded, each once and whole, and the
    same command runs what is missing.

    Parameters
    ----------
    storage : str or path
        Path of a file, made if it is not there, or the address of a PostgreSQL database:
        ``postgresql://...``, or libpq's ``host=... dbname=...``.
    name : str
        Name of the run. Runs of different names may share a storage.
    read_only : bool, default False
        Look at a ledger, also while another process writes to it.
    patience : float, default 600
        Seconds to wait for a database server that is away before giving up.

    Raises
    ------
    RunInUseError
        If another process has the ledger open for writing.
    LedgerError
        If the storage cannot be read or written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as there, Ledger(f"{there}/ledger", "run") as ledger:
    ...     ledger.record(Entry("4b0c", "search", "done", {"seed": 1}, {"acc": 0.5}, value=0.5))
    ...     ledger.ids("search")
    {'4b0c'}
    """

    def __init__(
        self, storage: str | Path, name: str, *, read_only: bool = False, patience: float = 600.0
    ) -> None:
        if not name:
            raise LedgerError("A ledger needs the name of the run.")
        self._read_only = read_only
        # Executors call back from threads of their own.
        self._one_at_a_time = threading.RLock()
        self._store: File | Postgres
        if is_address(storage):
            self._store = Postgres(str(storage), name, read_only, patience)
        else:
            self._store = File(Path(storage), name, read_only)

    def record(self, entry: Entry) -> None:
        """Put a finished trial on record; it is on the disk when this returns.

        A `LedgerError` says that the id is on record in this stage, that JSON cannot hold the
        entry, or that it cannot be written. It then leaves no trace: the same call can follow when
        the cause is mended.
        """
        text, curves = entry_texts(entry)
        with self._one_at_a_time:
            self._check(entry.stage)
            if not self._store.append(entry.stage, entry.id, text, curves):
                raise LedgerError(f"Trial {entry.id} of {entry.stage} is already on record.")

    def entries(self, stage: str, *, curves: bool = False) -> list[Entry]:
        """Return everything on record of a stage, in the order of recording."""
        with self._one_at_a_time:
            return list(self.each(stage, curves=curves))

    def each(self, stage: str, *, curves: bool = False) -> Iterator[Entry]:
        """Yield what `entries` returns one by one, without holding all of it in memory."""
        return (self._see(entry, text) for entry, text in self._store.entries(stage, curves))

    def ids(self, stage: str) -> set[str]:
        """Return the ids of all trials on record in a stage."""
        with self._one_at_a_time:
            return self._store.ids(stage)

    def stages(self) -> list[str]:
        """Return the stages that have a plan or a trial, in the order they were begun."""
        with self._one_at_a_time:
            return self._store.stages()

    def write_plan(self, stage: str, plan: dict[str, Any]) -> None:
        """Keep what is planned for a stage; a `LedgerError` if another plan is on record."""
        text = to_text(plan, f"The plan of {stage}", sort=True)
        with self._one_at_a_time:
            self._check(stage)
            before = self._store.plan(stage)
            if before is None:
                self._store.write_plan(stage, text)
            elif before != text:
                raise LedgerError(
                    f"Another plan of {stage} is on record. Take up the run with the options it "
                    "was begun with, or begin one under another name."
                )

    def plan(self, stage: str) -> dict[str, Any] | None:
        """Return what was planned for a stage, or None."""
        with self._one_at_a_time:
            text = self._store.plan(stage)
        try:
            return None if text is None else dict(json.loads(text))
        except (TypeError, ValueError, RecursionError) as error:
            raise LedgerError(
                f"The plan of {stage} in {self.where} is none ({error}). Put back a copy of the "
                "ledger."
            ) from error

    @property
    def where(self) -> str:
        """The file or the database, without user and password."""
        return self._store.where

    def close(self) -> None:
        """Let other processes write; whatever was recorded is on the disk already."""
        with self._one_at_a_time:
            self._store.close()

    def _see(self, entry: Entry, text: str) -> Entry:
        """Look at an entry that was read from a text."""
        return entry

    def _check(self, stage: str) -> None:
        """Refuse to write what cannot be written."""
        if self._read_only:
            raise LedgerError("This ledger was opened for reading only.")
        if not stage or "/" in stage:
            raise LedgerError(f"{stage!r} cannot be a stage: use a word without '/'.")

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
