"""What is wrong with the design of a study: who has which classes, how many trials, recordings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from autotransfer.data.checks.findings import Finding, error, warning
from autotransfer.data.dataset import SubjectDataset
from autotransfer.errors import join_some


def study_findings(data: SubjectDataset, n_min: int) -> Iterator[Finding]:
    """Find what labels, subjects and recordings alone tell; the signals are not read."""
    if len(data.subject_ids) < 2:
        yield error(
            "few-subjects",
            f"All trials are of one subject, {data.subject_names[0]}. Transfer to new people "
            "needs at least 2 subjects, 3 with one left out for validation and one for the test.",
            subjects=tuple(data.subject_ids.tolist()),
        )
    if len(data.labels) < 2:
        yield error(
            "one-class",
            f"All trials are of one class, {data.class_names[0]}. There is nothing to tell apart: "
            "hand over trials of at least 2 classes.",
            classes=tuple(data.labels.tolist()),
        )
    yield from _classes(data)
    yield from _cells(data, n_min)
    yield from _recordings(data)


def _classes(data: SubjectDataset) -> Iterator[Finding]:
    """Find classes that only one subject has, and subjects that lack a class."""
    counts = data.counts()
    if len(data.subject_ids) < 2:
        return
    in_one_subject = (counts > 0).sum(axis=0) == 1
    for k in np.flatnonzero(in_one_subject):
        owner = int(counts[:, k].argmax())
        trials = np.flatnonzero(data.y_code == k)
        yield error(
            "class-in-one-subject",
            f"Class {data.class_names[k]} exists in subject {data.subject_names[owner]} only, so "
            "class and person cannot be told apart. Leave this class out "
            f"(trials {join_some(trials.tolist())}), or check the labels.",
            subjects=(data.subject_ids[owner].item(),),
            classes=(data.labels[k].item(),),
            trials=tuple(trials.tolist()),
        )
    for s in np.flatnonzero((counts[:, ~in_one_subject] == 0).any(axis=1)):
        missing = np.flatnonzero((counts[s] == 0) & ~in_one_subject)
        yield warning(
            "missing-class",
            f"Subject {data.subject_names[s]} has no trials of class "
            f"{join_some([data.class_names[k] for k in missing])}. What is censored may then be "
            "part of the task; prefer the conditional mode, or leave the subject out.",
            subjects=(data.subject_ids[s].item(),),
            classes=tuple(data.labels[missing].tolist()),
        )


def _cells(data: SubjectDataset, n_min: int) -> Iterator[Finding]:
    """Find (subject, class) cells too small for conditional censoring; empty ones are above."""
    counts = data.counts()
    for s in np.flatnonzero(((counts > 0) & (counts < n_min)).any(axis=1)):
        small = np.flatnonzero((counts[s] > 0) & (counts[s] < n_min))
        cells = join_some([f"{counts[s, k]} of class {data.class_names[k]}" for k in small])
        yield warning(
            "small-cell",
            f"Subject {data.subject_names[s]} has too few trials for conditional censoring: "
            f"{cells}, where at least {n_min} are wanted. Use the marginal mode, or record more.",
            subjects=(data.subject_ids[s].item(),),
            classes=tuple(data.labels[small].tolist()),
            trials=tuple(
                np.flatnonzero((data.subject_code == s) & np.isin(data.y_code, small)).tolist()
            ),
        )


def _recordings(data: SubjectDataset) -> Iterator[Finding]:
    """Find recording ids that stand under two subjects though ids look unique over all people.

    Ids that start again for each subject (0, 1, 2, ... or run-01, run-02, ...) are normal. They
    are recognised by this: half of the subjects or more begin with the same smallest id, or half
    of the ids or more occur in several subjects. Otherwise ids look global, and one that stands
    under two subjects is doubtful. Only a warning: proof is in the samples (see `copies`).
    """
    if data.recording is None or len(data.subject_ids) < 2:
        return
    ids, code = np.unique(data.recording, return_inverse=True)
    pairs = np.unique(np.stack([code, data.subject_code], axis=1), axis=0)
    n_subjects = np.bincount(pairs[:, 0], minlength=len(ids))
    shared = np.flatnonzero(n_subjects > 1)
    if n_subjects[0] * 2 >= len(data.subject_ids) and n_subjects[0] > 1:
        return
    if len(shared) == 0 or 2 * len(shared) >= len(ids):
        return
    for recording in shared:
        subjects = pairs[pairs[:, 0] == recording, 1]
        trials = np.flatnonzero(code == recording)
        yield warning(
            "recording-across-subjects",
            f"Recording {ids[recording]} stands under subjects "
            f"{join_some([data.subject_names[s] for s in subjects])} (trials "
            f"{join_some(trials.tolist())}). If it is one recording, give its trials one subject "
            "id; if ids are counted anew for each person, this is fine.",
            subjects=tuple(data.subject_ids[subjects].tolist()),
            trials=tuple(trials.tolist()),
        )
