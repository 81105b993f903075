"""Censors at work in the training loop: resuming, the record, warnings, batches."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from torch import nn

import autotransfer as at
from autotransfer import errors as e
from autotransfer.censoring import MEASURES, MODES, Measure, make_censor
from autotransfer.training import loop
from autotransfer.training.penalty import Penalty, warn_after

DATA = at.make_leak(n_subjects=5, n_trials=40, random_state=1)
CASES = [(measure, mode) for measure in MEASURES for mode in MODES]


def encoder(n_channels, n_times):
    made = nn.Sequential(nn.Flatten(), nn.Linear(12, 16), nn.ELU(), nn.Linear(16, 6))
    made.n_latent = 6
    return made


def dropping(n_channels, n_times):
    made = encoder(n_channels, n_times)
    made.insert(2, nn.Dropout(0.5))
    return made


def fit(measure, mode="marginal", data=DATA, **options):
    given = {
        "encoder": encoder,
        "normalise": "none",
        "validation": [4],
        "max_epochs": 5,
        "subjects_per_batch": 4,
        "trials_per_subject": 10,
        "random_state": 0,
        "device": "cpu",
        "verbose": False,
    }
    clf = at.CensoredClassifier(measure, mode, **{**given, **options})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", e.TrainingWarning)
        return clf.fit(data.X, data.y, subject=data.subject)


def bits(clf):
    return [value.numpy().tobytes() for value in clf.network_.state_dict().values()]


def record(clf):
    return [{k: v for k, v in entry.items() if k != "seconds"} for entry in clf.history_]


def stopped_and_resumed(measure, mode, path, monkeypatch, **options):
    options |= {"checkpoint": path, "checkpoint_every": 1}

    def stop(self, epoch, *args):
        if epoch == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(loop.EpochProgress, "epoch", stop)
        with pytest.raises(KeyboardInterrupt):
            fit(measure, mode, **options)
    return fit(measure, mode, **options)


@pytest.mark.parametrize(("measure", "mode"), CASES)
def test_a_stopped_training_goes_on_to_the_same_bits(measure, mode, tmp_path, monkeypatch):
    """Critics, their optimisers and BEGAN's k are part of a checkpoint."""
    whole = fit(measure, mode)
    resumed = stopped_and_resumed(measure, mode, tmp_path / "run.ckpt", monkeypatch)
    assert bits(resumed) == bits(whole)
    assert record(resumed) == record(whole)


@pytest.mark.parametrize("measure", ["adversary", "began"])
def test_so_does_one_with_very_many_subjects(measure, tmp_path, monkeypatch):
    """Above 1,000 subjects the critics' tables have an optimiser of their own."""
    many = at.make_leak(n_subjects=1100, n_trials=4, random_state=1)
    options = {"data": many, "subjects_per_batch": 100, "trials_per_subject": 4, "max_epochs": 4}
    whole = fit(measure, **options)
    resumed = stopped_and_resumed(
        measure, "marginal", tmp_path / "run.ckpt", monkeypatch, **options
    )
    assert bits(resumed) == bits(whole)
    assert record(resumed) == record(whole)


@pytest.mark.parametrize(("measure", "mode"), CASES)
def test_the_record_says_whether_censoring_works(measure, mode):
    entry = fit(measure, mode).history_[-1]
    wanted = {"task_loss", "penalty", "latent_scale", "validation_loss"}
    if measure == "adversary":
        wanted |= {"critic_loss", "critic_accuracy", "critic_chance"}
    if measure == "began":
        wanted |= {"critic_loss", "critic_ratio", "k"}
    if mode == "complementary":
        wanted |= {"z1_scale", "z2_scale"}
        wanted |= {f"z2_{name}" for name in wanted if name in ("critic_accuracy", "k")}
    assert wanted <= entry.keys()
    assert all(np.isfinite(value) for value in entry.values())
    if "critic_chance" in entry:
        assert entry["critic_chance"] == pytest.approx(1 / 4)  # the validation subject is not coded


@pytest.mark.parametrize(("measure", "mode"), CASES)
def test_strength_zero_is_the_baseline(measure, mode):
    """The penalty is all that a measure adds: first weights, batches and dropout are the same."""
    nothing = bits(fit(measure, mode, strength=0.0, encoder=dropping))
    assert nothing == bits(fit(None, mode, encoder=dropping))
    assert nothing != bits(fit(measure, mode, encoder=dropping))


def test_the_baseline_of_conditional_censors_has_their_batches():
    assert bits(fit(None, "marginal")) == bits(fit(None, "complementary"))
    assert bits(fit(None, "marginal")) != bits(fit(None, "conditional"))


def test_warm_up_epochs_have_no_penalty():
    clf = fit("adversary", warmup_epochs=2)
    paid = [entry["penalty"] != 0 for entry in clf.history_]
    assert paid[:2] == [False, False]
    assert all(paid[2:])
    assert all(entry["critic_loss"] > 0 for entry in clf.history_)


