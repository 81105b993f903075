"""Which augmentations a search of recipes tries."""

from __future__ import annotations

import json

import numpy as np
import pytest

import autotransfer as at
from autotransfer.data.problem import Problem
from autotransfer.search.options import run_options_of
from autotransfer.training import AUGMENTATIONS

ARMBAND = [f"EMG{number}" for number in range(1, 9)]


def offered(channels, **options):
    """Values of the dimension that a run would have, and the whole space; None without it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 8, 100)).astype(np.float32)
    y, subject = np.tile([0, 1], 20), np.repeat(np.arange(4), 10)
    data = at.SubjectDataset(X, y, subject, sfreq=100.0, channels=channels)
    auto = at.AutoTransfer(**options)
    space = run_options_of(auto, Problem.of(data, None, None)).recipes
    found = [d for d in space.dimensions if d.name == "augmentation"]
    return ([value["augment"] for value in found[0].values] if found else None), space


@pytest.mark.parametrize(
    ("channels", "ring"),
    [
        (ARMBAND, True),
        ([f"emg {number}" for number in range(1, 9)], True),
        (ARMBAND[::-1], False),  # the order is that of the ring
        ([*ARMBAND[:7], "EMG10"], False),
        (["Fz", "Cz", "Pz", "Oz", "C3", "C4", "P3", "P4"], False),
        (None, False),
    ],
)
def test_electrodes_are_turned_where_names_tell_a_ring(channels, ring):
    values, space = offered(channels)
    assert values[0] is None
    assert set(values[1:]) == {name for name in AUGMENTATIONS if ring or name != "ring"}
    assert json.loads(json.dumps(space.to_json())) == space.to_json()
    default = space.default
    assert "augment" not in str(default)
    for recipe in space.neighbours(default, "augmentation"):
        assert space.cost(recipe) > space.cost(default)
        assert "augment=" in str(recipe)


@pytest.mark.parametrize(
    "options", [{"fixed": ["augment"]}, {"classifier": at.CensoredClassifier(augment="mix")}]
)
def test_what_a_user_says_is_not_searched(options):
    assert offered(ARMBAND, **options)[0] is None
