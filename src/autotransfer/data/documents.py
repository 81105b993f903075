"""JSON from files that somebody else may have written: read within bounds, and seen to have a form.

A *form* says what a value must look like:

    str, bool, int, float, dict, list    a value of this type; an int is a float too
    None                                 null, or a key that is missing
    (form, form)                         one of these
    [form]                               a list of such values; ``[form, ...]`` of at least one
    {str: form}                          an object with any keys and such values
    {"key": form}                        an object with at least these keys
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autotransfer.errors import AutoTransferError

MOST_BYTES = 32 * 2**20
"""Longest file: what JSON makes of each byte can take twenty, and no description is longer."""

_DIGITS = 100  # a float has at most 309 before its point, and no whole number of ours has 21
_WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}
_WORDS |= {dict: "an object", list: "a list", type(None): "null"}


def parse(text: str | bytes) -> Any:
    r"""Parse JSON; what could not be computed with or written again is a `ValueError` too.

    Examples
    --------
    >>> parse('{"sfreq": 200}')
    {'sfreq': 200}
    >>> parse(r'["\ud800"]')
    Traceback (most recent call last):
    ...
    ValueError: it holds half a character (a lone surrogate)
    """
    try:
        value = json.loads(text, parse_int=_whole)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("it holds half a character (a lone surrogate)") from None
    return value


def read_object(path: Path, error: type[AutoTransferError], advice: str) -> dict[str, Any]:
    """Read a JSON file that must hold an object (``{...}``).

    Parameters
    ----------
    path : Path
        The file.
    error : type
        What to raise if it cannot be read.
    advice : str
        What to do then.
    """
    try:
        if not path.is_file():  # a pipe would never end
            raise OSError("there is no such file")
        with path.open("rb") as handle:
            data = handle.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ValueError(f"it is longer than {MOST_BYTES // 2**20} MB")
        content = parse(data)
    except OSError as problem:
        raise error(f"{path} cannot be read ({problem}). {advice}") from problem
    except ValueError as problem:
        raise error(f"{path} is not valid JSON ({problem}). {advice}") from problem
    if not isinstance(content, dict):
        raise error(f"{path} must hold a JSON object, {{...}}, not {_kind(content)}. {advice}")
    return content


def misfit(value: Any, form: Any, name: str = "it") -> str:
    """Say where a value departs from a form; "" if it does not.

    Examples
    --------
    >>> misfit({"folds": [3, "x"]}, {"folds": [int]})
    'it.folds.1 should be a whole number, not text'
    >>> misfit({"folds": [3, 4], "more": 1}, {"folds": [int, ...], "seed": (int, None)})
    ''
    """
    if isinstance(form, tuple):
        departures = [misfit(value, one, name) for one in form]
        return "" if "" in departures else departures[0]
    if isinstance(form, list | dict):
        if type(value) is not type(form):
            return f"{name} should be {_kind(form)}, not {_kind(value)}"
        if isinstance(form, list) and len(form) == 2 and not value:
            return f"{name} should not be empty"
        parts = (misfit(v, one, f"{name}.{key!s:.40}") for key, v, one in _parts(value, form))
        return next(filter(None, parts), "")
    if form is float:
        fine = isinstance(value, int | float) and not isinstance(value, bool)
    else:
        fine = value is None if form is None else type(value) is form
    if fine and isinstance(value, int) and not -(2**63) <= value < 2**64:
        return f"{name} is a number of {len(str(value))} digits"
    return "" if fine else f"{name} should be {_WORDS.get(form, 'null')}, not {_kind(value)}"


def _parts(value: Any, form: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the key, value and form of each part."""
    if isinstance(form, list):
        yield from ((i, item, form[0]) for i, item in enumerate(value))
    elif str in form:
        yield from ((key, item, form[str]) for key, item in value.items())
    else:
        yield from ((key, value.get(key), one) for key, one in form.items())


def _kind(value: Any) -> str:
    return _WORDS.get(type(value), type(value).__name__)


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)
