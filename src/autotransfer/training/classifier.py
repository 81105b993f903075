"""`CensoredClassifier`: the scikit-learn face of training."""

from __future__ import annotations

import os
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.adaptation.registry import Policy, adapt, chosen
from autotransfer.data.info import amplitude
from autotransfer.data.normalise import Normaliser
from autotransfer.data.problem import Problem
from autotransfer.data.splits import Fold, hold_out
from autotransfer.data.trials import Array, TrialArray
from autotransfer.data.validate import as_sampling_rate
from autotransfer.encoder.beside import covariances_of
from autotransfer.encoder.network import Network, encode_trials
from autotransfer.encoder.wrap import latent_source
from autotransfer.errors import SubjectError
from autotransfer.training.estimator import SignalModel, balanced_accuracy
from autotransfer.training.fit import fit_fold
from autotransfer.training.log import TrainingLog, log_folder
from autotransfer.training.loop import Progress
from autotransfer.training.model import folder
from autotransfer.training.options import (
    TrainingOptions,
    as_random_seed,
    refuse_unknown,
    versions,
    warn_doubts,
)


class CensoredClassifier(SignalModel):
    """Classify biosignals of people that the model has never seen.

    Trains an encoder f and a linear classifier g with

        class-weighted cross entropy + strength * dependence between latent z = f(x) and subject

    Classes weigh as they do in the score, the mean over people of the balanced accuracy over the
    classes that a person has. `validation` subjects, apart from those trained on, give a score to
    choose settings by; with a `patience` they also decide when to stop and which epoch's weights to
    keep.

    Parameters
    ----------
    measure : str, type or None
        Measure of dependence between latent and subject that is lowered: a name in
        `autotransfer.censoring.MEASURES` ("adversary", "mige", "mmd", "pairmmd", "began"), or a
        subclass of `autotransfer.censoring.Measure`. None trains the uncensored baseline (ERM).
    mode : {"marginal", "conditional", "complementary"}
        Make the latent independent of the subject; independent given the label; or only its first
        half, while the second half is made to carry the subject. Without a measure it says only
        how batches are drawn: "conditional" gives every subject's part its share of the classes.
    strength : float, optional
        Weight of the penalty. By default what suits the measure and the mode.
    measure_options : dict, optional
        Options of the measure, such as ``{"estimator": "ssge"}``.
    warmup_epochs : int
        First epochs without penalty, in which critics learn.
    encoder : str, nn.Module or callable
        "eegnet" or "covariance"; any torch module from (B, C, T) to latents or with a last layer to
        cut off (see `autotransfer.encoder.wrap`); or a callable (n_channels, n_times) -> module.
    encoder_options : dict, optional
        Options of a named encoder, such as ``{"kernel_seconds": 0.5}``.
    sfreq : float, optional
        Sampling rate in Hz, for encoders whose lengths are in seconds.
    normalise : {"channel", "trial", "train", "person", "euclidean", "riemannian", "none"}
        z-score of each channel of each trial (for EEG); one scale for each trial (where the
        pattern of amplitude over channels is the signal, as in EMG); statistics of the training
        subjects; each person's own scale of every channel, or covariance of all of them
        (alignment), which `adapt` takes from a recording of somebody new; nothing.
    augment : str, optional
        How training trials are changed, anew in every epoch: a name in
        `autotransfer.training.AUGMENTATIONS` ("mask", "ring", "shift", "noise", "mix"), or several
        ("mask+shift"). "ring" is for electrodes around an arm, in their order. Nothing is changed
        when the model validates, predicts or adapts.
    validation : int, float, list of subject ids, or None
        Subjects that validate: how many (chosen by seed), which share, which ones; None trains
        all `max_epochs` on everybody.
    learning_rate, weight_decay : float
        AdamW's.
    schedule : {"sqrt", "cosine"}
        How the learning rate falls: as ``learning_rate / sqrt(t)`` in epoch t, as in the paper; or
        along half a cosine, to 0 in the last epoch, as runs of `AutoTransfer` begin with.
    max_epochs : int, optional
        Most epochs. By default as many as make `n_steps`.
    n_steps : int, optional
        Steps to train, rounded to whole epochs, so that fewer people do not mean less training. By
        default 1000, and at least 20 epochs.
    patience : int, optional
        Epochs without a lower validation loss after which training stops; the weights of the least
        one are kept. None trains all epochs and keeps the last weights, so that the validation
        score is not the best of many epochs on the very people who validate.
    subjects_per_batch, trials_per_subject : int, optional
        Subjects in a batch, and trials of each of them. By default 8 and 8; when `mode` is
        "conditional", as many trials as the measure needs for a sound estimate in every (subject,
        class) cell, and fewer subjects if these are many.
    random_state : int, RandomState or None
        Seed of weights, batches, dropout and the choice of validation subjects. With an int,
        repeats are bit-equal on a CPU.
    device : {"auto", "cpu", "cuda", "mps"}
        Where to train. "auto" takes a GPU if there is one.
    checkpoint : path, optional
        File from which a killed fit goes on, to the bit-same end, when the same call is made
        again.
    checkpoint_every : int
        Epochs between checkpoints.
    log : path, optional
        Folder for TensorBoard (``tensorboard --logdir``): each training gets a run of its own in
        it, with the losses, penalty and critic of every epoch and the scores at the end.
    memory_budget : int
        Bytes of signals to keep in memory; larger data are read batch by batch.
    verbose : bool
        Show progress with the time left.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, sorted.
    class_names_ : list of str
        What the classes are called, in the order of ``classes_``.
    info_ : SignalInfo
        Channel names, sampling rate and unit of the training signals, as far as known.
    network_ : Network
        The trained network.
    history_ : list of dict
        Learning rate, task loss, validation loss and seconds of every epoch; with a measure also
        the penalty, the scale of the latent and how well the critic does against chance.
    best_epoch_ : int
        Epoch whose weights were kept.
    training_subjects_, validation_subjects_ : list
        Who was trained on, who was held out to validate.
    provenance_ : dict
        Versions, data fingerprint, seed, scores.

    Examples
    --------
    >>> import autotransfer as at
    >>> data = at.make_subjects(n_subjects=4, n_trials=20, random_state=0)
    >>> clf = at.CensoredClassifier(max_epochs=2, random_state=0, verbose=False)
    >>> clf = clf.fit(data.X, data.y, subject=data.subject)
    >>> clf.predict(data.X[:3]).shape
    (3,)
    """

    stream_: dict[str, Tensor] | None = None  # of a `Live` that was saved: what it goes on from

    def __init__(
        self,
        measure: Any = None,
        mode: str = "marginal",
        strength: float | None = None,
        *,
        measure_options: dict[str, Any] | None = None,
        warmup_epochs: int = 0,
        encoder: Any = "eegnet",
        encoder_options: dict[str, Any] | None = None,
        sfreq: float | None = None,
        normalise: str = "channel",
        augment: str | None = None,
        validation: Any = 1,
        learning_rate: float = 3e-3,
        schedule: str = "sqrt",
        weight_decay: float = 0.01,
        max_epochs: int | None = None,
        n_steps: int | None = None,
        patience: int | None = None,
        subjects_per_batch: int | None = None,
        trials_per_subject: int | None = None,
        random_state: Any = None,
        device: str = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: int = 10,
        log: str | os.PathLike[str] | None = None,
        memory_budget: int = 4 * 2**30,
        verbose: bool = True,
    ) -> None:
        self.measure, self.mode, self.strength = measure, mode, strength
        self.measure_options, self.warmup_epochs = measure_options, warmup_epochs
        self.encoder, self.encoder_options = encoder, encoder_options
        self.sfreq, self.normalise, self.augment = sfreq, normalise, augment
        self.validation = validation
        self.learning_rate, self.schedule = learning_rate, schedule
        self.weight_decay = weight_decay
        self.max_epochs, self.n_steps, self.patience = max_epochs, n_steps, patience
        self.subjects_per_batch = subjects_per_batch
        self.trials_per_subject = trials_per_subject
        self.random_state, self.device = random_state, device
        self.checkpoint, self.checkpoint_every = checkpoint, checkpoint_every
        self.log, self.memory_budget, self.verbose = log, memory_budget, verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        subject: Any = None,
        X_target_unlabeled: Any = None,
        X_target_labeled: Any = None,
        y_target_labeled: Any = None,
        **unknown: Any,
    ) -> Self:
        """Train on the trials of many people: ``fit(data)`` or ``fit(X, y, subject=ids)``.

        Parameters
        ----------
        X : SubjectDataset, array or TrialArray of shape (n_trials, n_channels, n_times)
            A data set, which holds all that `fit` needs and names of channels, classes and people
            that the model keeps; or signals (memory maps stay on disk).
        y : array of shape (n_trials,)
            Task labels.
        subject : array of shape (n_trials,)
            The person each trial comes from. In pipelines and cross-validation it is routed:
            ``CensoredClassifier().set_fit_request(subject=True)``.
        X_target_unlabeled, X_target_labeled : array of shape (n, n_channels, n_times), optional
            Trials of one new person, to whom the model is adapted once it is trained, as by
            `adapt`. The names are those under which MOABB routes them.
        y_target_labeled : array of shape (n,), optional
            Labels of `X_target_labeled`.

        Returns
        -------
        CensoredClassifier
            Itself.
        """
        refuse_unknown("fit", unknown)
        self.options.check()
        problem = Problem.of(X, y, subject)
        warn_doubts(problem, self.normalise)
        if self.validation is not None and len(np.unique(problem.subject)) < 2:
            raise SubjectError(
                f"All trials come from one subject ({problem.subject[0]!r}): there is nobody to "
                "validate on. Give more subjects, or validation=None to train a fixed number of "
                "epochs."
            )
        seed = as_random_seed(self.random_state)
        self.fit_fold(problem, hold_out(problem.subject, self.validation, seed), seed)
        personal = self.adapt_to_target(X_target_unlabeled, X_target_labeled, y_target_labeled)
        for name in ("network_", "normaliser_", "provenance_"):
            setattr(self, name, getattr(personal, name))
        return self

    @property
    def options(self) -> TrainingOptions:
        """What `fit` goes by, but for seeds and who validates."""
        return TrainingOptions.of(self)

    def fit_fold(self, problem: Problem, fold: Fold, seed: int) -> Self:
        """Train on ``fold.train``, validate on ``fold.validation``.

        For those who make folds and have checked their data; `fit` does both.

        Parameters
        ----------
        problem, fold, seed
            As for `autotransfer.training.fit.fit_fold`.
        """
        options = self.options.at_rate(problem.info.sfreq)
        self.classes_, self.class_names_ = problem.classes, list(problem.class_names)
        self.info_ = replace(problem.info, sfreq=as_sampling_rate(options.sfreq))
        training_hash = options.hash(problem.fingerprint, fold.validation, seed)
        with TrainingLog(log_folder(options, training_hash)) as log:
            self._keep(fit_fold(options, problem, fold, seed, log), problem, fold, seed)
            log.end(options.to_json(), self.provenance_["scores"], self.best_epoch_)
        return self

    def _keep(
        self, fitted: tuple[Network, Normaliser, Progress], problem: Problem, fold: Fold, seed: int
    ) -> None:
        """Keep what was trained, and how well it does on the validation subjects."""
        network, normaliser, progress = fitted
        self.network_, self.normaliser_ = network, normaliser
        self.stream_ = None  # of a model that went along with somebody, and is trained anew
        _, self.n_channels_, self.n_times_ = problem.X.shape
        self.amplitude_ = amplitude(problem.X.take(fold.train))
        self.history_, self.best_epoch_ = progress.history, progress.best_epoch
        self.training_subjects_ = fold.subjects("train")
        self.validation_subjects_ = fold.subjects("validation")
        scores = {}
        if len(fold.validation):
            predicted = self._probabilities(problem.X.take(fold.validation)).argmax(1)
            scores = {
                "validation_balanced_accuracy": balanced_accuracy(
                    problem.codes[fold.validation], predicted
                ),
                "validation_loss": progress.best_loss,
            }
        self.provenance_: dict[str, Any] = {
            **versions(),
            "data_fingerprint": problem.fingerprint,
            "seed": seed,
            "n_trials": len(fold.train) + len(fold.validation),
            "training_subjects": [str(s) for s in self.training_subjects_],
            "validation_subjects": [str(s) for s in self.validation_subjects_],
            "epochs": progress.epoch,
            "best_epoch": progress.best_epoch,
            "scores": scores,
        }

    def batch_shape(self, n_classes: int) -> tuple[int, int]:
        """Subjects in a batch, and trials of each of them."""
        return self.options.batch_shape(n_classes)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    @property
    def members(self) -> tuple[CensoredClassifier]:
        """Itself: the one classifier of which it is made."""
        return (self,)

    @property
    def policy(self) -> Policy:
        """What "auto" does when it is adapted: a run puts it into ``provenance_``."""
        return Policy.from_json(self.provenance_.get("adaptation"))

    def _encode(self, X: TrialArray, logits: bool) -> Array:
        return encode_trials(self.network_, self.normaliser_, X, logits)

    def _probabilities(self, trials: TrialArray) -> Array:
        return _softmax(self._encode(trials, logits=True))

    def _latents(self, trials: TrialArray) -> Array:
        return self._encode(trials, logits=False)

    def _for_person(self, person: Person, method: str, prior: int) -> Self:
        fitted = Fitted(self.network_, self.normaliser_)
        method = chosen(fitted, person, method, self.policy)
        made = adapt(fitted, person, method, prior)
        personal = copy(self)
        personal.network_, personal.normaliser_ = made.network, made.normaliser
        personal.stream_ = None
        about = {
            "n_trials": person.n_trials,
            "n_labels": 0 if person.codes is None else len(person.codes),
            "method": method,
        }
        personal.provenance_ = {**self.provenance_, "adapted": about}
        return personal

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write a model folder: JSON and safetensors, nothing that executes.

        Parameters
        ----------
        path : path
            Folder to make.
        overwrite : bool
            Replace a model folder of that name.

        Returns
        -------
        Path
            The folder.
        """
        target = folder.as_path(path)
        folder.write_model(target, self.files(), overwrite)
        return target

    def files(self) -> dict[str, bytes]:
        """Make what `save` writes: file name -> content."""
        return folder.model_files(self._documents(), self.network_.state_dict(), self.stream_)

    def _documents(self) -> dict[str, Any]:
        """Everything of a model folder but the weights, as JSON can hold it."""
        check_is_fitted(self, "network_")
        model = {
            "measure": getattr(self.measure, "__name__", self.measure),
            "encoder": self.encoder if isinstance(self.encoder, str) else None,
            "encoder_options": self.encoder_options or {},
            # With today's defaults, so that later ones do not change an old model.
            "encoder_made": getattr(self.network_.encoder, "options", None),
            "covariances": covariances_of(self.network_.encoder),
            "parameters": self.options.to_json(),
            "n_channels": self.n_channels_,
            "n_times": self.n_times_,
            "n_latent": self.network_.n_latent,
            "latent": latent_source(self.network_.encoder),
            "signals": {**self.info_.to_json(), "amplitude": self.amplitude_},
            "class_names": self.class_names_,
            "history": self.history_,
            "best_epoch": self.best_epoch_,
        }
        return {
            "model": model,
            "labels": folder.labels_to_json(self.classes_),
            "normalisation": self.normaliser_.state(),
            "provenance": self.provenance_,
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str], encoder: Any = None) -> Self:
        """Read a model folder. Nothing in it is executed.

        Parameters
        ----------
        path : path
            Folder that `save` made. That of an ensemble is read by `autotransfer.load_model`.
        encoder : nn.Module or callable, optional
            The encoder's architecture, if the model was not trained with a named one: code is
            not part of a model folder.

        Returns
        -------
        CensoredClassifier
            Ready to predict.
        """
        documents, weights, stream = folder.read_model(folder.as_path(path))
        classifier: Self = folder.rebuild(cls, documents, weights, encoder)
        classifier.stream_ = None if stream is None else stream.read()
        return classifier


def _softmax(logits: Array) -> Array:
    logits = logits.astype(np.float64)
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    shares: Array = shifted / shifted.sum(1, keepdims=True)
    return shares
