"""What an address of a database holds beside host, port and name is shown and kept nowhere."""

from __future__ import annotations

import json
import re

import drive
import pytest
from small import call

from autotransfer.errors import LedgerError
from autotransfer.search import Ledger, Space, export_optuna
from autotransfer.search.ledger.connection import place
from autotransfer.search.run_folder import RunFolder
from autotransfer.search.settings.trial import digest

pytest_plugins = ["postgres"]
pytestmark = pytest.mark.filterwarnings("ignore::autotransfer.errors.AutoTransferWarning")

FILES = {"sslkey": "/home/ann/key-of-ann", "passfile": "/home/ann/passwords-of-ann"}


def addresses(url):
    """Write the address of a database with its password in other places than before the @."""
    user, password, host, port, name = re.fullmatch(
        r"postgresql://(.*):(.*)@(.*):(.*)/(.*)", url
    ).groups()
    known = {"user": user, "password": password, "sslmode": "disable", **FILES}
    query = "&".join(f"{key}={value}" for key, value in known.items())
    words = {"host": host, "port": port, "dbname": name, **known}
    return {
        "query": f"postgresql://{host}:{port}/{name}?{query}",
        "keywords": " ".join(f"{key}={value!r}" for key, value in words.items()),
    }


@pytest.mark.parametrize("form", ["query", "keywords"])
def test_a_run_keeps_host_port_and_name_only(tmp_path, postgres_server, database, form):
    storage = addresses(database)[form]
    out = tmp_path / "run"
    space = Space(["mmd"], ["marginal"], {"mmd": [1]})
    auto = drive.quick(out, storage=storage, space=space, n_folds=3)
    data = drive.data()
    auto.fit(data.X, data.y, subject=data.subject)
    page = auto.report()
    said = call("status", out)
    assert said.returncode == 1
    name = database.rpartition("/")[2]
    assert f"database {name} at 127.0.0.1:{postgres_server.port}" in said.stderr
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert page in kept
    shown = {**kept, "status": (said.stdout + said.stderr).encode()}
    for secret in (postgres_server.password, "of-ann", "sslmode"):
        assert [str(path) for path, text in shown.items() if secret.encode() in text] == []
    assert json.loads(call("status", out, "--storage", storage, "--json").stdout)["complete"]


def test_the_folder_of_an_earlier_version_is_not_read_aloud(tmp_path):
    pytest.importorskip("psycopg")
    files = RunFolder(tmp_path / "run")
    files.claim({}, {"storage": "postgresql://server/ledger?user=ann&password=secret"})
    said = call("status", files.path)
    assert "database ledger at server:5432" in said.stderr
    assert "secret" not in said.stdout + said.stderr


@pytest.mark.parametrize(
    "address",
    [
        "mysql://ann:secret@server/ledger",
        "postgresql://server/ledger?password=secret&nonsense=1",
        "postgresql://server/ledger?secret",
        "host=server password='secret",
        "password=secret nonsense=1",
        "password=secret://x host=127.0.0.1 port=1",
    ],
)
def test_an_address_that_cannot_be_used_is_not_read_aloud(tmp_path, monkeypatch, address):
    pytest.importorskip("psycopg")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError) as caught:
        Ledger(address, "run")
    shown, error = "", caught.value
    while error is not None:
        shown, error = shown + str(error), error.__cause__
    assert "secret" not in shown
    # A file of that name would show it as well.
    assert list(tmp_path.iterdir()) == []


def test_the_environment_says_what_the_address_does_not(monkeypatch):
    pytest.importorskip("psycopg")
    for name, value in {"PGHOST": "db.lab", "PGPORT": "7", "PGDATABASE": "ledger"}.items():
        monkeypatch.setenv(name, value)
    assert place("postgresql://") == "database ledger at db.lab:7"
    assert place("postgresql://other/mine") == "database mine at other:7"


@pytest.mark.parametrize(
    "url", ["mysql+nothing://ann:secret@server/x", "secret@server", "a=secret"]
)
def test_an_address_for_optuna_is_not_read_aloud(tmp_path, url):
    definition = {"data": "a", "classifier": "b"}
    files = RunFolder(tmp_path / "run")
    files.claim(definition, {"storage": None})
    with Ledger(files.ledger, digest(definition)) as ledger:
        ledger.write_plan("search", {"n": 1})
    with pytest.raises(LedgerError, match="Optuna cannot use") as caught:
        export_optuna(files.path, url)
    assert "secret" not in str(caught.value)
