"""A PostgreSQL server of one's own, on loopback, for benchmarks and tests.

PostgreSQL refuses to run as root: then it runs as the user ``postgres`` or ``nobody``.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

USER = "autotransfer"


def find_programs() -> Path | None:
    """Return the folder of ``initdb`` and ``postgres``, the newest if there are several."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    installed = Path("/usr/lib/postgresql").glob("*/bin")
    places += sorted(installed, key=lambda p: float(p.parent.name), reverse=True)
    whole = (p for p in places if (p / "initdb").exists() and (p / "postgres").exists())
    return next(whole, None)


class PostgresServer:
    """A server with a data folder of its own, deleted at the end.

    Parameters
    ----------
    fsync : bool, default True
        Whether what is committed is flushed to the disk. Tests need not wait for it; figures of
        speed without it are worth nothing.
    """

    def __init__(self, fsync: bool = True) -> None:
        programs = find_programs()
        if programs is None:
            raise FileNotFoundError("No PostgreSQL server is installed (initdb was not found).")
        self._programs = programs
        self._process: subprocess.Popen[bytes] | None = None
        self._password = secrets.token_hex(8)
        self._fsync = "on" if fsync else "off"
        # Not below a folder of pytest: those are closed to the user that the server runs as.
        self.folder = Path(tempfile.mkdtemp(prefix="autotransfer-postgres-"))
        self._identity: dict[str, Any] = {"cwd": self.folder}
        if os.geteuid() == 0:
            known = {entry.pw_name: entry for entry in pwd.getpwall()}
            user = known.get("postgres") or known["nobody"]
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self._identity |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._initialise()
        self.start()

    def url(self, database: str = "postgres") -> str:
        """Return the URL of a database, password and all."""
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/{database}"

    @property
    def password(self) -> str:
        """What must not be seen in messages."""
        return self._password

    def create_database(self) -> str:
        """Make a new, empty database and return its URL."""
        import psycopg

        name = f"db{secrets.token_hex(6)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.url(name)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = [str(self._programs / "postgres"), "-D", "data", "-p", str(self.port)]
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
        options |= {"fsync": self._fsync}
        command += [f"--{name}={value}" for name, value in options.items()]
        with (self.folder.parent / f"{self.folder.name}.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, **self._identity)
        self._wait()

    def flush(self, fsync: bool) -> None:
        """Start again with or without flushing what is committed to the disk."""
        self.stop()
        self._fsync = "on" if fsync else "off"
        self.start()

    def stop(self, kind: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends all sessions at once, SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(kind)
            self._process.wait(60)
            self._process = None

    def close(self) -> None:
        """Stop the server and delete its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder.parent / f"{self.folder.name}.log").unlink(missing_ok=True)

    def __enter__(self) -> PostgresServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _initialise(self) -> None:
        password = self.folder / "password"
        password.write_text(self._password)
        password.chmod(0o644)  # the folder itself is closed to others
        command = [str(self._programs / "initdb"), "-D", "data", "-U", USER, "-A", "scram-sha-256"]
        command += ["--pwfile=password", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run(command, check=True, capture_output=True, **self._identity)

    def _wait(self) -> None:
        import psycopg

        assert self._process is not None
        until = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url(), connect_timeout=5).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.05)
            else:
                return
