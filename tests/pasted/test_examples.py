"""The examples run, each in a process of its own, as a person would run them."""

import ast
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))
# These stand for all where a change is tested: each one imports for seconds.
FEW = {"plot_sklearn"}
NOTEBOOK = Path(__file__).parents[2] / "examples" / "plot_model_folder.py"
# Needs an environment of its own: tests/exchange/run.sh runs its example there.
ELSEWHERE = {"braindecode"}


def missing(path: Path) -> set[str]:
    """Name the packages that an example imports and that are not installed."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return {name for name in names if importlib.util.find_spec(name) is None}


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[] if path.stem in FEW else pytest.mark.nightly)
        for path in EXAMPLES
    ],
)
def test_the_example_runs(path, tmp_path):
    lacking = missing(path)
    if lacking & ELSEWHERE:
        pytest.skip("run by tests/exchange/run.sh, in an environment of its own")
    if os.environ.get("AUTOTRANSFER_NEED_EXTRAS") == "1":
        assert not lacking, f"not installed: {sorted(lacking)}"
    elif lacking:
        pytest.skip(f"not installed: {sorted(lacking)}")
    own = {"MPLBACKEND": "Agg", "_MNE_FAKE_HOME_DIR": str(tmp_path), "MNE_DATA": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:autotransfer", str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | own,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip()


@pytest.mark.slow
def test_an_example_runs_as_the_notebook_that_the_pages_offer(tmp_path):
    """The gallery makes a notebook of every example; one stands for all, run as by a person."""
    if os.environ.get("AUTOTRANSFER_NEED_EXTRAS") != "1":
        for name in ("nbconvert", "ipykernel", "sphinx_gallery"):
            pytest.importorskip(name)
    (tmp_path / NOTEBOOK.name).write_bytes(NOTEBOOK.read_bytes())
    convert = "import sphinx_gallery.notebook as n; n.python_to_jupyter_cli(['{}'])"
    commands = (
        ["-c", convert.format(NOTEBOOK.name)],
        ["-m", "nbconvert", "--to", "notebook", "--execute", "--inplace", f"{NOTEBOOK.stem}.ipynb"],
    )
    for command in commands:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
    book = json.loads((tmp_path / f"{NOTEBOOK.stem}.ipynb").read_text(encoding="utf-8"))
    outputs = [out for cell in book["cells"] for out in cell.get("outputs", ())]
    assert any("image/png" in out.get("data", {}) for out in outputs)
    assert "refused:" in str(outputs)
    assert all(out["output_type"] != "error" for out in outputs)


def test_there_are_examples():
    """Every tool that the project says it works with has one."""
    names = {path.stem.removeprefix("plot_") for path in EXAMPLES}
    assert names >= {
        "braindecode",
        "censor_in_skorch",
        "censor_in_torch",
        "mne",
        "moabb",
        "model_folder",
        "onnx",
        "optuna_dashboard",
        "own_measure",
        "sklearn",
        "tensorboard",
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_the_example_begins_as_sphinx_gallery_expects(path):
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    title, line = text.splitlines()[:2]
    assert set(line) == {"="}
    assert len(line) == len(title)
