"""The README works when pasted, and figures are those that were measured."""

import importlib.util
import os
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("AUTOTRANSFER_PASTED") == "1", reason="the step paste does it")
def test_readme_runs_as_pasted(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.S)
    assert len(blocks) >= 2
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    assert (tmp_path / "person.model" / "weights.safetensors").is_file()
    assert (tmp_path / "demo.html").is_file()
    assert (tmp_path / "demo-run" / "results.json").is_file()
    assert capsys.readouterr().out


def test_figures_are_those_of_the_results():
    file = README.parent / "benchmarks" / "figures.py"
    spec = importlib.util.spec_from_file_location("figures", file)
    figures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(figures)
    for page in figures.PAGES:
        text = (README.parent / page).read_text()
        assert figures.START in text
        assert figures.with_figures(page) == text, "run python -m benchmarks.figures"
