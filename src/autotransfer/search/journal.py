"""A ledger in a file: Optuna's journal, written by one process and safe against a kill.

A journal has one line of JSON for each operation. Optuna writes and understands them; this module
is the file under it. It differs from Optuna's own in what happens when something goes wrong:

- the lock is the kernel's, so that a killed process leaves none behind;
- half a line at the end, left by a kill or a full disk, is cut off;
- a line that cannot be written whole and flushed is taken back, and said so.

Nor does it hand all trials back to Optuna, which would build every one of them in memory: a
hundred thousand are read in seconds because only their ids are kept.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import optuna
from optuna.storages.journal import BaseJournalBackend
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from autotransfer.errors import LedgerError
from autotransfer.search.driver_lock import DriverLock

# Operations of Optuna's journal. The numbers stand in files on people's disks: they stay.
CREATE_STUDY, DELETE_STUDY, SET_STUDY_USER_ATTR, SET_STUDY_SYSTEM_ATTR, CREATE_TRIAL = range(5)

TRIAL = re.compile(rb'\{"op_code":4,"worker_id":"[^"\\]*","study_id":(\d+),')
ID = re.compile(rb'"user_attrs":\{"id":"([^"\\]*)"')
FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)


class Journal(BaseJournalBackend):
    """The journal file of a ledger: the file under Optuna, and an index of what is in it.

    Parameters
    ----------
    path : Path
        The file; made if it is not there and this is no `read_only` look.
    name : str
        Name of the run, the first part of the names of its studies.
    read_only : bool
        Take no lock and write nothing.

    Notes
    -----
    The index (`_studies`, `_plans`, `_ids`) is made from the file alone, by `_catch_up`, also
    after our own writes. A write that failed or was interrupted therefore cannot set it apart
    from the file.
    """

    def __init__(self, path: Path, name: str, read_only: bool) -> None:
        self._path = path.expanduser().resolve()
        self._prefix = f"{name}/"
        self._offset = 0  # everything before it is in the index
        self._studies: dict[int, str] = {}
        self._next_study = 0
        self._plans: dict[int, str] = {}
        self._ids: dict[int, set[str]] = {}
        self._for_optuna: list[dict[str, Any]] = []
        self._trial_shown = False
        self._lock: DriverLock | None = None
        self._file: int | None = None
        self._study_objects: dict[str, Study] = {}
        if read_only:
            if not self._path.is_file():
                raise LedgerError(f"There is no ledger at {self._path}.")
            self._catch_up()
            return
        try:
            self._lock = DriverLock(self._path)
            self._file = os.open(self._path, FLAGS, 0o666)
            _sync_folder(self._path.parent)
        except OSError as error:
            self.close()
            raise LedgerError(f"{self._path} cannot be opened for writing: {error}.") from error
        try:
            self._catch_up()
            self._cut()
        except BaseException:
            self.close()
            raise
        self._optuna = optuna.storages.JournalStorage(self)

    def stages(self) -> list[str]:
        """Return the stages in the order they were begun."""
        self._catch_up()
        mine = [name for name in self._studies.values() if name.startswith(self._prefix)]
        stages = [name.removeprefix(self._prefix) for name in mine]
        return [stage for stage in stages if "/" not in stage]  # a/b is another run than a

    def begin(self, stage: str) -> None:
        """Make the study of a stage unless it is there."""
        if stage in self._study_objects:
            return
        name = self._prefix + stage
        if name not in self._studies.values():
            with _quiet():
                self._optuna.create_new_study([StudyDirection.MAXIMIZE], name)
        self._study_objects[stage] = optuna.load_study(study_name=name, storage=self._optuna)

    def plan(self, stage: str) -> str | None:
        """Return the text of the plan of a stage."""
        study = self._find(stage)
        return None if study is None else self._plans.get(study)

    def write_plan(self, stage: str, text: str) -> None:
        """Keep the text of the plan of a stage."""
        self._study_objects[stage].set_user_attr("plan", text)

    def ids(self, stage: str) -> set[str]:
        """Return the ids on record."""
        study = self._find(stage)
        return set() if study is None else self._ids[study]

    def append(self, stage: str, trial: FrozenTrial) -> None:
        """Write a finished trial as one line."""
        self._study_objects[stage].add_trial(trial)

    def trials(
        self, stage: str, curves: bool
    ) -> Iterator[tuple[bool, float | None, dict[str, Any]]]:
        """Yield (whether done, value, user attributes) in the order of recording."""
        study = self._find(stage)
        if study is None:
            return
        for log, _ in self._logs(0, self._offset, study=study):
            if log["op_code"] == CREATE_TRIAL and log["study_id"] == study:
                done = log.get("state") == TrialState.COMPLETE
                yield done, log.get("value"), log.get("user_attrs", {})

    def close(self) -> None:
        """Let go of the file and the lock."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """Hand Optuna what it has not seen of the operations on studies."""
        logs, self._for_optuna = self._for_optuna, []
        yield from logs

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Write operations of Optuna to the disk, or raise and leave the file as it was."""
        data = b"".join(json.dumps(log, separators=(",", ":")).encode() + b"\n" for log in logs)
        number = self._writable()
        self._catch_up()
        self._cut()
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(number, view) :]
            os.fsync(number)
        except OSError as error:
            with contextlib.suppress(OSError):  # if this fails too, the next write or open cuts
                os.ftruncate(number, self._offset)
                os.fsync(number)
            raise LedgerError(
                f"{self._path} cannot be written: {error.strerror}. Nothing that was recorded "
                "before is lost: make room and run the same command again."
            ) from error
        self._catch_up()
        # Optuna wants to see the first trial that it created, of whatever content.
        if not self._trial_shown and logs[-1]["op_code"] == CREATE_TRIAL:
            self._trial_shown = True
            empty: dict[str, Any] = {"user_attrs": {}, "params": {}, "distributions": {}}
            self._for_optuna.append({**logs[-1], **empty})

    def _writable(self) -> int:
        """Return the number of the open file, if it still is the file of that name."""
        if self._file is None:
            raise LedgerError(f"{self._path} is closed.")
        try:
            same = os.path.samestat(os.fstat(self._file), self._path.stat())
        except OSError:
            same = False
        if not same:
            raise LedgerError(
                f"{self._path} was deleted or replaced while the run was going on. Put it back "
                "and run the same command again."
            )
        return self._file

    def _catch_up(self) -> None:
        """Bring the index up to the last whole line of the file."""
        try:
            size = self._path.stat().st_size
        except OSError as error:
            raise LedgerError(f"{self._path} is gone: {error.strerror}.") from error
        if size == self._offset:
            return
        if self._taken_back(size):
            if self._file is not None:
                raise LedgerError(
                    f"{self._path} was shortened by something else while the run was going on. "
                    "Run the same command again."
                )
            # We look on, and a line was taken back because it could not be written whole.
            self._offset = self._next_study = 0
            for known in (self._studies, self._plans, self._ids):
                known.clear()
        for log, end in self._logs(self._offset, size, brief=True):
            self._apply(log)
            self._offset = end

    def _taken_back(self, size: int) -> bool:
        """Tell whether the file no longer has a line that was read from it."""
        if size < self._offset or self._offset == 0:
            return size < self._offset
        with self._path.open("rb") as handle:
            handle.seek(self._offset - 1)
            return handle.read(1) != b"\n"

    def _logs(
        self, start: int, stop: int, brief: bool = False, study: int | None = None
    ) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield operations and where their lines end, but no damaged line at the very end.

        Trials of other studies than `study` are passed over without being read, if it is given.
        """
        with self._path.open("rb") as handle:
            handle.seek(start)
            for line in handle:
                start += len(line)
                other = TRIAL.match(line) if study is not None and start < stop else None
                if other is not None and int(other[1]) != study:
                    continue
                # The last line is always read in full: it may be damaged.
                log = _only_id(line) if brief and start < stop else None
                if log is None:
                    try:
                        log = json.loads(line) if line.endswith(b"\n") else None
                    except ValueError as error:
                        if handle.read(1):
                            raise LedgerError(
                                f"{self._path} is damaged in the line that ends at byte {start}. "
                                "Put back a copy, or delete that line: its trial will run again."
                            ) from error
                if log is None:
                    return
                yield log, start
                if start >= stop:
                    return

    def _apply(self, log: dict[str, Any]) -> None:
        """Enter an operation into the index, as Optuna would."""
        code = log["op_code"]
        if code == CREATE_TRIAL:
            identity = log.get("user_attrs", {}).get("id")
            if identity is not None and log["study_id"] in self._studies:
                self._ids[log["study_id"]].add(identity)
            return
        if code == CREATE_STUDY and log["study_name"] not in self._studies.values():
            self._studies[self._next_study] = log["study_name"]
            self._ids[self._next_study] = set()
            self._next_study += 1
        elif code == DELETE_STUDY:
            self._studies.pop(log["study_id"], None)
        elif code == SET_STUDY_USER_ATTR and "plan" in log["user_attr"]:
            self._plans[log["study_id"]] = log["user_attr"]["plan"]
        if code in {CREATE_STUDY, DELETE_STUDY, SET_STUDY_USER_ATTR, SET_STUDY_SYSTEM_ATTR}:
            self._for_optuna.append(log)

    def _cut(self) -> None:
        """Cut off what follows the last whole line."""
        assert self._file is not None
        if os.fstat(self._file).st_size > self._offset:
            os.ftruncate(self._file, self._offset)
            os.fsync(self._file)

    def _find(self, stage: str) -> int | None:
        self._catch_up()
        name = self._prefix + stage
        return next((number for number, known in self._studies.items() if known == name), None)


def _only_id(line: bytes) -> dict[str, Any] | None:
    """Read no more of a trial's line than the index needs: ten times as fast as all of it.

    Within JSON text the quotes of a text are escaped, so the pattern cannot match inside one. A
    line that does not match, from another version of Optuna for instance, is read in full.
    """
    head = TRIAL.match(line)
    identity = ID.search(line, head.end()) if head else None
    if head is None or identity is None or not line.endswith(b"}\n"):
        return None
    attributes = {"id": identity[1].decode()}
    return {"op_code": CREATE_TRIAL, "study_id": int(head[1]), "user_attrs": attributes}


def _sync_folder(path: Path) -> None:
    """Make the name of a new file survive a power cut, where folders can be opened."""
    if os.name != "nt":
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna from announcing every study."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
