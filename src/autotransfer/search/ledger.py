"""The ledger: what is on record of every trial, and what was planned.

A ledger is an Optuna storage, so that Optuna's own tools (``optuna-dashboard``,
`optuna.load_study`) open it: a journal file on a laptop, PostgreSQL for a team. Each stage of a
run is one study named ``<name>/<stage>``. A trial enters the ledger once, finished, in one write
that is on the disk when `Ledger.record` returns; a run that was killed has the trials that were
recorded, each once and whole, and the same command runs what is missing.

====================  ==========================================================
in Optuna             in the ledger
====================  ==========================================================
study                 a stage; its user attribute ``plan`` is what was planned
trial ``COMPLETE``    an entry that is ``done``
trial ``FAIL``        an entry that is ``failed``
value                 `Entry.value`; minus infinity stands for "none"
user attributes       ``id``, ``definition``, ``result``, ``error``, ``attempts``,
                      ``params``, ``curves``: the entry itself, dicts as JSON
params                `Entry.params` once more, for dashboards (see `Ledger`)
====================  ==========================================================
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial

from autotransfer.errors import LedgerError
from autotransfer.search import postgres
from autotransfer.search.entry import Entry, decode, encode, to_json
from autotransfer.search.journal import Journal

__all__ = ["Entry", "Ledger"]


class Store(Protocol):
    """Where a ledger is kept: a `Journal` file or a `Postgres` database."""

    def stages(self) -> list[str]:
        """Return the stages in the order they were begun."""

    def begin(self, stage: str) -> None:
        """Make the study of a stage unless it is there."""

    def plan(self, stage: str) -> str | None:
        """Return the text of the plan of a stage."""

    def write_plan(self, stage: str, text: str) -> None:
        """Keep the text of the plan of a stage."""

    def ids(self, stage: str) -> set[str]:
        """Return the ids on record, not to be changed by the caller."""

    def append(self, stage: str, trial: FrozenTrial) -> None:
        """Write a finished trial, all or nothing, to the disk."""

    def trials(
        self, stage: str, curves: bool
    ) -> Iterator[tuple[bool, float | None, dict[str, Any]]]:
        """Yield (whether done, value, user attributes) in the order of recording."""

    def close(self) -> None:
        """Let go of files, connections and locks."""


class Ledger:
    """The record of all trials of a run, open in one process for writing.

    Parameters
    ----------
    storage : str or path
        Path of a journal file, made if it is not there, or a ``postgresql://`` URL.
    name : str
        Name of the run. Runs of different names may share a storage.
    read_only : bool, default False
        Look at a ledger, also while another process writes to it.
    choices : dict of str to sequence, optional
        All values that a name in `Entry.params` can take. Optuna compares trials of one study
        only if they were drawn from the same range, so the range has to be known beforehand:

        - a value among its `choices` is kept as a categorical parameter, with which Optuna's
          plots and parameter importances work;
        - another number within 1e12 of zero becomes a parameter with that range (plots work,
          importances are not to be trusted);
        - anything else becomes the user attribute ``param:<name>``.

        `Entry.params` itself comes back exactly, whichever of these it was.
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
        self,
        storage: str | Path,
        name: str,
        *,
        read_only: bool = False,
        choices: Mapping[str, Sequence[Any]] | None = None,
        patience: float = 600.0,
    ) -> None:
        if not name:
            raise LedgerError("A ledger needs the name of the run.")
        self._ranges: dict[str, BaseDistribution] = {
            key: CategoricalDistribution(list(values)) for key, values in (choices or {}).items()
        }
        self._read_only = read_only
        # Executors call back from threads of their own.
        self._one_at_a_time = threading.RLock()
        self._store: Store
        if isinstance(storage, str) and postgres.is_url(storage):
            self._store = postgres.Postgres(storage, name, read_only, patience)
        else:
            self._store = Journal(Path(storage), name, read_only)

    def record(self, entry: Entry) -> None:
        """Put a finished trial on record; it is on the disk when this returns.

        Raises
        ------
        LedgerError
            If the id is on record in this stage, the entry is not one JSON can hold, or it cannot
            be written. An entry that was not written leaves no trace: the same call can follow
            when the cause is mended.
        """
        trial = encode(entry, self._ranges)
        with self._one_at_a_time:
            self._begin(entry.stage)
            if entry.id in self._store.ids(entry.stage):
                raise LedgerError(f"Trial {entry.id} of {entry.stage} is already on record.")
            self._store.append(entry.stage, trial)

    def entries(self, stage: str, *, curves: bool = False) -> list[Entry]:
        """Return everything on record of a stage, in the order of recording."""
        with self._one_at_a_time:
            return list(self.each(stage, curves=curves))

    def each(self, stage: str, *, curves: bool = False) -> Iterator[Entry]:
        """Yield what `entries` returns one by one, without holding all of it in memory."""
        for done, value, attributes in self._store.trials(stage, curves):
            # Trials that a person added with other tools are none of ours.
            if "id" in attributes:
                yield decode(stage, done, value, attributes, curves)

    def ids(self, stage: str) -> set[str]:
        """Return the ids of all trials on record in a stage."""
        with self._one_at_a_time:
            return set(self._store.ids(stage))

    def stages(self) -> list[str]:
        """Return the stages that have a plan or a trial, in the order they were begun."""
        with self._one_at_a_time:
            return self._store.stages()

    def write_plan(self, stage: str, plan: dict[str, Any]) -> None:
        """Keep what is planned for a stage, before its first trial.

        Raises
        ------
        LedgerError
            If another plan is on record.
        """
        text = to_json(plan, f"The plan of {stage}")
        with self._one_at_a_time:
            self._begin(stage)
            known = self._store.plan(stage)
            if known is None:
                self._store.write_plan(stage, text)
            elif known != text:
                raise LedgerError(
                    f"Another plan of {stage} is on record. Take up the run with the options it "
                    "was begun with, or begin one under another name."
                )

    def plan(self, stage: str) -> dict[str, Any] | None:
        """Return what was planned for a stage, or None."""
        with self._one_at_a_time:
            text = self._store.plan(stage)
        if text is None:
            return None
        plan: dict[str, Any] = json.loads(text)
        return plan

    def close(self) -> None:
        """Let other processes write; whatever was recorded is on the disk already."""
        with self._one_at_a_time:
            self._store.close()

    def _begin(self, stage: str) -> None:
        if self._read_only:
            raise LedgerError("This ledger was opened for reading only.")
        if not stage or "/" in stage:
            raise LedgerError(f"{stage!r} cannot be a stage: use a word without '/'.")
        self._store.begin(stage)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
