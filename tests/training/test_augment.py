"""Augmentations: one table of laws, closed forms of each, and what a training does with them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import signal

from autotransfer import CensoredClassifier, __version__, make_subjects
from autotransfer.encoder import EEGNet
from autotransfer.errors import SettingError
from autotransfer.training import AUGMENTATIONS, Augmentation
from autotransfer.training import augment as module
from autotransfer.training.augment import (
    corrected_statistics,
    keeps_statistics,
    lookup_augmentations,
)

PAGE = Path(__file__).parents[2] / "docs" / "augmenting.md"
SFREQ = 200.0
SMALL = {"F1": 2, "D": 1, "kernel_length": 8, "depthwise_kernel_length": 4}
DATA = make_subjects(n_subjects=5, n_trials=24, n_channels=3, n_times=64, random_state=1)

each = pytest.mark.parametrize("name", AUGMENTATIONS)


def source(seed=0):
    return torch.Generator().manual_seed(seed)


def batch(dtype=torch.float32, people=4, trials=12, channels=8, times=200):
    """Trials of people of unlike scale: slow waves, a rhythm, channels of unlike amplitude.

    Laid out channel by channel, as batches are.
    """
    rng = np.random.default_rng(0)
    n = people * trials
    y, subject = np.tile([0, 1, 2], n)[:n], np.repeat(np.arange(people), trials)
    x = rng.normal(size=(channels, n, times)).cumsum(-1) / 5 + rng.normal(size=(channels, n, times))
    x += np.sin(np.arange(times) / SFREQ * 2 * np.pi * 10 + rng.uniform(0, 7, (n, 1)))
    x *= np.linspace(0.5, 2, people)[subject][:, None] * rng.uniform(0.5, 2, (channels, 1, 1))
    x -= x.mean(-1, keepdims=True)
    return torch.from_numpy(x).to(dtype).transpose(0, 1), *map(torch.from_numpy, (y, subject))


def apply(name, given, seed=0, sfreq=SFREQ):
    return AUGMENTATIONS[name].function(*given, source(seed), sfreq)


# Laws that every augmentation keeps.


@each
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("sfreq", [SFREQ, None])
def test_shape_dtype_and_layout_stay(name, dtype, sfreq):
    given = batch(dtype)
    out = apply(name, given, sfreq=sfreq)
    assert (out.shape, out.dtype, out.stride()) == (given[0].shape, dtype, given[0].stride())
    assert not torch.equal(out, given[0])


@each
def test_the_input_is_not_changed(name):
    given, untouched = batch(), batch()
    apply(name, given).mul_(7.0)  # nor does the output share its memory
    assert all(torch.equal(one, other) for one, other in zip(given, untouched, strict=True))


@each
def test_the_seed_decides(name):
    torch.manual_seed(0)
    one = apply(name, batch())
    torch.manual_seed(1)
    assert torch.equal(one, apply(name, batch()))
    assert not torch.equal(one, apply(name, batch(), seed=1))


@each
@pytest.mark.parametrize("scale", [0.0, 1e-40, 1e30])
@pytest.mark.parametrize("shape", [(4, 12, 8, 200), (1, 1, 1, 1), (2, 1, 1, 2), (3, 3, 2, 7)])
def test_finite_signals_stay_finite(name, scale, shape):
    x, y, subject = batch(torch.float64, *shape)
    given = (scale * x).float(), y, subject
    assert torch.isfinite(given[0]).all()
    assert torch.isfinite(apply(name, given)).all()
    opposite = torch.cat([given[0], -given[0]]), torch.cat([y, y]), torch.cat([subject, ~subject])
    assert torch.isfinite(apply(name, opposite)).all()


@each
def test_the_amplitude_of_a_person_stays_in_the_stated_range(name):
    x, y, subject = batch(torch.float64)
    low, high = AUGMENTATIONS[name].amplitude
    for seed in range(5):
        out = apply(name, (x, y, subject), seed)
        for person in range(4):
            mine = subject == person
            ratio = float(out[mine].abs().mean() / x[mine].abs().mean())
            assert low - 1e-9 <= ratio <= high + 1e-9, person


@each
@pytest.mark.parametrize("flat", [False, True])
def test_prepared_statistics_are_put_right_or_computed_anew(name, flat):
    x, *rest = batch()
    x[:, 3] *= 0.0 if flat else 1.0
    out, how = apply(name, (x, *rest)), AUGMENTATIONS[name]
    prepare = EEGNet(8, 200, kernel_length=25).prepare
    before, anew = prepare(x), prepare(out).sum(0)
    if keeps_statistics([how]):
        kept = before.clone()
        found = corrected_statistics(before, x, out, how, prepare).sum(0)
        torch.testing.assert_close(found, anew, rtol=1e-9, atol=1e-6)
        assert torch.equal(before, kept)
    else:
        assert not torch.allclose(before.sum(0), anew, rtol=1e-3)


@each
def test_the_page_has_a_line_for_it(name):
    line = next(x for x in PAGE.read_text().splitlines() if x.startswith(f"| `{name}` |"))
    assert AUGMENTATIONS[name].words in line


# Closed forms.


def test_mask_takes_whole_channels_at_their_share():
    x, y, subject = batch(trials=500, times=8)
    assert torch.equal(module.mask(x, y, subject, source(), share=0.0), x)
    out = module.mask(x, y, subject, source())
    gone = (out == 0).all(-1)
    assert torch.equal(out[~gone], x[~gone])
    # 16,000 draws: the deviation of the share is 0.0024.
    assert float(gone.double().mean()) == pytest.approx(module.MASKED, abs=0.01)
    last = module.mask(x, y, subject, source(), share=1.0)
    assert ((last != 0).any(-1).sum(1) == 1).all()


def test_ring_is_a_roll_by_one_place_either_way():
    x, y, subject = batch(trials=300, times=8)
    out = module.ring(x, y, subject, source())
    rolled = [(out == torch.roll(x, turn, 1)).all(-1).all(-1) for turn in (-1, 0, 1)]
    assert (torch.stack(rolled).sum(0) == 1).all()
    for one in rolled:  # of 1,200 trials; the deviation of a share is 0.014
        assert float(one.double().mean()) == pytest.approx(1 / 3, abs=0.06)


def test_shift_is_a_cut_of_the_reflected_signal():
    x, y, subject = batch(times=100)
    assert torch.equal(module.shift(x, y, subject, source(), largest=0.0), x)
    out = module.shift(x, y, subject, source(), largest=0.03)
    longer = np.pad(x.numpy(), ((0, 0), (0, 0), (3, 3)), mode="reflect")
    cuts = [(out.numpy() == longer[..., i : i + 100]).all((1, 2)) for i in range(7)]
    assert np.array_equal(np.sum(cuts, 0), np.ones(len(x)))
    assert all(cut.any() for cut in cuts)


@pytest.mark.parametrize("sfreq", [SFREQ, 1000.0, None])
def test_noise_is_one_source_in_a_band_of_an_octave(sfreq):
    x, y, subject = batch(torch.float64)
    assert torch.equal(module.noise(x, y, subject, source(), sfreq, level=0.0), x)
    added = (module.noise(x, y, subject, source(), sfreq) - x).numpy()
    rate = sfreq or 1.0
    lowest = 4.0 if sfreq else 4 / 200  # cycles of a trial of 200 points where nobody knows more
    frequency, power = signal.periodogram(added, rate, detrend=False)
    shares = power.sum(1) / power.sum((1, 2))[:, None]
    lows = []
    for share in shares:
        inside = frequency[share > 1e-9]
        assert inside.min() >= lowest * (1 - 1e-6)
        assert inside.max() <= 2 * inside.min() * (1 + 1e-6)
        lows.append(inside.min())
    assert max(lows) > 2 * min(lows)  # bands differ
    for one in added:
        values = np.linalg.svd(one, compute_uv=False)
        assert values[1] < 1e-6 * values[0]
    deviation = np.sqrt((added**2).mean((1, 2))) / x.abs().mean((1, 2)).numpy()
    # Gains of 8 channels are normal; the deviation of the mean over 48 trials is about 0.013.
    assert np.sqrt((deviation**2).mean()) == pytest.approx(module.NOISE, abs=0.05)


def test_mix_is_with_the_same_class_of_somebody_else():
    x, y, subject = batch(torch.float64)
    out = module.mix(x, y, subject, source())
    flat, mixed = x.flatten(1).numpy(), out.flatten(1).numpy()
    partners = set()
    for i, one in enumerate(mixed):
        suits = np.flatnonzero((y == y[i]) & (subject != subject[i]))
        for j in suits:
            weights, rest, *_ = np.linalg.lstsq(flat[[i, j]].T, one, rcond=None)
            if rest[0] < 1e-18 * (one**2).sum():
                assert (
                    0 <= weights[1] <= weights[0] * (1 + 1e-9)
                )  # the other's share is half or less
                partners.add((int(subject[i]), int(subject[j])))
                break
        else:
            pytest.fail(f"trial {i} is no mixture of two such trials")
    assert len(partners) > 6  # of 12 pairs of people


def test_mix_with_itself_or_with_nobody_is_itself():
    x, y, subject = batch()
    alike = x[:1].expand(len(x), -1, -1)
    assert torch.equal(module.mix(alike, y, subject, source()), alike)
    alone = torch.arange(len(x))
    for codes, people in ((y, torch.zeros_like(y)), (alone, subject)):
        assert torch.equal(module.mix(x, codes, people, source()), x)


# Names.


def test_several_are_named_at_once():
    found = lookup_augmentations("shift+mask")
    assert found == [AUGMENTATIONS["shift"], AUGMENTATIONS["mask"]]
    assert lookup_augmentations(None) == []


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("msk", "'msk'.*'mask'"),
        ("mask+", "''"),
        ("mask+mask", "twice"),
        (3, "3"),
        (["mask"], "mix"),
    ],
)
def test_a_wrong_name_is_refused(names, words):
    with pytest.raises(SettingError, match=words):
        fit(augment=names)


# Trainings.


def fit(data=DATA, **options):
    given = {
        "encoder_options": SMALL,
        "max_epochs": 3,
        "subjects_per_batch": 3,
        "trials_per_subject": 8,
        "random_state": 0,
        "device": "cpu",
        "verbose": False,
    }
    return CensoredClassifier(**{**given, **options}).fit(data.X, data.y, subject=data.subject)


def state(clf):
    return {name: value.numpy().copy() for name, value in clf.network_.state_dict().items()}


def same(one, other):
    return all(np.array_equal(value, state(other)[name]) for name, value in state(one).items())


@each
def test_a_training_that_goes_on_ends_in_the_same_bits(name, tmp_path):
    whole, again = fit(augment=name), fit(augment=name)
    assert same(whole, again)
    assert not same(whole, fit())
    options = {"checkpoint": tmp_path / "training", "checkpoint_every": 1}
    fit(augment=name, **options, max_epochs=2)
    resumed = fit(augment=name, **options)
    assert [entry["epoch"] for entry in resumed.history_] == [1, 2, 3]
    assert same(whole, resumed)


def test_training_trials_alone_are_changed(monkeypatch):
    """Each of them once an epoch, none of a person who validates, and none when it predicts."""
    seen = []

    def spy(x, y, subject, generator, sfreq):
        seen.append((len(x), sfreq, y.tolist(), subject.tolist()))
        return x

    monkeypatch.setitem(AUGMENTATIONS, "spy", Augmentation(spy, "nothing", (1.0, 1.0)))
    clf = fit(augment="spy", validation=[2], sfreq=DATA.sfreq)
    assert sum(n for n, *_ in seen) == 3 * 4 * 24
    assert {person for *_, people in seen for person in people} == {0, 1, 3, 4}
    assert {rate for _, rate, *_ in seen} == {DATA.sfreq}
    pairs = [p for _, _, y, people in seen for p in zip(people, y, strict=True)]
    assert len(pairs) == 3 * 4 * 24
    for person in (0, 1, 3, 4):
        for code in (0, 1):
            there = int(((DATA.subject == person) & (DATA.y_code == code)).sum())
            assert pairs.count((person, code)) == 3 * there
    n = len(seen)
    clf.predict(DATA.X)
    clf.transform(DATA.X)
    clf.adapt(DATA.X[:20]).predict_proba(DATA.X)
    assert len(seen) == n


def test_the_encoder_has_the_statistics_of_what_it_sees(monkeypatch):
    """Signals tripled on the way train like signals that were tripled before."""
    triple = Augmentation(lambda x, *_: 3 * x, "tripled", (3.0, 3.0))
    monkeypatch.setitem(AUGMENTATIONS, "triple", triple)
    options = {"normalise": "none", "validation": None, "max_epochs": 2}
    one = fit(augment="triple", **options)
    tripled = CensoredClassifier(**fit(**options).get_params())
    tripled.fit(3 * DATA.X, DATA.y, subject=DATA.subject)
    for name, value in state(one).items():
        expected = state(tripled)[name]
        np.testing.assert_allclose(value, expected, rtol=1e-3, atol=1e-4, err_msg=name)
    plain = state(fit(**options))
    assert max(np.abs(state(one)[k] - v).max() for k, v in plain.items()) > 1e-2


def test_a_trained_model_predicts_the_same_whatever_augment_says():
    clf = fit()
    before = clf.predict_proba(DATA.X)
    for name in AUGMENTATIONS:
        clf.set_params(augment=name)
        np.testing.assert_array_equal(clf.predict_proba(DATA.X), before)


def test_the_model_folder_keeps_and_tells_it(tmp_path):
    folder = fit(augment="mask+mix").save(tmp_path / "m")
    loaded = CensoredClassifier.load(folder)
    assert loaded.augment == "mask+mix"
    for text in (loaded.describe(), (folder / "README.md").read_text(encoding="utf-8")):
        assert "Augmentation of the training trials: `mask+mix`." in text
    assert "Augmentation" not in fit().describe()


def test_a_training_without_any_has_the_hash_of_before():
    options = CensoredClassifier(random_state=0).options
    validation = np.arange(3)
    left_out = {"augment", "checkpoint", "checkpoint_every", "max_epochs", "n_steps"}
    left_out |= {"verbose", "log", "schedule"}
    before = {f.name: getattr(options, f.name) for f in fields(options) if f.name not in left_out}
    people = hashlib.sha256(validation.tobytes()).hexdigest()
    text = json.dumps(["data", 7, __version__, before, people], sort_keys=True)
    assert options.hash("data", validation, 7) == hashlib.sha256(text.encode()).hexdigest()
    hashes = {
        CensoredClassifier(augment=name).options.hash("data", validation, 7)
        for name in (None, *AUGMENTATIONS)
    }
    assert len(hashes) == 1 + len(AUGMENTATIONS)
