"""The table of wrong data and wrong options: what a person may hand over by mistake.

Each row is ``(id, act, error, words)``: `act` takes a scratch folder and must end in exactly
`error`, whose message has all the `words`. `tests/refused/bad_files.py` has the rows about files.
"""

# A row is a line, however long: that is what makes it a table.
# ruff: noqa: E501

from __future__ import annotations

from functools import cache, partial

import numpy as np
import torch
from scipy import sparse
from sklearn.exceptions import NotFittedError

import autotransfer as at
from autotransfer import errors as e
from autotransfer.data import Normaliser, StoreWriter, TrialArray

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 2, 64)).astype(np.float32)
Y = np.tile(["fist", "rest"], 12)
S = np.repeat(["ann", "bob", "cy"], 8)
TINY = {"F1": 2, "kernel_length": 16, "depthwise_kernel_length": 4}


def made(**options):
    """Make a classifier that would train for a moment only."""
    fast = {"encoder_options": TINY, "max_epochs": 1, "verbose": False, "random_state": 0}
    return at.CensoredClassifier(**{**fast, **options})


@cache
def fitted():
    return made().fit(X, Y, subject=S)


@cache
def wild():
    """Fit a linear model of the bare signals, with weights that make large signals overflow."""
    linear = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(128, 2))
    return fit(
        X * 1e-3,
        encoder=linear,
        encoder_options={"latent": "output"},
        normalise="none",
        learning_rate=9.0,
    )


def changed(array, where, value):
    copy = np.array(array, dtype=object) if isinstance(value, type(None) | str) else array.copy()
    copy[where] = value
    return copy


def dataset(X=X, y=Y, subject=S, **options):
    return at.SubjectDataset(X, y, subject, **options)


def batches(y=Y, subject=S, *args, **options):
    return at.SubjectBatches(y, subject, *args, **options)


def fold(subject=S, **options):
    return list(at.SubjectFolds(**options).folds(subject))


def fit(X=X, y=Y, subject=S, **options):
    return made(**options).fit(X, y, subject=subject)


def store(there, *blocks, **options):
    with StoreWriter(there / "study", **options) as writer:
        for block in blocks:
            writer.append(*block)


def row(name, error, words, act, *args, **options):
    """Write a row whose act needs no folder."""
    return (name, lambda there: act(*args, **options), error, words)


ONLY_CY = np.where(S == "cy", "wave", Y)
ONE_LABEL = Y.copy()
ONE_LABEL[:] = "fist"
HUGE = changed(X, (9, 1), 3e38)
ABSENT = "mps" if torch.cuda.is_available() else "cuda"  # no machine has both
ragged = [np.zeros((2, 64)), np.zeros((2, 60))]

