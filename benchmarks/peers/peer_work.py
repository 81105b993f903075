"""One training of a method on a fold, and its scores: the only place that sees test labels."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score

import autotransfer as at
from autotransfer.data.splits import Fold
from autotransfer.errors import AutoTransferError
from benchmarks.common import pool
from benchmarks.common.recordings import at_work
from benchmarks.peers.known import Array, Known, Model
from benchmarks.peers.methods import METHODS


@dataclass(frozen=True)
class Job(pool.Job):
    """One training: a method with a setting on a fold of a data set."""

    dataset: str
    method: str
    setting: str
    """As JSON."""
    fold: int
    seed: int
    options: str
    """Options of the networks of the data set, as JSON."""


def fit(job: Job, data: at.SubjectDataset, fold: Fold) -> Model:
    """Fit the method of a job; of the test subjects it is handed at most their signals."""
    method = METHODS[job.method]
    known = Known.of(job.dataset, data, fold, json.loads(job.options), job.seed)
    new = None
    if method.needs_new:
        new = [data.select(subjects=[who]).trials[:] for who in fold.subjects("test")]
    return method.fit(known, new, **json.loads(job.setting))


def people(data: at.SubjectDataset, fold: Fold, side: str) -> Iterator[at.SubjectDataset]:
    """Walk over the subjects of a side, each with all of its trials."""
    for who in fold.subjects(side):
        yield data.select(subjects=[who])


def score(model: Model, data: at.SubjectDataset, fold: Fold, side: str) -> dict[str, Any]:
    """Balanced accuracy of each subject of a side, and of all its trials together."""
    subjects: dict[str, float] = {}
    truth: list[Array] = []
    predicted: list[Array] = []
    for one in people(data, fold, side):
        predicted.append(model(one.trials[:]))
        truth.append(one.y)
        subjects[one.subject_names[0]] = float(balanced_accuracy_score(one.y, predicted[-1]))
    pooled = balanced_accuracy_score(np.concatenate(truth), np.concatenate(predicted))
    return {"subjects": subjects, "pooled": float(pooled)}


def run(job: Job) -> dict[str, Any]:
    """Fit a job's method and score its validation and test subjects.

    Returns
    -------
    dict
        "test" and "validation_subjects" (subject -> balanced accuracy), "validation" (of all
        validation trials, as in ``accuracy/erm.py``), "seconds" of fitting; "error" instead
        where the training failed, which is a result, too: its setting cannot be chosen.
    """
    recording, data = at_work(job.dataset)
    warnings.simplefilter("ignore")  # of five libraries, at every fold
    fold = recording.folds(data)[job.fold]
    start = time.process_time()
    try:
        model = fit(job, data, fold)
    except (AutoTransferError, np.linalg.LinAlgError) as error:
        return {"error": f"{type(error).__name__}: {error}", "seconds": time.process_time() - start}
    seconds = time.process_time() - start
    validation = score(model, data, fold, "validation")
    return {
        "test": score(model, data, fold, "test")["subjects"],
        "validation": validation["pooled"],
        "validation_subjects": validation["subjects"],
        "seconds": seconds,
    }
