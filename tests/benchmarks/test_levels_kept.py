"""Kept results of benchmarks: what they lack is added, and a job that fails takes none with it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import autotransfer as at
from benchmarks.accuracy import levels
from benchmarks.common import pool

DATA = at.make_subjects(n_subjects=4, n_trials=24, n_channels=4, n_times=64, random_state=0)


@pytest.mark.filterwarnings("ignore::autotransfer.errors.AutoTransferWarning")
def test_a_kept_result_is_completed_to_what_it_would_be(monkeypatch, tmp_path):
    monkeypatch.setattr(levels, "load_set", lambda name: DATA)
    job = levels.Job("made up", groups=3, group=0, seed=0, n_steps=2, quick=True)
    result = levels.run(job)
    assert levels.whole(job, result)
    old = {"level": "stream", "amount": None, "method": "older", "tested": "other", "subjects": {}}
    part = {**result, "cases": [old, *result["cases"][1:3]]}
    assert not levels.whole(job, part)
    done = []

    def run(job, *before):
        done.append(before)
        return levels.run(job, *before)

    def go_on():
        return pool.run_all(run, [job], keep, 0, lambda *_: "", levels.whole)

    keep = tmp_path / "kept.jsonl"
    assert go_on() == {job: result}
    assert go_on() == {job: result}
    assert done == [()]
    keep.write_text(keep.read_text().replace('"labels"', '"stream"'))  # a case is gone
    assert go_on() == {job: result}
    assert len(done) == 2
    assert len(done[1]) == 1
    assert go_on() == {job: result}
    assert len(done) == 2
    assert levels.run(job, part) == result


@dataclass(frozen=True)
class Number(pool.Job):
    number: int


def test_a_job_that_fails_takes_no_other_with_it(tmp_path, capsys):
    jobs, keep = [Number(i) for i in range(4)], tmp_path / "kept.jsonl"

    def run(job):
        return {"found": 1 // (job.number - 1)}

    with pytest.raises(ZeroDivisionError):
        pool.run_all(run, jobs, keep, 0, lambda *_: "done")
    assert set(pool.kept(keep)) == {job.key for job in jobs if job.number != 1}
    assert f"FAILED {jobs[1].key}: ZeroDivisionError" in capsys.readouterr().out
