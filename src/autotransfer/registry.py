"""Things looked up by name, and the one way of saying that there is no such thing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from autotransfer.errors import SettingError, join_some

T = TypeVar("T")


def lookup(what: str, name: Any, table: Mapping[str, T], otherwise: str = "") -> T:
    """Find something by name.

    Parameters
    ----------
    what : str
        What the table holds: "measure".
    name : Any
        What a person asked for.
    table : mapping
        Names -> things.
    otherwise : str
        What else a person may hand over, for the message.

    Examples
    --------
    >>> lookup("fruit", "aple", {"apple": 1, "pear": 2})
    Traceback (most recent call last):
    autotransfer.errors.SettingError: There is no fruit 'aple'. Did you mean 'apple'? Choose one \
of apple, pear.
    """
    if not isinstance(name, str) or name not in table:
        near = get_close_matches(str(name).lower(), table, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        rest = f"; or {otherwise}." if otherwise else "."
        raise SettingError(
            f"There is no {what} {name!r}.{hint} Choose one of {join_some(list(table))}{rest}"
        )
    return table[name]


def check_options(given: Iterable[str], known: Collection[str], who: str) -> None:
    """See that somebody knows all options given.

    Parameters
    ----------
    given, known : names of options
        Those that a person gave, those that there are.
    who : str
        Whose they are, to begin a sentence with.
    """
    unknown = [name for name in given if name not in known]
    if unknown:
        raise SettingError(
            f"{who} does not know the option {join_some(unknown)}. It knows: "
            f"{join_some(sorted(known), limit=30) or 'none'}."
        )
