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
from collections.abc import Callable
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
    departure = checker(form)(value)
    return departure and name + departure


def checker(form: Any) -> Callable[[Any], str]:
    """Make the function that says in what a value departs from a form; for very many values."""
    if isinstance(form, tuple):
        checks = [checker(one) for one in form]

        def check_any(value: Any) -> str:
            return checks[0](value) if all(check(value) for check in checks) else ""

        return check_any
    if isinstance(form, slice):
        low, high = form.start, form.stop

        def check_range(value: Any) -> str:
            if type(value) in (int, float) and low <= value <= high:
                return ""
            what = f"{value:.6g}" if type(value) is float else _kind(value)
            return f" should be a number from {low} to {high}, not {what}"

        return check_range
    if isinstance(form, list):
        return _list_checker(checker(form[0]), len(form) == 2)
    if isinstance(form, dict):
        every = checker(form[str]) if str in form else None
        return _object_checker({key: checker(one) for key, one in form.items()}, every)
    return _value_checker(form)


def _value_checker(form: Any) -> Callable[[Any], str]:
    words = _WORDS[form if isinstance(form, type) else type(form)]

    def check(value: Any) -> str:
        if type(value) is int and form in (int, float):
            return "" if -(2**63) <= value < 2**64 else f" is a number of {len(str(value))} digits"
        if value is form or type(value) is form:
            return ""
        return f" should be {words}, not {_kind(value)}"

    return check


def _list_checker(check_item: Callable[[Any], str], filled: bool) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if type(value) is not list:
            return f" should be a list, not {_kind(value)}"
        for i, item in enumerate(value):
            if departure := check_item(item):
                return f".{i}{departure}"
        return " should not be empty" if filled and not value else ""

    return check


def _object_checker(
    checks: dict[Any, Callable[[Any], str]], every: Callable[[Any], str] | None
) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if type(value) is not dict:
            return f" should be an object, not {_kind(value)}"
        for key in value if every else checks:
            if departure := (every or checks[key])(value.get(key, ...)):
                return f".{key!s:.40}{departure}"
        return ""

    return check


def _kind(value: Any) -> str:
    return _WORDS.get(type(value), type(value).__name__)


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)
