"""JSON of others: what is read, and what has a form."""

from __future__ import annotations

import os

import pytest

from autotransfer.documents import MOST_BYTES, misfit, parse, read_object
from autotransfer.errors import SourceError

FORM = {
    "name": str,
    "rate": (float, None),
    "folds": [int, ...],
    "scores": {str: slice(0, 1)},
    "more": ({"x": bool}, ...),
}
GOOD = {"name": "a", "rate": 2, "folds": [1], "scores": {"ann": 0.5}}


@pytest.mark.parametrize(
    "changes",
    [{}, {"rate": None}, {"rate": 0.5}, {"more": {"x": True}}, {"scores": {}}, {"other": []}],
)
def test_what_has_the_form(changes):
    assert misfit(GOOD | changes, FORM) == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": 3}, "it.name should be text, not a whole number"),
        ({"name": None}, "it.name should be text, not null"),
        ({"rate": True}, "it.rate should be a number, not true or false"),
        ({"rate": 10**30}, "it.rate is a number of 31 digits"),
        ({"folds": []}, "it.folds should not be empty"),
        ({"folds": [1, 1.5]}, "it.folds.1 should be a whole number, not a number"),
        ({"folds": {}}, "it.folds should be a list, not an object"),
        (
            {"scores": {"ann": 2}},
            "it.scores.ann should be a number from 0 to 1, not a whole number",
        ),
        (
            {"scores": {"ann": float("nan")}},
            "it.scores.ann should be a number from 0 to 1, not nan",
        ),
        ({"more": {"x": 1}}, "it.more.x should be true or false, not a whole number"),
        ({"more": {}}, "it.more.x should be true or false, not missing"),
    ],
)
def test_what_departs_from_it(changes, words):
    assert misfit(GOOD | changes, FORM) == words
    assert misfit({}, FORM) == "it.name should be text, not missing"


@pytest.mark.parametrize(
    "text", ['"\\ud800"', '{"\\udfff": 1}', b'"\xed\xa0\x80"', "9" * 101, "[" * 10**5]
)
def test_what_could_not_be_used_is_not_parsed(text):
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_whole_characters_and_long_numbers_are_parsed():
    assert parse('["\\ud83d\\ude00", 18446744073709551615, 1e400]') == [
        "\U0001f600",
        2**64 - 1,
        float("inf"),
    ]


def test_a_file_that_is_no_file_or_too_long(tmp_path):
    for make in (lambda p: None, os.mkdir, os.mkfifo):
        path = tmp_path / make.__name__.strip("<>")
        make(path)
        with pytest.raises(SourceError, match=r"cannot be read .*no such file.* Do this\."):
            read_object(path, SourceError, "Do this.")
    path = tmp_path / "long.json"
    path.write_text("{}")
    assert read_object(path, SourceError, "") == {}
    os.truncate(path, MOST_BYTES + 1)
    with pytest.raises(SourceError, match="longer than 32 MB"):
        read_object(path, SourceError, "")
