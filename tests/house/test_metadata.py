"""What the project says about itself agrees with itself."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from autotransfer import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


def test_the_citation_has_this_version_and_licence(citation):
    assert citation["version"] == __version__
    assert citation["license"] == PROJECT["license"]


def test_the_citation_prefers_the_paper(citation):
    paper = citation["preferred-citation"]
    assert paper["title"].startswith("AutoTransfer: Subject Transfer Learning")
    assert [author["family-names"] for author in paper["authors"]] == [
        "Smedemark-Margulies",
        "Wang",
        "Koike-Akino",
        "Erdogmus",
    ]
    assert "2112.09796" in paper["url"]


def test_the_changelog_has_an_entry_for_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(__version__)}\]", text, re.MULTILINE)


def test_the_extras_are_those_of_the_design():
    design = {"ray", "mne", "moabb", "braindecode", "postgres", "onnx", "docs", "dev"}
    assert design <= PROJECT["optional-dependencies"].keys()


def test_the_wheel_has_the_version_and_the_licence(wheel):
    info = f"autotransfer-{__version__}.dist-info"
    assert f"\nVersion: {__version__}\n" in wheel.read(f"{info}/METADATA").decode()
    assert f"{info}/licenses/LICENSE" in wheel.namelist()


def test_the_wheel_has_every_module_the_types_and_nothing_else(wheel):
    source = ROOT / "src"
    files = [*source.rglob("*.py"), source / "autotransfer" / "py.typed"]
    page = ("page.html.jinja", "page.css", "page.js")
    files += [source / "autotransfer" / "report" / name for name in page]
    files.append(source / "autotransfer" / "notebook.html.jinja")
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert {path.relative_to(source).as_posix() for path in files} <= packed
    assert all(name.startswith("autotransfer/") for name in packed)
    assert {Path(name).suffix for name in packed} == {".py", ".typed", ".jinja", ".css", ".js"}
