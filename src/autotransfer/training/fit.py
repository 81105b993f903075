"""Train a setting on a fold: what `CensoredClassifier.fit` does, once its input is checked."""

from __future__ import annotations

import logging
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from autotransfer.censoring import make_censor
from autotransfer.data.batches import SubjectBatches
from autotransfer.data.normalise import Normaliser
from autotransfer.data.problem import Problem
from autotransfer.data.splits import Fold
from autotransfer.data.validate import as_sampling_rate
from autotransfer.encoder.network import Network
from autotransfer.encoder.registry import make_encoder
from autotransfer.encoder.wrap import LatentOf, latent_source
from autotransfer.errors import LabelError, join_some
from autotransfer.training.augment import keeps_statistics, lookup_augmentations
from autotransfer.training.feed import Feed
from autotransfer.training.log import TrainingLog
from autotransfer.training.loop import LoopOptions, Progress, class_weights, train
from autotransfer.training.options import TrainingOptions, find_device
from autotransfer.training.penalty import Penalty, warn_small_cells

_log = logging.getLogger(__name__)


def fit_fold(
    options: TrainingOptions,
    problem: Problem,
    fold: Fold,
    seed: int,
    log: TrainingLog | None = None,
) -> tuple[Network, Normaliser, Progress]:
    """Train on ``fold.train``, validate on ``fold.validation``, look at nothing else.

    Parameters
    ----------
    options : TrainingOptions
        How to train.
    problem : Problem
        All trials, labels and subjects.
    fold : Fold
        Who trains and who validates.
    seed : int
        Of weights, batches and dropout.
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
    X, codes, classes = problem.X, problem.codes, problem.classes
    absent = np.setdiff1d(np.arange(len(classes)), codes[fold.train])
    if len(absent):
        raise LabelError(
            f"Class {join_some(classes[absent].tolist())} has no trial among the training "
            f"subjects {join_some(fold.subjects('train'))}. Let other subjects validate, or leave "
            "the class out."
        )
    device = find_device(options.device)
    _, channels, times = X.shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sfreq = as_sampling_rate(options.sfreq)
        encoder = make_encoder(options.encoder, channels, times, sfreq, options.encoder_options)
        network = Network(encoder, len(classes)).to(device)
        _log.info("The latent is %s: %d numbers.", latent_source(encoder), network.n_latent)
        if options.verbose and isinstance(encoder, LatentOf):
            latent = f"the latent is {encoder.source}: {network.n_latent} numbers"
            print(f"autotransfer: {latent}", file=sys.stderr)
        penalty = _penalty(options, network, problem, fold)
    normaliser = Normaliser(options.normalise).fit(X, fold.train, fold.subject)
    used = np.union1d(fold.train, fold.validation)
    changes = lookup_augmentations(options.augment)
    adds_up = getattr(network.encoder, "adds_up", False)
    plain = not changes or (adds_up and keeps_statistics(changes))
    feed = Feed(
        X,
        used,
        normaliser,
        network,
        device,
        options.memory_budget,
        statistics=plain,
        subject=fold.subject,
    )
    batches = SubjectBatches(
        codes,
        fold.subject,
        *options.batch_shape(len(classes)),
        trials=fold.train,
        # Penalties that do not look at the class take a subject's trials for a random sample. The
        # mode alone decides: a censor differs from the baseline by its penalty, not by its batches.
        by_class=options.mode == "conditional",
        seed=seed,
    )
    if penalty is not None:
        warn_small_cells(penalty, islice(batches.epoch(1), 10), options.censor_name)
    loop = LoopOptions(
        learning_rate=options.learning_rate,
        weight_decay=options.weight_decay,
        max_epochs=options.epochs(len(fold.train)),
        schedule=options.schedule,
        patience=options.patience,
        augment=options.augment,
        sfreq=sfreq,
        seed=seed,
        checkpoint=None if options.checkpoint is None else Path(options.checkpoint),
        checkpoint_every=options.checkpoint_every,
        training_hash=options.hash(problem.fingerprint, fold.validation, seed, len(fold.train)),
        verbose=bool(options.verbose),
    )
    weights = class_weights(codes[fold.train], len(classes), fold.subject[fold.train])
    progress = train(network, feed, fold, batches, codes, weights, loop, penalty, log)
    return network, normaliser, progress


def _penalty(
    options: TrainingOptions, network: Network, problem: Problem, fold: Fold
) -> Penalty | None:
    """Make the penalty that is asked for; None for the uncensored baseline."""
    if options.measure is None:
        return None
    people, of_training = np.unique(fold.subject[fold.train], return_inverse=True)
    # Subjects that do not train have no code, and the penalty refuses their trials.
    subject = np.full(len(fold.subject), -1, np.intp)
    subject[fold.train] = of_training
    censor = make_censor(
        options.measure,
        options.mode,
        n_latent=network.n_latent,
        n_subjects=len(people),
        n_classes=len(problem.classes),
        options=options.measure_options,
    ).to(network.head.weight.device)
    strength = options.penalty_strength
    return Penalty(censor, strength, options.warmup_epochs, subject, problem.codes)
