"""The ledger when things go wrong: kills, full disks, two drivers, a server that goes away."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotransfer.errors import LedgerError, RunInUseError
from autotransfer.search.ledger import Entry, Ledger

pytest_plugins = ["postgres"]

ENTRY = Entry("0", "search", "done", {"seed": 0}, {"curve": [0.1] * 40}, value=0.5, params={"a": 1})


def number(n: int | str) -> Entry:
    return replace(ENTRY, id=str(n))


@pytest.fixture(params=["file", "postgres"])
def storage(request, tmp_path):
    if request.param == "file":
        return str(tmp_path / "ledger")
    return request.getfixturevalue("database")


def run(code: str, *args: object) -> subprocess.Popen[str]:
    """Start a process that has the ledger imported."""
    start = "import os, random, signal, sys, time\nfrom autotransfer.search.ledger import *\n"
    start += f"ENTRY = {ENTRY!r}\n"
    return subprocess.Popen(
        [sys.executable, "-c", start + code, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


# Importing takes seconds, so one process does it and forks the ones that are killed.
LIVES = """
from dataclasses import replace
storage, lives = sys.argv[1], int(sys.argv[2])
draw = random.Random(lives)
Ledger(storage, "run").close()  # whatever is imported on the way
for life in range(lives):
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        with Ledger(storage, "run") as ledger:
            os.write(tell, b"!")
            for n in range(10**6):
                size = 2000 if n % 3 else 40  # long lines are torn more often
                name = f"{life}-{n}"
                ledger.record(replace(ENTRY, id=name, result={"curve": [1 / 3] * size}))
                os.write(1, f"{name}\\n".encode())
        os._exit(0)
    os.read(ready, 1)
    time.sleep(draw.uniform(0, 0.25))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("lives", [5, pytest.param(15, marks=pytest.mark.nightly)])
def test_what_was_recorded_survives_a_kill(storage, lives):
    process = run(LIVES, storage, lives)
    told = process.communicate(timeout=300)[0].split()
    assert process.returncode == 0
    assert len(told) == len(set(told)) > lives
    if not storage.startswith("postgresql"):
        with open(storage, "rb") as handle:  # noqa: PTH123 -- the storage is a str here
            lines = handle.read().splitlines(keepends=True)
        # Only the last kill may have left half a line: every opening cuts what it finds.
        assert all(line.endswith(b"\n") and json.loads(line) for line in lines[:-1])
    with Ledger(storage, "run") as ledger:
        ids = [entry.id for entry in ledger.entries("search")]
        assert len(ids) == len(set(ids))
        assert set(told) <= set(ids)
        # One entry for each life may be there whose process could not say so any more.
        assert len(ids) - len(told) <= lives
        ledger.record(number("after"))


def test_half_a_line_is_cut_wherever_it_ends(tmp_path):
    path = tmp_path / "ledger"
    with Ledger(path, "run") as ledger:
        ledger.record(number(1))
        whole = path.read_bytes()
        ledger.record(number(2))
        both = path.read_bytes()
    ends = [*range(len(whole), len(both), 37), len(both) - 1]
    for end in ends:
        for tail in (b"", b"\0" * 50):  # a power cut can leave zeros
            path.write_bytes(both[:end] + tail)
            with Ledger(path, "run", read_only=True) as looking:
                assert looking.ids("search") == {"1"}
            assert path.read_bytes() == both[:end] + tail
            with Ledger(path, "run") as ledger:
                assert path.read_bytes() == whole
                ledger.record(number(3))
                assert [entry.id for entry in ledger.entries("search")] == ["1", "3"]


def test_a_damaged_last_line_is_cut_and_an_earlier_one_is_named(tmp_path):
    path = tmp_path / "ledger"
    with Ledger(path, "run") as ledger:
        for n in range(3):
            ledger.record(number(n))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + b"\0" * 20 + lines[-1][20:])
    with Ledger(path, "run") as ledger:
        assert ledger.ids("search") == {"0", "1"}
    path.write_bytes(b"".join(lines[:-2]) + b"\0" * 20 + lines[-2][20:] + lines[-1])
    damaged = path.read_bytes()
    with pytest.raises(LedgerError, match=f"{path} is damaged in line 2: "):
        Ledger(path, "run")
    assert path.read_bytes() == damaged
    with pytest.raises(LedgerError, match="its trial will run again"):
        Ledger(path, "run", read_only=True)


