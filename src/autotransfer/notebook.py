"""What a notebook shows of things: small cards of HTML.

Every value is escaped by the template, and characters that steer a terminal or are no HTML are
replaced. The cards have the colour of the text around them and shades that are half transparent: so
they are as readable in dark notebooks as in light ones, whatever tells which of the two it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from autotransfer.text import html_templates, well_formed

if TYPE_CHECKING:
    from jinja2 import Template


@dataclass(frozen=True)
class Grid:
    """A table of numbers, darker where they are greater.

    Parameters
    ----------
    corner : str
        What the rows are.
    columns, rows : sequence of str
        Names.
    cells : sequence of sequence of int or str
        A line for each row.
    greatest : int
        The number that has the darkest shade.
    """

    corner: str
    columns: Sequence[str]
    rows: Sequence[str]
    cells: Sequence[Sequence[Any]]
    greatest: int

    def shade(self, value: Any) -> int:
        """Say how dark a cell is, in percent; text and numbers over the greatest have none."""
        if not isinstance(value, int) or not 0 < value <= self.greatest:
            return 0
        return round(35 * value / self.greatest)


@dataclass(frozen=True)
class Card:
    """What a notebook shows of one thing, from top to bottom.

    Parameters
    ----------
    title : str
        What it is.
    warnings : sequence of str
        What must be read before anything else.
    tiles : sequence of (str, str, str)
        Numbers to be seen first: what it is, the number, and what belongs to it.
    facts : sequence of (str, str)
        What it is, and that.
    sentences : sequence of str
        Text; what stands between backticks is shown as code.
    grid : Grid, optional
        A table.
    steps : sequence of (str, str)
        What to do next, and the Python for it.
    """

    title: str
    warnings: Sequence[str] = ()
    tiles: Sequence[tuple[str, str, str]] = ()
    facts: Sequence[tuple[str, str]] = ()
    sentences: Sequence[str] = ()
    grid: Grid | None = None
    steps: Sequence[tuple[str, str]] = field(default=())


def html(card: Card) -> str:
    """Write a card as HTML.

    Examples
    --------
    >>> "&lt;b&gt;" in html(Card("<b>")), "<code>C3</code>" in html(Card("a", sentences=["`C3`"]))
    (True, True)
    """
    return well_formed(_template().render(card=card))


def progress(words: str, done: int, total: int, facts: Sequence[str] = ()) -> str:
    """Write a bar with a few facts below it as HTML."""
    made = _template().module.progress(words, done, total, facts)  # type: ignore[attr-defined]
    return well_formed(str(made))


def line(words: str) -> str:
    """Write a small line of text as HTML."""
    made = _template().module.line(words)  # type: ignore[attr-defined]
    return well_formed(str(made))


@cache
def _template() -> Template:
    environment = html_templates("autotransfer")
    environment.filters["pieces"] = lambda text: enumerate(str(text).split("`"))
    return environment.get_template("notebook.html.jinja")
