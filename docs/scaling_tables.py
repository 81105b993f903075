"""Write the tables of scaling.md from the files in `benchmarks/results/`.

    python docs/scaling_tables.py

A test fails when the page and the files differ, so no figure is typed in by hand.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parent
BENCHMARKS = DOCS.parent / "benchmarks"
PAGE = DOCS / "scaling.md"
MARK = re.compile(r"(<!-- table: (\w+)(?: (\w+))? -->\n).*?(<!-- end of table -->)", re.DOTALL)


def figures() -> ModuleType:
    """Load the script that writes the tables of the documentation: the two share their form."""
    spec = importlib.util.spec_from_file_location("figures", BENCHMARKS / "figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table(name: str, key: str) -> str:
    """Make the table of a benchmark's rows, with the command that makes it."""
    file = BENCHMARKS / "results" / f"{name}.json"
    module = figures()
    command = module.command_of(name)
    if not file.exists():
        return f"`{command}` prints this table; no figures are kept here yet."
    found = json.loads(file.read_text(encoding="utf-8"))
    machine = ", ".join(f"{k} {v}" for k, v in found["machine"].items())
    made = module.table(found[key], None)
    return f"`{command}` ({machine}):\n\n{made}"


def with_tables(page: str) -> str:
    """Fill the marked places of the page."""

    def fill(match: re.Match[str]) -> str:
        start, name, key, end = match.groups()
        return f"{start}{table(name, key or 'rows')}\n{end}"

    return MARK.sub(fill, page)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