def written(path, count: int) -> list[bytes]:
    """Write a plan and so many trials; return the lines of the file."""
    with Ledger(path, "run") as ledger:
        ledger.write_plan("search", {"trials": count})
        for n in range(count):
            ledger.record(number(n))
    return path.read_bytes().splitlines(keepends=True)


def check_refused(path, lines: list[bytes], line: int, words: str = "") -> None:
    """A file of these lines is refused because of one of them, and not touched."""
    path.write_bytes(b"".join(lines))
    for read_only in (False, True):
        said = f"{re.escape(str(path))} is damaged in line {line}: .*{words}"
        with pytest.raises(LedgerError, match=said):
            Ledger(path, "run", read_only=read_only)
        assert path.read_bytes() == b"".join(lines)


OTHERS = {
    "null": b"null\n",
    "no JSON": b"garbage\n",
    "nothing": b"\n",
    "another object": b'{"id":"x","stage":"search"}\n',
    "zeros": b"\0" * 100 + b"\n",
    "no UTF-8": b'{"id":"\xff\xfe"}\n',
    "half a line": b'{"id":"4","stage":"search","run":"run","entry":{"state":"do\n',
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_line_that_is_not_ours_is_refused_by_its_number(tmp_path, other):
    lines = written(tmp_path / "ledger", 50)
    check_refused(tmp_path / "ledger", [*lines[:4], other, *lines[4:]], 5)
    check_refused(tmp_path / "ledger", [*lines[:4], other, *lines[5:]], 5)


@pytest.mark.parametrize("other", ["null", "no JSON", "nothing", "another object"])
def test_a_last_line_is_not_cut_if_no_kill_can_have_left_it(tmp_path, other):
    lines = written(tmp_path / "ledger", 3)
    check_refused(tmp_path / "ledger", [*lines, OTHERS[other]], 5)
    changed = lines[-1].replace(b'"value":0.5', b'"value":0.6')
    check_refused(tmp_path / "ledger", [*lines[:-1], changed], 4)


def test_a_file_of_something_else_is_not_touched(tmp_path):
    for text in (b"X,y,subject", b"X,y,subject\n0,1,2\n", b"null", b'{"a": 1}'):
        check_refused(tmp_path / "data.csv", [text], 1)


def test_what_is_there_twice_is_refused_by_its_number(tmp_path):
    plan, *trials = written(tmp_path / "ledger", 3)
    twice = "trial 1 of search is there twice"
    check_refused(tmp_path / "ledger", [plan, *trials, trials[1]], 5, twice)
    check_refused(tmp_path / "ledger", [plan, *trials[:2], *trials[1:]], 4, twice)
    check_refused(tmp_path / "ledger", [plan, *trials, plan], 5, "the plan of search is there")


def test_two_lines_without_a_newline_between_them_are_refused(tmp_path):
    lines = written(tmp_path / "ledger", 5)
    for n in range(5):  # the last two lines as well: both are on record
        joined = [*lines[:n], lines[n][:-1] + lines[n + 1], *lines[n + 2 :]]
        check_refused(tmp_path / "ledger", joined, n + 1)
    check_refused(tmp_path / "ledger", [*lines[:-2], lines[-2][:-1] + lines[-1][:50]], 5)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_one_byte_that_changed_is_noticed(tmp_path, data):
    path = tmp_path / "ledger"
    path.unlink(missing_ok=True)
    lines = written(path, 4)
    n = data.draw(st.integers(0, len(lines) - 2), label="line")
    where = data.draw(st.integers(0, len(lines[n]) - 1), label="byte")
    byte = data.draw(st.integers(0, 255).filter(lambda b: b != lines[n][where]), label="value")
    lines[n] = lines[n][:where] + bytes([byte]) + lines[n][where + 1 :]
    check_refused(path, lines, n + 1)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    end=st.integers(0, 10_000),
    tail=st.sampled_from([b"", b"\0", b"\0" * 4096]),
    hole=st.booleans(),
)
def test_whatever_is_left_of_the_last_line_is_cut(tmp_path, end, tail, hole):
    path = tmp_path / "ledger"
    path.unlink(missing_ok=True)
    lines = written(path, 2)
    end %= len(lines[-1])
    # A power cut can also leave the end of a line, and zeros where its beginning should be.
    left = b"\0" * (end + 1) + lines[-1][end + 1 :] if hole else lines[-1][:end] + tail
    whole = b"".join(lines[:-1])
    path.write_bytes(whole + left)
    with Ledger(path, "run", read_only=True) as looking:
        assert looking.ids("search") == {"0"}
    assert path.read_bytes() == whole + left
    with Ledger(path, "run") as ledger:
        assert path.read_bytes() == whole
        ledger.record(number(1))
        assert path.read_bytes() == b"".join(lines)


