"""Every Python block of the documentation runs, page by page, as a reader would paste it."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from pathlib import Path

import matplotlib
import pytest

import paste
from pages import ROOT, Block, blocks, commands, program

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
PASTED = {"install", "tutorial"} if os.environ.get("AUTOTRANSFER_PASTED") == "1" else set()
WHOLE = {"tutorial", "tutorial_emg"}  # whose Python goes on with what their commands made
WITH_CODE = [page for page in PAGES if program(page).strip() and page.stem not in PASTED | WHOLE]
LONG = {"is_it_censoring"}  # at night
KNOWN = {"python", "py-noexec", "console", "bash", "text", "json", "yaml", "toml", "html", ""}
DIRECTIVE = "{"


def load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=pytest.mark.nightly if page.stem in LONG else [])
        for page in WITH_CODE
    ],
)
def test_the_page_runs_as_pasted(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    names = {"__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        warnings.filterwarnings("default", category=DeprecationWarning, module=r"(?!autotransfer)")
        exec(compile(program(page), str(page), "exec"), names)
    assert capsys.readouterr().out.strip(), "a page that prints nothing shows nothing"


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("name", sorted(WHOLE - PASTED))
def test_the_page_runs_with_its_commands(name):
    paste.paste(DOCS / f"{name}.md", Path(sys.executable))


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_blocks_are_of_a_known_kind_and_parse(page):
    compile(program(page), str(page), "exec")
    for block in blocks(page):
        language = block.language
        assert language in KNOWN or language.startswith(DIRECTIVE), f"{page}:{block.line}"
        if language == "py-noexec":
            compile(block.text, str(page), "exec")
            assert block.text.startswith("# Not run here: "), f"{page}:{block.line}: say why"
        assert language or not is_python(block.text), f"{page}:{block.line}: Python without a name"


def is_python(text):
    try:
        compile(text, "block", "exec")
    except SyntaxError:
        return False
    return True


def test_few_blocks_are_not_run():
    kinds = [block.language for page in PAGES for block in blocks(page)]
    assert kinds.count("python") >= 20
    assert kinds.count("py-noexec") <= kinds.count("python") / 8


def test_the_glossary_has_the_words_of_the_house():
    rules = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    words = rules.partition("One word for one thing: ")[2].partition(".")[0]
    table = (DOCS / "glossary.md").read_text(encoding="utf-8")
    for word in words.replace("\n", " ").split(","):
        assert f"\n| {word.strip()} |" in table


@pytest.mark.parametrize("script", ["folds_picture", "scaling_tables"])
def test_what_scripts_wrote_is_what_they_write(script):
    made = load(DOCS / f"{script}.py")
    if script == "folds_picture":
        assert made.TARGET.read_text(encoding="utf-8") == made.picture()
    else:
        page = made.PAGE.read_text(encoding="utf-8")
        assert made.with_tables(page) == page, f"run python docs/{script}.py"


def test_blocks_are_found_with_their_lines(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# T\n\n```python\na = 1\n```\nx\n```console\n$ go \\\n  on\nout\n```\n")
    assert list(blocks(page)) == [
        Block("python", "a = 1\n", 4),
        Block("console", "$ go \\\n  on\nout\n", 8),
    ]
    assert program(page) == "\n\n\na = 1\n"
    assert list(commands("$ go \\\n  on\nout\n")) == ["go on"]
    assert list(commands("# why\nautotransfer x\n")) == ["autotransfer x"]
