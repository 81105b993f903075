"""Pictures of a run for a paper or a notebook: every one of the report, as matplotlib axes.

Each function takes a run (its folder, or a fitted `autotransfer.AutoTransfer`) and draws what the
report shows of it; those that need nothing but numbers take these instead.

Examples
--------
>>> import autotransfer as at
>>> at.plots.people({"before": {"ann": 0.6, "bob": 0.7}, "after": {"ann": 0.8, "bob": 0.7}})
<Axes: xlabel='balanced accuracy, %', ylabel='person'>
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from matplotlib.axes import Axes

from autotransfer.errors import IncompleteResultsError
from autotransfer.report import filters as trained
from autotransfer.report import pictures
from autotransfer.report.figures import classes as of_classes
from autotransfer.report.figures import filters as of_filters
from autotransfer.report.figures import scores as of_scores
from autotransfer.report.figures.theme import LIGHT, Sheet, drawing
from autotransfer.report.gather import gather
from autotransfer.report.record import Record
from autotransfer.search.procedures.held_out import reliability

Drawn = TypeVar("Drawn", Axes, list[Axes])

__all__ = [
    "calibration",
    "classes",
    "confusion",
    "curves",
    "filters",
    "leakage",
    "levels",
    "maps",
    "methods",
    "people",
]


def levels(run: Any) -> list[Axes]:
    """Draw accuracy of people held out against what is known of them.

    Parameters
    ----------
    run : AutoTransfer or path
        A finished hands-off run.

    Returns
    -------
    list of Axes
        Unlabelled trials, then labels.
    """
    return _several(_of_run(run, "levels", None))


def people(scores: Any, *, chance: float | None = None, ax: Axes | None = None) -> Axes:
    """Draw the scores of each person: with nothing known, with a recording, with labels.

    Parameters
    ----------
    scores : AutoTransfer, path, or mapping of str to mapping of str to float
        A run; or name of a method -> person -> balanced accuracy, for up to four methods.
    chance : float, optional
        What guessing gives, for a mapping.
    ax : Axes, optional
        To draw on; a figure of its own by default.
    """
    if not isinstance(scores, Mapping):
        return _one(_of_run(scores, "people", ax))
    given = {str(name): own for name, own in scores.items()}
    return _drawn(lambda sheet: of_scores.draw_people(given, chance, sheet), ax)


def methods(run: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the scores of everybody with each setting that was tried on all groups of people."""
    return _one(_of_run(run, "methods", ax))


def classes(run: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how much of each class was recognised of every person."""
    return _one(_of_run(run, "classes", ax))


def confusion(counts: Any, names: Sequence[str] | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw a confusion matrix.

    Parameters
    ----------
    counts : AutoTransfer, path, or array of int of shape (n_classes, n_classes)
        A run; or numbers of trials, rows are true classes (as scikit-learn's
        ``confusion_matrix``).
    names : sequence of str, optional
        Of the classes, for an array.
    ax : Axes, optional
        To draw on; a figure of its own by default.
    """
    if _is_run(counts):
        return _one(_of_run(counts, "confusion", ax))
    rows = np.asarray(counts, np.int64)
    shown = [str(i) for i in range(len(rows))] if names is None else list(map(str, names))
    return _drawn(lambda sheet: of_classes.draw_confusion(rows, shown, sheet), ax)


def curves(run: Any) -> list[Axes]:
    """Draw the learning curves of what was chosen."""
    return _several(_of_run(run, "curves", None))


def leakage(run: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how often a fresh probe recognises the person from the latent."""
    return _one(_of_run(run, "leakage", ax))


def maps(run: Any) -> list[Axes]:
    """Draw trials of a few people by their latents, in two dimensions."""
    return _several(_of_run(run, "maps", None))


def filters(model: Any) -> list[Axes]:
    """Draw the spatial filters that weigh most, each beside the frequencies it is of.

    Parameters
    ----------
    model : CensoredClassifier, Ensemble, AutoTransfer or path
        With an EEGNet: a fitted model, its folder, or a run.
    """
    if _is_run(model) and not _is_model_folder(model):
        return _several(_of_run(model, "filters", None))
    found = trained.filters_of(model)
    if found is None:
        raise IncompleteResultsError("This model has no EEGNet, whose filters could be drawn.")
    parts = found.spatial, found.response, found.frequencies, found.channels
    return _drawn(lambda sheet: of_filters.draw_filters(*parts, sheet, found.in_hertz), None)


def calibration(probabilities: Any, y: Any = None, *, ax: Axes | None = None) -> Axes:
    """Draw how often a model is right against how sure it is.

    Parameters
    ----------
    probabilities : AutoTransfer, path, or array of float of shape (n_trials, n_classes)
        A run; or class probabilities.
    y : array of int of shape (n_trials,), optional
        Numbers of the true classes, for an array: 0 for the first column.
    ax : Axes, optional
        To draw on; a figure of its own by default.
    """
    if _is_run(probabilities):
        return _one(_of_run(probabilities, "calibration", ax))
    found = np.asarray(probabilities, np.float64)
    parts = reliability(found.max(1), found.argmax(1) == np.asarray(y))
    chance = 1 / found.shape[1]
    return _drawn(lambda sheet: of_classes.draw_calibration(*parts, chance, sheet), ax)


def _is_run(given: Any) -> bool:
    return isinstance(given, str | os.PathLike | Record) or hasattr(given, "run_")


def _is_model_folder(given: Any) -> bool:
    paths = isinstance(given, str | os.PathLike)
    return paths and not (Path(given).expanduser() / "run.json").exists()


def _of_run(run: Any, name: str, ax: Axes | None) -> Axes | list[Axes]:
    """Draw one of the report's pictures."""
    record = run
    if not isinstance(run, Record):
        folder = Path(getattr(run, "run_", run)).expanduser()
        record = gather(folder, getattr(run, "storage", None))
    picture = pictures.picture(record, name)
    if picture is None:
        raise IncompleteResultsError(
            f"The run {record.name} has no numbers for the picture {name!r}. Its report says why; "
            "a run that is not finished may have them later."
        )
    with drawing(LIGHT):
        return picture.draw(Sheet(LIGHT, picture.stamp, ax, shown=True))


def _drawn(draw: Callable[[Sheet], Drawn], ax: Axes | None) -> Drawn:
    with drawing(LIGHT):
        return draw(Sheet(LIGHT, on=ax, shown=True))


def _one(drawn: Axes | list[Axes]) -> Axes:
    return drawn if isinstance(drawn, Axes) else drawn[0]


def _several(drawn: Axes | list[Axes]) -> list[Axes]:
    return drawn if isinstance(drawn, list) else [drawn]