def until_full(ledger: Ledger) -> tuple[int, str]:
    """Record until it fails; return how many are on record and what was said."""
    for n in range(10_000):
        try:
            ledger.record(number(n))
        except LedgerError as error:
            return n, str(error)
    raise AssertionError("never full")


def check_after_full(path, ledger: Ledger, count: int) -> None:
    """The same object goes on, and so does a new one."""
    whole = path.read_bytes()
    assert whole.endswith(b"\n")
    assert ledger.ids("search") == {str(n) for n in range(count)}
    ledger.record(number(count))
    ledger.record(replace(number(0), stage="crossval"))
    ledger.close()
    with Ledger(path, "run") as again:
        assert [entry.id for entry in again.entries("search")] == [str(n) for n in range(count + 1)]
    assert len(path.read_bytes().splitlines()) == count + 2


@contextlib.contextmanager
def files_up_to(size: int):
    """Have the kernel refuse larger files: the first bytes are written, the rest is an error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("more", [0, 1, 500])
def test_a_line_that_does_not_fit_is_taken_back(tmp_path, more):
    path = tmp_path / "ledger"
    with Ledger(path, "run") as ledger:
        with files_up_to(5000 + more):
            count, said = until_full(ledger)
            assert count > 2
            assert f"{path} cannot be written: File too large" in said
            with pytest.raises(LedgerError, match="make room"):
                ledger.record(number(count))
            with pytest.raises(LedgerError, match="make room"):
                ledger.write_plan("search", {"x": "y" * 2000})
        assert ledger.plan("search") is None
        check_after_full(path, ledger, count)


def test_a_full_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"mounting a small disk is not permitted here: {error}")
    try:
        filler = disk / "filler"
        filler.write_bytes(b"x" * 100_000)
        with Ledger(disk / "ledger", "run") as ledger:
            count, said = until_full(ledger)
            assert count > 3
            assert "ledger cannot be written: No space left on device" in said
            assert "make room and run the same command again" in said
            with Ledger(disk / "ledger", "run", read_only=True) as looking:
                assert len(looking.ids("search")) == count
            filler.unlink()
            check_after_full(disk / "ledger", ledger, count)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_file_that_was_deleted_or_shortened_is_noticed(tmp_path):
    path = tmp_path / "ledger"
    with Ledger(path, "run") as ledger:
        ledger.record(number(1))
        path.rename(tmp_path / "elsewhere")
        with pytest.raises(LedgerError, match="is gone"):
            ledger.record(number(2))
        path.write_bytes((tmp_path / "elsewhere").read_bytes())
        with pytest.raises(LedgerError, match="deleted or replaced"):
            ledger.record(number(2))
        (tmp_path / "elsewhere").replace(path)
        ledger.record(number(2))
        os.truncate(path, 10)
        with pytest.raises(LedgerError, match="shortened"):
            ledger.record(number(3))


HOLD = """
with Ledger(sys.argv[1], "run") as ledger:
    ledger.record(ENTRY)
    print("open", flush=True)
    sys.stdin.read()
