"""A censor that looks at the subject does nothing when the subject labels are shuffled.

Small and with one seed; `benchmarks/synthetic/censors_on_synthetic.py` does this for every default,
over five seeds and with all probes.
"""

from __future__ import annotations

import numpy as np
import pytest
from torch import nn

import autotransfer as at

pytestmark = pytest.mark.slow

DATA = at.make_leak(n_trials=1000, random_state=0)
OTHER = at.make_leak(n_trials=200, random_state=0, draw=1)


def encoder(n_channels, n_times):
    made = nn.Sequential(nn.Flatten(), nn.Linear(12, 64), nn.ELU(), nn.Linear(64, 8))
    made.n_latent = 8
    return made


def probe(measure, subject, **options):
    """Accuracy of a linear probe of the subject, and of the task."""
    clf = at.CensoredClassifier(
        measure,
        encoder=encoder,
        normalise="none",
        validation=None,
        max_epochs=12,
        subjects_per_batch=6,
        trials_per_subject=40,
        random_state=0,
        device="cpu",
        verbose=False,
        **options,
    ).fit(DATA.X, DATA.y, subject=subject)
    found = at.measure_leakage(clf.transform(OTHER.X), OTHER.subject, probes=("linear",))
    return found.best.accuracy.value, clf.score(OTHER.X, OTHER.y)


LONG = [pytest.param(name, marks=pytest.mark.nightly) for name in ("adversary", "began")]


@pytest.fixture(scope="module")
def uncensored():
    return probe(None, DATA.subject)


@pytest.mark.filterwarnings("ignore::autotransfer.errors.TrainingWarning")
@pytest.mark.parametrize("measure", ["mige", "mmd", "pairmmd", *LONG])
def test_true_labels_censor_and_shuffled_ones_do_not(measure, uncensored):
    leak, task = uncensored
    censored, kept = probe(measure, DATA.subject)
    shuffled = np.random.default_rng(0).permutation(DATA.subject)
    placebo, _ = probe(measure, shuffled)
    assert censored < leak - 0.3
    assert kept > task - 0.03
    assert abs(placebo - leak) < 0.08


@pytest.mark.filterwarnings("ignore::autotransfer.errors.TrainingWarning")
def test_the_placebo_catches_a_penalty_that_only_compresses(uncensored):
    """The textbook form of MIGE: with shuffled labels it lowers the probe all the same."""
    shuffled = np.random.default_rng(0).permutation(DATA.subject)
    placebo, _ = probe("mige", shuffled, measure_options={"matched": False})
    assert placebo < uncensored[0] - 0.08
