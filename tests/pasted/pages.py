"""The fenced blocks of a Markdown page, in order, for the tests that paste them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^( *)(`{3,}|~{3,})[ ]*([^\s`]*)[^\n]*\n(.*?)^\1\2[ ]*$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the line of the page where its text begins."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """Walk over the fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start(4)) + 1
        yield Block(match[3], match[4], line)


def program(page: Path) -> str:
    """Python blocks of a page as one text, each at its own line, so that errors name the line."""
    lines: list[str] = []
    for block in blocks(page):
        if block.language == "python":
            lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    return "\n".join(lines) + "\n"


def commands(text: str) -> Iterator[str]:
    """Command lines of a console block: what follows ``$``, or every line where none does.

    A backslash at the end of a line joins it with the next one.
    """
    lines = re.sub(r"\s*\\\n\s*", " ", text).splitlines()
    prompted = [line.strip()[2:] for line in lines if line.strip().startswith("$ ")]
    bare = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    yield from prompted or bare
