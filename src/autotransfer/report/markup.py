"""HTML that is safe by construction: what is not markup already is escaped."""

from __future__ import annotations

from html import escape
from typing import Any

VOID = {"meta", "img", "input", "source", "br", "hr"}


class Html(str):
    """Text that is markup; every other text is escaped when it becomes part of markup."""

    __slots__ = ()


def el(tag: str, *children: Any, **attributes: Any) -> Html:
    """Make an element.

    Parameters
    ----------
    tag : str
        Its name.
    *children : str, Html, None or iterable of these
        Its content: `Html` as it is, everything else escaped. None is left out.
    **attributes : str, bool or None
        An underscore stands for a hyphen, one at the end keeps a word of Python apart
        (``class_``). True gives a bare attribute; None and False give none.

    Examples
    --------
    >>> el("p", "1 < 2 ", el("b", "&"), class_="note")
    '<p class="note">1 &lt; 2 <b>&amp;</b></p>'
    """
    shown = ""
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        key = name.rstrip("_").replace("_", "-")
        shown += f" {key}" if value is True else f' {key}="{escape(str(value))}"'
    inner = "" if tag in VOID else f"{join(*children)}</{tag}>"
    return Html(f"<{tag}{shown}>{inner}")


def join(*parts: Any) -> Html:
    """Put parts one after another, escaping what is not markup."""
    made = []
    for part in parts:
        if part is None:
            continue
        if isinstance(part, Html):
            made.append(str(part))
        elif isinstance(part, str | int | float):
            made.append(escape(str(part)))
        else:
            made.append(join(*part))
    return Html("".join(made))
