"""Recipes: what they stand for, and which are tried on which data."""

from __future__ import annotations

from dataclasses import replace

import pytest

import autotransfer as at
from autotransfer.data.problem import Problem
from autotransfer.errors import SettingError
from autotransfer.search.settings.recipe import Dimension, Recipe, RecipeSpace
from autotransfer.search.settings.recipe_space import recipe_space
from autotransfer.search.settings.setting import BASELINE, Setting
from autotransfer.search.settings.trial import Trial
from autotransfer.training import CensoredClassifier

DATA = at.make_subjects(n_subjects=12, n_trials=4, n_channels=3, n_times=256, random_state=0)


def problem(**more):
    data = at.SubjectDataset(DATA.X, DATA.y, DATA.subject, **{"sfreq": 128.0} | more)
    return Problem.of(data)


def space(signal=None, fixed=(), channels=None, **options):
    return recipe_space(
        problem(channels=channels), CensoredClassifier(**options).options, fixed, signal
    )


def test_a_setting_without_a_recipe_is_what_it_was():
    """Ids and random numbers of the paper's procedure, taken before there were recipes."""
    mige = Setting.of("mige", "conditional", 0.1, estimator="ssge")
    assert "recipe" not in mige.to_json()
    assert Trial(BASELINE, 0, 4, 0, 2).id("x") == "bf4ecde0a267c7921ceab5a972ccade1"
    assert Trial(mige, 1, 5, 2, 30).id("x") == "ac75a3265d184146a085ced86e6a667b"
    assert Trial(BASELINE, 1, 4, 2, 2).random_state("x") == 1654199486


def test_settings_and_trials_with_recipes_come_back_from_json():
    setting = Setting("mmd", "conditional", 1.0, recipe=Recipe.of(F1=16, learning_rate=1e-3))
    trial = Trial(setting, 1, 4, 2, 30, grouped=True)
    assert Trial.from_json(trial.to_json()) == trial
    assert trial.id("x") != replace(trial, grouped=False).id("x")
    assert setting.baseline == Setting(None, "conditional", recipe=setting.recipe)
    assert str(setting) == "mmd conditional 1 (F1=16 learning_rate=0.001)"


def test_a_recipe_is_laid_over_the_options_of_a_run():
    options = {"normalise": "channel", "encoder_options": {"depth": 2}, "learning_rate": 3e-3}
    chosen = Setting(None, recipe=Recipe.of(F1=16, normalise="train")).classifier_options(options)
    assert chosen == {
        "normalise": "train",
        "encoder_options": {"depth": 2, "F1": 16},
        "learning_rate": 3e-3,
        "measure": None,
        "mode": "marginal",
    }


def test_neighbours_differ_in_one_dimension():
    recipes = space()
    for dimension in recipes.dimensions:
        changed = list(recipes.neighbours(recipes.default, dimension.name))
        assert len(changed) == len(dimension.values) - 1
        names = {name for value in dimension.values for name in value}
        for recipe in changed:
            different = set(recipe.options) ^ set(recipes.default.options)
            assert {name for name, _ in different} <= names


@pytest.mark.parametrize("signal", ["eeg", "emg", None])
def test_every_recipe_can_be_trained(signal):
    """Each value of each dimension makes options that the classifier accepts."""
    recipes = space(signal)
    for dimension in recipes.dimensions:
        for recipe in (recipes.default, *recipes.neighbours(recipes.default, dimension.name)):
            options = recipe.applied(CensoredClassifier().get_params(deep=False))
            CensoredClassifier(**options).options.check()


def test_what_suits_the_data():
    def values(recipes, name, option):
        return [value[option] for value in recipes.dimension(name).values]

    assert values(space("eeg"), "normalisation", "normalise") == ["channel", "trial"]
    assert values(space(), "normalisation", "normalise") == ["channel", "trial", "train"]
    emg = space(channels=["EMG1", "EMG2", "EMG3"])
    assert emg.to_json() == space("emg").to_json()
    assert values(emg, "normalisation", "normalise")[0] == "train"
    assert max(values(emg, "kernel", "kernel_seconds")) < 0.5


def test_what_somebody_has_set_is_not_searched():
    names = {d.name for d in space().dimensions}
    assert {d.name for d in space(fixed=["normalise"]).dimensions} == names - {"normalisation"}
    assert {d.name for d in space(max_epochs=3).dimensions} == names - {"steps", "fewer steps"}
    encoder = space(encoder_options={"kernel_length": 9, "F1": 3})
    assert {d.name for d in encoder.dimensions} == names - {"filters", "kernel", "encoder"}
    assert {d.name for d in space(fixed=["encoder"]).dimensions} == names - {"encoder"}


@pytest.mark.parametrize("signal", ["eeg", "emg"])
def test_a_recipe_of_another_encoder_has_none_of_eegnets_options(signal):
    recipes = space(signal)
    others = list(recipes.neighbours(recipes.default, "encoder"))
    assert len(others) == (2 if signal == "eeg" else 1)
    for recipe in others:
        options = recipe.applied({"encoder": "eegnet", "encoder_options": None})
        assert options["encoder"] == "covariance"
        assert set(options["encoder_options"]) == {"bands", "drop_prob"}
        assert options["normalise"] == "trial"
        assert "kernel" not in str(recipe)
        assert "F1" not in str(recipe)
        assert "augment" not in str(recipe)
        for dimension in ("kernel", "filters", "augmentation"):
            assert not list(recipes.neighbours(recipe, dimension))
        assert len(list(recipes.neighbours(recipe, "dropout"))) == 1
    kept = space(signal, fixed=["normalise"])
    for recipe in kept.neighbours(kept.default, "encoder"):
        assert "normalise" not in dict(recipe.options)
    first = recipes.default.applied({"encoder": "eegnet", "encoder_options": None})
    assert first["encoder"] == "eegnet"
    assert "bands" not in first["encoder_options"]


def test_another_encoder_is_no_cheaper_one():
    assert all("encoder" not in options for options, _ in space().cheaper())


def test_other_encoders_have_none_of_eegnets_options():
    found = space(encoder=lambda channels, times: None)
    assert not {"kernel", "filters", "dropout"} & {d.name for d in found.dimensions}


@pytest.mark.parametrize(
    "dimensions",
    [
        [Dimension("a", (), 0.1)],
        [Dimension("a", ({"F1": 1},), 0.1), Dimension("a", ({"F1": 2},), 0.1)],
    ],
)
def test_a_space_that_makes_no_sense_is_refused(dimensions):
    with pytest.raises(SettingError, match="different names and at least one value"):
        RecipeSpace(dimensions)


def test_cost_is_that_of_the_values():
    recipes = RecipeSpace(
        [
            Dimension("filters", ({"F1": 8}, {"F1": 16}), 0.1, (1.0, 1.7)),
            Dimension("steps", ({"n_steps": 10}, {"n_steps": 20}), 0.1, (1.0, 2.0)),
        ]
    )
    assert recipes.cost(recipes.default) == 1
    assert recipes.cost(Recipe.of(F1=16, n_steps=20)) == pytest.approx(3.4)
