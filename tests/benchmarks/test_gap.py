"""The comparison of known and new people: who is scored on what, and how far away they are."""

from __future__ import annotations

import numpy as np
import pytest

import autotransfer as at
from benchmarks.censors import gap


@pytest.mark.parametrize("recorded", [False, True])
def test_the_last_third_of_each_class(recorded):
    """Two people, two classes, six trials each; recordings are of two trials."""
    y = np.tile(np.repeat([0, 1], 6), 2)
    subject = np.repeat([0, 1], 12)
    recording = np.arange(24) // 2 if recorded else None
    data = at.SubjectDataset(np.zeros((24, 1, 8)), y, subject, recording=recording)
    # Of six trials the last two; of three recordings the last one, which is the same trials.
    assert np.flatnonzero(gap.last_trials(data)).tolist() == [4, 5, 10, 11, 16, 17, 22, 23]


def test_a_recording_is_never_cut():
    """Of five trials in recordings of three and two, the whole last recording is kept out."""
    recording = np.array([0, 0, 0, 1, 1])
    data = at.SubjectDataset(
        np.zeros((10, 1, 8)), np.repeat([0, 1], 5), np.zeros(10, int),
        recording=np.concatenate([recording, recording + 2]),
    )  # fmt: skip
    assert np.flatnonzero(gap.last_trials(data)).tolist() == [3, 4, 8, 9]


def test_distance_is_in_deviations_within_people():
    rng = np.random.default_rng(0)
    subject = np.repeat([0, 1], 5000)
    z = rng.normal(size=(10000, 3)) * [1, 2, 0] + np.where(subject, 10.0, 0.0)[:, None]
    centre, spread = gap.frame(z, subject)
    assert centre == pytest.approx([5, 5, 5], abs=0.1)
    assert spread == pytest.approx([1, 2, 1e-6], rel=0.05)


def test_known_and_new_are_paired_by_person():
    """Everybody gains 0.1 by being known, and the censor takes 0.2 of that from the known."""
    results = {}
    for measure, strength in ((None, 0.0), ("mmd", 1.0)):
        for part, (new, known) in enumerate([("ab", "cd"), ("cd", "ab")]):
            job = gap.Job("erp", measure, strength, 2, part, 0, "{}")
            base = {who: 0.5 + 0.1 * place for place, who in enumerate("abcd")}
            drop = 0.2 * (measure is not None)
            results[job] = {
                "test": {w: {"score": base[w], "distance": 2.0} for w in new},
                "known": {w: {"score": base[w] + 0.1 - drop, "distance": 1.0} for w in known},
            }
    plain, censored = gap.rows_of("erp", results)
    assert (plain["known"], plain["new"]) == (pytest.approx(0.75), pytest.approx(0.65))
    assert plain["gap"] == pytest.approx(-0.1)
    assert censored["gap"] == pytest.approx(0.1)
    assert censored["known change"] == pytest.approx(-0.2)
    assert censored["new change"] == pytest.approx(0)
    assert (plain["known distance"], plain["new distance"]) == (1, 2)