SIGNALS = [
    row("X 2-D", e.ShapeError, "three dimensions; (24, 128); X[:, None, :]", dataset, X.reshape(24, -1)),
    row("X 4-D", e.ShapeError, "three dimensions; (24, 1, 2, 64)", dataset, X[:, None]),
    row("X ragged", e.ShapeError, "X; not a regular array; same channels", dataset, ragged, [0, 1], [0, 1]),
    row("X None", e.DtypeError, "X; real numbers", dataset, None),
    row("X a word", e.DtypeError, "X; real numbers; dtype", dataset, "gestures"),
    row("X objects", e.DtypeError, "dtype is object; astype('float32')", dataset, X.astype(object)),
    row("X text", e.DtypeError, "dtype is <U; astype('float32')", dataset, X.astype(str)),
    row("X complex", e.DtypeError, "dtype is complex64", dataset, X.astype(np.complex64)),
    row("X dates", e.DtypeError, "dtype is datetime64", dataset, X.astype("M8[s]")),
    row("X sparse", e.DtypeError, "sparse; toarray()", dataset, sparse.csr_array(X[:, 0])),
    row("X masked", e.DtypeError, "X; masked; trials 3; filled", dataset, np.ma.array(X, mask=changed(X > 99, 3, True))),
    row("X no trials", e.EmptyDataError, "no trials; (0, 2, 64)", dataset, X[:0], [], []),
    row("X no channels", e.EmptyDataError, "no channels; (24, 0, 64)", dataset, X[:, :0]),
    row("X no times", e.EmptyDataError, "no times; (24, 2, 0)", dataset, X[..., :0]),
    row("lazy trials 2-D", e.ShapeError, "three dimensions; (24, 64)", lambda: dataset(TrialArray(X[:, 0]))),
    row("lazy trials text", e.DtypeError, "real numbers; <U", lambda: dataset(TrialArray(X.astype(str)))),
    row("fit NaN", e.NonFiniteDataError, "NaN; trials 9 of subject bob; channels 1", fit, changed(X, (9, 1), np.nan)),
    row("fit inf", e.NonFiniteDataError, "infinite; trials 9 of subject bob; mend", fit, changed(X, (9, 1), -np.inf)),
    row("fit huge", e.NonFiniteDataError, "trials 9; subject bob; channels 1; unit", fit, HUGE),
    row("fit beyond float32", e.NonFiniteDataError, "trials 9 of subject bob; float32", fit, changed(X.astype(float), (9, 1), 1e300)),
    row("fit huge unnormalised", e.NonFiniteLossError, "task loss; bob; normalise", fit, changed(X, S == "bob", 1e34), normalise="none", validation=["ann"]),
    row("fit too fast", e.NonFiniteLossError, "validation loss; Lower the learning rate", fit, learning_rate=1e30),
    row("predict huge unnormalised", e.NonFiniteDataError, "trials 9; too large; unit", lambda: wild().predict(changed(X, 9, 5e36))),
    row("fit too short", e.WindowTooShortError, "16 time points; too short; longer windows", fit, X[..., :16]),
    row("predict NaN", e.NonFiniteDataError, "trials 9; channels 1", lambda: fitted().predict(changed(X, (9, 1), np.nan))),
    row("predict huge", e.NonFiniteDataError, "trials 9; channels 1; unit", lambda: fitted().predict_proba(HUGE)),
    row("predict 2-D", e.ShapeError, "three dimensions", lambda: fitted().predict(X[0])),
    row("predict channels", e.ChannelMismatchError, "2 channels, but X has 1; same order", lambda: fitted().predict(X[:, :1])),
    row("predict times", e.ShapeError, "64 time points; 60; same length", lambda: fitted().transform(X[..., :60])),
    row("predict nothing", e.EmptyDataError, "no trials", lambda: fitted().predict(X[:0])),
    row("unfitted predict", NotFittedError, "not fitted", lambda: made().predict(X)),
    row("unfitted transform", NotFittedError, "not fitted", lambda: made().transform(X)),
    row("unfitted save", NotFittedError, "not fitted", lambda: made().save("nowhere")),
]  # fmt: skip

