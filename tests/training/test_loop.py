"""The training loop, judged from outside: repeats, stopping, errors, feeds."""

import numpy as np
import pytest
import torch
from torch import nn

from autotransfer import CensoredClassifier, SubjectDataset, make_subjects
from autotransfer.data.normalise import Normaliser
from autotransfer.data.splits import hold_out
from autotransfer.data.trials import TrialArray
from autotransfer.encoder.eegnet import EEGNet
from autotransfer.encoder.network import Network
from autotransfer.errors import NonFiniteLossError
from autotransfer.training.feed import Feed

SMALL = {"F1": 2, "D": 1, "kernel_length": 8, "depthwise_kernel_length": 4}
DATA = make_subjects(n_subjects=5, n_trials=24, n_channels=3, n_times=64, random_state=1)


def fit(data=DATA, **options):
    given = {
        "encoder_options": SMALL if "encoder" not in options else None,
        "max_epochs": 4,
        "subjects_per_batch": 3,
        "trials_per_subject": 8,
        "random_state": 0,
        "device": "cpu",
        "verbose": False,
    }
    clf = CensoredClassifier(**{**given, **options})
    return clf.fit(data.X, data.y, subject=data.subject)


def state(clf):
    return {name: value.numpy().copy() for name, value in clf.network_.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)


class Mean(nn.Module):
    """A small encoder without `prepare`; may spoil its latent at given training calls."""

    n_latent = 4

    def __init__(self, n_channels, n_times, spoil=None, value=float("nan")):
        super().__init__()
        self.layer = nn.Linear(n_channels * n_times, 4)
        self.spoil, self.value, self.calls = spoil, value, 0

    def forward(self, x):
        z = self.layer(x.flatten(1))
        if self.training:
            self.calls += 1
            if self.calls == self.spoil:
                return z * self.value
        return z


def losses_by_numpy(clf, data, subjects):
    """The validation loss by its formula: weights of training classes, float64."""
    chosen = np.isin(data.subject, subjects)
    train = ~chosen
    inverse = 1 / np.array([(data.y[train] == label).sum() for label in clf.classes_])
    weights = (inverse / inverse.sum())[np.searchsorted(clf.classes_, data.y[chosen])]
    z = clf.transform(data.X[chosen]).astype(np.float64)
    head = {k: v.numpy().astype(np.float64) for k, v in clf.network_.head.state_dict().items()}
    logits = z @ head["weight"].T + head["bias"]
    right = logits[np.arange(len(z)), np.searchsorted(clf.classes_, data.y[chosen])]
    return np.average(np.log(np.exp(logits).sum(1)) - right, weights=weights)


@pytest.mark.parametrize("encoder", ["eegnet", Mean])
def test_repeats_are_bit_equal(encoder):
    options = {} if encoder == "eegnet" else {"encoder": encoder}
    one, again, other = fit(**options), fit(**options), fit(**options, random_state=1)
    assert same(state(one), state(again))
    assert [e["validation_loss"] for e in one.history_] == [
        e["validation_loss"] for e in again.history_
    ]
    assert not any(np.array_equal(v, state(other)[k]) for k, v in state(one).items() if v.ndim > 1)


def test_the_callers_random_streams_are_neither_used_nor_moved():
    reference = state(fit(max_epochs=2))
    torch.manual_seed(123)
    np.random.seed(123)  # noqa: NPY002 -- the global stream is what this is about
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    assert same(state(fit(max_epochs=2)), reference)
    assert torch.equal(before[0], torch.get_rng_state())
    assert np.array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("rate", [1e-3, 0.3])
def test_the_weights_of_the_least_validation_loss_are_kept(rate):
    clf = fit(learning_rate=rate, max_epochs=15, validation=[2, 4], patience=30)
    told = [entry["validation_loss"] for entry in clf.history_]
    assert losses_by_numpy(clf, DATA, [2, 4]) == pytest.approx(min(told), rel=1e-5)
    assert clf.best_epoch_ == int(np.argmin(told)) + 1
    if rate == 0.3:  # a restless training: the last epoch is not the best, so this can fail
        assert clf.best_epoch_ < len(told)
        assert told[-1] > min(told) * 1.001


