"""No competitor learns from the new person's labels, nor from signals it does not say it uses.

A network that has learnt little gives one answer whatever happens, and would pass any such test. So
it is trained until it answers, and a leak is made on purpose: it must be noticed in every method.
"""

import json
import os

import numpy as np
import pytest

import autotransfer as at
from benchmarks.peers import known as known_module
from benchmarks.peers import peer_work
from benchmarks.peers.methods import METHODS, NOTHING, UNLABELLED

OPTIONS = {
    "max_epochs": 15,
    "learning_rate": 0.01,
    "normalise": "train",
    "encoder_options": {"kernel_length": 16},
}
NEEDED = {"riemann": "pyriemann", "skada": "skada.deep", "braindecode": "braindecode"}


def package(name):
    return next((found for start, found in NEEDED.items() if name.startswith(start)), None)


def need(name):
    """Skip a method whose package is not installed, unless it must be."""
    # braindecode has an environment of its own: see tests/exchange/run.sh.
    who = "BRAINDECODE" if package(name) == "braindecode" else "PEERS"
    if package(name) and not os.environ.get(f"AUTOTRANSFER_NEED_{who}"):
        pytest.importorskip(package(name))


def all_methods(wanted=lambda method: True):
    return pytest.mark.parametrize("name", [n for n, m in METHODS.items() if wanted(m)])


# Noisy, so that many trials lie where a slightly different model answers differently.
DATA = at.make_subjects(
    n_subjects=5, n_trials=24, n_classes=3, subject_shift=0.5, noise=4.0, random_state=0
)
FOLD = list(at.SubjectFolds().folds(DATA.subject))[1]


def true():
    return DATA


def scrambled():
    """The data with other labels for the test subject."""
    y = DATA.y.copy()
    y[FOLD.test] = (y[FOLD.test] + 1) % 3
    return at.SubjectDataset(DATA.trials[:], y, DATA.subject, sfreq=DATA.sfreq)


def replaced():
    """The data with other signals for the test subject."""
    X = DATA.trials[:].copy()
    X[FOLD.test] = 3 * np.random.default_rng(1).normal(size=X[FOLD.test].shape)
    return at.SubjectDataset(X, DATA.y, DATA.subject, sfreq=DATA.sfreq)


def fitted(name, data):
    """Fit a method at its default."""
    need(name)
    setting = dict(METHODS[name].settings[0])
    if package(name) == "braindecode":
        setting["max_epochs"] = 60
    # Each kind of covariances once: the name of the data set says which.
    kind = {"riemann": "erp", "riemann-recentred": "ssvep"}.get(name, "emg")
    job = peer_work.Job(kind, name, json.dumps(setting), 1, 0, json.dumps(OPTIONS))
    module = {"skada.deep": "skada_deep", "braindecode": "braindecode_net"}.get(package(name))
    with pytest.MonkeyPatch.context() as patch:
        if module:  # several steps an epoch with so few trials
            patch.setattr(f"benchmarks.peers.{module}.BATCH", 16)
        return peer_work.fit(job, data, FOLD)


def answers(model):
    """Predictions for all true trials, person by person."""
    people = [DATA.select(subjects=[who]).trials[:] for who in DATA.subject_ids]
    return np.concatenate([model(X) for X in people])


@pytest.fixture(scope="module")
def honest():
    """Models of the true data, fitted when first asked for."""
    found = {}

    def get(name):
        if name not in found:
            found[name] = fitted(name, true())
        return found[name]

    return get


@pytest.fixture
def leak(monkeypatch):
    """Make `Known` hold the test subjects' trials, too."""

    def leaky(cls, name, data, fold, options, seed):
        return cls(name, data, fold.subjects("validation"), options, seed)

    monkeypatch.setattr(known_module.Known, "of", classmethod(leaky))


@all_methods()
def test_scrambled_test_labels_change_no_prediction(name, honest):
    assert (answers(fitted(name, scrambled())) == answers(honest(name))).all()


@all_methods(lambda method: not method.needs_new)
def test_signals_of_the_new_person_change_no_model_that_is_fitted_without_them(name, honest):
    assert (answers(fitted(name, replaced())) == answers(honest(name))).all()


@all_methods(lambda method: method.uses == NOTHING)
def test_what_uses_nothing_of_the_new_person_predicts_each_trial_alone(name, honest):
    X, model = next(peer_work.people(DATA, FOLD, "test")).trials[:], honest(name)
    assert (model(X) == np.concatenate([model(X[i : i + 1]) for i in range(len(X))])).all()


@pytest.mark.nightly
@all_methods()
def test_a_leak_of_labels_or_signals_would_be_noticed(name, leak):
    one = answers(fitted(name, true()))
    assert (answers(fitted(name, scrambled())) != one).any()
    if not METHODS[name].needs_new:  # the others may use signals, and no test above says not
        assert (answers(fitted(name, replaced())) != one).any()


def test_methods_that_need_the_new_person_are_marked():
    assert all(m.uses == UNLABELLED for m in METHODS.values() if m.needs_new)
