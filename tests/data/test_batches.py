"""Batches of P subjects x K trials: laws over any data, composition, cost."""

import math
import tracemalloc
from collections import Counter
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotransfer.data.batches import SubjectBatches
from autotransfer.errors import EmptyDataError, SettingError


@st.composite
def cells(draw):
    """Trials of subjects of very different sizes, with classes missing here and there."""
    y, subject = [], []
    for who in range(draw(st.integers(1, 12))):
        counts = draw(st.lists(st.integers(0, 25), min_size=1, max_size=5))
        if sum(counts) == 0 or draw(st.booleans()):
            counts = [1]
        scale = draw(st.sampled_from([1, 1, 1, 10]))
        for label, n in enumerate(counts):
            y += [label] * n * scale
            subject += [who] * n * scale
    order = np.random.default_rng(draw(st.integers(0, 99))).permutation(len(y))
    return np.array(y)[order], np.array(subject)[order]


compositions = st.tuples(st.integers(1, 9), st.integers(1, 20))


def batches_of(batches, epoch=0):
    return [batch.tolist() for batch in batches.epoch(epoch)]


def chunk_count(n, k):
    return max(1, round(n / k))


@given(cells(), compositions, st.integers(0, 3))
def test_every_trial_once_an_epoch(data, composition, epoch):
    batches = SubjectBatches(*data, *composition)
    drawn = batches_of(batches, epoch)
    assert sorted(chain(*drawn)) == list(range(len(data[0])))
    assert len(drawn) == len(batches) == batches.n_batches
    assert batches.n_trials == len(data[0])


@given(cells(), compositions)
def test_a_subject_is_spread_over_the_batches(data, composition):
    """A subject of m chunks brings m / B of them to each of B batches, rounded up or down."""
    _, subject = data
    p, k = composition
    drawn = batches_of(SubjectBatches(*data, p, k))
    for who, n in Counter(subject.tolist()).items():
        m = chunk_count(n, k)
        smallest, largest = n // m, -(-n // m)
        for batch in drawn:
            trials = int((subject[batch] == who).sum())
            assert m // len(drawn) * smallest <= trials <= -(-m // len(drawn)) * largest
    chunks = sum(chunk_count(n, k) for n in Counter(subject.tolist()).values())
    assert len(drawn) == math.ceil(chunks / p)
    most = max(chunk_count(n, k) for n in Counter(subject.tolist()).values())
    if most <= len(drawn):  # nobody need be twice in a batch: the data allow different subjects
        people = [len(set(subject[batch].tolist())) for batch in drawn]
        assert min(people) >= chunks // len(drawn)
        assert max(people) <= p
    elif chunks - most >= len(drawn):  # one has more, but the others suffice for every batch
        assert min(len(set(subject[batch].tolist())) for batch in drawn) >= 2


@given(cells(), st.integers(1, 20))
def test_classes_have_their_share_in_every_chunk(data, k):
    """With P = 1 a batch is a chunk: n_c / m trials of class c, rounded up or down."""
    y, subject = data
    totals = Counter(zip(subject.tolist(), y.tolist(), strict=True))
    sizes = Counter(subject.tolist())
    for batch in batches_of(SubjectBatches(y, subject, 1, k)):
        (who,) = set(subject[batch].tolist())
        m = chunk_count(sizes[who], k)
        assert sizes[who] // m <= len(batch) <= -(-sizes[who] // m)
        for label in range(5):
            n = int((y[batch] == label).sum())
            assert totals[who, label] // m <= n <= -(-totals[who, label] // m)


@given(cells(), compositions, st.integers(0, 2**31))
def test_an_epoch_is_decided_by_seed_and_number(data, composition, seed):
    one = SubjectBatches(*data, *composition, seed=seed)
    other = SubjectBatches(*data, *composition, seed=seed)
    next(other.epoch(5))  # whatever was drawn before, even in part
    list(other.epoch(2))
    assert batches_of(one, 3) == batches_of(other, 3) == batches_of(one, 3)