@pytest.mark.parametrize("patience", [1, 3])
def test_patience(patience):
    clf = fit(learning_rate=0.1, max_epochs=60, patience=patience)
    told = [entry["validation_loss"] for entry in clf.history_]
    assert len(told) < 60
    assert len(told) == clf.best_epoch_ + patience
    for epoch in range(1, len(told)):  # it did not stop later than it should
        since = epoch - 1 - int(np.argmin(told[:epoch]))
        assert since < patience


def test_without_validation_all_epochs_are_trained_and_the_last_weights_kept():
    clf = fit(validation=None, max_epochs=7, patience=1, learning_rate=0.1)
    assert [entry["epoch"] for entry in clf.history_] == list(range(1, 8))
    assert "validation_loss" not in clf.history_[0]
    assert clf.validation_subjects_ == []
    assert clf.training_subjects_ == [0, 1, 2, 3, 4]
    shorter = fit(validation=None, max_epochs=6, learning_rate=0.1)
    assert not same(state(clf), state(shorter))


def test_without_patience_who_validates_decides_nothing():
    people = [2, 4]
    options = {"validation": people, "max_epochs": 3, "patience": None, "learning_rate": 0.3}
    clf = fit(**options)
    told = [entry["validation_loss"] for entry in clf.history_]
    assert len(told) == clf.best_epoch_ == 3
    assert min(told) < told[-1]  # with patience other weights would have been kept
    assert losses_by_numpy(clf, DATA, people) == pytest.approx(told[-1], rel=1e-5)
    # Neither labels nor signals of those who validate: the weights are those of a training that
    # never saw them.
    held = np.isin(DATA.subject, people)
    X, y = DATA.X.copy(), DATA.y.copy()
    X[held], y[held] = 100 * X[held][::-1], y[held][::-1]
    other = SubjectDataset(X, y, DATA.subject, sfreq=DATA.sfreq)
    assert same(state(fit(other, **options)), state(clf))
    alone = DATA.select(subjects=[0, 1, 3])
    assert same(state(fit(alone, **options | {"validation": None})), state(clf))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_is_located(value):
    # 4 subjects of 24 trials in chunks of 8, 3 to a batch: 4 steps an epoch, so call 6 is 2.2.
    def spoiled(n_channels, n_times):
        return Mean(n_channels, n_times, spoil=6, value=value)

    with pytest.raises(NonFiniteLossError) as caught:
        fit(encoder=spoiled, validation=[3])
    text = str(caught.value)
    assert "epoch 2, step 2 of 4" in text
    named = [s for s in (0, 1, 2, 4) if f"{s}" in text.partition("subjects")[2].partition("(")[0]]
    assert len(named) == 3  # the subjects of that batch, and not all


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("validation", [1, None])
@pytest.mark.parametrize("encoder", ["eegnet", Mean])
@pytest.mark.parametrize("trials_per_subject", [8, 100])  # 100: one step an epoch
def test_a_learning_rate_that_explodes(encoder, validation, trials_per_subject):
    """Also where the last step of all spoils the weights, and no loss comes after it."""
    with pytest.raises(NonFiniteLossError, match="epoch 1"):
        fit(
            encoder=encoder,
            encoder_options=None,
            learning_rate=1e38,
            validation=validation,
            max_epochs=1,
            subjects_per_batch=5,
            trials_per_subject=trials_per_subject,
        )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_exploding_training_names_step_and_subjects():
    with pytest.raises(NonFiniteLossError, match=r"epoch \d, step \d of \d.*subjects \d"):
        fit(learning_rate=1e30)


def test_an_encoder_without_prepare_learns():
    data = make_subjects(n_subjects=5, n_trials=40, n_channels=3, n_times=64, subject_shift=0.1)
    made = nn.Sequential(nn.Conv1d(3, 8, 15), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten())
    options = {"encoder": made, "encoder_options": {"latent": "output"}}
    clf = fit(data, **options, max_epochs=30, learning_rate=0.01)
    assert clf.provenance_["scores"]["validation_balanced_accuracy"] > 0.8


