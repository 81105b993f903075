"""Files changed by chance load or are refused by a named error, in little time and memory."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

import limited
from fuzzing import KINDS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="limits of memory are POSIX's")


@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 20), pytest.param(20, 380, marks=[pytest.mark.nightly, pytest.mark.slow])],
)
def test_changed_files_load_or_are_refused_by_name(first, count, capsys):
    reports = limited.run("fuzzing", first, count)
    bad = {
        name: report
        for name, report in reports.items()
        if not report["named"] or report["seconds"] > limited.SECONDS
    }
    with capsys.disabled():
        print(f"\n{len(reports)} changed files, {len(bad)} of which ended badly:")
        for kind in KINDS:
            mine = [r["outcome"] for name, r in reports.items() if name.startswith(f"{kind}-")]
            print(f"  {kind}: {dict(Counter(mine).most_common())}")
    assert len(reports) == len(KINDS) * count
    assert not bad, "\n\n".join(
        f"{name}: {r['outcome']}\n{r['message']}" for name, r in bad.items()
    )
    # Most are refused; were all of them, the test would reach nothing behind the first check.
    outcomes = Counter(report["outcome"] for report in reports.values())
    assert 0.02 < outcomes["loaded"] / len(reports) < 0.7
    for report in reports.values():
        report["message"].encode()


def acts(*_):
    """What the judge must notice."""
    return {
        "good": lambda there: None,
        "raw": lambda there: {}["x"],
        "memory": lambda there: bytearray(3 * 2**30),
        "died": lambda there: os.abort(),
        "hangs": lambda there: __import__("time").sleep(60),
        "last": lambda there: None,
    }


@pytest.mark.nightly
def test_the_judge_notices_what_it_is_for(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    reports = limited.run("test_fuzz", seconds=1.0)
    outcomes = {name: report["outcome"] for name, report in reports.items()}
    assert outcomes == {
        "good": "loaded",
        "raw": "KeyError",
        "memory": "MemoryError",
        "died": "died",
        "hangs": "hangs (over 1 s)",
        "last": "loaded",
    }
    assert [r["named"] for r in reports.values()] == [True, False, False, False, False, True]


if __name__ == "__main__":  # what a name in a report is: python tests/refused/test_fuzz.py npz-17
    import tempfile

    import fuzzing

    kind, _, number = sys.argv[1].rpartition("-")
    with tempfile.TemporaryDirectory() as folder:
        fuzzing.act(kind, int(number), Path(folder))
