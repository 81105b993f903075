"""Text for people: times in words, and names in the data in places that would act on them.

A terminal obeys escape sequences, a picture with control characters is no XML, and a spreadsheet
computes what looks like a formula. There is one function for each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from jinja2 import Environment

# Control characters but tab and newline, changes of the direction of writing, and what is no text.
STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_FORMULA = re.compile(r"[=+\-@\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


def visible(text: str) -> str:
    r"""Write out what would steer a terminal.

    Examples
    --------
    >>> print(visible("subject \x1b[31mann"))
    subject \x1b[31mann
    """
    return STEERING.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def well_formed(text: str) -> str:
    r"""Put a sign in the place of characters that SVG and HTML may not hold.

    Examples
    --------
    >>> well_formed("<text>\x1bann</text>")
    '<text>�ann</text>'
    """
    return STEERING.sub("\N{REPLACEMENT CHARACTER}", text)


def csv_cell(value: Any) -> Any:
    """Put an apostrophe before text that a spreadsheet would compute; numbers stay numbers.

    Control characters are written out: a carriage return would end the row for some readers.

    Examples
    --------
    >>> csv_cell("=1+1"), csv_cell("-1"), csv_cell(-1), csv_cell("ann")
    ("'=1+1", '-1', -1, 'ann')
    """
    if not isinstance(value, str):
        return value
    formula = _FORMULA.match(value) and not _NUMBER.fullmatch(value)
    return visible(f"'{value}" if formula else value)


def csv_table(table: pd.DataFrame) -> bytes:
    """Write a table as CSV."""
    return table.map(csv_cell).rename(columns=csv_cell).to_csv(index=False).encode()


def duration(seconds: float) -> str:
    """Write a time span in words.

    Examples
    --------
    >>> duration(42), duration(600), duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def html_templates(package: str) -> Environment:
    """Open the templates of a package, which escape every value and refuse unknown ones."""
    # Not at the top: every room may use this module, and few of its users write pages.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package, ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def short(name: str, most: int = 14) -> str:
    """Cut a name to the room there is.

    Examples
    --------
    >>> short("sub-012"), short("participant-0012")
    ('sub-012', 'participant-0…')
    """
    return name if len(name) <= most else name[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def short_names(names: Sequence[str], most: int = 14) -> list[str]:
    """Cut names to the room there is, where they can still be told apart.

    Those that begin alike lose their middle, and where that is no help they are cut all the same.

    Examples
    --------
    >>> short_names(["session1/person10", "session1/person11", "ann"])
    ['session1/pe…10', 'session1/pe…11', 'ann']
    """
    cut = [short(name, most) for name in names]
    for tail in range(2, most - 1):
        if len(set(cut)) == len(set(names)):
            return cut
        head = most - 1 - tail
        cut = [
            name if len(name) <= most else f"{name[:head]}\N{HORIZONTAL ELLIPSIS}{name[-tail:]}"
            for name in names
        ]
    return [short(name, most) for name in names]
