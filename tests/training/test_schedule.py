"""How the learning rate falls, judged by torch, by hand, and from what the optimiser is given."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from autotransfer import CensoredClassifier, make_subjects
from autotransfer.errors import CheckpointError
from autotransfer.training import SCHEDULES
from autotransfer.training.schedule import cosine

DATA = make_subjects(n_subjects=2, n_trials=4, n_channels=2, n_times=16)
BY_HAND = {
    "sqrt": {1: 1e-3, 2: 7.071067811865e-4, 4: 5e-4, 100: 1e-4},
    "cosine": {1: 9.999383162e-4, 50: 5.078536586559e-4, 51: 4.921463413441e-4, 100: 6.16837525e-8},
}


class Flat(nn.Linear):
    n_latent = 3

    def forward(self, x):
        return super().forward(x.flatten(1))


def fit(**options):
    given = {"max_epochs": 100, "learning_rate": 1e-3, "validation": None, "random_state": 0}
    clf = CensoredClassifier(
        encoder=lambda *shape: Flat(32, 3), device="cpu", verbose=False, **{**given, **options}
    )
    return clf.fit(DATA.X, DATA.y, subject=DATA.subject)


@pytest.mark.parametrize("schedule", SCHEDULES)
@given(epochs=st.integers(1, 300))
def test_laws(schedule, epochs):
    """The rate is positive, at most the one asked for, and never rises."""
    rates = np.array([SCHEDULES[schedule].factor(t, epochs) for t in range(1, epochs + 1)])
    assert rates.min() > 0
    assert rates.max() <= 1
    assert np.diff(rates).max(initial=0) <= 0
    shorter = [SCHEDULES[schedule].factor(t, 300) for t in range(1, epochs + 1)]
    assert np.allclose(rates, shorter) == (not SCHEDULES[schedule].knows_end or epochs == 300)


@pytest.mark.parametrize("epochs", [1, 7, 80])
def test_cosine_is_that_of_torch_in_the_middle_of_each_epoch(epochs):
    optimiser = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 2 * epochs)
    rates = []
    for _ in range(2 * epochs):
        rates.append(theirs.get_last_lr()[0])
        optimiser.step()
        theirs.step()
    ours = [cosine(t, epochs) for t in range(1, epochs + 1)]
    assert ours == pytest.approx(rates[1::2], abs=1e-12)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_what_is_told_is_what_is_used(schedule):
    seen = []
    step = torch.optim.AdamW.step

    def spy(self, *args, **kwargs):
        seen.append([group["lr"] for group in self.param_groups])
        return step(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", spy)
        clf = fit(schedule=schedule)
    told = {entry["epoch"]: entry["learning_rate"] for entry in clf.history_}
    for epoch, rate in BY_HAND[schedule].items():
        assert told[epoch] == pytest.approx(rate, rel=1e-9)
        # One batch an epoch here, so step t is that of epoch t.
        assert seen[epoch - 1] == [told[epoch]]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_training_goes_on_only_to_the_end_that_it_was_made_for(tmp_path, schedule):
    options = {"schedule": schedule, "checkpoint": tmp_path / "run.ckpt"}
    first = fit(max_epochs=3, **options)
    again = fit(max_epochs=3, **options)
    assert torch.equal(first.network_.encoder.weight, again.network_.encoder.weight)
    if SCHEDULES[schedule].knows_end:
        with pytest.raises(CheckpointError, match="other data or settings"):
            fit(max_epochs=5, **options)
    else:
        longer, whole = fit(max_epochs=5, **options), fit(max_epochs=5, schedule=schedule)
        assert torch.equal(longer.network_.encoder.weight, whole.network_.encoder.weight)
