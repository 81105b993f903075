"""What commands print: results on stdout, words on stderr, and nothing else beside JSON."""

from __future__ import annotations

import json
import math
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from autotransfer.text import STEERING, visible

LOG_WIDTH = 200
"""Columns where there is no terminal: tables in a file must not be folded."""


def console() -> Console:
    """Make the console of results: stdout."""
    width = None if sys.stdout.isatty() else LOG_WIDTH
    return Console(width=width, highlight=False, markup=False)


def frame(out: Console) -> box.Box:
    """Choose the lines of a table: plain characters where there is no terminal."""
    return box.ROUNDED if out.is_terminal else box.ASCII


def tell(words: str, style: str = "") -> None:
    """Print a result in words."""
    _print(console(), words, style)


def say(words: str) -> None:
    """Tell a person something that is no result: on stderr."""
    _print(Console(stderr=True, highlight=False, markup=False), words)


def _print(out: Console, words: str, style: str = "") -> None:
    # A terminal would break lines within words; in a file a line is a line.
    out.print(Text(visible(words), style=style), soft_wrap=not out.is_terminal)


def print_text(text: str) -> None:
    """Print a result as it is, such as a path for the next command; written out on a terminal."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)


@contextmanager
def working(words: str) -> Iterator[None]:
    """Show that something goes on that takes a while and cannot tell how long."""
    err = Console(stderr=True)
    with _no_interrupt_is_lost():
        if err.is_terminal:
            with err.status(words):
                yield
        else:
            say(f"autotransfer: {words}")
            yield


@contextmanager
def _no_interrupt_is_lost() -> Iterator[None]:
    """Interrupt at the end again, where a library has swallowed it, as some do when imported."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    interrupted = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if interrupted:
        raise KeyboardInterrupt


def print_table(rows: Sequence[dict[str, Any]], title: str | None = None) -> None:
    """Print a table; numbers stand to the right."""
    if not rows:
        return
    out = console()
    if title:
        out.print(title)
    table = Table(box=frame(out))
    for name, value in rows[0].items():
        table.add_column(name, justify="right" if _is_number(value) else "left")
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    out.print(table)


def print_facts(rows: Sequence[Sequence[str]]) -> None:
    """Print words, numbers and notes below each other, without lines or a head."""
    table = Table.grid(padding=(0, 3, 0, 0))
    for row in rows:
        table.add_row(
            *(Text(visible(f"  {part}" if i == 0 else part)) for i, part in enumerate(row))
        )
    console().print(table)


def _cell(value: Any) -> Text | str:
    if isinstance(value, Text):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    return f"{value:.3f}" if isinstance(value, float) else visible(str(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def print_json(value: Any) -> None:
    """Print JSON, alone on stdout."""
    text = json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False)
    print(STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def plain(value: Any) -> Any:
    """Turn what JSON cannot hold into what it can; what is not a finite number becomes null.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"a": np.float32(0.5), "b": (float("nan"), np.arange(2))})
    {'a': 0.5, 'b': [None, [0, 1]]}
    """
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, bool | int | str | None):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # numpy's arrays and numbers
        return plain(value.tolist())
    return str(value)