"""


def test_a_second_driver_is_told_who_has_it(storage, postgres_server):
    holder = run(HOLD, storage)
    assert holder.stdout.readline() == "open\n"
    with pytest.raises(RunInUseError, match=f"in use by process {holder.pid} on ") as caught:
        Ledger(storage, "run")
    assert postgres_server.password not in str(caught.value)
    with Ledger(storage, "run", read_only=True) as looking:
        assert looking.ids("search") == {"0"}
    holder.kill()
    holder.communicate()
    with Ledger(storage, "run") as ledger:
        assert ledger.ids("search") == {"0"}
        with pytest.raises(RunInUseError, match=f"process {os.getpid()} on "):
            Ledger(storage, "run")
        ledger.record(number(1))


RACE = """
from autotransfer.errors import RunInUseError
for _ in range(6):
    if os.fork() == 0:
        try:
            with Ledger(sys.argv[1], "run") as ledger:
                ledger.record(ENTRY)
                os.write(1, b"won ")
                time.sleep(6)
        except RunInUseError:
            os.write(1, b"lost ")
        os._exit(0)
for _ in range(6):
    os.wait()
"""


@pytest.mark.slow
def test_of_many_drivers_at_once_one_wins(storage):
    said = run(RACE, storage).communicate(timeout=120)[0].split()
    assert sorted(said) == ["lost"] * 5 + ["won"]


def test_two_runs_can_be_the_first_in_a_database(database):
    psycopg = pytest.importorskip("psycopg")
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    waiting += "AND wait_event_type = 'Lock'"

    def write(name: str) -> set[str]:
        with Ledger(database, name) as ledger:
            ledger.record(ENTRY)
            return ledger.ids("search")

    with psycopg.connect(database) as other, psycopg.connect(database, autocommit=True) as eye:
        # Nobody can make the table before this is taken back; then both go on at once.
        other.execute("CREATE TABLE autotransfer_ledger (nothing int)")
        with ThreadPoolExecutor(2) as pool:
            writers = [pool.submit(write, name) for name in ("a", "b")]
            until = time.monotonic() + 30
            while eye.execute(waiting).fetchone() != (2,) and time.monotonic() < until:
                time.sleep(0.01)
            other.rollback()
            assert [writer.result() for writer in writers] == [{"0"}, {"0"}]


WRITE = """
from dataclasses import replace
with Ledger(sys.argv[1], "run") as ledger:
    for n in range(int(sys.argv[2])):
        ledger.record(replace(ENTRY, id=str(n)))
        print(n, flush=True)
"""


def test_looking_on_while_another_process_writes(storage):
    count = 150
    Ledger(storage, "run").close()
    writer = run(WRITE, storage, count)
    with Ledger(storage, "run", read_only=True) as looking:
        for line in writer.stdout:
            ids = looking.ids("search")
            assert {str(n) for n in range(int(line) + 1)} <= ids
            entries = [int(entry.id) for entry in looking.entries("search")]
            assert entries == list(range(len(entries)))
            assert len(entries) >= len(ids)
    writer.communicate()
    assert writer.returncode == 0


LONG = """
from dataclasses import replace
with Ledger(sys.argv[1], "run") as ledger:
    print("open", flush=True)
    for n in range(40):
        ledger.record(replace(ENTRY, id=str(n), curves={"loss": [1 / 3] * 20_000}))