def feeds(data, kind="channel"):
    X = TrialArray(np.asarray(data.X))
    fold = hold_out(data.subject, [1])
    used = np.sort(np.r_[fold.train, fold.validation])[::2]
    normaliser = Normaliser(kind).fit(X, fold.train)
    network = Network(EEGNet(3, 64, **SMALL), 2)
    where = torch.device("cpu")
    return [Feed(X, used, normaliser, network, where, budget) for budget in (2**30, 0)], used


@pytest.mark.parametrize("kind", ["channel", "trial", "train", "none"])
def test_kept_and_streamed_batches_are_equal(kind):
    (kept, streamed), used = feeds(DATA, kind)
    assert (kept.kept, streamed.kept) == (True, False)
    trials = np.random.default_rng(0).permutation(used)[:17]
    x, stats = kept.batch(trials)
    assert torch.equal(x, streamed.batch(trials)[0])
    prepared = EEGNet(3, 64, **SMALL).prepare(x)
    torch.testing.assert_close(stats, prepared)
    blocks = torch.cat([block for _, block in streamed.blocks(used, size=10)])
    assert torch.equal(blocks, kept.batch(used)[0])


def test_streaming_trains_to_nearly_the_same_weights():
    """Other order of sums, same steps: after 8 steps float32 rounding is all that differs."""
    one, other = (fit(max_epochs=2, validation=None, memory_budget=b) for b in (2**30, 0))
    for name, value in state(one).items():
        np.testing.assert_allclose(value, state(other)[name], rtol=1e-3, atol=1e-4, err_msg=name)
    moved = fit(max_epochs=1, validation=None)
    assert max(np.abs(state(one)[k] - v).max() for k, v in state(moved).items()) > 1e-3


@pytest.mark.parametrize("budget", [0, 2**30])
def test_memory_mapped_signals_train_to_the_same_bits(tmp_path, budget):
    np.save(tmp_path / "X.npy", DATA.X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    clf = CensoredClassifier(**fit(max_epochs=1, memory_budget=budget).get_params())
    clf.fit(mapped, DATA.y, subject=DATA.subject)
    assert same(state(clf), state(fit(max_epochs=1, memory_budget=budget)))


def test_changes_to_a_copy_on_write_map_are_not_lost(tmp_path):
    """Giving back its pages would bring the file's old numbers back, without a word."""
    np.save(tmp_path / "X.npy", np.ones((6, 2, 5000), np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="c")
    mapped *= 3
    trials = TrialArray(mapped)
    assert trials[:].min() == trials[[1, 4]].min() == trials[:].min() == mapped.min() == 3


def test_training_statistics_are_those_of_the_training_subjects():
    keep = np.r_[np.flatnonzero(DATA.y == 0), np.flatnonzero(DATA.y == 1)[::3]]
    data = DATA.select(trials=np.sort(keep))
    clf = fit(data, normalise="train", validation=[0, 3], max_epochs=1)
    X, train = np.asarray(data.trials, np.float64), ~np.isin(data.subject, [0, 3])
    np.testing.assert_allclose(clf.normaliser_.mean, X[train].mean((0, 2)), atol=1e-6)
    np.testing.assert_allclose(clf.normaliser_.std, X[train].std((0, 2)), rtol=1e-5)
    assert np.abs(clf.normaliser_.std - X.std((0, 2))).max() > 1e-3  # others would be noticed
    loss = clf.history_[0]["validation_loss"]
    assert losses_by_numpy(clf, _plain(data), [0, 3]) == pytest.approx(loss, rel=1e-5)


def _plain(data):
    """The same trials as plain arrays, for indexing by masks."""
    made = make_subjects(n_subjects=1, n_trials=2)
    made.trials, made.y, made.subject = TrialArray(data.trials[:]), data.y, data.subject
    return made
