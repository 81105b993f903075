"""A heat map of numbers in a terminal: on colours there, plain numbers in a file."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from autotransfer.cli.output import frame
from autotransfer.text import visible

# From dark to light in equal steps of lightness, told apart by every kind of colour vision.
COLOURS = ("#30123b", "#2c3e70", "#22637f", "#2a8a7a", "#5fae62", "#a9cc4b", "#f4e34f")
LONG_NAME, LONG_CLASS = 20, 8
SHOWN = 16
"""Rows at most; of more, the first are shown, and the spread of all."""


def heat_map(counts: Any, rows: list[str], columns: list[str], console: Console) -> Table:
    """Draw a table of counts.

    Parameters
    ----------
    counts : array of int of shape (n_rows, n_columns)
        What is drawn.
    rows, columns : list of str
        Names.
    console : Console
        Where it will be printed: its width says how many columns fit, and whether there are
        colours.
    """
    rows, columns = [*map(visible, rows)], [*map(visible, columns)]
    maximum = max(int(counts.max()), 1)
    sums = len(str(int(counts.sum(1).max())))
    # Each column takes 3 cells more than what stands in it.
    width = max(len(str(maximum)) + 2, min(max(map(len, columns)), LONG_CLASS)) + 3
    names = max(12, min(LONG_NAME, max(map(len, rows))))
    free = console.width - 1 - (names + 3) - (max(sums, 3) + 3)
    n_shown = len(columns)
    if n_shown * width > free:
        n_shown = max(1, (free - max(sums, len(f"+{n_shown}")) - 3) // width)
    table = Table(box=frame(console))
    table.add_column("subject", no_wrap=True)
    for name in columns[:n_shown]:
        table.add_column(Text(name), justify="right", no_wrap=True, max_width=width - 3)
    if n_shown < len(columns):
        table.add_column(f"+{len(columns) - n_shown}", justify="right", no_wrap=True)
    table.add_column("all", justify="right", no_wrap=True)
    n_rows = len(rows) if len(rows) <= SHOWN else SHOWN - 4
    for name, line in zip(rows[:n_rows], counts[:n_rows], strict=True):
        # Names of many people differ at their end.
        short = name if len(name) <= names else f"…{name[1 - names :]}"
        table.add_row(Text(short), *_cells(line, n_shown, maximum, console))
    if n_rows < len(rows):
        import numpy as np

        table.add_row(f"... {len(rows) - n_rows} more")
        table.add_section()
        for word, q in (("least", 0), ("median", 50), ("most", 100)):
            line = np.percentile(counts, q, axis=0, method="nearest").astype(int)
            cells = [_cell(int(value), maximum, console) for value in line[:n_shown]]
            others = [Text()] if n_shown < len(columns) else []
            total = int(np.percentile(counts.sum(1), q, method="nearest"))
            table.add_row(word, *cells, *others, str(total))
    return table


def _cells(line: Any, n_shown: int, maximum: int, console: Console) -> list[Text]:
    cells = [_cell(int(value), maximum, console) for value in line[:n_shown]]
    if n_shown < len(line):
        cells.append(Text(str(int(line[n_shown:].sum()))))
    return [*cells, Text(str(int(line.sum())))]


def _cell(value: int, maximum: int, console: Console) -> Text:
    """Write a count on the colour of its share, where there are colours."""
    if console.color_system not in ("256", "truecolor"):
        return Text(str(value))
    level = round(value / maximum * (len(COLOURS) - 1))
    ink = "white" if level < 4 else "black"
    return Text(f" {value} ", style=f"{ink} on {COLOURS[level]}")
