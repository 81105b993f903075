"""Show on a page what its code prints and draws: ``python docs/outputs.py PAGE [FILE ...]``.

The blocks of the page are run from top to bottom in an empty folder, into which the files are
copied first. What a block prints stands behind it afterwards, between two marks; pictures that it
saves as SVG are kept in ``_static`` and shown. A page is run so by whoever changes it: tests run
its code, too, but do not compare numbers, which differ between machines.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "tests" / "pasted"))

from pages import FENCE, commands  # noqa: E402

BEGIN, END = "<!-- output: made by docs/outputs.py -->", "<!-- end of output -->"
COLUMNS = "92"
"""Characters of a line that fit on a page."""

MOST_LINES = 40
"""Longest output that is shown whole."""


def without_outputs(text: str) -> str:
    """Take the outputs of an earlier time off a page."""
    return re.sub(rf"\n+{re.escape(BEGIN)}.*?{re.escape(END)}\n+", "\n\n", text, flags=re.DOTALL)


def shortened(text: str) -> str:
    """Leave out the middle of a long output, and where on this machine it was made."""
    text = text.replace(f"{Path.cwd()}/", "")
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        lines = [*lines[:half], f"... ({len(lines) - 2 * half} lines)", *lines[-half:]]
    return "\n".join(lines)


def run_python(code: str, where: str, names: dict[str, object]) -> str:
    """Run a block, and give what it printed."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        exec(compile(code, where, "exec"), names)
    return said.getvalue()


def run_command(command: str) -> str:
    """Run a command, and give what it printed; of its progress the last line of each stage."""
    done = subprocess.run(
        command,
        shell=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"COLUMNS": COLUMNS, "NO_COLOR": "1"},
        check=False,
    )
    if done.returncode:
        sys.exit(f"{command}\n{done.stdout}")
    kept: list[str] = []
    for line in done.stdout.splitlines():
        stage = re.match(r"(autotransfer: [^:]+): \d+/\d+", line)
        if stage and kept and kept[-1].startswith(f"{stage[1]}: "):
            kept.pop()
        kept.append(line)
    return "\n".join(kept)


def shown(text: str, pictures: Iterator[Path], name: str) -> str:
    """Write an output as Markdown."""
    parts = [f"```text\n{shortened(text)}\n```"] if text.strip() else []
    for picture in pictures:
        target = DOCS / "_static" / f"{name}-{picture.name}"
        shutil.copyfile(picture, target)
        words = picture.stem.replace("-", " ")
        parts.append(f"![What this draws: {words}](_static/{target.name})")
    return f"\n{BEGIN}\n" + "\n\n".join(parts) + f"\n{END}\n" if parts else ""


def with_outputs(text: str, name: str) -> str:
    """Run the blocks of a page in the working directory, and put their outputs behind them."""
    names: dict[str, object] = {"__name__": "__main__"}
    result, last = [], 0
    for match in FENCE.finditer(text):
        result.append(text[last : match.end()])
        last = match.end()
        there = set(Path().glob("*.svg"))
        if match[3] == "python":
            said = run_python(match[4], f"{name}.md", names)
        elif match[3] in ("console", "bash"):
            said = "\n".join(run_command(command) for command in commands(match[4]))
        else:
            continue
        block = shown(said, iter(sorted({*Path().glob("*.svg")} - there)), name)
        result.append(f"\n{block}" if block else "")
    return "".join(result).rstrip("\n") + text[last:]


def main() -> None:
    """Run a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("files", type=Path, nargs="*", help="what its code reads")
    given = parser.parse_args()
    page = given.page.resolve()
    files = [file.resolve() for file in given.files]
    text = without_outputs(page.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="autotransfer-page-") as folder:
        for file in files:
            shutil.copy(file, folder)
        os.chdir(folder)
        made = re.sub(rf"({re.escape(END)}\n)\n+", r"\1\n", with_outputs(text, page.stem))
        os.chdir(DOCS)
    page.write_text(made, encoding="utf-8")
    print(page)


if __name__ == "__main__":
    main()
