"""A ledger in PostgreSQL: one table, written by one driver over one connection.

A plan is a row with the empty id, whose text is the plan. Rows are only ever added.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from autotransfer.errors import LedgerError
from autotransfer.search.ledger.connection import Connection, lock_key
from autotransfer.search.ledger.entry import Entry, entry_of

CHUNK = 2000  # entries read at a time
TABLE = """
CREATE TABLE autotransfer_ledger (
    run text NOT NULL, stage text NOT NULL, id text NOT NULL,
    number bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    entry text NOT NULL, curves text NOT NULL,
    PRIMARY KEY (run, stage, id), UNIQUE (run, stage, number)
)
"""
THERE = "SELECT to_regclass('autotransfer_ledger') IS NOT NULL"
INSERT = """
INSERT INTO autotransfer_ledger (run, stage, id, entry, curves) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT DO NOTHING
"""
TEXT = "SELECT entry FROM autotransfer_ledger WHERE run = %s AND stage = %s AND id = %s"
STAGES = "SELECT stage FROM autotransfer_ledger WHERE run = %s GROUP BY stage ORDER BY min(number)"
IDS = "SELECT id FROM autotransfer_ledger WHERE run = %s AND stage = %s AND id <> ''"
ENTRIES = """
SELECT number, id, entry, CASE WHEN %s THEN curves ELSE '{}' END FROM autotransfer_ledger
WHERE run = %s AND stage = %s AND id <> '' AND number > %s ORDER BY number LIMIT %s
"""


class Postgres:
    """The rows of a run in the table of a database; the parameters are those of `Ledger`.

    A `read_only` look does not wait for a server that is away.
    """

    def __init__(self, url: str, name: str, read_only: bool, patience: float) -> None:
        self._run = name
        self._connection = Connection(url, name, read_only, 0.0 if read_only else patience)
        try:
            if not read_only:
                self._connection.patiently(_make_table)
            elif not self._connection.rows(THERE)[0][0]:
                raise LedgerError(f"There is no ledger in {self._connection.where}.")
        except BaseException:
            self._connection.close()
            raise

    def stages(self) -> list[str]:
        """Return the stages in the order they were begun."""
        return [stage for (stage,) in self._connection.rows(STAGES, self._run)]

    def ids(self, stage: str) -> set[str]:
        """Return the ids on record."""
        return {id for (id,) in self._connection.rows(IDS, self._run, stage)}

    def plan(self, stage: str) -> str | None:
        """Return the text of the plan of a stage."""
        rows = self._connection.rows(TEXT, self._run, stage, "")
        return rows[0][0] if rows else None

    def write_plan(self, stage: str, text: str) -> None:
        """Keep the text of the plan of a stage that has none."""
        self.append(stage, "", text, "{}")

    def append(self, stage: str, id: str, text: str, curves: str) -> bool:
        """Write a finished trial, once, however often the server goes away.

        Returns False if its id was on record.
        """
        key = (self._run, stage, id)
        again = False

        def insert(connection: Any) -> bool:
            nonlocal again
            repeats, again = again, True
            if connection.execute(INSERT, (*key, text, curves)).rowcount == 1:
                return True
            # The row may be our own, of an attempt whose answer was lost. That attempt has ended:
            # its connection had the lock of the run, which is ours again.
            return repeats and connection.execute(TEXT, key).fetchone() == (text,)

        return self._connection.patiently(insert)

    @property
    def where(self) -> str:
        """The database in words."""
        return self._connection.where

    def entries(self, stage: str, curves: bool) -> Iterator[tuple[Entry, str]]:
        """Yield the entries of a stage in the order of recording, each with its text."""
        last = 0
        while rows := self._connection.rows(ENTRIES, curves, self._run, stage, last, CHUNK):
            for _, id, text, lists in rows:
                try:
                    entry = entry_of(id, stage, json.loads(text), json.loads(lists))
                except (TypeError, ValueError, RecursionError) as error:
                    raise LedgerError(
                        f"The row of trial {id} of {stage} in {self.where} holds no trial "
                        f"({error}). Put back a copy, or delete that row: its trial will run again."
                    ) from error
                yield entry, text
            last = rows[-1][0]

    def close(self) -> None:
        """Let go of the connection, and the lock with it."""
        self._connection.close()


def _make_table(connection: Any) -> None:
    """Make the table unless it is there, also when two runs are the first at the same time."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [lock_key("table")])
        if not connection.execute(THERE).fetchone()[0]:
            connection.execute(TABLE)
