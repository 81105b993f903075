"""Folds by subject: laws over any subject ids, and every kind of leak."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotransfer.data.splits import Fold, SubjectFolds, hold_out
from autotransfer.errors import FoldError, SubjectError, SubjectLeakageError

SIDES = ("train", "validation", "test")
NOBODY = np.zeros(0, np.intp)


@st.composite
def subject_ids(draw, least=3):
    """Subjects of some trials: whole numbers or texts, in any order, unequal numbers of trials."""
    kind = draw(st.sampled_from([st.integers(-(10**12), 10**12), st.text("abz019 é", max_size=5)]))
    ids = draw(st.lists(kind, min_size=least, max_size=12, unique=True))
    extra = draw(st.lists(st.sampled_from(ids), max_size=40))
    return draw(st.permutations([*ids, *extra]))


@st.composite
def ids_and_groups(draw):
    subject = draw(subject_ids())
    return subject, draw(st.integers(3, len(set(subject))))


def people(fold, side):
    return {fold.subject[i].item() for i in getattr(fold, side)}


@given(subject_ids())
def test_fold_i_validates_on_subject_i_and_tests_on_the_next(subject):
    ids = sorted(set(subject))
    folds = list(SubjectFolds().folds(subject))
    assert len(folds) == len(ids)
    for i, fold in enumerate(folds):
        assert people(fold, "validation") == {ids[i]}
        assert people(fold, "test") == {ids[(i + 1) % len(ids)]}


@given(ids_and_groups(), st.booleans(), st.integers(0, 5))
def test_every_trial_is_on_one_side_and_every_subject_tests_and_validates_once(
    given, shuffle, seed
):
    subject, n_folds = given
    folds = list(SubjectFolds(n_folds, shuffle=shuffle, random_state=seed).folds(subject))
    assert len(folds) == n_folds
    for fold in folds:
        sides = [getattr(fold, side) for side in SIDES]
        assert sorted(np.concatenate(sides).tolist()) == list(range(len(subject)))
        assert all(len(side) for side in sides)
        who = [people(fold, side) for side in SIDES]
        assert sum(map(len, who)) == len(set.union(*who))
    for side in ("validation", "test"):
        everyone = [person for fold in folds for person in people(fold, side)]
        assert sorted(everyone) == sorted(set(subject))
        sizes = [len(people(fold, side)) for fold in folds]
        assert max(sizes) - min(sizes) <= 1
    after = [people(fold, "validation") for fold in folds]
    assert [people(fold, "test") for fold in folds] == after[1:] + after[:1]


@given(ids_and_groups(), st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_trials_does_not_matter(given, shuffle, random):
    subject, n_folds = given
    moved = list(subject)
    random.shuffle(moved)
    folds = SubjectFolds(n_folds, shuffle=shuffle, random_state=3)
    for one, other in zip(folds.folds(subject), folds.folds(moved), strict=True):
        for side in SIDES:
            assert people(one, side) == people(other, side)


def test_shuffling_is_decided_by_the_seed():
    subject = np.repeat(np.arange(30), 2)

    def order(seed):
        folds = SubjectFolds(shuffle=True, random_state=seed).folds(subject)
        return [people(fold, "test").pop() for fold in folds]

    assert order(0) == order(0)
    assert order(0) != order(1)
    assert order(0) != sorted(order(0))


def test_many_subjects_are_grouped_in_one_pass(monkeypatch):
    """One comparison of all trials for each subject would take hours for a sleep archive."""
    calls = []
    isin = np.isin
    monkeypatch.setattr(np, "isin", lambda *a, **k: calls.append(1) or isin(*a, **k))
    next(SubjectFolds().folds(np.repeat(np.arange(2000), 3)))
    assert len(calls) <= 2


@pytest.mark.parametrize(
    ("train", "validation", "test", "named"),
    [
        ([0, 1], [2], [3], "train and in validation"),
        ([0, 3], [4], [2, 1], "train and in test"),
        ([3], [0], [1, 4], "validation and in test"),
        ([0, 3, 4], [1], [2], "train and in validation"),
    ],
)
def test_no_fold_has_a_subject_on_two_sides(train, validation, test, named):
    subject = np.array(["ann", "ann", "ann", "bob", "cy"])
    with pytest.raises(SubjectLeakageError, match=named) as caught:
        Fold(subject, np.array(train), np.array(validation), np.array(test))
    assert "ann" in str(caught.value)


@given(subject_ids(), st.data())
def test_any_overlap_is_found(subject, data):
    """Any three sets of trials: an error if and only if a subject is in two of them."""
    numbers = st.lists(st.integers(0, len(subject) - 1), max_size=4, unique=True)
    sides = [data.draw(numbers.filter(len)), data.draw(numbers), data.draw(numbers)]
    who = [{subject[i] for i in side} for side in sides]
    arrays = [np.array(side, np.intp) for side in sides]
    if who[0] & who[1] or who[0] & who[2] or who[1] & who[2]:
        with pytest.raises(SubjectLeakageError):
            Fold(np.array(subject), *arrays)
    else:
        fold = Fold(np.array(subject), *arrays)
        assert [set(fold.subjects(side)) for side in SIDES] == who


def test_somebody_must_train():
    with pytest.raises(FoldError, match="train on"):
        Fold(np.array([0, 1]), NOBODY, np.array([0]), np.array([1]))


@pytest.mark.parametrize("subject", [["a"], ["a", "b", "a"]])
def test_three_subjects_are_needed(subject):
    with pytest.raises(FoldError, match="at least 3 subjects"):
        list(SubjectFolds().folds(subject))


@pytest.mark.parametrize("n_folds", [0, 1, 2, 6, -3, True, 3.0, "3"])
def test_a_wrong_number_of_folds(n_folds):
    with pytest.raises(FoldError, match="n_folds must be a whole number from 3 to"):
        list(SubjectFolds(n_folds).folds(range(5)))


def test_a_subject_without_id():
    with pytest.raises(SubjectError):
        list(SubjectFolds().folds([1.0, 2.0, 3.0, np.nan]))


@given(subject_ids(), st.data())
def test_hold_out_by_number(subject, data):
    n = data.draw(st.integers(1, len(set(subject)) - 1))
    fold = hold_out(subject, n, random_state=4)
    assert len(people(fold, "validation")) == n
    assert people(fold, "train") | people(fold, "validation") == set(subject)
    assert len(fold.train) + len(fold.validation) == len(subject)
    assert len(fold.test) == 0
    again = hold_out(sorted(subject), n, random_state=4)
    assert people(again, "validation") == people(fold, "validation")


@given(subject_ids(), st.floats(0.01, 0.6))
def test_hold_out_by_share(subject, share):
    n = len(people(hold_out(subject, share, random_state=0), "validation"))
    assert n >= 1
    assert abs(n - share * len(set(subject))) <= 0.5 or n == 1


@given(subject_ids(), st.data())
def test_hold_out_by_id(subject, data):
    ids = sorted(set(subject))
    wanted = data.draw(st.lists(st.sampled_from(ids), unique=True, max_size=len(ids) - 1))
    fold = hold_out(subject, wanted)
    assert people(fold, "validation") == set(wanted)
    assert people(fold, "train") == set(ids) - set(wanted)
    assert people(hold_out(subject, None), "train") == set(ids)


def test_one_text_is_one_subject():
    assert hold_out(["ab", "a", "b"], "ab").validation.tolist() == [0]


def test_the_choice_is_decided_by_the_seed():
    chosen = {tuple(hold_out(range(50), 3, random_state=seed).validation) for seed in range(10)}
    assert len(chosen) == 10
    assert (
        hold_out(range(50), 3, 1).validation.tolist()
        == hold_out(range(50), 3, 1).validation.tolist()
    )


@pytest.mark.parametrize(
    "validation",
    [0, -1, 3, 7, 0.0, 1.0, -0.5, 0.99, 3.0, float("nan"), float("inf"), True, False, object()],
)
def test_an_impossible_number_or_share(validation):
    with pytest.raises(FoldError, match="validation="):
        hold_out([1, 2, 3], validation)


@pytest.mark.parametrize(
    ("subject", "validation"),
    [([1, 2, 3], [4]), ([1, 2, 3], ["1"]), (["1", "2"], [1]), (["a", "b"], "ab"), ([1, 2], "1")],
)
def test_an_unknown_validation_subject_is_named(subject, validation):
    with pytest.raises(FoldError, match="is not in the data"):
        hold_out(subject, validation)


def test_not_everybody_can_validate():
    with pytest.raises(FoldError, match="none is left"):
        hold_out([1, 2, 3], [3, 1, 2])
