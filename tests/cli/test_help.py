"""Help, version, completion: what needs no data and must need no torch."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

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
from autotransfer.training import AUGMENTATIONS, SCHEDULES

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
HEAVY = ("torch", "sklearn", "pandas", "optuna", "scipy", "numpy", "matplotlib", "jinja2", "mne")
GROUP = typer.main.get_command(app)


def call(*args):
    return CliRunner().invoke(app, args, env={"COLUMNS": "200", "TERM": "dumb"})


def parameters(name):
    """Options of a command: Python name -> option."""
    return {one.name: one for one in GROUP.commands[name].params}


FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["run", "--help"],
        ["--version"],
        ["status", str(FIXTURES / "run")],
        ["status", str(FIXTURES / "auto_run"), "--json"],
        ["datasets"],
    ],
    ids=" ".join,
)
def test_what_should_be_quick_imports_nothing_heavy(args):
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


def test_the_page_tells_the_exit_codes():
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)] == list(
        EXIT_CODES
    )


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
        ("run", "schedule", SCHEDULES),
        ("fit", "schedule", SCHEDULES),
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


def complete(shell, *words):
    """Ask the command as a shell does, when somebody presses the tabulator key."""
    line = " ".join(["autotransfer", *words])
    asked = {"_AUTOTRANSFER_COMPLETE": f"complete_{shell}", "COMP_WORDS": line}
    asked |= {"COMP_CWORD": str(len(words)), "_TYPER_COMPLETE_ARGS": line}
    asked |= {"_TYPER_COMPLETE_FISH_ACTION": "get-args", "_TYPER_COMPLETE_WORD_TO_COMPLETE": ""}
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "autotransfer"],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    heavy = {name for name in HEAVY if re.search(rf"\| +{name}$", done.stderr, re.MULTILINE)}
    assert not heavy, "somebody waits for it"
    return done.stdout


def test_completion_completes():
    assert complete("bash", "in").split() == ["inspect"]
    assert complete("bash", "sta").split() == ["status"]
    assert complete("bash", "fit", "--tm").split() == ["--tmin", "--tmax"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_in_other_shells(shell):
    assert "inspect" in complete(shell, "in")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_can_be_had(shell):
    """It asks the command by the variable that the tests above set."""
    done = subprocess.run(
        [sys.executable, "-m", "autotransfer"],
        env={**os.environ, "_AUTOTRANSFER_COMPLETE": f"source_{shell}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"_AUTOTRANSFER_COMPLETE=complete_{shell}" in done.stdout


def test_python_m_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "autotransfer", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{at.__version__}\n"
