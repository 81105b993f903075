"""What a worker does: train a trial and score it."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.adaptation.statistics import adaptable
from autotransfer.data.info import is_ring
from autotransfer.data.problem import Problem
from autotransfer.data.splits import Fold, hold_out
from autotransfer.data.trials import Array, Index, evenly
from autotransfer.errors import AutoTransferWarning, NonFiniteLossError
from autotransfer.search.engines.base import Handle
from autotransfer.search.levels.cases import N_LABELS, mean_recall, standard_cases
from autotransfer.search.levels.person import people_held_out, score_cases, seen_of
from autotransfer.search.settings.trial import Trial
from autotransfer.search.shared import Shared
from autotransfer.training import CensoredClassifier
from autotransfer.training.model.folder import write_files

ADAPTED_TO = 64
"""Unlabelled trials that a model is adapted to: more gain little (docs/level_tables.md), and all
are in memory at once."""


def run_trial(handle: Handle, trial: Trial) -> dict[str, Any]:
    """Train a trial and score it.

    Parameters
    ----------
    handle : Handle
        Of what all trials share, a `Shared`.
    trial : Trial
        What to train.

    Returns
    -------
    dict
        What JSON can hold: balanced accuracy of validation and test subjects, together, one by one
        and by class; of each test subject after `adapt`; curves; epochs; seconds; names of
        warnings. All but the seconds is equal whenever the same trial is run again on the same kind
        of machine. A trial that holds out a group has no test people of its own: those who validate
        are both, and their class probabilities are there too, as bytes of float16, and the network
        as the files of a model folder.
    """
    shared: Shared = handle.get()
    problem = shared.problem
    fold = trial.fold_of(problem)
    start = time.perf_counter()
    checkpoint = None
    if shared.checkpoints is not None:
        # Without the epochs: a trial that was stopped early goes on where it stood.
        shorter = Trial(trial.setting, trial.fold, trial.n_folds, trial.seed, 0)
        checkpoint = Path(shared.checkpoints) / f"{shorter.id(shared.hash)}.safetensors"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf = classifier(
            shared, trial, max_epochs=trial.epochs, checkpoint=checkpoint, checkpoint_every=10**9
        )
        seed = trial.random_state(shared.hash)
        clf.fit_fold(problem, fold, seed)
    names = [w.category.__name__ for w in caught if issubclass(w.category, AutoTransferWarning)]
    probabilities = held_out_probabilities(shared, trial, clf)
    validation = scores(problem, fold.validation, probabilities.argmax(1))
    test, new = validation, fold.validation
    more: dict[str, Any] = {}
    if trial.grouped:
        more["probabilities"] = probabilities.astype(np.float16).tobytes()
        more["network"] = clf.files()
    else:
        new = fold.test
        test = scores(problem, new, clf.predict_codes(problem.X.take(new)))
    result: dict[str, Any] = more | {
        "validation": validation,
        "test": test,
        "adapted": adapted(clf, problem, new),
        "epochs": len(clf.history_),
        "best_epoch": clf.best_epoch_,
        "still_falling": still_falling(clf.history_),
        "curves": curves(clf.history_),
        "warnings": sorted(set(names)),
        "seconds": time.perf_counter() - start,
        "epoch_seconds": float(np.mean([entry["seconds"] for entry in clf.history_])),
    }
    if not np.isfinite(result["validation"]["balanced_accuracy"]):
        raise NonFiniteLossError(f"The score of {trial} is not a number.")
    return result


def held_out_probabilities(shared: Shared, trial: Trial, clf: CensoredClassifier) -> Array:
    """Predict who validates, as somebody of whom is known what the run was told of new people.

    Returns
    -------
    array of shape (n_trials, n_classes)
        Class probabilities of ``fold.validation``.
    """
    problem = shared.problem
    trials = trial.fold_of(problem).validation
    found = clf.probabilities(problem.X.take(trials))
    if shared.new_person != "nothing":
        seed = trial.random_state(shared.hash)
        for person, known in people_held_out(problem, trials, clf, seed).items():
            mine = problem.subject[trials].astype(str) == person
            found[mine] = known.probabilities(shared.new_person, shared.n_labels)
    return found


def classifier(shared: Shared, trial: Trial, **more: Any) -> CensoredClassifier:
    """Make the classifier of a trial."""
    options = {**trial.setting.classifier_options(shared.options), "verbose": False, **more}
    return CensoredClassifier(**options)


def scores(problem: Problem, trials: Index, predicted: Index) -> dict[str, Any]:
    """Score the subjects of some trials by their predicted class numbers."""
    true = problem.codes[trials]
    n = len(problem.classes)
    right = predicted == true
    subject = problem.subject[trials]
    return {
        "balanced_accuracy": float(np.mean(_recalls(true, right, n)[1])),
        "classes": dict(zip(*_recalls(true, right, n, str), strict=True)),
        # Rows are true classes, columns predicted ones.
        "confusion": np.bincount(true * n + predicted, minlength=n * n).reshape(n, n).tolist(),
        "subjects": {
            str(person): float(np.mean(_recalls(true[mine], right[mine], n)[1]))
            for person in np.unique(subject)
            for mine in [subject == person]
        },
    }


def adapted(clf: CensoredClassifier, problem: Problem, new: Index) -> dict[str, float]:
    """Score the subjects of some trials by models that were adapted to them, without labels.

    Every other trial of a person is predicted by the model that took its statistics from at most
    `ADAPTED_TO` of the rest. The report tells it beside the test scores; nothing is chosen by it.

    Returns
    -------
    dict
        Subject -> balanced accuracy; empty for an encoder without batch norm, and without those
        who have a single trial.
    """
    found: dict[str, float] = {}
    if not adaptable(clf.network_):
        return found
    subject = problem.subject[new]
    for person in np.unique(subject):
        trials = new[subject == person]
        if len(trials) < 2:
            continue
        predicted = np.empty(len(trials), np.intp)
        even, odd = slice(0, None, 2), slice(1, None, 2)
        for half, rest in ((even, odd), (odd, even)):
            others = trials[rest]
            some = problem.X.take(others[evenly(len(others), ADAPTED_TO)])
            personal = clf.adapt(some, method="statistics")
            predicted[half] = personal.predict_codes(problem.X.take(trials[half]))
        found[str(person)] = mean_recall(problem.codes[trials], predicted)
    return found


def _recalls(
    true: npt.NDArray[np.intp], right: npt.NDArray[np.bool_], n: int, name: Any = int
) -> tuple[list[Any], list[float]]:
    """Share recognised of each class that is there."""
    count, hits = np.bincount(true, minlength=n), np.bincount(true, right, minlength=n)
    there = np.flatnonzero(count)
    return [name(c) for c in there], (hits[there] / count[there]).tolist()


def curves(history: list[dict[str, float]]) -> dict[str, list[float | None]]:
    """Turn the record of epochs into lists; without seconds, which are never the same."""
    names = dict.fromkeys(name for entry in history for name in entry)
    return {
        name: [entry.get(name) for entry in history]
        for name in names
        if name not in ("epoch", "seconds")
    }


def still_falling(history: list[dict[str, float]]) -> bool:
    """Tell whether the validation loss was still falling when training ended.

    That is, whether it is lower by 1 % or more in the last fifth of the epochs than in the fifth
    before it.

    Examples
    --------
    >>> still_falling([{"validation_loss": 1 / epoch} for epoch in range(1, 11)])
    True
    """
    losses = [entry["validation_loss"] for entry in history if "validation_loss" in entry]
    part = max(1, len(losses) // 5)
    if len(losses) < 2 * part:
        return False
    return float(np.mean(losses[-part:])) < 0.99 * float(np.mean(losses[-2 * part : -part]))


def score_levels(
    handle: Handle,
    trial: Trial,
    files: Mapping[str, bytes] | None = None,
    n_labels: int = N_LABELS,
    seconds: float | None = None,
) -> dict[str, Any]:
    """Score everybody whom a trial held out at every level, by its trained network.

    Parameters
    ----------
    handle : Handle
        Of what all trials share, a `Shared`.
    trial : Trial
        Which holds out a group of people.
    files : mapping of str to bytes, optional
        The model folder of the network that it trained; without one it is trained again.
    n_labels : int
        As for `autotransfer.search.levels.standard_cases`.
    seconds : float, optional
        Time for it: cases for which there is none are left out.

    Returns
    -------
    dict
        What JSON can hold. ``cases``: of each case what it is and ``subjects``, the balanced
        accuracy of each person. ``left_out``: cases for which there was no time. ``guard``: of each
        cut, of each person what `Seen` holds. ``seconds``.
    """
    shared: Shared = handle.get()
    problem = shared.problem
    start = time.perf_counter()
    seed, fold = trial.random_state(shared.hash), trial.fold_of(problem)
    if files is None:
        clf = classifier(shared, trial, max_epochs=trial.epochs)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AutoTransferWarning)
            clf.fit_fold(problem, fold, seed)
    else:
        clf = _loaded(files, shared.options.get("encoder"))
    people = people_held_out(problem, fold.validation, clf, seed)
    able = adaptable(clf.network_)
    cases = standard_cases(n_labels, able, is_ring(problem.info.channels))
    began = time.perf_counter()
    # Before the cases, which take all the time there is.
    guard = seen_of(people, seed, None if seconds is None else seconds / 4) if able else {}
    spent = time.perf_counter() - began
    found = score_cases(people, cases, None if seconds is None else seconds - spent)
    return {
        "cases": found,
        "left_out": [case.to_json() for case in cases[len(found) :]],
        "guard": guard if found else {},
        "seconds": time.perf_counter() - start,
    }


def _loaded(files: Mapping[str, bytes], encoder: Any) -> CensoredClassifier:
    """Make a classifier from the files of its model folder."""
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), files)
        own = None if isinstance(encoder, str) else encoder
        return CensoredClassifier.load(folder, encoder=own)


def refit(handle: Handle, trial: Trial) -> dict[str, Any]:
    """Train the chosen setting on all subjects.

    Returns
    -------
    dict
        ``files``: the model folder, as file name -> bytes; ``best_epoch``, ``seconds``.
    """
    shared: Shared = handle.get()
    problem = shared.problem
    start = time.perf_counter()
    seed = trial.random_state(shared.hash)
    fold = hold_out(problem.subject, None, seed)
    clf = classifier(shared, trial, max_epochs=trial.epochs, validation=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AutoTransferWarning)
        clf.fit_fold(problem, fold, seed)
    return {
        "files": clf.files(),
        "best_epoch": clf.best_epoch_,
        "seconds": time.perf_counter() - start,
    }


def cost(handle: Handle, trial: Trial, n_steps: int) -> dict[str, float]:
    """Measure what a trial costs, on part of its data.

    Returns
    -------
    dict
        ``epoch``: seconds of a whole epoch with validation; ``fixed``: seconds of the rest.
    """
    shared: Shared = handle.get()
    problem = shared.problem
    fold = trial.fold_of(problem)
    clf = classifier(shared, trial, max_epochs=3)
    rows = int(np.prod(clf.batch_shape(len(problem.classes)))) * n_steps
    part = fold
    if rows < len(fold.train):
        rng = np.random.default_rng(0)
        chosen = np.sort(rng.permutation(fold.train)[:rows])
        share = rows / len(fold.train)
        some = np.sort(
            rng.permutation(fold.validation)[: max(50, int(share * len(fold.validation)))]
        )
        part = Fold(fold.subject, chosen, some, fold.test[:0])
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit_fold(problem, part, 0)
        clf.predict_codes(problem.X.take(part.validation))
    whole = time.perf_counter() - start
    epochs = [entry["seconds"] for entry in clf.history_]
    factor = len(fold.train) / len(part.train)
    # The first epoch warms caches up.
    return {
        "epoch": float(np.median(epochs[1:])) * factor,
        "fixed": (whole - sum(epochs)) * factor + max(epochs[0] - np.median(epochs[1:]), 0.0),
    }
