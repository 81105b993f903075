"""A real PostgreSQL for tests: one server for the session, a new database for each test.

Without an installed server (or psycopg) the tests are skipped; with AUTOTRANSFER_NEED_POSTGRES=1
in the environment they fail instead.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

# Benchmarks and tests share the starter; it stands with the benchmarks, which import no tests.
STARTER = Path(__file__).parents[2] / "benchmarks" / "common" / "postgres_server.py"


def load_starter():
    spec = importlib.util.spec_from_file_location("postgres_server", STARTER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def why_not() -> str | None:
    """Say what is missing for a server, None if nothing is."""
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed (pip install psycopg[binary])"
    if not STARTER.exists():
        return f"{STARTER} is not part of this copy"
    if load_starter().find_programs() is None:
        return "no PostgreSQL server is installed (initdb was not found)"
    return None


@pytest.fixture(scope="session")
def postgres_server():
    reason = why_not()
    if reason is not None:
        if os.environ.get("AUTOTRANSFER_NEED_POSTGRES") == "1":
            pytest.fail(f"AUTOTRANSFER_NEED_POSTGRES=1, but {reason}")
        pytest.skip(reason)
    with load_starter().PostgresServer(fsync=False) as server:
        yield server


@pytest.fixture
def database(postgres_server):
    return postgres_server.create_database()
