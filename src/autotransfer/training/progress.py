"""What a person sees while a network trains: a bar and a few facts below it, or plain lines.

A terminal has a view that is drawn in place and leaves no trace, a notebook one output that is
changed in place and ends as one line, a log a line now and then.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from autotransfer import notebook
from autotransfer.text import duration, visible

WIDEST = 40
"""Cells of the bar at most."""

AFTER_EPOCH: ContextVar[Callable[[], None]] = ContextVar("AFTER_EPOCH", default=lambda: None)
"""Is called after each epoch: a worker lets its driver know that the training goes on."""


class View(Protocol):
    """Where a long act shows itself."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End."""

    def draw(self, words: str, done: int, total: int, facts: Sequence[str] = ()) -> None:
        """Draw all of it anew."""

    def say(self, words: str) -> None:
        """Print a line that stays."""


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

    def say(self, words: str) -> None:
        """Print a line that stays, above the view."""
        self._console.print(words, highlight=False, markup=False)

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
        lines = [Text(f"  {visible(fact)}", no_wrap=True, overflow="ellipsis") for fact in facts]
        self._live.update(Group(line, *lines), refresh=True)


class NotebookView:
    """The same in a notebook: one output of the cell, which is changed in place.

    By IPython's own display, because rich and tqdm ask for ipywidgets there, which a notebook that
    is run by a program or shown on a web page does not have.

    Parameters
    ----------
    every : float
        Least seconds between changes: each is a message to the browser.
    """

    def __init__(self, every: float = 0.25) -> None:
        self._every, self._last, self._start = every, 0.0, time.monotonic()
        self._output: Any = None
        self._words = ""

    def start(self) -> None:
        """Take the time; an output is made when there is something to show."""
        self._start = time.monotonic()

    def stop(self) -> None:
        """Leave one line: a notebook is kept, and a bar that stands still says less."""
        if self._output is not None:
            words = f"{self._words}, {duration(time.monotonic() - self._start)}"
            self._show({"text/plain": words, "text/html": notebook.line(words)})

    def draw(self, words: str, done: int, total: int, facts: Sequence[str] = ()) -> None:
        """Change the output, but not more often than one can see."""
        self._words = f"{words} {done}/{total}"
        now = time.monotonic()
        if now - self._last < self._every:
            return
        self._last = now
        plain = ", ".join([self._words, *facts])
        made = notebook.progress(words, done, total, facts)
        self._show({"text/plain": plain, "text/html": made})

    def say(self, words: str) -> None:
        """Print a line; not as an error, which a notebook shows on red."""
        print(words, flush=True)

    def _show(self, bundle: dict[str, str]) -> None:
        # By name: IPython is not ours to require, and its functions have no types.
        display: Any = import_module("IPython.display").display
        if self._output is None:
            self._output = display(bundle, raw=True, display_id=True)
        else:
            self._output.update(bundle, raw=True)


class Viewed:
    """Something that shows itself while a ``with`` block lasts, on a terminal or in a notebook.

    Parameters
    ----------
    visible : bool
        Whether to show anything; elsewhere there is a console and no view.
    """

    def __init__(self, visible: bool) -> None:
        self._console = Console(stderr=True) if visible else None
        self._view: View | None = None
        if self._console is not None and self._console.is_jupyter:
            self._view = NotebookView()
        elif self._console is not None and self._console.is_terminal:
            self._view = LiveView(self._console)

    def __enter__(self) -> Self:
        if self._view is not None:
            self._view.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._view is not None:
            self._view.stop()


class EpochProgress(Viewed):
    """A live view on a terminal or in a notebook, a plain line now and then in a log, or nothing.

    Parameters
    ----------
    visible : bool
        Whether to show anything.
    max_epochs : int
        Epochs at most.
    every : float
        Seconds between lines where there is no terminal; trainings shorter than this are silent
        there.
    """

    def __init__(self, visible: bool, max_epochs: int, every: float = 30.0) -> None:
        self._max, self._every = max_epochs, every
        self._start = self._last = time.monotonic()
        self._done_before: int | None = None
        super().__init__(visible)

    def epoch(self, epoch: int, loss: float, best: float | None, patience_left: int | None) -> None:
        """Tell that an epoch is done."""
        AFTER_EPOCH.get()()
        if self._console is None:
            return
        now = time.monotonic()
        if self._done_before is None:
            self._done_before = epoch - 1
        per_epoch = (now - self._start) / (epoch - self._done_before)
        notes = [f"loss {loss:.3f}"]
        if patience_left is not None:
            notes.append(f"best validation {best:.3f}, stops in {patience_left} unless better")
        elif best is not None:
            notes.append(f"validation {best:.3f}")
        # Early stopping can end it sooner, so this is a bound.
        notes.append(f"at most {duration(per_epoch * (self._max - epoch))} left")
        if self._view is not None:
            # Epochs of small data take less time than drawing them.
            if now - self._last >= 0.1 or epoch == self._max:
                self._last = now
                self._view.draw("training", epoch, self._max, notes)
        elif now - self._last >= self._every:
            self._last = now
            words = ", ".join([f"epoch {epoch}/{self._max}", *notes])
            print(f"autotransfer: {words}", file=sys.stderr, flush=True)
