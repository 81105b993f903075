"""The first law: nothing of a test subject reaches the model that is tested on them."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import cross_validate

from autotransfer import CensoredClassifier, SubjectDataset, make_subjects
from autotransfer.censoring import MEASURES, MODES
from autotransfer.data.normalise import NORMALISERS
from autotransfer.data.splits import SubjectFolds

DATA = make_subjects(n_subjects=5, n_trials=20, n_channels=3, n_times=64, random_state=2)
FOLD = 1  # validates on subject 1, tests on subject 2
VALIDATION, TEST, TRAIN = 1, 2, 3
every_normalisation = pytest.mark.parametrize("normalise", list(NORMALISERS))


def classifier(normalise="channel", **options):
    return CensoredClassifier(
        encoder_options={"F1": 2, "D": 1, "kernel_length": 8, "depthwise_kernel_length": 4},
        normalise=normalise,
        max_epochs=6,
        patience=3,
        learning_rate=0.02,
        subjects_per_batch=3,
        trials_per_subject=8,
        random_state=0,
        device="cpu",
        verbose=False,
        **options,
    )


def procedure(data, normalise, **options):
    """Folds by subject, one fold's training and validation subjects, fit; as the search does."""
    fold = list(SubjectFolds().folds(data.subject))[FOLD]
    assert fold.subjects("test") == [TEST]
    part = data.select(trials=np.union1d(fold.train, fold.validation))
    clf = classifier(normalise, validation=fold.subjects("validation"), **options)
    return bits(clf.fit(part.X, part.y, subject=part.subject))


def bits(clf):
    """All that a fit leaves behind which a prediction or a report could use."""
    found = {name: value.numpy().tobytes() for name, value in clf.network_.state_dict().items()}
    history = [{k: v for k, v in entry.items() if k != "seconds"} for entry in clf.history_]
    provenance = {k: v for k, v in clf.provenance_.items() if k != "data_fingerprint"}
    return found, history, clf.best_epoch_, clf.normaliser_.state(), provenance


def scramble(y, subject, who):
    out = y.copy()
    out[subject == who] = 1 - out[subject == who]
    return out


def with_signals(data, who, change):
    X = np.array(data.X)
    X[data.subject == who] = change(X[data.subject == who])
    return SubjectDataset(X, data.y, data.subject, sfreq=data.sfreq)


def with_labels(data, who):
    y = scramble(data.y, data.subject, who)
    return SubjectDataset(data.X, y, data.subject, sfreq=data.sfreq)


CHANGES = {
    "labels": lambda who: with_labels(DATA, who),
    "noise": lambda who: with_signals(
        DATA, who, lambda x: np.random.default_rng(9).normal(size=x.shape)
    ),
    "huge": lambda who: with_signals(DATA, who, lambda x: x * 1e18 + 1e20),
    "zeros": lambda who: with_signals(DATA, who, np.zeros_like),
}


@every_normalisation
@pytest.mark.parametrize("change", list(CHANGES))
def test_nothing_of_the_test_subject_reaches_the_model(normalise, change):
    assert procedure(CHANGES[change](TEST), normalise) == procedure(DATA, normalise)


@pytest.mark.filterwarnings("ignore::autotransfer.AutoTransferWarning")
@pytest.mark.parametrize("mode", list(MODES))
@pytest.mark.parametrize("measure", list(MEASURES))
def test_nothing_of_the_test_subject_reaches_a_censored_model(measure, mode):
    before = procedure(DATA, "channel", measure=measure, mode=mode)
    for change in ("labels", "noise"):
        changed = CHANGES[change](TEST)
        assert procedure(changed, "channel", measure=measure, mode=mode) == before
    # A validation subject's labels change neither the critics nor the penalty.
    after = procedure(with_labels(DATA, VALIDATION), "channel", measure=measure, mode=mode)
    n = min(len(before[1]), len(after[1]))
    penalties = [[entry["penalty"] for entry in run[1]][:n] for run in (before, after)]
    assert penalties[0] == penalties[1]


@every_normalisation
def test_the_model_is_the_same_without_the_test_subject(normalise):
    without = DATA.select(subjects=[0, VALIDATION, TRAIN, 4])
    clf = classifier(normalise, validation=[VALIDATION])
    alone = bits(clf.fit(without.X, without.y, subject=without.subject))
    assert alone == procedure(DATA, normalise)


@every_normalisation
def test_the_test_subjects_place_in_the_file_does_not_matter(normalise):
    others, tested = np.flatnonzero(DATA.subject != TEST), np.flatnonzero(DATA.subject == TEST)
    first = DATA.select(trials=np.r_[tested, others])
    between = DATA.select(trials=np.insert(others, np.arange(0, 40, 2), tested))
    assert (
        procedure(first, normalise) == procedure(between, normalise) == procedure(DATA, normalise)
    )


# The tests above can fail: what should matter does.


def test_the_validation_subjects_labels_decide_when_to_stop():
    before, after = procedure(DATA, "channel"), procedure(with_labels(DATA, VALIDATION), "channel")
    told = [[entry["validation_loss"] for entry in run[1]] for run in (before, after)]
    assert told[0] != told[1]
    assert before[2] != after[2]  # the epoch kept
    assert before[0] != after[0]  # and so the weights
    n = min(map(len, told))
    losses = [[entry["task_loss"] for entry in run[1]][:n] for run in (before, after)]
    assert losses[0] == losses[1]  # but nobody trains on them


def test_the_validation_subjects_signals_do_not_train():
    before, after = procedure(DATA, "train"), procedure(CHANGES["noise"](VALIDATION), "train")
    assert before[3] == after[3]  # normaliser
    n = min(len(before[1]), len(after[1]))
    losses = [[entry["task_loss"] for entry in run[1]][:n] for run in (before, after)]
    assert losses[0] == losses[1]
    assert before[1] != after[1]


@every_normalisation
@pytest.mark.parametrize("change", ["labels", "noise", "zeros"])
def test_a_training_subject_changes_the_weights(normalise, change):
    before, after = procedure(DATA, normalise), procedure(CHANGES[change](TRAIN), normalise)
    assert before[0]["head.weight"] != after[0]["head.weight"]


def test_nor_through_scikit_learns_cross_validation():
    """`cross_validate` gives two sides; the classifier finds its validation subjects in its own."""
    folds = SubjectFolds()

    def models(data):
        with config_context(enable_metadata_routing=True):
            clf = classifier(validation=1).set_fit_request(subject=True)
            found = cross_validate(
                clone(clf),
                data.X,
                data.y,
                cv=list(folds.split(data.X, data.y, groups=data.subject)),
                params={"subject": data.subject},
                return_estimator=True,
                error_score="raise",
            )
        return [(bits(made), made) for made in found["estimator"]]

    plain, changed = models(DATA), models(with_labels(CHANGES["noise"](TEST), TEST))
    same = [one[0] == other[0] for one, other in zip(plain, changed, strict=True)]
    assert same == [fold.subjects("test") == [TEST] for fold in folds.folds(DATA.subject)]
    for (_, made), fold in zip(plain, folds.folds(DATA.subject), strict=True):
        seen = {*made.training_subjects_, *made.validation_subjects_}
        assert seen == set(range(5)) - set(fold.subjects("test"))
