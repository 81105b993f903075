"""Settings, the space of the paper's Table II, and the ids of trials."""

from __future__ import annotations

import pytest

from autotransfer.errors import SettingError
from autotransfer.search import BASELINE, BASELINE_BY_CLASS, Setting, Space
from autotransfer.search.settings.selection import TrialScores
from autotransfer.search.settings.tpe import BATCH, suggest
from autotransfer.search.settings.trial import Trial


def test_the_grid_is_table_two():
    grid = list(Space().grid())
    assert len(set(grid)) == len(grid)
    count = {}
    for setting in grid:
        count[setting.measure] = count.get(setting.measure, 0) + 1
    # MIGE: ssge (no gamma) and three estimators x 3 gammas with the median scale, and the four at
    # gamma 0.01 with t-SNE scales, where less is raised to it; 5 strengths, 3 modes.
    assert count == {
        "adversary": 15,
        "mige": 15 * (1 + 9 + 4),
        "mmd": 15,
        "pairmmd": 15,
        "began": 15,
    }
    assert {s.strength for s in grid if s.measure == "mmd"} == {0.1, 0.3, 1, 3, 10}
    assert {s.strength for s in grid if s.measure == "mige"} == {1, 0.3, 0.1, 0.03, 0.01}
    assert all("gamma" not in dict(s.options) for s in grid if ("estimator", "ssge") in s.options)


@pytest.mark.parametrize("n", [1, 15, 16, 47, 200])
def test_a_part_of_the_grid_covers_measures_and_modes_evenly(n):
    chosen = Space().spread(n, seed=3)
    assert len(chosen) == len(set(chosen)) == n
    assert set(chosen) <= set(Space().grid())
    cells = [(s.measure, s.mode) for s in chosen]
    if n <= 75:
        counts = [cells.count(cell) for cell in set(cells)]
        assert max(counts) - min(counts) <= 1
    if n >= 15:
        assert len(set(cells)) == 15
    assert chosen == Space().spread(n, seed=3)


def test_the_first_of_a_part_are_of_middle_strength():
    assert {s.strength for s in Space(["mmd"]).spread(3, seed=0)} == {1.0}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Space(["mdm"]), "mdm"),
        (lambda: Space(["mmd"], ["marginl"]), "marginl"),
        (lambda: Space(["mmd"], strengths={"mmd": []}), "Strengths of 'mmd'"),
        (lambda: Space(["mmd"], strengths={"mmd": [-1]}), "above 0"),
        (lambda: Space(["mmd"], strengths={"began": [1]}), "began"),
        (lambda: Space(["mmd"], options={"mmd": [{"scale": 1}]}), "scale"),
    ],
)
def test_impossible_spaces_are_refused_by_name(make, words):
    with pytest.raises(SettingError, match=words):
        make()


def test_settings_come_back_from_json():
    for setting in [*Space().baselines(), *Space().grid()]:
        assert Setting.from_json(setting.to_json()) == setting


def test_ids_are_the_hash_of_what_defines_a_trial():
    trial = Trial(Setting.of("mmd", "marginal", 3), 2, 5, 0, 40)
    assert trial.id("data") == Trial.from_json(trial.to_json()).id("data")
    # A change of this value means that records made before are not found again: raise PROTOCOL.
    assert trial.id("data") == "e75849995592dd13f8244fd0a61fe31b"
    others = [
        Trial(Setting.of("mmd", "marginal", 3.1), 2, 5, 0, 40),
        Trial(Setting.of("mmd", "conditional", 3), 2, 5, 0, 40),
        Trial(trial.setting, 1, 5, 0, 40),
        Trial(trial.setting, 2, 6, 0, 40),
        Trial(trial.setting, 2, 5, 1, 40),
        Trial(trial.setting, 2, 5, 0, 41),
    ]
    assert len({t.id("data") for t in [trial, *others]} | {trial.id("other")}) == 8


def test_settings_share_their_seeds_and_folds_do_not():
    one = Trial(Setting.of("mmd", "marginal", 3), 2, 5, 0, 40)
    same = Trial(BASELINE, 2, 5, 0, 7)
    assert one.random_state("data") == same.random_state("data")
    assert one.random_state("data") != Trial(BASELINE, 1, 5, 0, 40).random_state("data")
    assert one.random_state("data") != Trial(BASELINE, 2, 5, 1, 40).random_state("data")


def scored(setting, value, error="", small_cells=False):
    return TrialScores(
        setting, 0, 0, {} if error else {"a": value}, {}, error, small_cells=small_cells
    )


def test_tpe_proposes_the_same_after_the_same_results():
    space = Space()
    first = suggest(space, [scored(BASELINE, 0.5)], BATCH, seed=1)
    assert first == suggest(space, [scored(BASELINE, 0.5)], BATCH, seed=1)
    assert first != suggest(space, [scored(BASELINE, 0.5)], BATCH, seed=2)
    results = [scored(BASELINE, 0.5)]
    results += [scored(s, i / 10, "broken" if i == 3 else "") for i, s in enumerate(first)]
    second = suggest(space, results, BATCH, seed=1)
    assert second == suggest(space, results, BATCH, seed=1)
    assert second != first
    for setting in [*first, *second]:
        strengths = space.strengths_of(setting.measure)
        assert min(strengths) <= setting.strength <= max(strengths)
        options = dict(setting.options)
        if setting.measure == "mige":
            assert ("gamma" in options) == (options["estimator"] != "ssge")


def test_tpe_finds_what_is_good():
    space = Space()
    found = []
    for _ in range(10):
        found += [
            scored(s, 0.5 + 0.4 * (s.measure == "mmd") + 0.05 * (s.mode == "conditional"))
            for s in suggest(space, found, BATCH, seed=0)
        ]
    share = [sum(s.setting.measure == "mmd" for s in part) for part in (found[:24], found[-24:])]
    assert share[1] > 2 * share[0]


def test_tpe_is_not_drawn_to_settings_that_hardly_censor():
    # They are little but the baseline, so they may score best; selection discards them.
    space = Space()
    found = []
    for _ in range(10):
        found += [
            scored(s, 0.5 + 0.4 * (s.measure == "mmd"), small_cells=s.measure == "mmd")
            for s in suggest(space, found, BATCH, seed=0)
        ]
    share = [sum(s.setting.measure == "mmd" for s in part) for part in (found[:24], found[-24:])]
    assert share[1] <= share[0]


def test_every_way_of_drawing_batches_has_its_baseline():
    assert Space(["mmd"], ["marginal", "complementary"]).baselines() == [BASELINE]
    assert Space(["mmd"], ["conditional"]).baselines() == [BASELINE, BASELINE_BY_CLASS]
    for setting in Space().grid():
        alike = setting.baseline
        assert alike.measure is None
        assert (alike.mode == "conditional") == (setting.mode == "conditional")
    assert BASELINE_BY_CLASS.baseline == BASELINE_BY_CLASS
    assert str(BASELINE_BY_CLASS) != str(BASELINE)
    assert BASELINE_BY_CLASS.classifier_options() == {"measure": None, "mode": "conditional"}
