"""A portrait of a method: what its latent tells about the person, drawn on one fold.

Made at the end of a run for the uncensored baseline, for the chosen setting, and for the chosen
setting with shuffled subject labels (the placebo). The report shows them; nothing is chosen by
them.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from autotransfer.data.splits import Fold
from autotransfer.data.trials import evenly
from autotransfer.encoder.split import split_latent
from autotransfer.errors import AutoTransferError, AutoTransferWarning
from autotransfer.leakage import measure_leakage
from autotransfer.search.engines.base import Handle
from autotransfer.search.settings.trial import Trial
from autotransfer.search.shared import Shared
from autotransfer.search.tasks import classifier, curves

PROBED, DRAWN = 2500, 500
"""Most trials that probes see, and that are drawn on a map."""

Floats = npt.NDArray[np.floating[Any]]


def portrait(handle: Handle, trial: Trial, placebo: bool, mode: str) -> dict[str, Any]:
    """Train a trial again and look at its latent.

    Parameters
    ----------
    handle : Handle
        Of what all trials share, a `Shared`.
    trial : Trial
        What to train.
    placebo : bool
        Shuffle the subject labels of the training trials: a censor that uses them then leaves the
        leakage where the baseline has it.
    mode : str
        Of the choice, which says what is probed: z; beyond the label too, if conditional; both
        halves too, if complementary.

    Returns
    -------
    dict
        ``leakage``: part of the latent -> `Leakage.to_dict`, or ``{"error": why}``; ``map``: two
        coordinates, subject and label of some trials; ``curves``; ``seconds``. Leakage and map are
        of training subjects, whom the encoder had every chance to learn.
    """
    shared: Shared = handle.get()
    problem = shared.problem
    fold = trial.fold_of(problem)
    seed = trial.random_state(shared.hash)
    rng = np.random.default_rng(seed)
    start = time.perf_counter()
    clf = classifier(shared, trial, max_epochs=trial.epochs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AutoTransferWarning)
        used = shuffled(fold, rng) if placebo else fold
        clf.fit_fold(problem, used, seed)
        probed = fold.train[evenly(len(fold.train), PROBED)]  # over time, and so over subjects
        latent = clf.transform(problem.X.take(probed))
        subject = fold.subject[probed]
        found = {"z": _leakage(latent, subject, None)}
        if mode == "conditional":
            found["z given y"] = _leakage(latent, subject, problem.codes[probed])
        elif mode == "complementary":
            for name, half in zip(
                ("z1", "z2"), split_latent(torch.from_numpy(latent)), strict=True
            ):
                found[name] = _leakage(half.numpy(), subject, None)
    drawn = evenly(len(probed), DRAWN)
    return {
        "leakage": found,
        "map": {
            "points": _two_dimensions(latent[drawn], seed).round(4).tolist(),
            "subject": [str(s) for s in fold.subject[probed][drawn]],
            "label": [problem.class_names[c] for c in problem.codes[probed][drawn]],
        },
        "curves": curves(clf.history_),
        "best_epoch": clf.best_epoch_,
        "seconds": time.perf_counter() - start,
    }


def shuffled(fold: Fold, rng: np.random.Generator) -> Fold:
    """Shuffle who the training trials come from; nobody else is touched."""
    subject = fold.subject.copy()
    subject[fold.train] = rng.permutation(subject[fold.train])
    return Fold(subject, fold.train, fold.validation, fold.test)


def _leakage(latent: Floats, subject: npt.NDArray[Any], label: Any) -> dict[str, Any]:
    try:
        return measure_leakage(latent, subject, label=label).to_dict()
    except AutoTransferError as error:  # too few trials to probe: the report says so
        return {"error": str(error)}


def _two_dimensions(latent: Floats, seed: int) -> Floats:
    """Lay latents out in a plane: t-SNE, or the two main axes where there are few."""
    if latent.shape[1] < 2 or len(latent) < 10:
        flat = np.zeros((len(latent), 2))
        flat[:, : min(2, latent.shape[1])] = latent[:, :2]
        return flat
    scaled = (latent - latent.mean(0)) / max(float(latent.std()), 1e-12)
    if not scaled.any():
        return np.zeros((len(latent), 2))
    # Imported when there is something to draw: they make up a tenth of what importing us takes.
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if len(latent) < 50:
        return np.asarray(PCA(2, random_state=seed).fit_transform(scaled))
    layout = TSNE(init="pca", perplexity=min(30.0, len(latent) / 4), random_state=seed)
    return np.asarray(layout.fit_transform(scaled))
