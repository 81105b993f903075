"""What a release is made of agrees with pyproject.toml: recipe, workflows, sdist."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

from autotransfer import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
STEPS = re.compile(r"^STEPS ?=\(?([^)\n]*)\)?$", re.MULTILINE)
CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}

# These are files of the repository; a copy without them (an unpacked sdist) has nothing to compare.
needs_repository = pytest.mark.skipif(
    not (ROOT / ".github").is_dir(), reason="this copy is not the repository"
)
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=[p.stem for p in WORKFLOWS])


def read(path):
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    # YAML 1.1 reads the key "on" as true.
    return {"on" if key is True else key: value for key, value in found.items()}


@needs_repository
def test_the_recipe_has_this_version_python_and_licence():
    recipe = read(ROOT / "recipe" / "recipe.yaml")
    assert recipe["context"]["version"] == __version__
    assert PROJECT["requires-python"] == f">={recipe['context']['python_min']}"
    assert recipe["about"]["license"] == PROJECT["license"]
    assert recipe["about"]["summary"] == PROJECT["description"]


@needs_repository
def test_the_recipe_needs_what_the_package_needs():
    recipe = read(ROOT / "recipe" / "recipe.yaml")
    wanted = []
    for requirement in PROJECT["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)(.*)", requirement).groups()
        wanted.append(f"{CONDA_NAMES.get(name, name)} {bound}")
    assert recipe["requirements"]["run"][1:] == wanted


@needs_repository
def test_the_recipe_makes_the_command():
    """A package for every system names its commands: conda writes them where it installs it."""
    recipe = read(ROOT / "recipe" / "recipe.yaml")
    scripts = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts


@needs_repository
def test_ci_tries_the_python_versions_that_are_promised():
    matrix = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["systems"]["strategy"]
    named = "Programming Language :: Python :: "
    promised = [c.removeprefix(named) for c in PROJECT["classifiers"] if c.startswith(named)]
    assert matrix["matrix"]["python"] == promised
    assert len(matrix["matrix"]["os"]) == 3


@each_workflow
def test_a_workflow_may_read_and_little_else(path):
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        more = job.get("permissions", {})
        assert {"contents", "packages", "actions"}.isdisjoint(more)
        # Whoever may publish does nothing but publish what another job built.
        assert not more or not any("run" in step for step in job["steps"])
        assert "timeout-minutes" in job


@each_workflow
def test_actions_are_pinned_by_hash_and_checkouts_keep_no_credentials(path):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert lines
    for line in lines:
        # A tag or a branch can be moved; the comment says which version the commit is.
        assert re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line
    for job in read(path)["jobs"].values():
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


@needs_repository
def test_the_job_that_publishes_does_nothing_else():
    jobs = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    (publish,) = (job for job in jobs.values() if "id-token" in job.get("permissions", {}))
    assert publish["environment"] == "pypi"
    used = [step["uses"].partition("@")[0] for step in publish["steps"]]
    assert used == ["actions/download-artifact", "pypa/gh-action-pypi-publish"]


@needs_repository
def test_the_makefile_has_the_steps_of_ci():
    found = [STEPS.search((ROOT / name).read_text())[1].split() for name in (".ci/run", "Makefile")]
    assert found[0] == found[1]
    assert found[0][-2:] == ["paste", "tests"]


@needs_repository
def test_the_sdist_has_what_its_tests_need(tmp_path):
    pytest.importorskip("hatchling")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with tarfile.open(tmp_path / f"autotransfer-{__version__}.tar.gz") as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    wanted = [
        "README.md",
        "SECURITY.md",
        "docs/tutorial.md",
        "docs/conf.py",
        "tests/pasted/pages.py",
    ]
    assert {*wanted, "examples/plot_random_split.py", "src/autotransfer/py.typed"} <= names
    assert not any(name.startswith(("docs/_build", "docs/generated")) for name in names)
