"""The options of a training: checked once, hashed, and what follows from them."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils import check_random_state
from torch import nn

from autotransfer._version import __version__
from autotransfer.censoring.registry import (
    default_strength,
    lookup_measure,
    lookup_mode,
    make_censor,
)
from autotransfer.data.info import normalisation_doubt, same_rate
from autotransfer.data.normalise import lookup_normaliser
from autotransfer.data.problem import Problem
from autotransfer.data.validate import as_count, as_sampling_rate, as_seed
from autotransfer.errors import DataWarning, SamplingRateError, SettingError, join_some
from autotransfer.registry import lookup
from autotransfer.training.augment import lookup_augmentations
from autotransfer.training.log import check_log
from autotransfer.training.schedule import SCHEDULES

DEVICES = ("auto", "cpu", "cuda", "mps")

SUBJECTS, TRIALS = 8, 8
"""Of the batches of the uncensored baseline, by default."""

STEPS, LEAST_EPOCHS = 1000, 20
"""How long to train by default: the three sets of recordings in
benchmarks/accuracy/baseline.py have 750 to 960 steps, in 25 to 80 epochs."""

# A training that was ended by max_epochs can go on to more; the others do not change its result.
_NOT_HASHED = ("checkpoint", "checkpoint_every", "max_epochs", "n_steps", "verbose", "log")
# A saved model does not need them to predict, and JSON may not hold them.
_NOT_SAVED = ("measure", "encoder", "encoder_options", "checkpoint", "log")


@dataclass(frozen=True)
class TrainingOptions:
    """How to train: the options of `CensoredClassifier`, which documents them, but for seeds."""

    measure: Any
    mode: str
    strength: float | None
    measure_options: Mapping[str, Any] | None
    warmup_epochs: int
    encoder: Any
    encoder_options: Mapping[str, Any] | None
    sfreq: float | None
    normalise: str
    augment: str | None
    learning_rate: float
    schedule: str
    weight_decay: float
    max_epochs: int | None
    n_steps: int | None
    patience: int | None
    subjects_per_batch: int | None
    trials_per_subject: int | None
    device: str
    checkpoint: str | os.PathLike[str] | None
    checkpoint_every: int
    log: str | os.PathLike[str] | None
    memory_budget: int
    verbose: bool

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Take the options of an estimator as they are."""
        return cls(**{field.name: getattr(estimator, field.name) for field in fields(cls)})

    def check(self) -> Self:
        """Raise a `SettingError` that names the first option with an impossible value."""
        lookup_mode(self.mode)
        for name in ("measure_options", "encoder_options"):
            if not isinstance(getattr(self, name), Mapping | None):
                what = name.removesuffix("_options")
                raise SettingError(
                    f"{name} must be a dict of options of the {what}, not {getattr(self, name)!r}."
                )
        if self.measure is not None:
            # One is made and thrown away: the measure itself says which options it can use.
            sizes = {"n_latent": 2, "n_subjects": 2, "n_classes": 2}
            make_censor(self.measure, self.mode, **sizes, options=self.measure_options)
        lookup_normaliser(self.normalise)
        lookup_augmentations(self.augment)
        lookup("schedule", self.schedule, SCHEDULES)
        as_count(self.checkpoint_every, "checkpoint_every")
        as_count(self.warmup_epochs, "warmup_epochs", least=0)
        counts = ("max_epochs", "n_steps", "patience", "subjects_per_batch", "trials_per_subject")
        for name in counts:
            if getattr(self, name) is not None:
                as_count(getattr(self, name), name)
        for name, words in (
            ("strength", "of at least 0"),
            ("learning_rate", "above 0"),
            ("weight_decay", "of at least 0"),
            ("memory_budget", "of at least 0"),
        ):
            value = getattr(self, name)
            if name == "strength" and value is None:
                continue
            number = isinstance(value, int | float | np.integer | np.floating)
            fine = number and not isinstance(value, bool) and math.isfinite(value)
            if not fine or value < 0 or (value == 0 and words == "above 0"):
                raise SettingError(f"{name} must be a number {words}, not {value!r}.")
        if not isinstance(self.checkpoint, str | os.PathLike | None):
            raise SettingError(f"checkpoint must be the path of a file, not {self.checkpoint!r}.")
        check_log(self.log)
        if not isinstance(self.verbose, int | np.bool):
            raise SettingError(f"verbose must be True or False, not {self.verbose!r}.")
        find_device(self.device)
        as_sampling_rate(self.sfreq)
        return self

    def at_rate(self, sfreq: float | None) -> Self:
        """Take the sampling rate that the data say they have; it must not be another one."""
        if sfreq is None or self.sfreq is None:
            return self if sfreq is None else replace(self, sfreq=sfreq)
        if not same_rate(float(self.sfreq), sfreq):
            raise SamplingRateError(
                f"sfreq={self.sfreq}, but the data say that they are sampled at {sfreq:g} Hz. "
                "Leave sfreq out, or correct the rate of the data."
            )
        return self

    @property
    def penalty_strength(self) -> float:
        """Weight of the penalty: as given, or what suits the measure in its mode."""
        if self.strength is not None:
            return float(self.strength)
        return default_strength(self.measure, self.mode)

    @property
    def censor_name(self) -> str:
        """The measure and the mode, for messages."""
        name = self.measure if isinstance(self.measure, str) else self.measure.__name__
        return f"measure={name!r} with mode={self.mode!r}"

    def batch_shape(self, n_classes: int) -> tuple[int, int]:
        """Subjects in a batch and trials of each: as given, or 8 x 8, or what the measure needs.

        Where a subject needs more trials than 16, fewer subjects make a batch of about 128 rows:
        larger ones would leave few steps in an epoch.
        """
        trials = self.trials_per_subject
        if trials is None:
            cell = 1 if self.measure is None else lookup_measure(self.measure).good_cell
            trials = max(TRIALS, cell * (n_classes if self.mode == "conditional" else 1))
        return int(self.subjects_per_batch or max(4, min(SUBJECTS, 128 // trials))), int(trials)

    def epochs(self, n_trials: int) -> int:
        """Epochs at most: as given, or as many as make the steps, about, over so many trials.

        Counted in batches of the uncensored baseline, so that all methods see the data equally
        often.
        """
        if self.max_epochs is not None:
            return int(self.max_epochs)
        rows = (self.subjects_per_batch or SUBJECTS) * (self.trials_per_subject or TRIALS)
        each = math.ceil(n_trials / rows)
        if self.n_steps is not None:
            return max(1, round(self.n_steps / each))
        return max(LEAST_EPOCHS, round(STEPS / each))

    def hash(
        self, data: str, validation: npt.NDArray[np.intp], seed: int, n_trials: int | None = None
    ) -> str:
        """Hash what defines a training, so that a checkpoint of another one is not resumed.

        Parameters
        ----------
        data : str
            Fingerprint of the data.
        validation : array of int
            Trials of the validation subjects.
        seed : int
            The seed.
        n_trials : int, optional
            Trials to train on, if it is one training that is hashed: with a schedule that knows
            the end, as many epochs as they make are part of it.
        """
        options = {field.name: getattr(self, field.name) for field in fields(self)}
        options = {name: value for name, value in options.items() if name not in _NOT_HASHED}
        if self.augment is None:
            del options["augment"]  # trainings of before there were any keep their hash
        if self.schedule == "sqrt":
            del options["schedule"]  # as well
        if n_trials is not None and SCHEDULES[self.schedule].knows_end:
            options["epochs"] = self.epochs(n_trials)
        if isinstance(self.encoder, nn.Module):
            # Its structure and its first weights stand for a module.
            digest = hashlib.sha256(repr(self.encoder).encode())
            for tensor in self.encoder.state_dict().values():
                digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
            options["encoder"] = digest.hexdigest()
        parts = [data, seed, __version__, options, hashlib.sha256(validation.tobytes()).hexdigest()]
        # Addresses of functions and objects differ in every process that goes on with the run.
        text = re.sub(r" at 0x[0-9A-Fa-f]+", "", json.dumps(parts, default=str, sort_keys=True))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Give the options that go into a model folder."""
        return {
            field.name: value.item() if isinstance(value, np.generic) else value
            for field in fields(self)
            if field.name not in _NOT_SAVED
            for value in [getattr(self, field.name)]
        }


def find_device(name: str) -> torch.device:
    """Find a device by name; "auto" takes a GPU if there is one."""
    if name not in DEVICES:
        raise SettingError(f"device={name!r} is not known. Choose one of {', '.join(DEVICES)}.")
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        name = next(kind for kind, usable in available.items() if usable)
    if not available[name]:
        raise SettingError(f"This machine has no {name} device. Use device='cpu' or 'auto'.")
    return torch.device(name)


def as_random_seed(random_state: Any) -> int:
    """Turn scikit-learn's `random_state` into a seed."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        return as_seed(random_state)
    try:
        source = check_random_state(random_state)
    except ValueError:
        raise SettingError(
            f"random_state must be a whole number, a RandomState or None, not {random_state!r}."
        ) from None
    return int(source.randint(2**31 - 1))


def warn_doubts(problem: Problem, normalise: str) -> None:
    """Warn of a normalisation that does not suit the signals."""
    doubt = normalisation_doubt(problem.info.channels, normalise)
    if doubt:
        warnings.warn(doubt, DataWarning, stacklevel=3)


def refuse_unknown(method: str, unknown: dict[str, Any]) -> None:
    """Refuse arguments that a method does not have; scikit-learn's groups are subjects here."""
    if "groups" in unknown:
        raise SettingError(
            f"Here the people are called subject, and not groups: {method}(X, y, subject=groups)."
        )
    if unknown:
        raise SettingError(
            f"{method} takes X, y and subject, and not {join_some(list(unknown))}. Options belong "
            "to the estimator."
        )


def versions() -> dict[str, str]:
    """Versions of what a result depends on."""
    return {
        "autotransfer": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
