"""Every benchmark is a command that runs: with --smoke, each in a process of its own.

Importing torch and scikit-learn takes longer than most of these runs. So a server process imports
them once, and every command runs in a fork of it; where there is no fork, each imports them anew.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import runpy
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.common import report
from test_examples import missing

ROOT = Path(__file__).parents[2]
COMMANDS = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted((ROOT / "benchmarks").rglob("*.py"))
    if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
}
FORKS = "forkserver" in multiprocessing.get_all_start_methods()
CONTEXT = multiprocessing.get_context("forkserver" if FORKS else "spawn")
# The first optimiser of a process imports _dynamo, which takes as long as all the rest.
HEAVY = ["autotransfer.auto", "torch._dynamo", "optuna", "pyriemann"]
SECONDS = 300  # machines that run this are busy


def run(command: str, folder: Path) -> None:
    """Run a command as ``python -m`` does; what it says goes to a file."""
    said = os.open(folder / "said.txt", os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(said, stream)
    # Not a test of this machine's recordings.
    os.environ["AUTOTRANSFER_DATA"] = str(folder / "no recordings")
    # A process of multiprocessing leaves what `atexit` would delete.
    tempfile.tempdir = str(folder)
    sys.argv = [command, "--smoke"]
    runpy.run_module(command, run_name="__main__", alter_sys=True)


def reason_to_skip(path: Path) -> str:
    """Say what a command needs and this machine has not, or ""."""
    lacking = missing(path)
    if "PostgresServer" in path.read_text(encoding="utf-8"):
        if sys.platform != "linux":
            return "it reads /proc, and its server needs Unix"
        from benchmarks.common.postgres_server import find_programs

        lacking |= {"psycopg"} if find_spec("psycopg") is None else set()
        lacking |= {"PostgreSQL"} if find_programs() is None else set()
    # In CI nothing may be missing: the command runs, and fails.
    needed = os.environ.get("AUTOTRANSFER_NEED_EXTRAS") == "1"
    return "" if needed or not lacking else f"not installed: {', '.join(sorted(lacking))}"


def stamps() -> dict[Path, int]:
    """Times at which committed figures, and the pages that show them, were written."""
    files = [*(ROOT / "benchmarks" / "results").iterdir(), *(ROOT / "docs").glob("*.md")]
    return {path: path.stat().st_mtime_ns for path in [*files, ROOT / "README.md"]}


@pytest.fixture
def folder():
    """Make a folder that other users may enter: PostgreSQL runs as one, and not as root."""
    with tempfile.TemporaryDirectory() as there:
        Path(there).chmod(0o755)
        yield Path(there)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_runs(command, folder):
    source = COMMANDS[command].read_text(encoding="utf-8")
    assert re.search(r"\barguments\(|\.smoke\b", source), "it does not read --smoke"
    if reason := reason_to_skip(COMMANDS[command]):
        pytest.skip(reason)
    before = stamps()
    if FORKS:
        CONTEXT.set_forkserver_preload(HEAVY)
    process = CONTEXT.Process(target=run, args=(command, folder))
    process.start()
    process.join(SECONDS)
    if process.is_alive():
        process.kill()
    said = (folder / "said.txt").read_text(encoding="utf-8")
    assert process.exitcode == 0, said[-2000:]
    lines = said.splitlines()
    assert any(line.startswith("┃") for line in lines), "no head of a table"
    assert any(line.startswith("│") for line in lines), "no row of a table"
    assert not any(line.startswith(("met ", "MISSED ")) for line in lines), "goals of no figures"
    assert stamps() == before


def test_there_are_commands():
    assert len(COMMANDS) >= 25


@pytest.mark.parametrize("other", [["--check"], ["--json", "figures.json"]])
def test_smoke_gives_no_figures(other, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["command", "--smoke", *other])
    with pytest.raises(SystemExit) as ended:
        report.arguments(report.parser("A benchmark."))
    assert ended.value.code == 2
    assert not list(tmp_path.iterdir())


def test_smoke_has_defaults_of_its_own(monkeypatch):
    parser = report.parser("A benchmark.")
    parser.add_argument("--seeds", type=int, default=5)
    for words, seeds in (([], 5), (["--smoke"], 1), (["--smoke", "--seeds", "2"], 2)):
        monkeypatch.setattr(sys, "argv", ["command", *words])
        assert report.arguments(parser, seeds=1).seeds == seeds
        parser.set_defaults(seeds=5)
