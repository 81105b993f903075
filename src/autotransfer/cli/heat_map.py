"""A heat map of numbers in a terminal: colours there, plain characters in a file."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from autotransfer.cli.output import frame

RAMP = " .:-=+*#%@"
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
    most = max(int(counts.max()), 1)
    sums = len(str(int(counts.sum(1).max())))
    # Each column takes 3 cells more than what stands in it.
    width = max(len(str(most)) + 2, min(max(map(len, columns)), LONG_CLASS)) + 3
    names = max(12, min(LONG_NAME, max(map(len, rows))))
    free = console.width - 1 - (names + 3) - (max(sums, 3) + 3)
    shown = len(columns)
    if shown * width > free:
        shown = max(1, (free - max(sums, len(f"+{shown}")) - 3) // width)
    table = Table(box=frame(console))
    table.add_column("subject", no_wrap=True)
    for name in columns[:shown]:
        table.add_column(Text(name), justify="right", no_wrap=True, max_width=width - 3)
    if shown < len(columns):
        table.add_column(f"+{len(columns) - shown}", justify="right", no_wrap=True)
    table.add_column("all", justify="right", no_wrap=True)
    few = len(rows) if len(rows) <= SHOWN else SHOWN - 4
    for name, line in zip(rows[:few], counts[:few], strict=True):
        # Names of many people differ at their end.
        cut = name if len(name) <= names else f"…{name[1 - names :]}"
        table.add_row(Text(cut), *_cells(line, shown, most, console))
    if few < len(rows):
        import numpy as np

        table.add_row(f"... {len(rows) - few} more")
        table.add_section()
        for word, q in (("least", 0), ("median", 50), ("most", 100)):
            line = np.percentile(counts, q, axis=0, method="nearest").astype(int)
            cells = [_cell(int(value), most, console) for value in line[:shown]]
            rest = [Text()] if shown < len(columns) else []
            whole = int(np.percentile(counts.sum(1), q, method="nearest"))
            table.add_row(word, *cells, *rest, str(whole))
    return table


def _cells(line: Any, shown: int, most: int, console: Console) -> list[Text]:
    cells = [_cell(int(value), most, console) for value in line[:shown]]
    if shown < len(line):
        cells.append(Text(str(int(line[shown:].sum()))))
    return [*cells, Text(str(int(line.sum())))]


def _cell(value: int, most: int, console: Console) -> Text:
    """Write a count on the colour of its share, or beside a character for it."""
    if console.color_system not in ("256", "truecolor"):
        return Text(f"{RAMP[round(value / most * (len(RAMP) - 1))]} {value}")
    level = round(value / most * (len(COLOURS) - 1))
    ink = "white" if level < 4 else "black"
    return Text(f" {value} ", style=f"{ink} on {COLOURS[level]}")
