"""`leakage`, judged by closed forms: what the latents tell is known, so what is found can be."""

import json

import numpy as np
import pytest
import torch
from scipy.special import logsumexp

from autotransfer.errors import DataWarning
from autotransfer.leakage import measure_leakage
from autotransfer.leakage.probe import FittedProbe
from autotransfer.leakage.probes import PROBES


def design(n_subjects, n_recordings, n_trials):
    """Subject and recording of trials, all in order."""
    subject = np.repeat(np.arange(n_subjects), n_recordings * n_trials)
    recording = np.tile(np.repeat(np.arange(n_recordings), n_trials), n_subjects)
    return subject, recording


def noise(seed, n_latent, subject, recording, shift=0.0):
    """Latents that tell nothing about the subject, but (with shift) about the recording."""
    rng = np.random.default_rng(seed)
    offsets = rng.normal(size=(subject.max() + 1, recording.max() + 1, n_latent))
    return rng.normal(size=(len(subject), n_latent)) + shift * offsets[subject, recording]


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_latents_that_tell_nothing(shift):
    subject, recording = design(3, 5, 12)
    covered, bounded = 0, 0
    for seed in range(40):
        z = noise(seed, 4, subject, recording, shift)
        found = measure_leakage(
            z, subject, recording=recording, probes=["linear"], random_state=seed
        ).best
        covered += found.accuracy.low <= 1 / 3 <= found.accuracy.high
        bounded += found.raw_bound.low <= 0
        assert found.raw_bound.value > -0.5  # calibrated: wrong, perhaps, but never sure of it
    assert covered >= 35
    assert bounded >= 38


@pytest.mark.parametrize("probe", ["gaussian", "mlp"])
def test_other_probes_find_nothing_in_nothing(probe):
    subject, recording = design(4, 5, 20)
    for seed in range(3):
        z = noise(seed, 5, subject, recording, 0.5)
        found = measure_leakage(
            z, subject, recording=recording, probes=[probe], random_state=seed
        ).best
        assert found.above_chance.low <= 0 <= found.above_chance.high
        assert found.raw_bound.low <= 0


def gaussian_truth(means):
    """Bayes accuracy and information of 2-D unit Gaussians, equally likely, on a fine grid."""
    axis = np.arange(-8, 8, 0.05)
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    log_p = -((grid[:, None] - means) ** 2).sum(2) / 2 - np.log(2 * np.pi)
    p, cell = np.exp(log_p), 0.05**2
    mixture = logsumexp(log_p, axis=1) - np.log(len(means))
    accuracy = p.max(1).sum() * cell / len(means)
    information = (p * (log_p - mixture[:, None])).sum() * cell / len(means)
    return accuracy, information


@pytest.mark.parametrize("counts", [(100, 100, 100), (30, 100, 250)])
def test_gaussian_subjects(counts):
    # However many trials a subject has, it counts the same: both rows have the same truth.
    means = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 2.0]])
    accuracy, information = gaussian_truth(means)
    rng = np.random.default_rng(0)
    subject = np.repeat(np.arange(3), [5 * n for n in counts])
    recording = np.concatenate([np.repeat(np.arange(5), n) for n in counts])
    z = means[subject] + rng.normal(size=(len(subject), 2))
    found = measure_leakage(z, subject, recording=recording, probes=["linear", "gaussian"])
    assert found.chance == pytest.approx(1 / 3)
    assert found.uncertainty == pytest.approx(np.log(3))
    for score in found.probes.values():
        assert score.accuracy.value == pytest.approx(accuracy, abs=0.03)
        assert np.mean(score.recall) == pytest.approx(score.accuracy.value)
        assert score.raw_bound.low < information
        assert score.raw_bound.value == pytest.approx(information, abs=0.05)


def test_subjects_that_differ_in_covariance_only():
    subject, recording = design(4, 5, 40)
    z = noise(0, 4, subject, recording)
    z *= np.array([[3, 1, 1, 1], [1, 3, 1, 1], [1, 1, 3, 1], [1, 1, 1, 3]])[subject]
    found = measure_leakage(z, subject, recording=recording)
    assert found.probes["linear"].above_chance.low <= 0
    for name in ("gaussian", "mlp"):
        assert found.probes[name].above_chance.low > 0.15
        assert found.probes[name].bound.low > 0.1
    assert "linear" not in found.chosen
    assert found.best.bound.low > 0.1


