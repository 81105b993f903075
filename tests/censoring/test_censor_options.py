"""Options that cannot be: a `SettingError` that says which, and what could be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from laws import batch, pull
from torch import nn

from autotransfer.censoring import MEASURES, MODES, Measure, make_censor, options_of
from autotransfer.censoring.registry import default_strength
from autotransfer.encoder.split import split_latent
from autotransfer.errors import LabelError, SettingError

SIZES = {"n_latent": 4, "n_subjects": 3, "n_classes": 2}

# Measure, options, and what the message must say, "; " between the pieces.
WRONG = [
    ("adversary", {"candidates": "some"}, "candidates='some'; auto; all; batch"),
    ("adversary", {"n_critic": 0}, "n_critic; at least 1; 0"),
    ("adversary", {"n_critic": 2.5}, "n_critic; whole number; 2.5"),
    ("adversary", {"n_critic": True}, "n_critic; True"),
    ("adversary", {"hidden": 0}, "hidden; at least 1"),
    ("adversary", {"hidden": math.inf}, "hidden; inf"),
    ("adversary", {"critic_speed": 0}, "critic_speed; 0"),
    ("adversary", {"critic_speed": math.inf}, "critic_speed; inf"),
    ("adversary", {"cap": 1}, "cap must be True or False; 1"),
    ("adversary", {"length_scale": 1.0}, "'adversary'; does not know; length_scale; candidates"),
    ("mige", {"estimator": "tikonov"}, "'tikonov'; tikhonov; ssge"),
    ("mige", {"estimator": ["nu"]}, "['nu']; tikhonov"),
    ("mige", {"estimator": "nu_curlfree", "length_scale": "tsne"}, "nu_curlfree; tsne; median"),
    ("mige", {"gamma": 0}, "gamma; 0"),
    ("mige", {"gamma": math.nan}, "gamma; nan"),
    ("mige", {"gamma": math.inf}, "gamma; inf"),
    ("mige", {"gamma": "small"}, "gamma; 'small'"),
    ("mige", {"gamma": 0.1, "estimator": "ssge"}, "'ssge' does not use gamma; ratio"),
    ("mige", {"gamma": 0.1, "estimator": "mige"}, "'mige' does not use gamma; ratio"),
    ("mige", {"ratio": 0.9}, "'tikhonov' does not use ratio; gamma"),
    ("mige", {"ratio": 1.1, "estimator": "ssge"}, "ratio; to 1; 1.1"),
    ("mige", {"matched": "no"}, "matched must be True or False; 'no'"),
    ("mige", {"calibrate": None}, "calibrate must be True or False; None"),
    ("mige", {"n_min": 1}, "n_min; at least 2; 1"),
    ("mige", {"n_min": 4.5}, "n_min; whole number; 4.5"),
    ("mige", {"n_perm": 0}, "n_perm; at least 1"),
    ("mige", {"weights": "prior"}, "weights='prior'; count; uniform"),
    ("mige", {"length_scale": "mean"}, "'mean'; median; tsne"),
    ("mige", {"perplexity": 9}, "'mige'; perplexity; estimator"),
    ("mmd", {"length_scale": 0}, "length scale 0; median; positive"),
    ("mmd", {"length_scale": -1.0}, "-1.0; positive"),
    ("mmd", {"length_scale": math.inf}, "inf; positive"),
    ("mmd", {"length_scale": None}, "None; median"),
    ("mmd", {"length_scale": True}, "True; median"),
    ("mmd", {"detach_length_scale": 0}, "detach_length_scale must be True or False; 0"),
    ("mmd", {"literal": "yes"}, "literal must be True or False; 'yes'"),
    ("mmd", {"length_scal": 1.0}, "'mmd'; length_scal; length_scale"),
    ("mmd", {"n_latent": 3}, "'mmd'; n_latent; literal"),
    ("pairmmd", {"pairs": "some"}, "pairs='some'; all; bernoulli; clique"),
    ("pairmmd", {"b": 1.1}, "b must; from 0 to 1; 1.1"),
    ("pairmmd", {"b": None}, "b must; None"),
    ("pairmmd", {"d": 1}, "d must; at least 2; 1"),
    ("pairmmd", {"d": 2.5}, "d must; whole number; 2.5"),
    ("pairmmd", {"detach_length_scale": "no"}, "detach_length_scale; 'no'"),
    ("began", {"standardise": 1.0}, "standardise must be True or False; 1.0"),
    ("began", {"variant": "mine"}, "variant='mine'; rest; abs; literal"),
    ("began", {"form": "quotient"}, "form='quotient'; balanced; ratio; difference; paper"),
    ("began", {"balance": -1}, "balance; at least 0; -1"),
    ("began", {"k": 2}, "k must; from 0 to 1; 2"),
    ("began", {"gamma": -1}, "gamma; at least 0; -1"),
    ("began", {"beta": math.nan}, "beta; nan"),
    ("began", {"others": 0}, "others; at least 1; 0"),
    ("began", {"others": "some"}, "others; 'some'"),
    ("mdm", {}, "measure 'mdm'; Did you mean 'mmd'; adversary; began"),
    ("Adversry", {}, "Did you mean 'adversary'"),
    ("PAIRMMD", {}, "Did you mean 'pairmmd'"),
    ("entropy", {}, "measure 'entropy'; Choose one of; mige"),
    (["mmd"], {}, "measure ['mmd']; Choose one of"),
    (nn.Linear, {}, "Linear; Choose one of"),
]


def pieces_missing(error: pytest.ExceptionInfo, words: str) -> list[str]:
    return [piece for piece in words.split("; ") if piece not in str(error.value)]


@pytest.mark.parametrize(("measure", "options", "words"), WRONG, ids=[str(r[:2]) for r in WRONG])
def test_a_wrong_option_is_named(measure, options, words):
    with pytest.raises(SettingError) as caught:
        make_censor(measure, **SIZES, options=options)
    assert not pieces_missing(caught, words), str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("margnal", "mode 'margnal'; Did you mean 'marginal'"),
        ("Conditional", "Did you mean 'conditional'"),
        ("joint", "mode 'joint'; marginal, conditional, complementary"),
        (None, "mode None; marginal"),
        (["marginal"], "mode ['marginal']; Choose one of"),
    ],
)
@pytest.mark.parametrize(
    "ask", [lambda m: make_censor("mmd", m, **SIZES), lambda m: default_strength("mmd", m)]
)
def test_a_wrong_mode_is_named(mode, words, ask):
    with pytest.raises(SettingError) as caught:
        ask(mode)
    assert not pieces_missing(caught, words), str(caught.value)


@pytest.mark.parametrize("measure", MEASURES)
def test_options_are_those_of_the_signature_and_defaults_are_possible(measure):
    defaults = options_of(measure)
    assert defaults
    for mode in MODES:
        assert default_strength(measure, mode) > 0
        made = make_censor(measure, mode, **SIZES, options=defaults)
        same = make_censor(measure, mode, **SIZES)
        assert str(made) == str(same)


@pytest.mark.parametrize("measure", MEASURES)
def test_conditional_mode_does_not_go_on_without_labels(measure):
    censor = make_censor(measure, "conditional", **SIZES)
    with pytest.raises(LabelError, match="'conditional' needs the label of every row"):
        censor.cells([0, 0, 1, 1])


def test_numbers_of_numpy_are_numbers():
    made = make_censor("mige", **SIZES, options={"n_min": np.int64(5), "gamma": np.float32(0.5)})
    assert made.measure.smallest_cell == 5
    assert type(made.measure.gamma) is float
    made = make_censor("mige", **SIZES, options={"matched": np.bool_(False)})
    assert made.measure.matched is False


def test_the_ratio_of_ssge_can_be_set():
    data, found = batch(n_latent=4), []
    for options in ({}, {"ratio": 0.95}, {"ratio": 0.5}):
        options = {"estimator": "ssge", "matched": False, **options}
        made = make_censor("mige", n_latent=4, n_subjects=5, n_classes=2, options=options)
        found.append(pull(made, data)[1])
    assert (found[0] == found[1]).all()
    assert (found[0] != found[2]).any()


def test_a_measure_of_one_s_own_needs_no_name():
    class Spread(Measure):
        """How far z is spread: nothing to do with subjects, but enough to be a measure."""

        def __init__(self, n_latent, n_subjects, n_given=0, *, factor=1.0):
            super().__init__(n_latent, n_subjects, n_given)
            self.factor = factor

        def censor(self, z, cells, draw):
            return self.factor * z.square().mean()

    data = batch(n_latent=4)
    assert options_of(Spread) == {"factor": 1.0}
    assert default_strength(Spread, "marginal") == 1.0
    made = make_censor(Spread, "complementary", **SIZES, options={"factor": 2.0})
    value, _ = pull(made, data)
    z1, z2 = split_latent(data.z)
    assert value == 2 * z1.square().mean() - 2 * z2.square().mean()
    with pytest.raises(SettingError, match="factor"):
        make_censor(Spread, **SIZES, options={"speed": 1})
