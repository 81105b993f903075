"""Cells of a batch against grouping in plain Python."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autotransfer.errors import ShapeError
from autotransfer.estimation.cells import Cells

# Labels need not be 0, 1, ...: a batch holds some of many subjects.
SUBJECTS = st.sampled_from([0, 1, 2, 17, -3, 2**40])
CLASSES = st.integers(-1, 2)


@st.composite
def batches(draw) -> tuple[list[int], list[int] | None]:
    """Subjects of a batch and, or not, classes."""
    rows = draw(st.lists(st.tuples(SUBJECTS, CLASSES), max_size=30))
    subject = [s for s, _ in rows]
    return subject, [c for _, c in rows] if draw(st.booleans()) else None


def cut(subject: list[int], label: list[int] | None) -> tuple[Cells, list[tuple[int, int]]]:
    """The cells, and the (class, subject) of every row."""
    classes = [0] * len(subject) if label is None else label
    given_ = None if label is None else np.array(label, dtype=np.int64)
    cells = Cells.of(np.array(subject, dtype=np.int64), given_)
    return cells, list(zip(classes, subject, strict=True))


@settings(deadline=None)
@given(batches())
def test_cells_are_the_rows_of_one_subject_in_one_class(data):
    cells, keys = cut(*data)
    names, classes, people = (sorted(set(v)) for v in (keys, [k[0] for k in keys], data[0]))
    assert cells.cell.tolist() == [names.index(key) for key in keys]
    assert cells.count.tolist() == [Counter(keys)[name] for name in names]
    assert cells.stratum.tolist() == [classes.index(c) for c, _ in names]
    assert cells.person.tolist() == [people.index(s) for _, s in names]
    assert cells.n_strata == len(classes)
    assert cells.subject.tolist() == data[0]
    assert cells.given is None if data[1] is None else cells.given.tolist() == data[1]


@settings(deadline=None)
@given(batches(), st.integers(1, 4))
def test_usable_is_the_mean_over_subjects_then_over_classes(data, least):
    cells, keys = cut(*data)
    counts = Counter(keys)
    fine = [name for name in counts if counts[name] >= least]
    per_class = Counter(c for c, _ in fine)
    expected = [
        1 / (per_class[name[0]] * len(per_class)) if name in fine else 0.0
        for name in sorted(counts)
    ]
    np.testing.assert_allclose(cells.usable(least), expected, rtol=1e-12)


@settings(deadline=None)
@given(batches(), st.randoms(use_true_random=False))
def test_averaged_keeps_ratios_within_a_stratum_and_gives_each_the_same(data, random):
    cells, _ = cut(*data)
    weight = np.array([random.choice([0.0, 0.5, 1.0, 7.0]) for _ in cells.count])
    found = cells.averaged(weight)
    totals = {g: weight[cells.stratum == g].sum() for g in range(cells.n_strata)}
    used = [g for g, total in totals.items() if total > 0]
    for g, total in totals.items():
        here = cells.stratum == g
        share = 1 / len(used) if g in used else 0.0
        np.testing.assert_allclose(found[here].sum(), share, atol=1e-12)
        np.testing.assert_allclose(found[here] * total, weight[here] * share, atol=1e-12)


@settings(deadline=None)
@given(batches(), st.randoms(use_true_random=False))
def test_padded_holds_the_rows_of_the_chosen_cells_in_order(data, random):
    cells, _ = cut(*data)
    chosen = np.array([random.random() < 0.6 for _ in cells.count], dtype=bool)
    rows, mask = cells.padded(chosen)
    assert rows.shape == mask.shape
    assert len(rows) == chosen.sum()
    assert rows.shape[1] == cells.count[chosen].max(initial=0)
    for cell, line, there in zip(np.flatnonzero(chosen), rows, mask, strict=True):
        assert line[there].tolist() == np.flatnonzero(cells.cell == cell).tolist()
        # Padding is at the end, and a row that can be looked up.
        assert there.tolist() == sorted(there.tolist(), reverse=True)
        assert not line[~there].any()


@pytest.mark.parametrize(
    "make",
    [
        list,
        np.array,
        torch.tensor,
        lambda v: np.array(v, dtype=np.uint8),
        lambda v: np.array(v, dtype=np.int16),
        lambda v: torch.tensor(v, dtype=torch.int32),
    ],
)
def test_labels_may_come_in_any_array_of_whole_numbers(make):
    subject, label = [7, 7, 9, 9, 9], [0, 1, 1, 1, 0]
    expected, found = Cells.of(subject, label), Cells.of(make(subject), make(label))
    for name in ("subject", "given", "cell", "count", "stratum", "person"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        assert getattr(found, name).dtype == np.intp


def test_no_rows_are_no_cells():
    nothing = np.zeros(0, dtype=int)
    for cells in (Cells.of(nothing), Cells.of(nothing, nothing)):
        assert cells.n_strata == len(cells.count) == 0
        assert cells.usable(1).shape == (0,)
        assert cells.padded(np.zeros(0, bool))[0].shape == (0, 0)


@pytest.mark.parametrize(
    ("subject", "label", "words"),
    [
        ([0, 1, 1], [0, 1], "3 subject ids and 2 labels"),
        ([0.0, 1.0], None, r"whole numbers.*\(2,\).*float64"),
        ([[0, 1]], None, r"whole numbers.*\(1, 2\)"),
        (["a", "b"], None, "whole numbers.*<U1"),
        (3, None, r"whole numbers.*\(\)"),
        ([0, 1], [0.5, 1.0], "whole numbers.*float64"),
        (torch.zeros(2), None, "whole numbers.*float32"),
    ],
)
def test_labels_that_are_none_are_refused(subject, label, words):
    with pytest.raises(ShapeError, match=words):
        Cells.of(subject, label)
