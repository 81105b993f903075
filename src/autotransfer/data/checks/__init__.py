"""`check`: look a data set over before hours are spent on it."""

from __future__ import annotations

from autotransfer.data.checks.axes import axis_findings, normalisation_findings
from autotransfer.data.checks.copies import CopyWatch
from autotransfer.data.checks.findings import Report
from autotransfer.data.checks.labels import LabelWatch
from autotransfer.data.checks.signals import RangeWatch
from autotransfer.data.checks.study import study_findings
from autotransfer.data.dataset import SubjectDataset
from autotransfer.errors import DataError, SettingError

CHECK_CHUNK_BYTES = 8 * 2**20  # all watchers look at a block while it is near the processor


def check(data: SubjectDataset, n_min: int = 4, normalise: str | None = None) -> Report:
    """Check labels and signals; the signals are read once, in blocks.

    Errors: NaN or infinite values; fewer than 2 subjects or classes; a class of one subject only;
    trials or windows that stand under two subjects. Warnings: flat and clipped channels, flat
    trials, channels that give the class away, equal trials of a subject, recording ids under two
    subjects, subjects that lack a class, small (subject, class) cells, axes that look swapped.

    Parameters
    ----------
    data : SubjectDataset
        Labelled trials, in memory or memory-mapped.
    n_min : int
        Trials that a (subject, class) cell needs for conditional censoring.
    normalise : str, optional
        How signals will be normalised, if it shall be said whether that suits them.

    Returns
    -------
    Report
        The findings: print it, or call ``raise_errors()`` and ``warn()``.

    Notes
    -----
    Trials are numbered from 0, in the order of the data set.

    Examples
    --------
    >>> from autotransfer.data.synthetic import make_subjects
    >>> data = make_subjects(n_subjects=3, n_trials=10)
    >>> print(check(data))
    Nothing wrong was found.
    >>> data.X[4, 1, :] = 0.5
    >>> print(check(data))
    warning (flat-channel): Subject 0 has flat channels: ch1 in trial 4. The electrode was off \
or the recording was interrupted; normalised, such a channel is zeros.
    """
    if not isinstance(data, SubjectDataset):
        raise DataError(
            f"check takes a SubjectDataset, not a {type(data).__name__}. Make one with load or "
            "SubjectDataset(X, y, subject)."
        )
    if n_min < 1:
        raise SettingError(f"n_min must be at least 1, not {n_min}.")
    findings = list(study_findings(data, n_min))
    findings += [*axis_findings(data), *normalisation_findings(data, normalise)]
    watchers = (RangeWatch(data), LabelWatch(data), CopyWatch(data))
    for start, block in data.trials.chunks(CHECK_CHUNK_BYTES):
        for watcher in watchers:
            watcher.look(start, block)
    for watcher in watchers:
        findings.extend(watcher.findings())
    return Report(findings)


def check_labels(data: SubjectDataset, n_min: int = 4) -> Report:
    """Check what labels, subjects and recordings alone tell, as `check` does; nothing is read.

    Parameters
    ----------
    data, n_min
        As for `check`.
    """
    return Report(list(study_findings(data, n_min)))