LABELS = [
    row("y None", e.LabelError, "y is missing; 24 trials", dataset, X, None),
    row("y length", e.ShapeError, "y has 23 values; 24 trials", dataset, X, Y[1:]),
    row("y one-hot", e.ShapeError, "(24, 2); argmax(axis=1)", fit, X, np.eye(2)[np.arange(24) % 2]),
    row("y one number", e.ShapeError, "y; one-dimensional", fit, X, 3),
    row("y NaN", e.LabelError, "NaN; trials 5; leave them out", fit, X, changed(np.tile([0.0, 1], 12), 5, np.nan)),
    row("y continuous", e.LabelError, "continuous; binning", fit, X, RNG.normal(size=24)),
    row("y mixed", e.DtypeError, "y mixes; str; one kind", fit, X, changed(np.tile([0, 1], 12), 5, "fist")),
    row("y missing value", e.DtypeError, "NoneType; numbers or strings", fit, X, changed(Y, 5, None)),
    row("y dates", e.DtypeError, "y has dtype datetime64", fit, X, np.arange(24).astype("M8[s]")),
    row("y complex", e.DtypeError, "y has dtype complex", fit, X, np.arange(24) * 1j),
    row("y sparse", e.DtypeError, "y is a sparse; toarray()", fit, X, sparse.csr_array(np.eye(24))),
    row("y ragged", e.ShapeError, "y is not a regular array", fit, X, [[0], [1, 2]] * 12),
    row("y one class", e.LabelError, "one class only; fist; two", fit, X, ONE_LABEL),
    row("class of the validation subject", e.LabelError, "wave; ann, bob; validate", fit, X, ONLY_CY, validation=["cy"]),
    row("score length", e.ShapeError, "y has 23 values", lambda: fitted().score(X, Y[1:])),
    row("score kind", e.LabelError, "text; numbers; fist, rest", lambda: fitted().score(X, np.tile([0, 1], 12))),
    row("score weights", e.ShapeError, "sample_weight; 24", lambda: fitted().score(X, Y, np.ones(3))),
    row("score weights NaN", e.DataError, "sample_weight; finite", lambda: fitted().score(X, Y, np.full(24, np.nan))),
    row("subject None", e.MissingSubjectError, "subject is missing", dataset, X, Y, None),
    row("subject not given", e.MissingSubjectError, "fit(X, y, subject=ids); set_fit_request", lambda: made().fit(X, Y)),
    row("subject length", e.ShapeError, "subject has 8 values; 24 trials", fit, X, Y, S[:8]),
    row("subject NaN", e.SubjectError, "subject is NaN; trials 2", fit, X, Y, changed(np.repeat([0.0, 1, 2], 8), 2, np.nan)),
    row("subject mixed", e.DtypeError, "subject mixes; one kind", fit, X, Y, changed(np.repeat([0, 1, 2], 8), 2, "bob")),
    row("one subject", e.SubjectError, "one subject; ann; validation=None", fit, X, Y, ["ann"] * 24),
    row("validation unknown", e.FoldError, "dan; ann, bob, cy", fit, validation=["dan"]),
    row("validation too many", e.FoldError, "validation=3; 3 of 3 subjects; from 1 to 2", fit, validation=3),
    row("validation all", e.FoldError, "none is left to train on; fewer", fit, validation=["ann", "bob", "cy"]),
    row("validation zero", e.FoldError, "validation=0; from 1 to 2", fit, validation=0),
    row("validation bool", e.FoldError, "validation=True; number; list", fit, validation=True),
    row("validation NaN", e.FoldError, "validation=nan; number", fit, validation=float("nan")),
    row("validation thing", e.FoldError, "validation=; number; list", fit, validation=object()),
    row("validation nested", e.FoldError, "Validation; ['ann']; ann, bob, cy", fit, validation=[["ann"]]),
    row("sfreq negative", e.SamplingRateError, "positive; Hz; -128", fit, sfreq=-128),
    row("sfreq a word", e.SamplingRateError, "number in Hz; 'fast'", dataset, sfreq="fast"),
    row("channel names short", e.ShapeError, "1 channel names for 2 channels", dataset, channels=["C3"]),
    row("channel names twice", e.ShapeError, "C3 stands more than once", dataset, channels=["C3", "C3"]),
    row("channel names a word", e.ShapeError, "channels; list of names; 'C3'", dataset, channels="C3"),
    row("channel names a number", e.ShapeError, "channels; list of names; 2", dataset, channels=2),
    row("class names short", e.ShapeError, "classes has 1 names; fist, rest", dataset, classes=["fist"]),
    row("class names a word", e.ShapeError, "classes; names; 'ab'", dataset, classes="ab"),
    row("class names a number", e.ShapeError, "classes; names; 2", dataset, classes=2),
    row("select unknown subject", e.UnknownSubjectError, "dan; ann, bob, cy", lambda: dataset().select(subjects=["dan"])),
    row("select nested subject", e.UnknownSubjectError, "['ann']; ann, bob, cy", lambda: dataset().select(subjects=[["ann"]])),
    row("select unknown class", e.LabelError, "No class wave; fist, rest", lambda: dataset().select(labels="wave")),
    row("select trial beyond", e.ShapeError, "99; there are 24", lambda: dataset().select(trials=[1, 99])),
    row("select half a trial", e.DtypeError, "mask, a slice or a list", lambda: dataset().select(trials=[0.5])),
    row("select short mask", e.ShapeError, "mask; (3,); 24 trials", lambda: dataset().select(trials=[True] * 3)),
    row("select nothing", e.EmptyDataError, "no trial; Check", lambda: dataset().select(subjects=[])),
    row("pick unknown channel", e.ShapeError, "No channel named Cz; C3, C4", lambda: dataset(channels=["C3", "C4"]).pick_channels(["Cz"])),
    row("pick a word", e.ShapeError, "list of names; 'C3'", lambda: dataset(channels=["C3", "C4"]).pick_channels("C3")),
    row("pick None", e.ShapeError, "list of names; None", lambda: dataset().pick_channels(None)),
    row("combine nothing", e.EmptyDataError, "at least one", at.combine, []),
    row("combine arrays", e.DataError, "SubjectDataset; ndarray", at.combine, [X, X]),
    row("combine one data set", e.DataError, "list of SubjectDataset", lambda: at.combine(dataset())),
    row("combine same people", e.SubjectError, "ann; same_subjects=True", lambda: at.combine([dataset(), dataset()])),
    row("check an array", e.DataError, "SubjectDataset; ndarray", at.check, X),
]  # fmt: skip

