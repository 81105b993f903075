"""Which augmentations a search of recipes tries."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import autotransfer as at
from autotransfer.data.problem import Problem
from autotransfer.search.options import run_options_of

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


@pytest.mark.parametrize("encoder", ["eegnet", torch.nn.Flatten()])
@pytest.mark.parametrize("channels", [ARMBAND, None])
def test_channels_are_masked_unless_people_gain_by_something_else(channels, encoder):
    values, space = offered(channels, classifier=at.CensoredClassifier(encoder=encoder))
    assert values == ["mask", None, "mask+mix"]
    assert json.loads(json.dumps(space.to_json())) == space.to_json()
    default = space.default
    assert "augment=mask" in str(default)
    none, both = space.neighbours(default, "augmentation")
    assert space.cost(none) < space.cost(default) < space.cost(both)
    assert "augment" not in str(none)
    assert "augment=mask+mix" in str(both)


def test_another_encoder_costs_as_little_with_another_normalisation():
    space = offered(None)[1]
    covariance = next(
        r for r in space.neighbours(space.default, "encoder") if "bands" not in str(r)
    )
    other = covariance.with_options({"normalise": "train"})
    assert space.cost(covariance) < 0.25
    assert space.cost(other) == pytest.approx(space.cost(covariance))


@pytest.mark.parametrize(
    "options", [{"fixed": ["augment"]}, {"classifier": at.CensoredClassifier(augment="mix")}]
)
def test_what_a_user_says_is_not_searched(options):
    assert offered(ARMBAND, **options)[0] is None