def test_epochs_drawn_in_turns_do_not_disturb_each_other():
    batches = SubjectBatches(np.arange(600) % 3, np.arange(600) // 30, 4, 10)
    turns = [[b.tolist() for b in pair] for pair in zip(*map(batches.epoch, (0, 1)), strict=True)]
    assert [pair[0] for pair in turns] == batches_of(batches, 0)
    assert [pair[1] for pair in turns] == batches_of(batches, 1)


def test_epochs_and_seeds_differ():
    y, subject = np.arange(600) % 3, np.arange(600) // 30
    drawn = [
        {frozenset(batch) for batch in batches_of(SubjectBatches(y, subject, 4, 10, seed=seed), e)}
        for seed in (0, 1)
        for e in range(4)
    ]
    for i, one in enumerate(drawn):
        for other in drawn[i + 1 :]:
            assert not one & other


def test_any_two_subjects_meet():
    """Batches mix: over epochs every pair is together about as often as chance has it."""
    subject = np.repeat(np.arange(20), 30)
    batches = SubjectBatches(subject % 2, subject, 5, 10)
    together = np.zeros((20, 20))
    epochs = 150
    for epoch in range(epochs):
        for batch in batches.epoch(epoch):
            people = np.unique(subject[batch])
            together[np.ix_(people, people)] += 1
    pairs = together[np.triu_indices(20, 1)] / epochs
    expected = 12 * (5 / 20) * (4 / 19)  # batches an epoch, both of a pair among its 5 of 20
    assert pairs.mean() == pytest.approx(expected)
    assert pairs.std() < 0.15 * expected


@pytest.mark.parametrize("seed", range(5))
def test_equal_subjects_are_all_different(seed):
    """100 subjects of 48 trials: in every batch 8 different ones, 16 trials of each."""
    subject = np.repeat(np.arange(100), 48)
    y = np.tile(np.arange(4), 1200)
    batches = SubjectBatches(y, subject, 8, 16, seed=seed)
    for epoch in range(3):
        drawn = list(batches.epoch(epoch))
        assert {len(np.unique(subject[batch])) for batch in drawn[:-1]} <= {7, 8}
        for batch in drawn:
            assert set(Counter(subject[batch].tolist()).values()) == {16}
            assert set(Counter(zip(subject[batch], y[batch], strict=True)).values()) == {4}


@pytest.mark.parametrize("factor", [10, 25, 50])
def test_a_large_subject_is_never_left_alone(factor):
    """One subject with many times the trials of the others is in every batch, with others."""
    subject = np.repeat(np.arange(10), [40 * factor, *[40] * 9])
    y = np.arange(len(subject)) % 2
    for epoch in range(5):
        for batch in SubjectBatches(y, subject, 8, 10).epoch(epoch):
            counts = Counter(subject[batch].tolist())
            # Of the 8 chunks as many as the subject has of all data, rounded up.
            assert counts[0] <= 10 * math.ceil(8 * factor / (factor + 9))
            assert all(n == 10 for who, n in counts.items() if who)
            assert len(counts) >= 2


def test_fewer_subjects_than_places():
    subject = np.repeat([0, 1, 2], 64)
    drawn = list(SubjectBatches(subject % 2, subject, 8, 16).epoch(0))
    assert [len(batch) for batch in drawn] == [96, 96]
    assert all(set(subject[batch].tolist()) == {0, 1, 2} for batch in drawn)


def test_subjects_of_one_trial():
    n = 103
    drawn = list(SubjectBatches(np.arange(n) % 2, np.arange(n), 8, 16).epoch(0))
    assert sorted(np.concatenate(drawn).tolist()) == list(range(n))
    assert {len(batch) for batch in drawn} <= {7, 8}  # equal sizes, no rest at the end


@given(cells(), compositions, st.data())
def test_only_the_given_trials_are_drawn(data, composition, more):
    n = len(data[0])
    chosen = more.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=60, unique=True))
    drawn = batches_of(SubjectBatches(*data, *composition, trials=np.array(chosen)))
    assert sorted(chain(*drawn)) == sorted(chosen)


@given(cells(), compositions)
def test_the_coding_of_labels_does_not_matter(data, composition):
    y, subject = data
    words = np.array([f"class {label}" for label in y]), np.array([f"s{who:03}" for who in subject])
    assert batches_of(SubjectBatches(*words, *composition)) == batches_of(
        SubjectBatches(y, subject, *composition)
    )


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "8", None])
@pytest.mark.parametrize("name", ["subjects_per_batch", "trials_per_subject"])
def test_impossible_compositions(name, value):
    with pytest.raises(SettingError, match=name):
        SubjectBatches([0, 1], [0, 1], **{name: value})


def test_nothing_to_draw_from():
    with pytest.raises(EmptyDataError):
        SubjectBatches([0, 1], [0, 1], trials=np.zeros(0, int))


@pytest.mark.parametrize("n_subjects", [1_000, 100_000])
def test_a_batch_costs_what_it_holds_whatever_the_number_of_subjects(n_subjects, monkeypatch):
    """Counted, not timed: subjects whose trials are touched, and bytes asked for."""
    subject = np.repeat(np.arange(n_subjects), 32)
    batches = SubjectBatches(subject % 2, subject, 8, 16)
    touched = []
    cut = batches._cut
    monkeypatch.setattr(batches, "_cut", lambda who, rng: touched.append(who) or cut(who, rng))
    epoch = batches.epoch(0)
    next(epoch)
    assert len(touched) <= 8
    tracemalloc.start()
    try:
        for _ in range(20):
            next(epoch)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(touched) <= 8 * 21
    # 20 batches of 128 trial numbers, and the open chunks of 160 subjects of 32 trials.
    assert peak < 20 * 128 * 8 + 160 * (32 * 8 + 1000)


def test_the_start_of_an_epoch_takes_bytes_for_chunks_not_for_trials():
    subject = np.repeat(np.arange(1_000), 1_600)
    batches = SubjectBatches(subject % 2, subject, 8, 160)
    tracemalloc.start()
    try:
        next(batches.epoch(0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60 * 10 * 1_000 + 8 * 1_600 * 60  # of 12.8 MB of trial numbers
