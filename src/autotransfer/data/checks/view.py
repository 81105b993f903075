"""What a notebook shows of a data set: what it is, who has which classes, what is doubtful."""

from __future__ import annotations

from typing import Any

import numpy as np

from autotransfer.data.checks import check, check_labels
from autotransfer.data.dataset import SubjectDataset
from autotransfer.errors import LabelError, join_some
from autotransfer.notebook import Card, Grid, html

READ_BYTES = 128 * 2**20
"""Signals of at most so many bytes are read when a data set is shown, which takes half a second;
of larger ones, and of files, only what labels tell is told."""

MOST_PEOPLE, MOST_CLASSES = 40, 20


def dataset_html(data: SubjectDataset) -> str:
    """Show a data set as a notebook does: facts, who has which classes, and what `check` finds.

    Parameters
    ----------
    data : SubjectDataset
        Its signals are read if they are in memory and of at most `READ_BYTES`.

    Returns
    -------
    str
        HTML, with all names escaped.

    Examples
    --------
    >>> from autotransfer.data.synthetic import make_subjects
    >>> "Nothing wrong was found." in dataset_html(make_subjects(n_subjects=3, n_trials=10))
    True
    """
    rate = "rate unknown"
    if data.sfreq is not None:
        rate = f"{data.sfreq:g} Hz, {data.n_times / data.sfreq:.3g} s a trial"
    names = join_some([f"`{name}`" for name in data.channels], 12)
    facts = [
        ("people", str(len(data.subject_ids))),
        ("trials", str(data.n_trials)),
        ("channels", f"{data.n_channels}: {names}"),
        ("times", f"{data.n_times} ({rate})"),
        ("classes", f"{len(data.labels)}: {join_some(data.class_names, 12)}"),
    ]
    if data.unit is not None:
        facts.append(("unit", data.unit))
    try:
        grid = _people_and_classes(data)
        warnings, told = _doubts(data)
    except LabelError as error:  # too many cells to count: these are no classes or no people
        grid, warnings, told = None, [str(error)], []
    return html(Card("SubjectDataset", warnings, facts=facts, grid=grid, sentences=told))


def _doubts(data: SubjectDataset) -> tuple[list[str], list[str]]:
    """Say what is doubtful, and what was looked at."""
    read = data.trials.nbytes <= READ_BYTES and not _in_file(data.trials.base)
    report = check(data) if read else check_labels(data)
    lines = str(report).splitlines() if len(report) else []
    told = [] if lines else ["Nothing wrong was found."]
    if not read:
        told = ["The signals were not read for this: `autotransfer.check(data)` looks at them."]
    return lines, told


def _in_file(array: Any) -> bool:
    """Whether an array is, or is cut from, a map of a file, which may be on a disk far away."""
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


def _people_and_classes(data: SubjectDataset) -> Grid:
    """Count trials; of many people the first are shown, and the spread of all."""
    counts = data.counts()
    classes = [str(name) for name in data.class_names[:MOST_CLASSES]]
    people = [str(name) for name in data.subject_names]
    more = len(data.labels) - len(classes)
    columns = [*classes, *([f"+{more}"] if more else []), "all"]

    def line(row: np.ndarray) -> list[int]:
        rest = [int(row[MOST_CLASSES:].sum())] if more else []
        return [*map(int, row[:MOST_CLASSES]), *rest, int(row.sum())]

    shown = len(people) if len(people) <= MOST_PEOPLE else MOST_PEOPLE - 4
    rows, cells = people[:shown], [line(row) for row in counts[:shown]]
    if shown < len(people):
        rows = [*rows, f"… {len(people) - shown} more"]
        cells.append([])
        for word, q in (("least", 0), ("median", 50), ("most", 100)):
            spread = np.percentile(counts, q, axis=0, method="nearest")[:MOST_CLASSES]
            rest = [int(np.percentile(counts[:, MOST_CLASSES:].sum(1), q, method="nearest"))]
            total = int(np.percentile(counts.sum(1), q, method="nearest"))
            rows = [*rows, word]
            cells.append([*map(int, spread), *(rest if more else []), total])
    return Grid("trials of", columns, rows, cells, max(int(counts[:, :MOST_CLASSES].max()), 1))