def test_a_recording_is_not_a_subject():
    subject, recording = design(4, 5, 20)
    z = noise(1, 6, subject, recording, shift=1.5)
    found = measure_leakage(z, subject, recording=recording, probes=["linear"])
    assert found.best.above_chance.low <= 0
    assert found.best.raw_bound.low <= 0
    # Trials in random order and no recordings: the probe meets every recording in training.
    order = np.random.default_rng(0).permutation(len(z))
    mixed = measure_leakage(z[order], subject[order], probes=["linear"])
    assert mixed.best.above_chance.low > 0.2
    assert mixed.best.bound.low > 0.2


def test_blocks_of_time_where_there_are_no_recordings():
    # Latents that wander are alike in neighbouring trials, which a random split would reward.
    rng = np.random.default_rng(0)
    subject = np.repeat(np.arange(4), 150)
    z = np.concatenate([np.cumsum(rng.normal(size=(150, 3)), 0) for _ in range(4)])
    order = rng.permutation(len(z))
    in_order = measure_leakage(z, subject, probes=["gaussian"])
    mixed = measure_leakage(z[order], subject[order], probes=["gaussian"])
    assert mixed.best.accuracy.value > in_order.best.accuracy.value + 0.1
    assert in_order.n_recordings == 20


def test_faith_in_a_name_gains_nothing(monkeypatch):
    def stubborn(train, inner, both, seed):
        """Say the same name in a whole fold, however many trials it has there."""
        favourite = np.bincount(both.subject).argmin()
        scores = np.eye(3)[favourite]
        return FittedProbe(lambda part: np.tile(scores, (len(part.latent), 1)), 1.0, 0.0)

    monkeypatch.setitem(PROBES, "stubborn", stubborn)
    counts = np.array([[20, 5, 5, 5, 5], [8, 8, 8, 8, 8], [8, 8, 8, 8, 8]])
    subject = np.repeat(np.arange(3), counts.sum(1))
    recording = np.concatenate([np.repeat(np.arange(5), own) for own in counts])
    z = noise(0, 2, subject, recording)
    found = measure_leakage(z, subject, recording=recording, probes=["stubborn"])
    assert found.best.accuracy.value == pytest.approx(1 / 3)
    assert found.best.raw_bound.value < 0


def confounded(seed=0):
    """Subjects with different shares of two labels, and latents that tell the label only."""
    subject, recording = design(4, 5, 40)
    rng = np.random.default_rng(seed)
    label = (rng.random(len(subject)) < np.array([0.1, 0.4, 0.6, 0.9])[subject]).astype(int)
    return 4.0 * label[:, None] + rng.normal(size=(len(subject), 3)), subject, recording, label


def test_a_label_that_gives_the_subject_away():
    z, subject, recording, label = confounded()
    options = {"recording": recording, "probes": ["linear", "gaussian"]}
    marginal = measure_leakage(z, subject, **options)
    assert marginal.best.above_chance.low > 0
    assert marginal.best.bound.low > 0.05
    beyond = measure_leakage(z, subject, label=label, **options)
    assert beyond.conditional
    assert beyond.chance > 0.3
    assert beyond.best.above_chance.low <= 0 <= beyond.best.above_chance.high
    for score in beyond.probes.values():
        assert score.raw_bound.low <= 0
        assert score.raw_bound.value == pytest.approx(0, abs=0.02)


def test_leakage_beyond_the_label():
    z, subject, recording, label = confounded()
    shifted = z + 1.5 * np.eye(4, 3)[subject]
    found = measure_leakage(shifted, subject, recording=recording, label=label, probes=["linear"])
    assert found.best.above_chance.low > 0.1
    assert found.best.bound.low > 0.2


def test_shifts_that_cancel_over_labels():
    # Up in one class and down in the other: no difference of means, but one within each class.
    subject, recording = design(4, 5, 40)
    label = np.arange(len(subject)) % 2
    z = noise(0, 3, subject, recording)
    z += 1.5 * np.eye(4, 3)[subject] * np.where(label, 1, -1)[:, None]
    found = measure_leakage(
        z, subject, recording=recording, label=label, probes=["linear", "gaussian"]
    )
    assert found.probes["linear"].bound.low < 0.05
    assert found.best.bound.low > 0.2


