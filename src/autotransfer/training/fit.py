"""Train a setting on a fold: what `CensoredClassifier.fit` does, once its input is checked."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from autotransfer.censoring import make_censor
from autotransfer.data.batches import SubjectBatches
from autotransfer.data.normalise import Normaliser
from autotransfer.data.splits import Fold
from autotransfer.data.trials import TrialArray
from autotransfer.data.validate import as_sampling_rate
from autotransfer.encoder.registry import make_encoder
from autotransfer.errors import LabelError, join_some
from autotransfer.training import options as training_options
from autotransfer.training.feed import Feed
from autotransfer.training.log import TrainingLog
from autotransfer.training.loop import LoopOptions, Progress, class_weights, train
from autotransfer.training.network import Network
from autotransfer.training.penalty import Penalty, warn_small_cells


def fit_fold(
    estimator: Any,
    X: TrialArray,
    codes: npt.NDArray[np.intp],
    classes: npt.NDArray[Any],
    fold: Fold,
    seed: int,
    data: str,
    log: TrainingLog | None = None,
) -> tuple[Network, Normaliser, Progress]:
    """Train on ``fold.train``, validate on ``fold.validation``, look at nothing else.

    Parameters
    ----------
    estimator : CensoredClassifier
        Whose options say how.
    X : TrialArray of shape (n_trials, C, T)
        Signals of all trials.
    codes : array of int of shape (n_trials,)
        Class numbers: positions in `classes`.
    classes : array of shape (n_classes,)
        Labels.
    fold : Fold
        Who trains and who validates.
    seed : int
        Of weights, batches and dropout.
    data : str
        Fingerprint of the data, for the checkpoint.
    log : TrainingLog, optional
        Is told of every epoch.

    Returns
    -------
    network : Network
        With the last weights or, where there is a patience, those of the least validation loss.
    normaliser : Normaliser
        Fitted on the training subjects.
    progress : Progress
        With the history.
    """
    absent = np.setdiff1d(np.arange(len(classes)), codes[fold.train])
    if len(absent):
        raise LabelError(
            f"Class {join_some(classes[absent].tolist())} has no trial among the training "
            f"subjects {join_some(fold.subjects('train'))}. Let other subjects validate, or leave "
            "the class out."
        )
    device = training_options.device(estimator.device)
    _, channels, times = X.shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sfreq = as_sampling_rate(estimator.sfreq)
        encoder = make_encoder(estimator.encoder, channels, times, sfreq, estimator.encoder_options)
        network = Network(encoder, len(classes)).to(device)
        penalty = _penalty(estimator, network, codes, len(classes), fold, device)
    normaliser = Normaliser(estimator.normalise).fit(X, fold.train)
    used = np.union1d(fold.train, fold.validation)
    feed = Feed(X, used, normaliser, network, device, estimator.memory_budget)
    batches = SubjectBatches(
        codes,
        fold.subject,
        *training_options.batch_shape(estimator, len(classes)),
        trials=fold.train,
        # Penalties that do not look at the class take a subject's trials for a random sample. The
        # mode alone decides: a censor differs from the baseline by its penalty, not by its batches.
        by_class=estimator.mode == "conditional",
        seed=seed,
    )
    if penalty is not None:
        warn_small_cells(
            penalty, islice(batches.epoch(1), 10), training_options.censor_name(estimator)
        )
    checkpoint = estimator.checkpoint
    options = LoopOptions(
        learning_rate=estimator.learning_rate,
        weight_decay=estimator.weight_decay,
        max_epochs=training_options.epochs(estimator, len(fold.train)),
        patience=estimator.patience,
        seed=seed,
        checkpoint=None if checkpoint is None else Path(checkpoint),
        checkpoint_every=estimator.checkpoint_every,
        training_hash=training_options.training_hash(estimator, data, fold.validation, seed),
        verbose=bool(estimator.verbose),
    )
    weights = class_weights(codes[fold.train], len(classes))
    progress = train(network, feed, fold, batches, codes, weights, options, penalty, log)
    return network, normaliser, progress


def _penalty(
    estimator: Any,
    network: Network,
    codes: npt.NDArray[np.intp],
    n_classes: int,
    fold: Fold,
    device: torch.device,
) -> Penalty | None:
    """Make the penalty that the estimator asks for; None for the uncensored baseline."""
    if estimator.measure is None:
        return None
    people, of_training = np.unique(fold.subject[fold.train], return_inverse=True)
    # Subjects that do not train have no code, and the penalty refuses their trials.
    subject = np.full(len(fold.subject), -1, np.intp)
    subject[fold.train] = of_training
    censor = make_censor(
        estimator.measure,
        estimator.mode,
        n_latent=network.n_latent,
        n_subjects=len(people),
        n_classes=n_classes,
        options=estimator.measure_options,
    ).to(device)
    strength = training_options.strength(estimator)
    return Penalty(censor, strength, estimator.warmup_epochs, subject, codes)