SETTINGS = [
    row("measure unknown", e.SettingError, "measure 'mdm'; 'mmd'; began", fit, measure="mdm"),
    row("measure a thing", e.SettingError, "measure 7; adversary", fit, measure=7),
    row("measure a list", e.SettingError, "measure ['mmd']; adversary", fit, measure=["mmd"]),
    row("measure a class", e.SettingError, "no measure; adversary", fit, measure=dict),
    row("mode unknown", e.SettingError, "mode 'conditionall'; 'conditional'; marginal", fit, measure="mmd", mode="conditionall"),
    row("mode unknown without measure", e.SettingError, "mode 'all'; marginal", fit, mode="all"),
    row("augmentation unknown", e.SettingError, "augmentation 'rign'; 'ring'; mask, ring", fit, augment="rign"),
    row("schedule unknown", e.SettingError, "schedule 'cos'; 'cosine'; sqrt, cosine", fit, schedule="cos"),
    row("augmentation twice", e.SettingError, "'mix+mix'; twice; once", fit, augment="mix+mix"),
    row("measure option unknown", e.SettingError, "'mmd'; sigma; length_scale", fit, measure="mmd", measure_options={"sigma": 1}),
    row("measure option value", e.SettingError, "gamma; -1", fit, measure="mige", measure_options={"gamma": -1}),
    row("measure option word", e.SettingError, "pairs='some'; bernoulli", fit, measure="pairmmd", measure_options={"pairs": "some"}),
    row("score estimator", e.SettingError, "'sgee'; ssge", fit, measure="mige", measure_options={"estimator": "sgee"}),
    row("length scale", e.SettingError, "'mean'; median", fit, measure="mmd", measure_options={"length_scale": "mean"}),
    row("length scale a list", e.SettingError, "[1]; median", fit, measure="mmd", measure_options={"length_scale": [1]}),
    row("critic steps", e.SettingError, "n_critic; 0", fit, measure="adversary", measure_options={"n_critic": 0}),
    row("measure options a list", e.SettingError, "measure_options; dict; ['gamma']", fit, measure="mige", measure_options=["gamma"]),
    *(row(f"strength {value!r}", e.SettingError, f"strength; at least 0; {value!r}", fit, measure="mmd", strength=value)
      for value in (-1, float("nan"), "strong", True)),
    *(row(f"warmup_epochs {value!r}", e.SettingError, f"warmup_epochs; {value!r}", fit, measure="mmd", warmup_epochs=value)
      for value in (-1, 0.5, "few")),
    row("encoder unknown", e.SettingError, "'egnet'; 'eegnet'", fit, encoder="egnet"),
    row("encoder thing", e.SettingError, "nn.Module; int", fit, encoder=7),
    row("encoder option unknown", e.SettingError, "kernel; kernel_length", fit, encoder_options={"kernel": 3}),
    row("encoder option value", e.SettingError, "F1; at least 1; 0", fit, encoder_options={"F1": 0}),
    row("encoder options a list", e.SettingError, "encoder_options; dict; ['F1']", fit, encoder_options=["F1"]),
    row("encoder maker", e.SettingError, "must return a torch nn.Module; list", fit, encoder=lambda c, t: [c, t], encoder_options=None),
    row("normalise unknown", e.SettingError, "'zscore'; channel, trial, train, person", fit, normalise="zscore"),
    row("normalise a list", e.SettingError, "['channel']; channel, trial, train, person", fit, normalise=["channel"]),
    *(row(f"{name} {value!r}", e.SettingError, f"{name}; at least 1; {value!r}", fit, **{name: value})
      for name in ("max_epochs", "patience", "checkpoint_every", "subjects_per_batch", "trials_per_subject")
      for value in (0, True, 2.5)),
    *(row(f"learning_rate {value!r}", e.SettingError, f"learning_rate; above 0; {value!r}", fit, learning_rate=value)
      for value in (-0.1, 0, float("nan"), "fast", None, True, 1j)),
    row("weight_decay negative", e.SettingError, "weight_decay; at least 0; -1", fit, weight_decay=-1),
    row("memory_budget negative", e.SettingError, "memory_budget; at least 0; -1", fit, memory_budget=-1),
    row("random_state negative", e.SettingError, "random_state; from 0; -1", fit, random_state=-1),
    row("random_state too large", e.SettingError, "random_state; 2**64", fit, random_state=2**64),
    row("random_state a word", e.SettingError, "random_state; whole number; 'x'", fit, random_state="x"),
    row("device unknown", e.SettingError, "'gpu'; auto, cpu, cuda, mps", fit, device="gpu"),
    row("device absent", e.SettingError, f"no {ABSENT} device; 'cpu'", fit, device=ABSENT),
    row("checkpoint a number", e.SettingError, "checkpoint; path; 5", fit, checkpoint=5),
    row("log a number", e.SettingError, "log; folder; 5", fit, log=5),
    row("verbose a word", e.SettingError, "verbose; True or False; 'no'", fit, verbose="no"),
    row("folds of two", e.FoldError, "at least 3 subjects; ann, bob", fold, ["ann", "bob"]),
    row("folds too many", e.FoldError, "from 3; (3); 9", fold, n_folds=9),
    row("folds bool", e.FoldError, "n_folds; True", fold, n_folds=True),
    row("folds of None", e.MissingSubjectError, "subject", fold, None),
    row("folds of a number", e.ShapeError, "subject; one-dimensional", fold, 3),
    row("folds seed", e.SettingError, "random_state; -1", fold, shuffle=True, random_state=-1),
    row("folds without groups", e.MissingSubjectError, "groups=subject", lambda: next(at.SubjectFolds().split(X))),
    row("folds of fewer", e.ShapeError, "8 values; 24 trials", lambda: next(at.SubjectFolds().split(X, groups=S[:8]))),
    row("batches length", e.ShapeError, "y has 8 values; 24", batches, Y[:8]),
    row("batches NaN", e.SubjectError, "subject is NaN; trials 2", batches, Y, changed(np.repeat([0.0, 1, 2], 8), 2, np.nan)),
    row("batches empty", e.EmptyDataError, "no trials", batches, trials=[]),
    row("batches beyond", e.ShapeError, "99; 24", batches, trials=[99]),
    row("batches size", e.SettingError, "subjects_per_batch; at least 1; 0", batches, Y, S, 0),
    row("batches seed", e.SettingError, "seed; -1", batches, seed=-1),
    row("normaliser unknown", e.SettingError, "'z'; channel, trial, train, person", Normaliser, "z"),
    row("normaliser unfitted", e.SettingError, "train; call fit", lambda: Normaliser("train").transform(X)),
    row("normaliser NaN", e.NonFiniteDataError, "NaN; trials 9; channels 1", lambda: Normaliser("train").fit(changed(X, (9, 1), np.nan))),
    row("normaliser channels", e.ChannelMismatchError, "1 channels; fitted on 2", lambda: Normaliser("train").fit(X).transform(X[:, :1])),
    row("normaliser 2-D", e.ShapeError, "three dimensions; (2, 64)", lambda: Normaliser().transform(X[0])),
    row("normaliser text", e.DtypeError, "real numbers; <U", lambda: Normaliser().transform(X.astype(str))),
    row("normaliser complex", e.DtypeError, "real numbers; complex64", lambda: Normaliser().transform(X * np.complex64(1j))),
    row("synthetic size", e.SettingError, "n_subjects; at least 1; 0", at.make_subjects, 0),
    row("synthetic word", e.SettingError, "n_trials; whole number; 'many'", at.make_subjects, 3, "many"),
    row("synthetic seed", e.SettingError, "random_state; -1", partial(at.make_subjects, random_state=-1)),
    row("synthetic rate", e.SamplingRateError, "positive; -1", partial(at.make_subjects, sfreq=-1)),
    row("load None", e.SourceError, "NoneType; .npz", at.load, None),
    row("load two arrays", e.MissingSubjectError, "who each trial comes from; load((X, y, subject))", at.load, (X, Y)),
    row("load keys", e.SourceError, "labels; X, y, subject", at.load, {"X": X, "labels": Y}),
    row("load an unknown source", e.SettingError, "'moab'; 'moabb'; inria-ern", at.load, "moab:Kalunga2016"),
    row("load a source alone", e.SettingError, "lacks the folder; catalogue()", at.load, "inria-ern:"),
    row("load a name alone", e.SourceError, "does not exist; 'moabb:Cho2017'", at.load, "Cho2017"),
    row("load option of a source", e.SettingError, "label; paradigm, subjects", lambda: at.load("moabb:Cho2017", label=1)),
    row("load option", e.SettingError, "fs; sfreq", lambda: at.load((X, Y, S), fs=128)),
    ("writer dtype", lambda t: StoreWriter(t / "a", dtype="int8"), e.SettingError, "float32; int8"),
    ("writer scale a word", lambda t: StoreWriter(t / "a", dtype="int16", scale="big"), e.SettingError, "scale; positive"),
    ("writer scale of floats", lambda t: StoreWriter(t / "a", scale=0.1), e.SettingError, "scale; int16"),
    ("writer no path", lambda t: StoreWriter(None), e.SettingError, "path; None"),
    ("writer sfreq", lambda t: StoreWriter(t / "a", sfreq=0), e.SamplingRateError, "positive; 0"),
    ("writer outside with", lambda t: StoreWriter(t / "a").append(X, Y, S), e.SettingError, "with StoreWriter"),
    ("writer floats as int16", lambda t: store(t, (X, Y, S), dtype="int16"), e.DtypeError, "ann; float32; int16; Round"),
    ("writer nothing", lambda t: store(t), e.EmptyDataError, "No trials; study"),
    ("writer channels differ", lambda t: store(t, (X, Y, "ann"), (X[:, :1], Y, "bob")), e.ChannelMismatchError, "subject bob; 1 channels; 2"),
    ("writer times differ", lambda t: store(t, (X, Y, "ann"), (X[..., :9], Y, "bob")), e.ShapeError, "subject bob; 9 time points; 64"),
    ("writer labels differ", lambda t: store(t, (X, Y, "ann"), (X, [0] * 24, "bob")), e.DtypeError, "subject bob; y; numbers or text"),
    ("writer names short", lambda t: store(t, (X, Y, S), channels=["C3"]), e.ShapeError, "1 channel names for 2"),
]  # fmt: skip

ROWS = [*SIGNALS, *LABELS, *SETTINGS]
