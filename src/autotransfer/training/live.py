"""A bar and a few facts below it, redrawn in place, on a terminal of any width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

WIDEST = 40
"""Cells of the bar at most."""


class LiveView:
    """What a long act shows of itself: one line with a bar, and one line for each fact.

    No line is longer than the terminal is wide: bars shrink, and facts are cut at their end. So
    what matters stands first.

    Parameters
    ----------
    console : Console
        A terminal.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        # Drawn when there is news, not by a thread of its own.
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def start(self) -> None:
        """Take the last lines of the terminal."""
        self._live.start()

    def stop(self) -> None:
        """Leave no trace."""
        self._live.stop()

    def draw(self, words: str, done: int, total: int, facts: Sequence[str] = ()) -> None:
        """Draw all of it anew.

        Parameters
        ----------
        words : str
            What is going on.
        done, total : int
            How far it is.
        facts : sequence of str
            A line each.
        """
        count = f"{done}/{total}"
        room = self._console.width - len(count) - 1
        parts: list[RenderableType] = [
            Text(words if len(words) <= room else f"{words[: room - 1]}…")
        ]
        free = min(room - len(words) - 1, WIDEST)
        if free > 3:
            parts.append(ProgressBar(total=max(total, 1), completed=done, width=free))
        line = Table.grid(padding=(0, 1), pad_edge=False)
        line.add_row(*parts, Text(count))
        rest = [Text(f"  {fact}", no_wrap=True, overflow="ellipsis") for fact in facts]
        self._live.update(Group(line, *rest), refresh=True)


class Viewed:
    """Something that shows itself on a terminal while a ``with`` block lasts.

    Parameters
    ----------
    shown : bool
        Whether to show anything; without a terminal there is a console and no view.
    """

    def __init__(self, shown: bool) -> None:
        self._console = Console(stderr=True) if shown else None
        self._view: LiveView | None = None
        if self._console is not None and self._console.is_terminal:
            self._view = LiveView(self._console)

    def __enter__(self) -> Self:
        if self._view is not None:
            self._view.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._view is not None:
            self._view.stop()
