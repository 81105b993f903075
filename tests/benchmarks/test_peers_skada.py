"""skada's methods are used as they work: the adversary answers, a stand-in's labels do not."""

import os

import numpy as np
import pytest
import torch

import autotransfer as at
from benchmarks.peers.known import Known

if not os.environ.get("AUTOTRANSFER_NEED_PEERS"):
    pytest.importorskip("skada.deep")

from skada.deep.modules import DomainClassifier

from benchmarks.peers import skada_deep

OPTIONS = {"max_epochs": 12, "learning_rate": 0.01, "encoder_options": {"kernel_length": 16}}


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr(skada_deep, "BATCH", 16)


def known(data, **options):
    return Known("emg", data, [0], {**OPTIONS, **options}, seed=0)


@pytest.fixture(scope="module")
def data():
    return at.make_subjects(
        n_subjects=5, n_trials=24, n_classes=3, subject_shift=0.5, noise=2.0, random_state=0
    )


def test_the_domain_classifier_of_skada_is_blind_and_ours_is_not():
    z = torch.randn(8, 5, requires_grad=True)
    assert (DomainClassifier(5)(z) == 1).all()  # if this fails, skada's own can be used
    answers = skada_deep.domain_classifier(5)(z)
    assert float(answers.detach().std()) > 0
    torch.nn.functional.binary_cross_entropy(answers, torch.ones(8)).backward()
    assert float(z.grad.abs().sum()) > 0


@pytest.mark.parametrize("method", ["DANN", "CDAN", "DeepCoral"])
def test_the_weight_of_the_domain_loss_matters(method, data):
    new = [data.select(subjects=[1]).trials[:]]
    some = data.select(subjects=[0, 2, 3, 4])
    X = data.trials[:]
    light, heavy = (
        skada_deep.fit(known(some), new, method=method, reg=reg)(X) for reg in (0.0, 1e4)
    )
    assert (light != heavy).any()


def test_labels_of_the_stand_in_are_not_used(data):
    stand_in = np.random.default_rng(0).choice(np.array([1, 2, 3, 4]))
    y = data.y.copy()
    y[data.subject == stand_in] = 0
    other = at.SubjectDataset(data.trials[:], y, data.subject, sfreq=data.sfreq)
    X = data.trials[:]
    one, two = (skada_deep.fit(known(d), None, method="DANN", reg=0.1)(X) for d in (data, other))
    assert (one == two).all()
    assert len(np.unique(one)) > 1  # or it says nothing


BY_HAND = {
    "sqrt": lambda t: 1 / np.sqrt(t),
    "cosine": lambda t: (1 + np.cos(np.pi * (t - 0.5) / 200)) / 2,
}


@pytest.mark.parametrize("schedule", BY_HAND)
def test_training_stops_by_patience_and_keeps_the_best_weights(data, monkeypatch, schedule):
    rates, losses, made = [], [], []
    end = skada_deep.Stopping.on_epoch_end

    def watch(self, net, **more):
        rates.append(net.optimizer_.param_groups[0]["lr"])
        module = net.module_.base_module_
        scores = skada_deep.logits(module, self.X)
        losses.append(float(torch.nn.functional.cross_entropy(scores, self.y, self.weights)))
        made.append(self)
        end(self, net, **more)

    monkeypatch.setattr(skada_deep.Stopping, "on_epoch_end", watch)
    few = known(data, max_epochs=200, patience=3, schedule=schedule)
    skada_deep.fit(few, None, method="DeepCoral", reg=1.0)
    best = int(np.argmin(losses))
    assert len(losses) == best + 1 + 3 < 200
    assert made[0].best_epoch == best + 1
    np.testing.assert_allclose(rates, 0.01 * BY_HAND[schedule](np.arange(1, len(rates) + 1)))