def test_the_order_of_rows_does_not_matter_where_recordings_are_given():
    subject, recording = design(3, 4, 30)
    z = noise(0, 4, subject, recording) + 0.7 * np.eye(3, 4)[subject]
    label = np.arange(len(z)) % 2
    order = np.random.default_rng(1).permutation(len(z))
    # Fewer trials than there are, so that the draw is judged too.
    options = {"max_trials_per_subject": 100}
    one = measure_leakage(z, subject, recording=recording, label=label, **options)
    other = measure_leakage(
        z[order], subject[order], recording=recording[order], label=label[order], **options
    )
    assert one == other
    assert one.n_trials == 300


def test_the_same_seed_gives_the_same_numbers_and_leaves_no_trace():
    subject, recording = design(3, 4, 20)
    z = noise(0, 4, subject, recording)
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    one, same = (measure_leakage(z, subject, recording=recording, random_state=3) for _ in range(2))
    assert one == same
    assert one != measure_leakage(z, subject, recording=recording, random_state=4)
    assert torch.equal(before[0], torch.random.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_constant_latents(value):
    subject, recording = design(3, 4, 10)
    z = np.full((len(subject), 5), value, np.float32)
    found = measure_leakage(z, subject, recording=recording, label=np.arange(len(z)) % 2)
    assert found.best.bound.value == pytest.approx(0, abs=0.01)
    found = measure_leakage(z, subject, recording=recording)
    for score in found.probes.values():
        assert score.accuracy.value == pytest.approx(1 / 3)
        assert score.raw_bound.value == pytest.approx(0, abs=1e-6)


def test_subjects_that_are_easy_to_tell_apart():
    subject, recording = design(5, 3, 10)
    z = noise(0, 5, subject, recording) + 50 * np.eye(5)[subject]
    found = measure_leakage(z, subject, recording=recording)
    for score in found.probes.values():
        assert score.accuracy.value == 1
        assert score.bound.value == pytest.approx(np.log(5), abs=0.05)
        assert score.bound.high <= np.log(5)
    assert found.best.recall == (1.0,) * 5


def test_wild_trials_do_not_spoil_the_bound():
    subject, recording = design(3, 5, 30)
    z = noise(0, 4, subject, recording) + 2 * np.eye(3, 4)[subject]
    z[::100] = 1e12
    found = measure_leakage(z, subject, recording=recording)
    assert np.isfinite(found.best.raw_bound.value)
    assert found.best.raw_bound.value > -0.1


def test_one_recording_is_cut_into_blocks_with_a_warning():
    subject, recording = design(3, 4, 10)
    recording[subject == 1] = 0
    z = noise(0, 3, subject, recording)
    with pytest.warns(DataWarning, match="Subject 1 has one recording only"):
        found = measure_leakage(z, subject, recording=recording, probes=["linear"])
    assert found.subjects == (0, 1, 2)
    assert found.n_folds == 5  # the blocks of subject 1


def test_a_subject_with_too_few_trials_is_left_out_with_a_warning():
    subject = np.repeat(["ann", "bob", "cy"], 40)
    keep = (subject != "bob") | (np.arange(len(subject)) < 43)
    z = np.random.default_rng(0).normal(size=(len(subject), 3))[keep]
    with pytest.warns(DataWarning, match="Subject bob has too few trials"):
        found = measure_leakage(z, subject[keep], probes=["linear"])
    assert found.subjects == ("ann", "cy")
    assert found.left_out == ("bob",)
    assert found.chance == 0.5


def test_the_result_can_be_read_and_stored():
    subject, recording = design(3, 4, 15)
    z = noise(0, 3, subject, recording)
    found = measure_leakage(z, np.array(["ann", "bob", "cy"])[subject], recording=recording)
    lines = str(found).splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == [
        "probe",
        "linear",
        "gaussian",
        "mlp",
        "best",
    ]
    assert "3 subjects, 180 trials, 12 recordings" in lines[0]
    stored = json.loads(json.dumps(found.to_dict()))
    assert stored["subjects"] == ["ann", "bob", "cy"]
    assert stored["best"]["raw_bound"]["value"] == found.best.raw_bound.value
    assert stored["probes"]["linear"]["bound"]["low"] == found.probes["linear"].bound.low >= 0
    assert stored == found.to_dict()
    # Torch tensors and column vectors are as good as arrays.
    again = measure_leakage(torch.from_numpy(z), subject[:, None], recording=recording)
    assert again.best == found.best
