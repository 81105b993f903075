"""Help, version, completion: what needs no data and must need no torch."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

import autotransfer as at
from autotransfer.censoring import MEASURES, MODES
from autotransfer.cli.app import app
from autotransfer.cli.errors import EXIT_CODES
from autotransfer.data import NORMALISERS
from autotransfer.leakage.probes import PROBES
from autotransfer.search import ENGINES, RULES
from autotransfer.training import AUGMENTATIONS

COMMANDS = [
    "inspect",
    "run",
    "status",
    "report",
    "fit",
    "predict",
    "adapt",
    "leakage",
    "export",
    "datasets",
]
HEAVY = ("torch", "sklearn", "pandas", "optuna", "scipy", "matplotlib")
GROUP = typer.main.get_command(app)


def call(*args):
    return CliRunner().invoke(app, args, env={"COLUMNS": "200", "TERM": "dumb"})


def parameters(name):
    """Options of a command: Python name -> option."""
    return {one.name: one for one in GROUP.commands[name].params}


@pytest.mark.parametrize("args", [["--help"], ["run", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(args):
    code = (
        "import json, sys\n"
        f"sys.argv = ['autotransfer', *{args!r}]\n"
        "from autotransfer.cli import main\n"
        "try:\n    main()\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == []
    assert len(done.stdout.splitlines()) > 1


def test_the_commands_are_those_of_the_design():
    assert list(GROUP.commands) == COMMANDS


def test_the_help_tells_the_exit_codes():
    shown = call("--help").output
    for code, words in EXIT_CODES.items():
        assert re.search(rf"\b{code}: {re.escape(words[:30])}", shown)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_shows_examples_and_explains_every_option(name):
    shown = call(name, "--help").output
    assert re.search(rf"Examples\W+autotransfer {name}", shown)
    assert all(one.help for one in parameters(name).values())
    assert "--debug" in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_readable_on_80_columns(name):
    shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "80", "TERM": "dumb"}).output
    lines = [line.strip() for line in shown.splitlines()]
    examples = [line for line in lines if line.startswith("autotransfer ")]
    assert examples
    # Each example is a whole command: none was broken, none goes on in the next line.
    doc = inspect.getdoc(GROUP.commands[name].callback)
    assert examples == [line.strip() for line in doc.splitlines() if "  autotransfer " in line]


@pytest.mark.parametrize(
    ("command", "python"),
    [("run", at.AutoTransfer), ("run", at.CensoredClassifier), ("fit", at.CensoredClassifier)],
)
def test_options_have_the_names_and_defaults_of_python(command, python):
    mine = parameters(command)
    theirs = inspect.signature(python).parameters
    shared = mine.keys() & theirs.keys()
    # Lists of the search space, and the seed of a study, which is never left to chance.
    other = {"measure", "mode", "random_state", "out"} | (
        {"validation"} if command == "fit" else set()
    )
    for name in shared - other:
        assert (mine[name].default or None) == (theirs[name].default or None), name
    if python is at.AutoTransfer:
        missing = theirs.keys() - mine.keys()
        assert missing == {"classifier", "fixed", "recipes", "space"}
    elif command == "fit":
        assert theirs.keys() <= mine.keys()


@pytest.mark.parametrize(
    ("command", "option", "names"),
    [
        ("run", "measure", MEASURES),
        ("run", "mode", MODES),
        ("run", "rule", RULES),
        ("run", "engine", ENGINES),
        ("run", "normalise", NORMALISERS),
        ("run", "augment", AUGMENTATIONS),
        ("fit", "augment", AUGMENTATIONS),
        ("fit", "measure", MEASURES),
        ("fit", "mode", MODES),
        ("leakage", "probes", PROBES),
    ],
)
def test_help_names_what_there_is(command, option, names):
    shown = parameters(command)[option].help
    assert all(re.search(rf"\b{name}\b", shown) for name in names), shown


def test_the_version():
    done = call("--version")
    assert (done.exit_code, done.output) == (0, f"{at.__version__}\n")


def test_completion_is_offered():
    assert {"install_completion", "show_completion"} <= {one.name for one in GROUP.params}


def test_completion_completes():
    asked = {"_AUTOTRANSFER_COMPLETE": "complete_bash", "COMP_WORDS": "autotransfer in"}
    done = subprocess.run(
        [sys.executable, "-m", "autotransfer"],
        env={**os.environ, **asked, "COMP_CWORD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["inspect"]


def test_python_m_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "autotransfer", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{at.__version__}\n"
