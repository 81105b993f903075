"""A connection to PostgreSQL that belongs to one driver and waits for a server that is away.

The connection that writes also holds the advisory lock that keeps other drivers away. Whoever
loses the lock has thereby lost the connection and cannot write. (A proxy that gives every
transaction another connection, as pgbouncer can, must not stand in between.)
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import re
import time
import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from autotransfer.errors import LedgerError, MissingExtraError, RunInUseError

T = TypeVar("T")

SCHEMES = ("postgresql://", "postgres://", "postgresql+psycopg://")
EXAMPLE = "postgresql://host:port/database"
TELL_EVERY = 10.0  # seconds
# A driver's machine that lost its power is noticed within two minutes, not two hours. The rest
# makes "recorded" mean "on the disk" whatever the server's own setting is.
SESSION = """
SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 6;
SET synchronous_commit = on
"""
# A network that swallows everything is noticed on our side as well.
NOTICE = {
    "connect_timeout": 10,
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
HOLDER = """
SELECT a.pid, a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND ((l.classid::bigint << 32) | l.objid::bigint) = %s
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""

_log = logging.getLogger(__name__)


class Connection:
    """A connection that is made anew when it breaks, with the lock of a run unless `read_only`.

    Attributes
    ----------
    where : str
        The database in words, without user and password.
    """

    def __init__(self, url: str, run: str, read_only: bool, patience: float) -> None:
        self._psycopg: Any = _driver()
        self._url = libpq_address(url)
        self.where = place(url)
        self._run, self._read_only, self._patience = run, read_only, patience
        # Tells our own broken connections from other drivers; the server keeps 63 characters.
        owner = f"process {os.getpid()} on {platform.node()[:24]}"
        self._label = f"{owner} {uuid.uuid4().hex[:8]}"
        self._connection: Any = None
        self._closed = False
        try:
            self._connect()
        except self._psycopg.Error as error:
            raise LedgerError(f"{self.where} cannot be opened: {_message(error)}.") from error

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Return all rows that a query finds."""
        return self.patiently(lambda connection: connection.execute(query, values).fetchall())

    def patiently(self, work: Callable[[Any], T]) -> T:
        """Do some work over a connection, and again while the server is away."""
        if self._closed:
            raise LedgerError(f"The ledger in {self.where} is closed.")
        start, told, delay = time.monotonic(), 0.0, 0.1
        while True:
            try:
                if self._connection is None:
                    self._connect()
                return work(self._connection)
            except (self._psycopg.OperationalError, self._psycopg.InterfaceError) as error:
                self._drop()
                waited = time.monotonic() - start
                if waited >= self._patience:
                    raise LedgerError(
                        f"{self.where} did not answer for {waited:.0f} s: {_message(error)}. "
                        "Nothing that was recorded before is lost: when the server is back, run "
                        "the same command again."
                    ) from error
                if waited >= told:
                    told = waited + TELL_EVERY
                    _log.warning(
                        "%s does not answer (%s); waiting, %.0f s of %.0f s so far.",
                        *(self.where, _message(error), waited, self._patience),
                    )
            except self._psycopg.Error as error:
                raise LedgerError(f"{self.where} refused: {_message(error)}.") from error
            time.sleep(delay)
            delay = min(2 * delay, 5.0)

    def close(self) -> None:
        """Let go of the connection, and the lock with it."""
        self._closed = True
        self._drop()

    def _connect(self) -> None:
        connection = self._psycopg.connect(
            self._url, autocommit=True, application_name=self._label, **NOTICE
        )
        try:
            if not self._read_only:
                connection.execute(SESSION)
                self._take_lock(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def _take_lock(self, connection: Any) -> None:
        """Take the lock of the run; a process killed a moment ago gets time to let go of it."""
        owner, key = None, lock_key(f"run {self._run}")
        for _ in range(20):
            if connection.execute("SELECT pg_try_advisory_lock(%s)", [key]).fetchone()[0]:
                return
            owner = connection.execute(HOLDER, [key]).fetchone()
            if owner is not None and owner[1] == self._label:
                # Our own connection: we know that it is broken, the server does not yet.
                connection.execute("SELECT pg_terminate_backend(%s)", [owner[0]])
            time.sleep(0.1)
        number, label = owner or (None, None)
        # The label is hidden from users of the database who have fewer rights.
        who = label.rpartition(" ")[0] if label else "another process"
        raise RunInUseError(
            f"The run {self._run} in {self.where} is in use by {who}. Wait "
            "until it is done or stop it, or look at the ledger with read_only=True. If that "
            f"process is gone, end its connection with SELECT pg_terminate_backend({number})."
        )

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def is_address(storage: object) -> bool:
    """Whether a storage is the address of a database and not the path of a file.

    Addresses are URLs and libpq's ``host=... dbname=...``; a file of such a name is ``./host=...``.

    Examples
    --------
    >>> is_address("postgresql://host/database"), is_address("host=server dbname=ledger")
    (True, True)
    >>> is_address("runs/gestures/ledger.jsonl")
    False
    """
    return isinstance(storage, str) and re.match(r"\s*(\w+\s*=|[\w+.-]+://)", storage) is not None


def libpq_address(address: str) -> str:
    """Return the address as libpq wants it."""
    scheme, _, rest = address.partition("://")
    if re.match(r"\s*\w+\s*=", address):
        return address
    if f"{scheme}://" not in SCHEMES:
        raise LedgerError(
            f"A ledger cannot be in {scheme}://; give a file, or a database like {EXAMPLE}."
        )
    # Such a password would be taken for part of the host, and shown in messages about it.
    if any(sign in rest.rpartition("@")[0] for sign in "@/?#"):
        raise LedgerError(
            "In the URL of a database, write @ / ? # in a password as %40 %2F %3F %23."
        )
    return f"postgresql://{rest}"


def place(storage: str) -> str:
    """Say where a ledger is: a file, or host, port and name of a database and nothing else.

    What is shown, logged or kept of an address comes from here: no user, no password, no key.
    """
    if not is_address(storage):
        return str(storage)
    psycopg = _driver()
    try:
        parts = psycopg.conninfo.conninfo_to_dict(libpq_address(storage))
    except psycopg.Error:  # whose message may hold the password
        raise LedgerError(
            f"The address of the database cannot be read. Give one like {EXAMPLE}."
        ) from None
    # What the address leaves out comes from the environment (PGHOST and the like).
    rest = {o.keyword.decode(): o.val for o in psycopg.pq.Conninfo.get_defaults() if o.val}
    parts = {name: value.decode() for name, value in rest.items()} | parts
    host = parts.get("host") or parts.get("hostaddr") or "localhost"
    return f"database {parts.get('dbname') or parts.get('user')} at {host}:{parts.get('port')}"


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtraError(
            "psycopg is needed for a ledger in PostgreSQL. Install it with "
            'pip install "psycopg[binary]".'
        ) from error
    return psycopg


def lock_key(text: str) -> int:
    """Make the 64-bit number of an advisory lock."""
    digest = hashlib.sha256(f"autotransfer {text}".encode()).digest()
    return int.from_bytes(digest[:8], signed=True)


def _message(error: BaseException) -> str:
    """Return the first line of what a database said."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