"""


def test_looking_on_in_the_middle_of_a_line(tmp_path):
    writer = run(LONG, tmp_path / "ledger")
    assert writer.stdout.readline() == "open\n"
    with Ledger(tmp_path / "ledger", "run", read_only=True) as looking:
        while writer.poll() is None:
            ids = looking.ids("search")
            assert ids == {str(n) for n in range(len(ids))}
        assert len(looking.ids("search")) == 40
    assert writer.wait() == 0


def test_a_line_taken_back_is_forgotten_by_who_looks_on(tmp_path):
    path = tmp_path / "ledger"
    with Ledger(path, "run") as ledger:
        ledger.record(number(1))
        before = path.read_bytes()
        ledger.record(number("short"))
    with Ledger(path, "run", read_only=True) as looking:
        assert looking.ids("search") == {"1", "short"}
        path.write_bytes(before)
        assert looking.ids("search") == {"1"}
        with Ledger(path, "run") as ledger:
            ledger.record(number("short"))
            assert looking.ids("search") == {"1", "short"}
        path.write_bytes(before)
        with Ledger(path, "run") as ledger:
            ledger.record(number("a longer one" * 9))
        assert looking.ids("search") == {"1", "a longer one" * 9}


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [signal.SIGINT, pytest.param(signal.SIGQUIT, marks=pytest.mark.nightly)]
)
def test_a_server_that_stops_and_starts_again(postgres_server, database, caplog, kind):
    caplog.set_level(logging.WARNING)
    recorded: list[str] = []
    enough = threading.Event()
    draw = random.Random(kind)

    def write() -> None:
        with Ledger(database, "run") as ledger:
            while not enough.is_set():
                ledger.record(number(len(recorded)))
                recorded.append(str(len(recorded)))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while not recorded and writer.is_alive():
            time.sleep(0.05)
        for _ in range(4):
            time.sleep(draw.uniform(0.5, 1.5))
            postgres_server.stop(kind)
            time.sleep(draw.uniform(0, 1))
            postgres_server.start()
        before = len(recorded)
        until = time.monotonic() + 60
        while len(recorded) < before + 10 and writer.is_alive() and time.monotonic() < until:
            time.sleep(0.1)
    finally:
        enough.set()
        writer.join(60)
    assert len(recorded) >= before + 10
    with Ledger(database, "run") as ledger:
        assert [entry.id for entry in ledger.entries("search")] == recorded
    assert "does not answer" in caplog.text
    assert postgres_server.password not in caplog.text


def test_patience_ends(postgres_server, database):
    with Ledger(database, "run", patience=1.0) as ledger:
        ledger.record(number(1))
        postgres_server.stop()
        try:
            with pytest.raises(
                LedgerError, match=r"did not answer for \d+ s.*same command"
            ) as caught:
                ledger.record(number(2))
            with pytest.raises(LedgerError, match="cannot be opened"):
                Ledger(database, "run")
            assert postgres_server.password not in str(caught.value)
        finally:
            postgres_server.start()
        ledger.record(number(2))
        assert [entry.id for entry in ledger.entries("search")] == ["1", "2"]


class Wire:
    """A TCP connection to the server that can be cut just before the answer to an insert.

    The server says that a row was inserted when it is committed: there is no other transaction.
    """

    def __init__(self, port: int, hang_up: bool) -> None:
        self._port, self._hang_up = port, hang_up
        self.cut_at_insert = False
        self.cuts = 0
        self._kept: list[socket.socket] = []
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._door.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                self._kept += [client, server]
                for ends in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pump, args=ends, daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if answers and self.cut_at_insert and b"INSERT 0 1\0" in data:
                    self.cut_at_insert = False
                    self.cuts += 1
                    sink.shutdown(socket.SHUT_RDWR)
                    if self._hang_up:
                        source.shutdown(socket.SHUT_RDWR)
                    return  # else the server goes on believing in this connection
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        for end in (self._door, *self._kept):
            end.close()


@pytest.mark.parametrize("hang_up", [True, False])
def test_an_answer_that_is_lost_does_not_record_twice(postgres_server, database, hang_up):
    wire = Wire(postgres_server.port, hang_up)
    try:
        through = database.replace(f":{postgres_server.port}/", f":{wire.port}/")
        with Ledger(through, "run", patience=30) as ledger:
            for n in range(4):
                wire.cut_at_insert = n in {1, 2}
                ledger.record(number(n))
            assert wire.cuts == 2
        with Ledger(database, "run") as ledger:
            assert [entry.id for entry in ledger.entries("search")] == ["0", "1", "2", "3"]
    finally:
        wire.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:sec@ret@127.0.0.1:1/db",
        "postgresql://me:sec/ret@127.0.0.1:1/db",
        "postgresql://me:sec#ret@127.0.0.1:1/db",
        "postgresql://me:sec%ret@127.0.0.1:1/db",
        "postgres://me:secret@127.0.0.1:1/db",
        "postgresql+psycopg://me:secret@127.0.0.1:1/db?connect_timeout=3",
    ],
)
def test_no_message_shows_the_password(url):
    pytest.importorskip("psycopg")
    with pytest.raises(LedgerError) as caught:
        Ledger(url, "run")
    shown, error = "", caught.value
    while error is not None:
        shown, error = shown + str(error), error.__cause__
    assert "sec" not in shown.replace("(0 sec)", "")
    assert "ret" not in shown
