"""The comparison of AutoTransfer with its baseline: nobody's own scores choose for them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import autotransfer as at
from autotransfer.search.settings.selection import TrialScores, choose
from autotransfer.search.settings.setting import BASELINE, Setting
from benchmarks.accuracy import erm
from benchmarks.censors import own_batches
from benchmarks.censors.evidence import (
    classifier_of,
    cross_validated,
    csv_rows,
    names_of,
    of_whole_seeds,
    put,
)
from benchmarks.censors.evidence_tables import (
    QUARTILE,
    UNCENSORED,
    Table,
    apart,
    candidates,
    compare,
    goals,
    holm,
    peer_rows,
    row,
    rules,
)
from benchmarks.common import recordings
from benchmarks.common.recordings import RECORDINGS, Recording

PEOPLE = [f"p{i}" for i in range(8)]
CENSORS = [Setting.of("mmd", "marginal", 1), Setting.of("adversary", "conditional", 0.1)]
SIDES = ("validation", "test")
SAME = {who: who for who in PEOPLE}


def scores(seed, n_seeds=1):
    """Scores of three settings; in fold i person i validates and person i + 1 tests."""
    rng = np.random.default_rng(seed)
    return {
        setting: [
            TrialScores(setting, i, k, {who: rng.random()}, {PEOPLE[(i + 1) % 8]: rng.random()})
            for i, who in enumerate(PEOPLE)
            for k in range(n_seeds)
        ]
        for setting in (BASELINE, *CENSORS)
    }


def table(seed, n_seeds=1):
    """The same as a table."""
    return Table("emg", pd.DataFrame(csv_rows("emg", scores(seed, n_seeds), SAME)))


def changed(given, value, **where):
    """A table with other scores somewhere."""
    frame = given.scores.copy()
    at = np.logical_and.reduce([frame[column] == wanted for column, wanted in where.items()])
    frame.loc[at, "balanced_accuracy"] = value
    return Table(given.name, frame)


def test_holm_against_its_definition():
    # 0.01 x 3, 0.02 x 2, 0.9 x 1; and never less than the one before.
    assert holm([0.9, 0.01, 0.02]) == pytest.approx([0.9, 0.03, 0.04])
    assert holm([0.04, 0.03]) == pytest.approx([0.06, 0.06])
    assert holm([0.5]) == [0.5]


@pytest.mark.parametrize("seed", range(10))
def test_the_table_chooses_as_the_library_does(seed):
    found = scores(seed, 2)
    chosen = choose(list(found), [one for mine in found.values() for one in mine], 8, 2)
    assert table(seed, 2).chosen() == str(chosen.setting)


def test_a_seed_that_is_not_whole_is_left_out():
    done = {f"{s} {t.fold} {t.seed}": t for s, mine in scores(0, 3).items() for t in mine}
    seeds = {name: one.seed for name, one in done.items()}
    whole = of_whole_seeds(seeds, done)
    assert whole == scores(0, 3)
    lost = next(name for name, seed in seeds.items() if seed == 2)
    part = of_whole_seeds(seeds, {name: one for name, one in done.items() if name != lost})
    expected = {s: [t for t in mine if t.seed != 2] for s, mine in whole.items()}
    assert part == expected
    assert of_whole_seeds(seeds, {}) == {}


@pytest.mark.parametrize("seed", range(5))
def test_a_persons_own_scores_do_not_choose_for_them(seed):
    given = table(seed)
    before = given.without_the_person()
    for person in PEOPLE:
        for setting in given.settings:
            other = changed(given, 0.0, person=person, setting=setting, side="validation")
            assert other.without_the_person()[person] == before[person]


def test_the_scores_of_others_do():
    given = table(0)
    best = str(CENSORS[0])
    better = changed(given, 1.0, setting=best, side="validation")
    assert better.without_the_person() == given.of(best, "test")
    level = changed(given, 0.5, side="validation")
    assert level.chosen() == UNCENSORED  # ties are the baseline's
    assert level.without_the_person() == given.of(UNCENSORED, "test")


@pytest.mark.parametrize("seed", range(5))
def test_test_scores_choose_nothing(seed):
    given = table(seed, 2)
    scrambled = given.scores.copy()
    mine = scrambled["side"] == "test"
    rng = np.random.default_rng(seed)
    scrambled.loc[mine, "balanced_accuracy"] = rng.permutation(
        scrambled.loc[mine, "balanced_accuracy"]
    )
    other = Table("emg", scrambled)
    for rule in ("lower_quartile", "mean", "worst_subject"):
        assert other.chosen(rule) == given.chosen(rule)
    assert [one["chosen"] for one in rules([other])] == [one["chosen"] for one in rules([given])]
    assert other.where_gained()["setting"] == given.where_gained()["setting"]


def test_how_far_seeds_are_apart():
    assert apart([1.0, 2.0, 4.0]) == pytest.approx(2.0)
    given = table(0, 3)
    means = given.scores[given.scores["side"] == "test"].groupby(["setting", "seed"])
    means = means["balanced_accuracy"].mean()[UNCENSORED]
    found = candidates([given])
    assert [one["candidate"] for one in found] == given.settings[1:]
    wanted = np.mean([abs(means[0] - means[1]), abs(means[0] - means[2]), abs(means[1] - means[2])])
    assert found[0]["seeds apart, mean"] == pytest.approx(wanted)
    assert candidates([table(0)])[0]["seeds apart, mean"] is None  # one seed does not tell
    first = {str(s): mine[0].validation["p0"] for s, mine in scores(0, 3).items()}
    for one in found:
        gain = first[one["candidate"]] - first[UNCENSORED]
        assert one["on the first fold"] == pytest.approx(gain)


def test_conditional_candidates_are_beside_their_own_batches():
    given = table(0, 2)
    conditional = str(CENSORS[1])
    by_class = {who: score - 0.1 for who, score in given.of(UNCENSORED, "test").items()}
    batches, *candidates_of = own_batches.rows_of(given, by_class)
    assert batches["difference"] == pytest.approx(-0.1)
    assert batches["of quartiles"] == pytest.approx(-0.1)
    assert [one["method"] for one in candidates_of] == [conditional]  # no marginal one
    base, mine = (given.of(setting, "test") for setting in (UNCENSORED, conditional))
    wanted = np.mean([mine[who] - base[who] for who in PEOPLE]) + 0.1
    assert candidates_of[0]["difference"] == pytest.approx(wanted)
    assert candidates_of[0]["chosen"] == ("*" if given.chosen() == conditional else "")


def test_other_random_numbers_than_the_runs_are_noticed():
    given = table(0, 2)
    first = next(one for one in scores(0, 2)[BASELINE] if one.fold == 0 and one.seed == 0)
    assert own_batches.once_more(given, first.test).kept
    other = {who: score + 0.01 for who, score in first.test.items()}
    assert not own_batches.once_more(given, other).kept


def test_random_numbers_of_a_run(monkeypatch, tmp_path):
    """The uncensored network, trained apart with them, scores as in the run itself."""
    data = at.make_subjects(n_subjects=5, n_trials=24, n_times=64, random_state=0)
    options = {"normalise": "channel", "max_epochs": 3, "subjects_per_batch": 3}
    options |= {"trials_per_subject": 8, "encoder_options": {}}
    with ThreadPoolExecutor(1) as pool:
        auto = at.AutoTransfer(
            procedure="paper",
            n_settings=1, keep=1, n_seeds=2, out=tmp_path, engine=pool, portraits=False,
            classifier=classifier_of(data, options),
        )  # fmt: skip
        auto.fit(data.X, data.y, subject=data.subject)
    found = cross_validated(tmp_path)[BASELINE]

    @dataclass(frozen=True)
    class Small(Recording):
        def load(self):
            return data

    monkeypatch.setitem(RECORDINGS, "small", Small("small", ("channel",), 0.0))
    recordings._opened.cache_clear()
    states = own_batches.random_states("small", options, [0, 1])
    for mode, same in (("marginal", True), ("conditional", False)):
        jobs = {key: own_batches.job("small", options, mode, key[0], states[key]) for key in states}
        again = {key: erm.run(job)["test"] for key, job in jobs.items()}
        assert ({(one.fold, one.seed): one.test for one in found} == again) == same


def test_people_have_their_own_names():
    """A run calls people by their ids, the competitors' scores by their names."""
    data = at.make_subjects(n_subjects=8, n_trials=4, random_state=0)
    named = at.SubjectDataset(data.X, data.y, data.subject, subjects=list("stuvwxyz"))
    assert names_of(named) == {str(i): name for i, name in enumerate("stuvwxyz")}
    people = dict(zip(PEOPLE, "abcdefgh", strict=True))
    rows = csv_rows("emg", scores(0), people)
    assert {one["person"] for one in rows} == set("abcdefgh")
    peers = [
        {"data": "emg", "method": "other", "uses": "nothing", "chosen": True, "seed": 0}
        | {"subject": who, "test": 0.5}
        for who in "abcdefgh"
    ]
    found = compare([Table("emg", pd.DataFrame(rows))], peers)
    assert found[-1]["people"] == 8


