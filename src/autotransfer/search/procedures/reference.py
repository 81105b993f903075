"""The classical pipelines of the field on the same people: what a network has to beat."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.data.align import covariances
from autotransfer.data.problem import Problem
from autotransfer.data.splits import Fold
from autotransfer.data.trials import evenly
from autotransfer.search.driver import Driver
from autotransfer.search.engines.base import Handle
from autotransfer.search.ledger import Ledger
from autotransfer.search.procedures.closing import Start, record_extra, submit
from autotransfer.search.progress import RunProgress
from autotransfer.search.settings.trial import digest
from autotransfer.search.shared import Shared
from autotransfer.search.tasks import scores

Signals = npt.NDArray[np.float64]

MOST_TRIALS = 1500
"""Training trials at most, evenly over all: more cost minutes and change little."""

BANDS = [(low, low + 4.0) for low in range(4, 40, 4)]
"""Of the filter bank, in Hz."""

MOST_CHANNELS = 24
"""Of the filter bank: its covariances have as many values as bands times channels squared."""


def begin_reference(
    n_groups: int,
    problem_hash: str,
    ledger: Ledger,
    start: Start,
    driver: Driver,
    progress: RunProgress,
) -> Callable[[], None]:
    """Start the classical reference, if it is not on record; gives what waits for it.

    Parameters
    ----------
    n_groups : int
        Groups of people.
    problem_hash : str
        Hash of the data and of the options that all trials share.
    ledger, start, driver, progress
        Of the run.
    """
    key = digest(["reference", problem_hash, n_groups])
    if key in ledger.ids("reference"):
        return lambda: None
    task = partial(submit, start, reference, n_groups)
    future = task()

    def end() -> None:
        parts = (task, "classical reference", ledger, driver, progress)
        record_extra(future, *parts, id=key, stage="reference", definition={"n_folds": n_groups})

    return end


def reference(handle: Handle, n_groups: int) -> dict[str, Any]:
    """Score everybody by classical pipelines, held out by the groups of the trials.

    Covariance matrices, shrunk, are mapped to the tangent space at their log-Euclidean mean by
    pyRiemann (Barachant et al., 2012, doi 10.1109/TBME.2011.2172210) and classified by logistic
    regression. They are those of the channels ("covariances"), of the channels in bands of 4 Hz
    ("filter bank"), or of the channels beside the averages of the classes ("class averages";
    Congedo et al., 2013, arXiv 1310.8115). Nothing is tuned.

    Parameters
    ----------
    handle : Handle
        Of what all trials share, a `Shared`.
    n_groups : int
        Groups of people, those of the trials.

    Returns
    -------
    dict
        ``subjects``: balanced accuracy of each person by the pipeline whose mean is highest, which
        flatters it a little; ``pipeline``: its name; ``means``: of all; ``seconds``.
    """
    shared: Shared = handle.get()
    problem = shared.problem
    start = time.perf_counter()
    people: dict[str, dict[str, float]] = {}
    for fold in problem.groups(n_groups):
        for name, predicted in predictions(problem, fold):
            found = scores(problem, fold.validation, predicted)["subjects"]
            people.setdefault(name, {}).update(found)
    means = {name: float(np.mean(list(values.values()))) for name, values in people.items()}
    best = max(means, key=lambda name: means[name])
    return {
        "subjects": people[best],
        "pipeline": best,
        "means": means,
        "seconds": time.perf_counter() - start,
    }


def predictions(problem: Problem, fold: Fold) -> Iterator[tuple[str, npt.NDArray[np.intp]]]:
    """Train every pipeline on the training people and predict those held out."""
    # Here and not above: drivers import this module, and do not need them.
    from pyriemann.tangentspace import TangentSpace
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    def features(known: Signals, unknown: Signals) -> tuple[Signals, Signals]:
        space, scale = TangentSpace("logeuclid"), StandardScaler()
        inside = scale.fit_transform(space.fit_transform(covariances(known)))
        return inside, scale.transform(space.transform(covariances(unknown)))

    def predict(known: Signals, unknown: Signals) -> npt.NDArray[np.intp]:
        strength = 10 / known.shape[1]  # of the prior: the more features, the less of each
        model = LogisticRegression(C=strength, max_iter=200, class_weight="balanced")
        codes: npt.NDArray[np.intp] = model.fit(known, y).predict(unknown)
        return codes

    train = fold.train[evenly(len(fold.train), MOST_TRIALS)]
    X, y = scaled(problem.X[train]), problem.codes[train]
    new = scaled(problem.X[fold.validation])
    sfreq, channels = problem.info.sfreq, X.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of convergence: it is scored as it is
        yield "covariances", predict(*features(X, new))
        averages = class_averages(X, y)
        yield "class averages", predict(*features(beside(X, averages), beside(new, averages)))
        bands = [band for band in BANDS if sfreq is not None and band[1] < 0.45 * sfreq]
        if channels <= MOST_CHANNELS and bands and sfreq is not None:
            parts = [features(filtered(X, b, sfreq), filtered(new, b, sfreq)) for b in bands]
            known, unknown = (np.hstack(side) for side in zip(*parts, strict=True))
            yield "filter bank", predict(known, unknown)


def class_averages(X: Signals, y: npt.NDArray[np.intp]) -> Signals:
    """Give the two main time courses of the average of each class, of shape (2 * classes, T)."""
    courses = []
    for code in np.unique(y):
        _, size, right = np.linalg.svd(X[y == code].mean(0), full_matrices=False)
        courses.append(size[:2, None] * right[:2])
    return np.vstack(courses)


def beside(X: Signals, courses: Signals) -> Signals:
    """Put time courses beside the channels of every trial."""
    return np.concatenate([np.broadcast_to(courses, (len(X), *courses.shape)), X], axis=1)


def filtered(X: Signals, band: tuple[float, float], sfreq: float) -> Signals:
    """Keep one band of signals (n, C, T)."""
    from scipy.signal import butter, sosfiltfilt

    sections = butter(3, band, "bandpass", fs=sfreq, output="sos")
    padding = min(X.shape[2] - 1, 3 * (2 * len(sections) + 1))
    return np.ascontiguousarray(sosfiltfilt(sections, X, axis=2, padlen=padding))


def scaled(block: npt.NDArray[Any]) -> Signals:
    """Bring every trial to mean square 1, so that squares of microvolts in volts do not vanish."""
    signals: Signals = block - block.mean(2, keepdims=True, dtype=np.float64)
    size = np.sqrt(np.square(signals).mean((1, 2), keepdims=True))
    signals /= np.where(size > 0, size, 1.0)
    return signals
