"""No file makes us hang, take gigabytes, crash or fail without a name."""

from __future__ import annotations

import os

import pytest

import hostile_files
import limited

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits of memory are POSIX's")
ROWS, LONG = hostile_files.ROWS, hostile_files.LONG


@pytest.fixture(scope="module")
def reports():
    return limited.run("hostile_files", "ROWS")


@pytest.fixture(scope="module")
def reports_of_long_files():
    return limited.run("hostile_files", "LONG", limit="RLIMIT_DATA")


def check(report, error, words):
    assert report["outcome"] == error.__name__, report
    absent = [word for word in words.split("; ") if word not in report["message"]]
    assert not absent, f"{absent} not in: {report['message']}"
    assert len(report["message"]) < 700, report["message"]
    assert report["message"].endswith("."), report["message"]
    assert report["seconds"] < limited.SECONDS
    assert report["memory"] < 300 * 2**20
    report["message"].encode()


@pytest.mark.parametrize(("name", "error", "words"), [(r[0], *r[2:]) for r in ROWS])
def test_the_file_is_refused_by_name(reports, name, error, words):
    check(reports[name], error, words)


@pytest.mark.parametrize(("name", "error", "words"), [(r[0], *r[2:]) for r in LONG])
def test_a_long_file_is_refused_where_it_can_be_mapped(reports_of_long_files, name, error, words):
    check(reports_of_long_files[name], error, words)


def test_each_row_has_its_own_name():
    names = [row[0] for row in ROWS]
    assert len(set(names)) == len(names)
