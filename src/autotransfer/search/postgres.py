"""A ledger in PostgreSQL: Optuna's tables, written by one driver over one connection.

Optuna makes the tables and checks their version. Trials are read and written with SQL of our own
over the same tables, for two reasons. Optuna's way of adding a trial starts again by itself when
the connection breaks, even if the server had already committed: a trial could be there twice. And
reading goes through objects: minutes for a hundred thousand trials, against seconds here.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from typing import Any

import optuna
from optuna.exceptions import StorageInternalError
from optuna.trial import FrozenTrial

from autotransfer.errors import LedgerError
from autotransfer.search.postgres_link import SCHEMES, Link, lock_key

CHUNK = 2000  # trials read at a time
# As Optuna does it, a trial's number is how many trials of the study are older.
INSERT = """
WITH trial AS (
    INSERT INTO trials (number, study_id, state, datetime_start, datetime_complete)
    SELECT coalesce((SELECT number + 1 FROM trials WHERE study_id = %(study)s
                     ORDER BY trial_id DESC LIMIT 1), 0),
           %(study)s, %(state)s::trialstate, %(time)s, %(time)s
    RETURNING trial_id
), score AS (
    INSERT INTO trial_values (trial_id, objective, value, value_type)
    SELECT trial_id, 0, nullif(%(value)s::float8, '-infinity'),
           (CASE WHEN %(value)s::float8 = '-infinity' THEN 'INF_NEG' ELSE 'FINITE' END)
           ::trialvaluetype
    FROM trial WHERE %(value)s::float8 IS NOT NULL
), param AS (
    INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json)
    SELECT trial_id, p.* FROM trial,
           unnest(%(names)s::text[], %(numbers)s::float8[], %(ranges)s::text[]) AS p
)
INSERT INTO trial_user_attributes (trial_id, key, value_json)
SELECT trial_id, a.* FROM trial, unnest(%(keys)s::text[], %(texts)s::text[]) AS a
"""
IDS = """
SELECT a.value_json FROM trial_user_attributes a JOIN trials t USING (trial_id)
WHERE t.study_id = %s AND a.key = 'id'
"""
TRIALS = """
SELECT t.trial_id, t.state::text, v.value FROM trials t
LEFT JOIN trial_values v ON v.trial_id = t.trial_id AND v.objective = 0
WHERE t.study_id = %s AND t.state IN ('COMPLETE', 'FAIL') ORDER BY t.trial_id
"""
ATTRIBUTES = """
SELECT trial_id, key, value_json FROM trial_user_attributes
WHERE trial_id = ANY(%s) AND NOT (%s AND key = 'curves')
"""


def is_url(storage: str) -> bool:
    """Tell whether a storage is a PostgreSQL URL (and not the path of a file)."""
    return storage.startswith(SCHEMES)


class Postgres:
    """The tables of a ledger in a PostgreSQL database.

    Parameters
    ----------
    url : str
        ``postgresql://user:password@host:port/database``.
    name : str
        Name of the run, the first part of the names of its studies.
    read_only : bool
        Take no lock and write nothing.
    patience : float
        Seconds to wait for a server that is away. A `read_only` look does not wait.
    """

    def __init__(self, url: str, name: str, read_only: bool, patience: float) -> None:
        self._prefix = f"{name}/"
        self._read_only = read_only
        self._studies: dict[str, int] = {}
        self._ids: dict[str, set[str]] = {}
        self._link = Link(url, name, read_only, 0.0 if read_only else patience, self._ids.clear)
        try:
            if not read_only:
                self._make_tables()
            elif not self._link.one("SELECT to_regclass('trials')"):
                raise LedgerError(f"There is no ledger in {self._link.where}.")
        except BaseException:
            self._link.close()
            raise

    def stages(self) -> list[str]:
        """Return the stages in the order they were begun."""
        query = "SELECT study_name FROM studies WHERE starts_with(study_name, %s) ORDER BY study_id"
        rows = self._link.rows(query, self._prefix)
        stages = [name.removeprefix(self._prefix) for (name,) in rows]
        return [stage for stage in stages if "/" not in stage]  # a/b is another run than a

    def begin(self, stage: str) -> None:
        """Make the study of a stage unless it is there."""
        if self._study(stage) is not None:
            return

        def make(connection: Any) -> None:
            with connection.transaction():
                query = "INSERT INTO studies (study_name) VALUES (%s) ON CONFLICT DO NOTHING"
                connection.execute(query, [self._prefix + stage])
                query = """INSERT INTO study_directions (study_id, objective, direction)
                           SELECT study_id, 0, 'MAXIMIZE' FROM studies WHERE study_name = %s
                           ON CONFLICT DO NOTHING"""
                connection.execute(query, [self._prefix + stage])

        self._link.patiently(make)

    def plan(self, stage: str) -> str | None:
        """Return the text of the plan of a stage."""
        query = "SELECT value_json FROM study_user_attributes WHERE study_id = %s AND key = 'plan'"
        text = self._link.one(query, self._study(stage))
        return None if text is None else str(json.loads(text))

    def write_plan(self, stage: str, text: str) -> None:
        """Keep the text of the plan of a stage."""
        query = """INSERT INTO study_user_attributes (study_id, key, value_json)
                   VALUES (%s, 'plan', %s) ON CONFLICT DO NOTHING"""
        values = [self._study(stage), json.dumps(text)]
        self._link.patiently(lambda connection: connection.execute(query, values))

    def ids(self, stage: str) -> set[str]:
        """Return the ids on record."""
        if self._read_only or stage not in self._ids:
            rows = self._link.rows(IDS, self._study(stage))
            self._ids[stage] = {json.loads(text) for (text,) in rows}
        return self._ids[stage]

    def append(self, stage: str, trial: FrozenTrial) -> None:
        """Write a finished trial in one transaction, once, however often the server goes away."""
        study, ranges = self._study(stage), trial.distributions
        values = {
            "study": study,
            "state": trial.state.name,
            "time": _utc(trial),
            "value": trial.value,
            "names": list(trial.params),
            "numbers": [float(ranges[k].to_internal_repr(v)) for k, v in trial.params.items()],
            "ranges": [optuna.distributions.distribution_to_json(ranges[k]) for k in trial.params],
            "keys": list(trial.user_attrs),
            "texts": [json.dumps(value) for value in trial.user_attrs.values()],
        }
        identity = trial.user_attrs["id"]

        def write(connection: Any) -> None:
            with connection.transaction():
                # An attempt of ours whose answer was lost may still be going on in the server;
                # behind this lock it has ended one way or the other.
                connection.execute("SELECT 1 FROM studies WHERE study_id = %s FOR UPDATE", [study])
                if stage not in self._ids:  # this is another connection than a moment ago
                    rows = connection.execute(IDS, [study]).fetchall()
                    self._ids[stage] = {json.loads(text) for (text,) in rows}
                if identity not in self._ids[stage]:
                    connection.execute(INSERT, values)

        self._link.patiently(write)
        self._ids[stage].add(identity)

    def trials(
        self, stage: str, curves: bool
    ) -> Iterator[tuple[bool, float | None, dict[str, Any]]]:
        """Yield (whether done, value, user attributes) in the order of recording."""
        trials = self._link.rows(TRIALS, self._study(stage))
        for start in range(0, len(trials), CHUNK):
            part = trials[start : start + CHUNK]
            attributes: dict[int, dict[str, Any]] = {trial: {} for trial, _, _ in part}
            for trial, key, text in self._link.rows(ATTRIBUTES, list(attributes), not curves):
                attributes[trial][key] = json.loads(text)
            for trial, state, value in part:
                yield state == "COMPLETE", value, attributes[trial]

    def close(self) -> None:
        """Let go of the connection, and the lock with it."""
        self._link.close()

    def _study(self, stage: str) -> int | None:
        if stage not in self._studies:
            query = "SELECT study_id FROM studies WHERE study_name = %s"
            found = self._link.one(query, self._prefix + stage)
            if found is None:
                return None
            self._studies[stage] = found
        return self._studies[stage]

    def _make_tables(self) -> None:
        """Have Optuna make its tables, or check that it knows their version."""
        import sqlalchemy.exc

        # Two runs may be the first in a database at the same time.
        self._link.rows("SELECT pg_advisory_lock(%s)", lock_key("tables"))
        try:
            creator = {"creator": self._link.plain}
            storage = optuna.storages.RDBStorage("postgresql+psycopg://", engine_kwargs=creator)
            storage.engine.dispose()
        except (RuntimeError, StorageInternalError, sqlalchemy.exc.SQLAlchemyError) as error:
            raise LedgerError(f"Optuna cannot use {self._link.where}: {error}") from error
        self._link.rows("SELECT pg_advisory_unlock(%s)", lock_key("tables"))


def _utc(trial: FrozenTrial) -> datetime.datetime:
    """Return when the trial was finished as Optuna keeps it: UTC, without saying so."""
    assert trial.datetime_complete is not None
    return trial.datetime_complete.astimezone(datetime.UTC).replace(tzinfo=None)
