"""The core-only check passes what it should and fails what it should."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import core_only

ROOT = Path(__file__).parents[2]


def run_check(folder, body):
    """Run the check on a package of three modules, one of them with the given body."""
    room = folder / "toy" / "room"
    room.mkdir(parents=True)
    (folder / "toy" / "__init__.py").write_text("")
    (room / "__init__.py").write_text("")
    (room / "module.py").write_text(body)
    # A stand-in for every extra, so that the check is the same whatever is installed here.
    for name in core_only.MODULES:
        (folder / f"{name}.py").write_text("")
    return subprocess.run(
        [sys.executable, str(ROOT / "tests" / "house" / "core_only.py"), "toy"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "body",
    [
        "import json",
        "def use():\n    import mne",
        "try:\n    import mne\nexcept ImportError:\n    mne = None",
        "from importlib.util import find_spec\nassert find_spec('ray') is None",
    ],
    ids=["no extra", "in a function", "guarded", "asked for"],
)
def test_a_package_that_needs_no_extra_passes(tmp_path, body):
    done = run_check(tmp_path, body)
    assert done.returncode == 0, done.stderr
    assert "toy: 3 modules imported without extras, 0 faults" in done.stdout


@pytest.mark.parametrize("extra", sorted(core_only.EXTRAS))
def test_an_extra_imported_at_the_top_of_a_module_fails(tmp_path, extra):
    name = core_only.EXTRAS[extra][0]
    done = run_check(tmp_path, f"import {name}")
    assert done.returncode == 1
    assert f"toy.room.module: No module named '{name}'" in done.stderr


def test_an_extra_imported_by_a_subpackage_fails(tmp_path):
    (tmp_path / "toy" / "sub").mkdir(parents=True)
    (tmp_path / "toy" / "sub" / "__init__.py").write_text("from mne.io import read_raw")
    done = run_check(tmp_path, "")
    assert done.returncode == 1
    assert "toy.sub: No module named 'mne'" in done.stderr


def test_an_extra_that_got_in_by_another_way_fails(tmp_path):
    done = run_check(tmp_path, "import sys\nsys.modules['moabb'] = sys")
    assert done.returncode == 1
    assert "extras in sys.modules: moabb" in done.stderr


def test_a_package_that_is_not_there_fails(tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "house" / "core_only.py"), "no_such_package"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1


def test_every_extra_is_known():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"].keys() == core_only.EXTRAS.keys()
