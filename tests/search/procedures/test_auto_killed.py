"""A hands-off run whose process is killed in every stage ends like one that was left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.skipif(os.name != "posix", reason="sends SIGKILL"),
]

HERE = Path(__file__).parent
SCRIPT = """
import sys

sys.path.insert(0, {here!r})

if __name__ == "__main__":
    from test_auto_procedure import DATA, auto

    auto(sys.argv[1], engine="local", n_jobs=2, portraits=True, levels=True).fit(DATA)
"""
STAGES = (
    *("auto", "first", "reference", "recipe", "censor", "confirm"),
    *("closing", "refit", "levels", "portrait"),
)
"""As they stand in the ledger: "auto" and "closing" are the plans at the start and at the end."""

TABLES = ("trials.csv", "candidates.csv", "levels.csv", "scores.csv", "results.json")


def lines(folder: Path) -> list[dict[str, object]]:
    """Read the whole lines of a ledger, as they are in the file."""
    file = folder / "ledger.jsonl"
    text = file.read_bytes() if file.exists() else b""
    return [json.loads(line) for line in text.split(b"\n")[:-1] if line.endswith(b"}")]


@pytest.fixture
def start(tmp_path):
    """Start the run in a process of its own."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(here=str(HERE)))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def begin(folder: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, script, folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )

    return begin


def kill_in(stage: str, folder: Path, process: subprocess.Popen[str]) -> None:
    """Kill a run as soon as something new of a stage is on record."""

    def on_record() -> int:
        return sum(line["stage"] == stage for line in lines(folder))

    before, end = on_record(), time.monotonic() + 300
    while on_record() == before:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end, f"nothing of {stage} in 300 s"
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def test_killed_in_every_stage_it_loses_nothing_and_does_nothing_twice(start, tmp_path):
    alone, killed = tmp_path / "alone", tmp_path / "killed"
    process = start(alone)
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said

    for stage in STAGES:
        assert len(lines(killed)) < len(lines(alone)), f"too late for {stage}: this proves nothing"
        kill_in(stage, killed, start(killed))

    process = start(killed)
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said
    ids = [line["id"] for line in lines(killed) if line["id"]]
    assert len(ids) == len(set(ids))
    assert set(ids) == {line["id"] for line in lines(alone) if line["id"]}
    for name in TABLES:
        assert (killed / name).read_bytes() == (alone / name).read_bytes(), name
    weights = {p.relative_to(alone): p.read_bytes() for p in alone.rglob("*.safetensors")}
    assert weights
    for path, bits in weights.items():
        assert (killed / path).read_bytes() == bits, path