def test_a_saved_model_predicts_the_same(tmp_path):
    clf = fit("mige", "complementary", strength=0.05, measure_options={"estimator": "ssge"})
    with pytest.raises(e.ModelFolderError, match="encoder"):
        at.CensoredClassifier.load(clf.save(tmp_path / "model"))
    loaded = at.CensoredClassifier.load(tmp_path / "model", encoder=encoder)
    assert np.array_equal(loaded.predict_proba(DATA.X), clf.predict_proba(DATA.X))
    assert (loaded.measure, loaded.mode, loaded.strength) == ("mige", "complementary", 0.05)
    assert loaded.measure_options == {"estimator": "ssge"}


def test_batches_are_made_for_the_mode():
    """Conditional kernel measures need several trials of every class of a subject."""
    made = []

    class Noted(Measure):
        good_cell = 7

        def censor(self, z, cells, draw):
            made.append(cells)
            return 0 * z.sum()

    fit(Noted, "conditional", trials_per_subject=None, max_epochs=1)
    assert np.median(made[0].count) >= 5  # 14 trials of 2 classes, in chunks of 40 / 3
    made.clear()
    fit(Noted, "marginal", trials_per_subject=None, max_epochs=1)
    assert np.median(made[0].count) == 8


def test_cells_too_small_for_the_mode_are_named():
    with pytest.warns(e.SmallCellWarning, match=r"'mige'.*'conditional'.*needs 4 trials.*cell"):
        fit("mige", "conditional", trials_per_subject=4)
    with pytest.warns(e.SmallCellWarning, match="needs 4 trials of a subject in a batch"):
        fit("mige", trials_per_subject=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", e.SmallCellWarning)
        fit("mige", "conditional")


class Shrink(Measure):
    """Pays for the size of the latent; a negative strength of its own makes it grow."""

    sign = 1.0

    def censor(self, z, cells, draw):
        return self.sign * z.square().mean()


class Grow(Shrink):
    sign = -1.0


@pytest.mark.parametrize(
    ("measure", "warning", "words"),
    [
        (Shrink, e.LatentCollapseWarning, "latent has collapsed.*Lower the strength"),
        (Grow, e.LatentExplosionWarning, "latent has exploded.*Lower the strength"),
    ],
)
def test_a_latent_that_collapses_or_explodes_is_named(measure, warning, words):
    clf = at.CensoredClassifier(
        measure,
        strength=1e3,
        encoder=encoder,
        normalise="none",
        validation=None,
        max_epochs=150,
        learning_rate=0.02,
        random_state=0,
        verbose=False,
    )
    with pytest.warns(warning, match=words):
        clf.fit(DATA.X, DATA.y, subject=DATA.subject)


def entries(**values):
    return [{"latent_scale": 1.0, **values}] * 3


@pytest.mark.parametrize(
    ("history", "warning"),
    [
        (entries(), None),
        (entries(critic_accuracy=0.3, critic_chance=0.2), None),
        (entries(critic_accuracy=0.201, critic_chance=0.2), e.CriticDeadWarning),
        (entries(critic_accuracy=0.97, critic_chance=0.2), e.CriticWinsWarning),
        (entries(critic_ratio=1.001), e.CriticDeadWarning),
        (entries(critic_ratio=1.1), None),
        ([{"latent_scale": 1.0}, *entries(critic_ratio=1.1)], None),  # an epoch without a reading
        (entries(critic_ratio=3.0), e.CriticWinsWarning),
        (entries(z1_scale=1e-4), e.LatentCollapseWarning),
        (entries(z2_scale=1e4), e.LatentExplosionWarning),
    ],
)
def test_what_the_record_is_warned_about(history, warning):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_after(history, best_epoch=2)
    assert [w.category for w in caught] == ([warning] if warning else [])


def test_a_critic_that_cannot_learn_is_dead():
    clf = at.CensoredClassifier(
        "adversary",
        measure_options={"critic_speed": 1e-6, "n_critic": 1},
        encoder=encoder,
        normalise="none",
        validation=None,
        max_epochs=3,
        random_state=0,
        verbose=False,
    )
    noise = np.random.default_rng(0).normal(size=(400, 12, 1)).astype(np.float32)
    with pytest.warns(e.CriticDeadWarning, match="leakage probe"):
        clf.fit(noise, np.arange(400) % 2, subject=np.arange(400) // 40)


def test_a_trial_of_somebody_who_does_not_train_is_refused():
    censor = make_censor("mmd", n_latent=2, n_subjects=2, n_classes=2)
    penalty = Penalty(censor, 1.0, 0, np.array([0, 0, 1, 1, -1]), np.array([0, 1, 0, 1, 0]))
    penalty.start(1, 1e-3, 0)
    penalty(torch.randn(4, 2), np.arange(4))
    with pytest.raises(e.SubjectLeakageError, match="does not train"):
        penalty(torch.randn(2, 2), np.array([0, 4]))


@pytest.mark.parametrize(("measure", "mode"), CASES)
def test_latents_and_cells_of_different_batches_are_refused(measure, mode):
    censor = make_censor(measure, mode, n_latent=4, n_subjects=3, n_classes=2)
    cells = censor.cells(np.arange(12) % 3, np.arange(12) % 2)
    with pytest.raises(e.ShapeError, match="20 rows of latents and 12 subject ids"):
        censor(torch.randn(20, 4), cells)


def test_a_latent_of_one_column_cannot_be_split():
    with pytest.raises(e.SettingError, match="complementary"):
        make_censor("mmd", "complementary", n_latent=1, n_subjects=2, n_classes=2)
