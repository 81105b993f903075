"""JSON from files that somebody else may have written: read within bounds, and seen to have a form.

A *form* says what a value must look like:

    str, bool, int, float, dict, list    a value of this type; an int is a float too
    slice(low, high)                     a number within these two
    None                                 null
    (form, form)                         one of these; with ``...`` among them, or nothing
    [form]                               a list of such values; ``[form, ...]`` of at least one
    {str: form}                          an object with any keys and such values
    {"key": form}                        an object with these keys, and perhaps others
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from autotransfer.errors import AutoTransferError

MOST_BYTES = 32 * 2**20
"""Longest file: what JSON makes of each byte can take twenty, and no description is longer."""

_DIGITS = 100  # a float has at most 309 before its point, and no whole number of ours has 21
_WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}
_WORDS |= {dict: "an object", list: "a list", type(None): "null", type(...): "missing"}


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
    >>> misfit({"folds": [3, 4], "more": 1}, {"folds": [int, ...], "seed": (int, ...)})
    ''
    """
    departure = _departure(value, form)
    return departure and name + departure


def _departure(value: Any, form: Any) -> str:
    """Say where a value departs, and how; a hundred thousand trials are looked at like this."""
    kind = type(form)
    if kind is type:
        if type(value) is form and form is not int:
            return ""
        if type(value) is int and form in (int, float):
            fits = -(2**63) <= value < 2**64
            return "" if fits else f" is a number of {len(str(value))} digits"
    elif kind is tuple:
        departures = [_departure(value, one) for one in form]
        return "" if "" in departures else departures[0]
    elif kind is slice:
        number = type(value) in (int, float)
        if number and form.start <= value <= form.stop:
            return ""
        what = f"{value:.6g}" if type(value) is float else _kind(value)
        return f" should be a number from {form.start} to {form.stop}, not {what}"
    elif form is None or form is ...:
        if value is form:
            return ""
    elif type(value) is kind:
        if kind is list and len(form) == 2 and not value:
            return " should not be empty"
        for key, part, one in _parts(value, form):
            if departure := _departure(part, one):
                return f".{key!s:.40}{departure}"
        return ""
    return f" should be {_WORDS.get(form if kind is type else kind)}, not {_kind(value)}"


def _parts(value: Any, form: Any) -> list[tuple[Any, Any, Any]]:
    """List the key, value and form of each part."""
    if isinstance(form, list):
        return [(i, item, form[0]) for i, item in enumerate(value)]
    if str in form:
        return [(key, item, form[str]) for key, item in value.items()]
    return [(key, value.get(key, ...), one) for key, one in form.items()]


def _kind(value: Any) -> str:
    return _WORDS.get(type(value), type(value).__name__)


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)
