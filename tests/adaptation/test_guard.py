"""The guard and the policy: bounds that are learned against a literal search, and what they do."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import autotransfer as at
from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.adaptation.guard import ALWAYS, MOST_LOSS, NEVER, Guard, Lessons, Seen
from autotransfer.adaptation.registry import Policy, chosen
from autotransfer.data.trials import TrialArray
from autotransfer.errors import AdaptationWarning, ModelFolderError, SettingError

DATA = at.make_subjects(
    n_subjects=4, n_trials=60, n_channels=4, n_times=64, n_classes=3, random_state=0
)
NEW = DATA.select(subjects=[3])
CAREFUL = Guard(2.0, 2.0, certainty=True)


@pytest.fixture(scope="module")
def clf():
    options = {"max_epochs": 10, "device": "cpu", "verbose": False, "validation": None}
    options["encoder_options"] = {"F1": 4, "kernel_length": 16}  # small, for speed
    known = DATA.select(subjects=[0, 1, 2])
    return at.CensoredClassifier(**options, random_state=0).fit(known)


def some_people(seed, n=9, certain=0.0):
    """Make up what was seen: of each person one whole recording, and three of few classes."""
    rng = np.random.default_rng(seed)
    names = [str(number) for number in range(n)]

    def otherwise(person):
        return rng.normal(certain, 0.02) if int(person) % 2 else None

    whole = {
        p: [Seen(*rng.uniform(0.3, 1, 2), rng.normal(0.05, 0.05), otherwise(p))] for p in names
    }
    few = {
        cut: {
            p: [
                Seen(*rng.uniform(0, 0.8, 2), -rng.uniform(0, 0.3), otherwise(p) if n < 2 else None)
                for n in range(3)
            ]
            for p in names
        }
        for cut in ("half", "one")
    }
    return {"all": whole, **few}


def gains(seen, guard, among=None):
    """Mean gain in each kind of recording, in plain loops."""
    found = {}
    for cut, people in seen.items():
        total, n, tried = 0.0, 0, []
        for who in people if among is None else among:
            mine = [one.otherwise for one in people[who] if one.otherwise is not None]
            if mine:
                tried.append(sum(mine) / len(mine))
        instead = sum(tried) / len(tried) if tried and guard.certainty else 0.0
        for who in people if among is None else among:
            own = 0.0
            for one in people[who]:
                passes = one.spread >= guard.spread and one.shares >= guard.shares
                own += one.gain if passes else instead
            total, n = total + own / len(people[who]), n + 1
        found[cut] = total / n
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("among", [None, ["0", "0", "3", "4", "7"]])
@pytest.mark.parametrize("certain", [-0.1, 0.02, 0.1])
def test_no_pair_of_bounds_is_better_than_the_learned_one(seed, among, certain):
    seen = some_people(seed, certain=certain)
    guard = Lessons(seen).guard(among)
    mine = gains(seen, guard, among)
    assert min(mine["half"], mine["one"]) >= -MOST_LOSS
    whole = [one for some in seen["all"].values() for one in some]
    spreads, shares = ([getattr(one, name) for one in whole] for name in ("spread", "shares"))
    pairs = [(a, b) for a in [0.0, *spreads] for b in [0.0, *shares]]
    for other in (Guard(*pair, certainty) for pair in pairs for certainty in (False, True)):
        theirs = gains(seen, other, among)
        if min(theirs["half"], theirs["one"]) >= -MOST_LOSS:
            assert theirs["all"] <= mine["all"] + 1e-9


def test_who_does_not_teach_has_no_say():
    seen = some_people(0)
    changed = {cut: dict(people) for cut, people in seen.items()}
    changed["one"]["8"] = [Seen(1.0, 1.0, -0.9)] * 3
    among = ["0", "1", "2", "3", "4"]
    assert Lessons(seen).guard(among) == Lessons(changed).guard(among)
    assert Lessons(seen).guard() != Lessons(changed).guard()


def test_where_nobody_gains_nothing_passes():
    whole = {p: [Seen(0.9, 0.9, -0.1)] for p in "abc"}
    one = {p: [Seen(0.1, 0.1, -0.5)] for p in "abc"}
    assert Lessons({"all": whole, "one": one}).guard() == NEVER
    assert not NEVER.passes(torch.eye(3).repeat(9, 1))
    assert Lessons({}).guard() == Guard()


@pytest.mark.parametrize(("otherwise", "certainty"), [(0.1, True), (-0.1, False), (None, False)])
def test_few_classes_are_used_with_care_where_that_gains(otherwise, certainty):
    whole = {p: [Seen(0.9, 0.9, 0.1, otherwise)] for p in "abc"}
    one = {p: [Seen(0.1, 0.1, -0.5, otherwise)] for p in "abc"}
    guard = Lessons({"all": whole, "one": one}).guard()
    assert guard.certainty is certainty
    assert 0.1 < guard.spread <= 0.9


def test_what_certainty_gains_leaves_room_for_more_to_pass():
    # Somebody's recording of one class looks as whole as one that is.
    whole = {p: [Seen(0.5, 0.5, 0.1, 0.0)] for p in "abcd"}
    one = {p: [Seen(0.1, 0.1, -0.4, 0.1)] for p in "abc"} | {"d": [Seen(0.6, 0.6, -0.2, 0.1)]}
    assert Lessons({"all": whole, "one": one}).guard().certainty
    without = {p: [Seen(s.spread, s.shares, s.gain) for s in some] for p, some in one.items()}
    assert Lessons({"all": whole, "one": without}).guard() == NEVER


def test_recordings_that_cannot_be_told_apart_are_not_adapted_to():
    whole = {p: [Seen(0.5, 0.5, 0.1)] for p in "abcd"}
    one = {p: [Seen(0.6, 0.6, -0.3)] for p in "abcd"}
    assert Lessons({"all": whole, "one": one}).guard() == NEVER


@pytest.mark.parametrize(
    ("policy", "labels", "n", "expected"),
    [
        (Policy(guard=ALWAYS), False, 40, "statistics+information"),
        (Policy(guard=ALWAYS), False, 20, "statistics"),
        (Policy(guard=ALWAYS), True, 40, "statistics+covariances"),
        (
            Policy(labels="statistics+information+head", guard=ALWAYS),
            True,
            40,
            "statistics+information+head",
        ),
        (Policy(guard=NEVER), False, 40, "none"),
        (Policy(guard=NEVER), True, 40, "statistics+covariances"),  # labels say that all are there
        (Policy(guard=NEVER), True, 1, "covariances"),
        (Policy(guard=CAREFUL), False, 40, "certainty"),
        (Policy(guard=CAREFUL), False, 5, "none"),
        (Policy("none", guard=CAREFUL), False, 40, "none"),
        (Policy("statistics", "head", ALWAYS), False, 40, "statistics"),
        (Policy("statistics", "head", ALWAYS), True, 40, "head"),
        (Policy("none", "none", ALWAYS), False, 40, "none"),
        (Policy("none", "none", ALWAYS), True, 40, "none"),
        (Policy(labels="statistics+tuning", guard=ALWAYS), True, 40, "statistics+tuning"),
        (Policy(labels="statistics+tuning", guard=ALWAYS), True, 2, "statistics+head"),
    ],
)
def test_auto_does_what_the_policy_says(clf, policy, labels, n, expected):
    X = np.asarray(NEW.X)[:n]
    person = Person(X[:0], X, NEW.y_code[:n]) if labels else Person(X)
    assert chosen(Fitted(clf.network_, clf.normaliser_), person, "auto", policy) == expected


@pytest.mark.parametrize(
    ("policy", "labels", "n", "expected"),
    [
        (Policy(guard=NEVER), False, 40, "statistics+information"),
        (Policy(guard=CAREFUL), False, 5, "statistics"),
        (Policy("none", guard=NEVER, all_classes="statistics"), False, 40, "statistics"),
        (Policy("statistics", guard=ALWAYS, all_classes="none"), False, 40, "none"),
        (Policy(guard=NEVER, all_classes="none"), True, 40, "statistics+covariances"),
    ],
)
def test_who_knows_that_all_classes_are_there_need_not_pass(clf, policy, labels, n, expected):
    X = np.asarray(NEW.X)[:n]
    person = Person.of(TrialArray(X), NEW.y_code[:n] if labels else None, all_classes=True)
    assert chosen(Fitted(clf.network_, clf.normaliser_), person, "auto", policy) == expected


@pytest.mark.parametrize(
    ("labels", "alone"),
    [
        *(("statistics+head", "head"), ("statistics+firm", "head")),
        *((f"statistics+{way}", way) for way in ("covariances", "tuning")),
    ],
)
def test_unlabelled_trials_beside_labels_have_to_pass(clf, labels, alone):
    X, codes = np.asarray(NEW.X), NEW.y_code
    fitted, policy = Fitted(clf.network_, clf.normaliser_), Policy(labels=labels, guard=NEVER)
    rest, one = (
        Person(X[20:], X[:20], codes[:20]),
        Person(X[:0], X[:20], np.repeat([0, 1], [18, 2])),
    )
    for person in (rest, one):
        assert chosen(fitted, person, "auto", policy) == alone
    single = Person(X[:0], X[:20], np.repeat([0, 1], [19, 1]))  # of a class: not to be tuned with
    assert chosen(fitted, single, "auto", policy) == alone.replace("tuning", "head")


def test_a_model_is_told_that_all_classes_are_there(clf):
    clf.provenance_ = {**clf.provenance_, "adaptation": Policy(guard=NEVER).to_json()}
    with pytest.warns(AdaptationWarning, match="all_classes=True"):
        clf.adapt(NEW)
    told, named = clf.adapt(NEW, all_classes=True), clf.adapt(NEW, method="statistics+information")
    np.testing.assert_array_equal(told.predict_proba(NEW), named.predict_proba(NEW))


def test_a_model_keeps_its_policy(clf, tmp_path):
    policy = Policy("statistics", "statistics+head", ALWAYS, "ring+statistics", "information")
    clf.provenance_ = {**clf.provenance_, "adaptation": policy.to_json()}
    clf.save(tmp_path / "one")
    again = at.load_model(tmp_path / "one")
    assert again.policy == policy
    assert again.adapt(NEW).provenance_["adapted"]["method"] == "statistics"
    assert again.live()._streams[0].policy == policy


def test_a_model_says_that_it_was_careful(clf, tmp_path):
    clf.provenance_ = {**clf.provenance_, "adaptation": Policy(guard=CAREFUL).to_json()}
    again = at.load_model(clf.save(tmp_path / "careful"))
    assert again.policy.guard == CAREFUL
    with pytest.warns(AdaptationWarning, match="predictions were made certain"):
        made = again.adapt(NEW)
    assert made.provenance_["adapted"]["method"] == "certainty"
    entropy = [
        -(p * np.log(p + 1e-12)).sum(1).mean()
        for p in (one.predict_proba(NEW) for one in (again, made))
    ]
    assert entropy[1] < entropy[0]


def test_a_model_whose_people_did_not_gain_says_so(clf):
    clf.provenance_ = {**clf.provenance_, "adaptation": Policy("none").to_json()}
    with pytest.warns(AdaptationWarning, match="did not gain at level recording"):
        same = clf.adapt(NEW)
    np.testing.assert_array_equal(same.predict_proba(NEW), clf.predict_proba(NEW))


@pytest.mark.parametrize(
    "wrong",
    [
        {"recording": "head"},
        {"all_classes": "head"},
        {"labels": "statistics+wishes"},
        {"recording": 3},
        {"guard": {"spread": 0.5}},
        {"guard": {"spread": 0.5, "shares": 9}},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_by_name(clf, tmp_path, wrong):
    given = Policy().to_json() | wrong
    with pytest.raises(SettingError, match="adaptation"):
        Policy.from_json(given)
    clf.provenance_ = {**clf.provenance_, "adaptation": given}
    clf.save(tmp_path / "one")
    with pytest.raises(ModelFolderError, match="does not fit together"):
        at.load_model(tmp_path / "one")