def test_a_margin_keeps_the_baseline():
    given = changed(table(0), 0.5, side="validation")
    better = changed(given, 0.55, setting=str(CENSORS[0]), side="validation")
    assert better.chosen() == str(CENSORS[0])
    assert better.chosen(margin=0.1) == UNCENSORED


def test_who_gains_is_not_asked_of_the_noise():
    """The same method under two names: with the same seed on both sides the bad luck of the
    baseline would look like a gain of the weak."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"data": "emg", "setting": setting, "seed": seed, "fold": i, "side": side}
        | {"person": f"p{i}", "balanced_accuracy": float(better) + 0.1 * rng.standard_normal()}
        for setting, better in ((UNCENSORED, 0.5), (str(CENSORS[0]), 0.5))
        for seed in range(3)
        for i in range(300)
        for side in SIDES
    )
    frame.loc[(frame["setting"] != UNCENSORED) & (frame["side"] == "validation"),
              "balanced_accuracy"] += 1  # fmt: skip
    found = Table("emg", frame)
    assert abs(found.where_gained()["spearman"]) < 0.1
    base, mine = (found.of(setting, "test", [0]) for setting in found.settings)
    gain = [mine[who] - base[who] for who in base]
    assert np.corrcoef(list(base.values()), gain)[0, 1] < -0.5  # what would have been said


def test_rows_and_goals():
    given = table(1)
    level = dict.fromkeys(PEOPLE, 0.5)
    made = row("emg", "uncensored", level, level)
    assert (made["difference"], made["p"], made["gained / lost"]) == (0, 1, "0 / 0")
    for best, ahead in ((1.0, 1), (0.0, 0)):
        tested = changed(given, best, setting=given.chosen(), side="test")
        peers = [
            {"data": "emg", "method": "coral", "uses": uses, "subject": who, "seed": 0}
            | {"chosen": True, "test": 0.9 if uses == "nothing" else 1.0}
            for uses in ("nothing", "unlabelled data of the new person")
            for who in PEOPLE
        ]
        rows = compare([tested], peers)
        assert [one["uses"] for one in rows[3:]] == ["nothing", peers[-1]["uses"]]
        assert goals(rows)[-1].value == ahead  # who uses the new person's data is no rival here
        assert goals(rows)[0].kept == bool(ahead)


def test_a_competitor_is_compared_with_as_many_seeds():
    """A mean over seeds spreads less over people, so its lower quartile is higher."""
    given = table(1, 3)
    peers = [
        {"data": "emg", "method": "coral", "uses": "nothing", "subject": who, "seed": seed}
        | {"chosen": True, "test": 0.9}
        for seed in range(2)
        for who in PEOPLE
    ]
    for n in (1, 2):
        (made,) = peer_rows(given, [one for one in peers if one["seed"] < n])
        test = given.scores[given.scores["side"] == "test"]
        mine = test[(test["setting"] == given.chosen()) & (test["seed"] < n)]
        wanted = np.percentile(mine.groupby("person")["balanced_accuracy"].mean(), 25)
        assert made[QUARTILE] == pytest.approx(wanted)
    made = {"data": "emg", "uses": "nothing", "p, Holm": None, "mean": 0.6, "lower quartile": 0.55}
    auto = made | {"method": f"AutoTransfer: {given.chosen()}", "p, Holm": 1.0}
    rows = [made | {"method": UNCENSORED}, auto]
    for ours, ahead in ((0.56, 1), (0.55, 0)):  # not by the 0.55 of all seeds
        assert goals([*rows, made | {"method": "coral", QUARTILE: ours}])[-1].value == ahead


def test_the_baseline_is_not_above_itself():
    given = changed(table(1), 0.5, side="validation")
    assert not goals(compare([given]))[0].kept


def test_scores_are_replaced_and_those_of_other_sets_stay(tmp_path):
    file = tmp_path / "scores.csv"
    for name, seed in (("emg", 0), ("erp", 1), ("emg", 2)):
        put(file, name, csv_rows(name, scores(seed), SAME))
    assert Table.read(file, "emg").of(UNCENSORED, "test") == pytest.approx(
        table(2).of(UNCENSORED, "test")
    )
    assert len(pd.read_csv(file)) == 2 * 3 * 8 * 2
