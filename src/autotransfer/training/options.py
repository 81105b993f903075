"""What surrounds an estimator: checks of its options, devices, seeds, versions, its rebuilding."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils import check_random_state
from torch import Tensor, nn

from autotransfer._version import __version__
from autotransfer.censoring.registry import (
    default_strength,
    lookup_measure,
    lookup_mode,
    make_censor,
)
from autotransfer.data.normalise import Normaliser, lookup_normaliser
from autotransfer.data.validate import as_count, as_seed
from autotransfer.encoder.registry import make_encoder
from autotransfer.errors import KernelLengthWarning, ModelFolderError, SettingError
from autotransfer.training.log import check_log
from autotransfer.training.model_folder import labels_from_json
from autotransfer.training.network import Network

DEVICES = ("auto", "cpu", "cuda", "mps")

SUBJECTS, TRIALS = 8, 8
"""Of the batches of the uncensored baseline, by default."""

STEPS, LEAST_EPOCHS = 1000, 20
"""How long to train by default: the three sets of recordings in benchmarks/baseline.py have 750 to
960 steps, in 25 to 80 epochs."""


def check(estimator: Any) -> None:
    """Raise a `SettingError` that names the first option with an impossible value."""
    lookup_mode(estimator.mode)
    if estimator.measure is not None:
        # One is made and thrown away: the measure itself says which options it can use.
        sizes = {"n_latent": 2, "n_subjects": 2, "n_classes": 2}
        options = _mapping(estimator, "measure_options")
        make_censor(estimator.measure, estimator.mode, **sizes, options=options)
    lookup_normaliser(estimator.normalise)
    as_count(estimator.checkpoint_every, "checkpoint_every")
    as_count(estimator.warmup_epochs, "warmup_epochs", least=0)
    for name in ("max_epochs", "patience", "subjects_per_batch", "trials_per_subject"):
        if getattr(estimator, name) is not None:
            as_count(getattr(estimator, name), name)
    for name, words in (
        ("strength", "of at least 0"),
        ("learning_rate", "above 0"),
        ("weight_decay", "of at least 0"),
        ("memory_budget", "of at least 0"),
    ):
        value = getattr(estimator, name)
        if name == "strength" and value is None:
            continue
        number = isinstance(value, int | float | np.integer | np.floating)
        fine = number and not isinstance(value, bool) and math.isfinite(value)
        if not fine or value < 0 or (value == 0 and words == "above 0"):
            raise SettingError(f"{name} must be a number {words}, not {value!r}.")
    _mapping(estimator, "encoder_options")
    if not isinstance(estimator.checkpoint, str | os.PathLike | None):
        raise SettingError(f"checkpoint must be the path of a file, not {estimator.checkpoint!r}.")
    check_log(estimator.log)
    if not isinstance(estimator.verbose, int | np.bool):
        raise SettingError(f"verbose must be True or False, not {estimator.verbose!r}.")
    device(estimator.device)


def _mapping(estimator: Any, name: str) -> Mapping[str, Any] | None:
    """Check an option that is a dict of options, or None."""
    value = getattr(estimator, name)
    if not isinstance(value, Mapping | None):
        what = name.removesuffix("_options")
        raise SettingError(f"{name} must be a dict of options of the {what}, not {value!r}.")
    return value


def strength(estimator: Any) -> float:
    """Weight of the penalty: as given, or what suits the measure in its mode."""
    if estimator.strength is not None:
        return float(estimator.strength)
    return default_strength(estimator.measure, estimator.mode)


def batch_shape(estimator: Any, n_classes: int) -> tuple[int, int]:
    """Subjects in a batch and trials of each: as given, or 8 x 8, or what the measure needs.

    Where a subject needs more trials than 16, fewer subjects make a batch of about 128 rows: larger
    ones would leave few steps in an epoch.
    """
    trials = estimator.trials_per_subject
    if trials is None:
        cell = 1 if estimator.measure is None else lookup_measure(estimator.measure).good_cell
        trials = max(TRIALS, cell * (n_classes if estimator.mode == "conditional" else 1))
    subjects = estimator.subjects_per_batch
    return int(subjects or max(4, min(SUBJECTS, 128 // trials))), int(trials)


def epochs(estimator: Any, n_trials: int) -> int:
    """Epochs at most: as given, or as many as make about 1000 steps over so many trials.

    Counted in batches of the uncensored baseline, so that all methods see the data equally often.
    """
    if estimator.max_epochs is not None:
        return int(estimator.max_epochs)
    rows = (estimator.subjects_per_batch or SUBJECTS) * (estimator.trials_per_subject or TRIALS)
    return max(LEAST_EPOCHS, round(STEPS / math.ceil(n_trials / rows)))


def censor_name(estimator: Any) -> str:
    """Name the measure and the mode, for messages."""
    measure = estimator.measure
    name = measure if isinstance(measure, str) else measure.__name__
    return f"measure={name!r} with mode={estimator.mode!r}"


def as_path(path: Any) -> Path:
    """Check the path of a model folder."""
    if not isinstance(path, str | os.PathLike):
        raise ModelFolderError(f"A model folder has a path, which {path!r} is not. Give its path.")
    return Path(path).expanduser()


def device(name: str) -> torch.device:
    """Find a device by name; "auto" takes a GPU if there is one."""
    if name not in DEVICES:
        raise SettingError(f"device={name!r} is not known. Choose one of {', '.join(DEVICES)}.")
    have = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        name = next(kind for kind, there in have.items() if there)
    if not have[name]:
        raise SettingError(f"This machine has no {name} device. Use device='cpu' or 'auto'.")
    return torch.device(name)


def seed(random_state: Any) -> int:
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


def versions() -> dict[str, str]:
    """Versions of what a result depends on."""
    return {
        "autotransfer": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def training_hash(estimator: Any, data: str, validation: npt.NDArray[np.intp], seed: int) -> str:
    """Hash what defines a training, so that a checkpoint of another one is not resumed.

    Parameters
    ----------
    estimator : CensoredClassifier
        Whose options count, but for those that do not change the result.
    data : str
        Fingerprint of the data.
    validation : array of int
        Trials of the validation subjects.
    seed : int
        The seed.
    """
    options = estimator.get_params(deep=False)
    # A training that was ended by max_epochs can go on to more.
    free = ("checkpoint", "checkpoint_every", "max_epochs", "verbose", "random_state", "validation")
    for name in (*free, "log"):
        options.pop(name, None)  # a subclass may have fewer options
    if isinstance(estimator.encoder, nn.Module):
        # Its structure and its first weights stand for a module.
        digest = hashlib.sha256(repr(estimator.encoder).encode())
        for tensor in estimator.encoder.state_dict().values():
            digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        options["encoder"] = digest.hexdigest()
    parts = [data, seed, __version__, options, hashlib.sha256(validation.tobytes()).hexdigest()]
    # Addresses of functions and objects differ in every process that goes on with the run.
    text = re.sub(r" at 0x[0-9A-Fa-f]+", "", json.dumps(parts, default=str, sort_keys=True))
    return hashlib.sha256(text.encode()).hexdigest()


# Options of a fit that a saved model does not need to predict, and that JSON may not hold.
_NOT_SAVED = (
    "measure",
    "encoder",
    "encoder_options",
    "checkpoint",
    "log",
    "validation",
    "random_state",
)


def to_json(estimator: Any) -> dict[str, Any]:
    """Options of an estimator that go into a model folder."""
    options = estimator.get_params(deep=False)
    kept = {name: value for name, value in options.items() if name not in _NOT_SAVED}
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in kept.items()
    }


def rebuild(
    cls: Any, documents: dict[str, Any], tensors: dict[str, Tensor], encoder: Any = None
) -> Any:
    """Make a fitted estimator from the contents of a model folder."""
    model = documents["model"]
    spec = encoder if encoder is not None else model.get("encoder")
    if spec is None:
        raise ModelFolderError(
            "This model was trained with an encoder of its own, whose code is not in the folder. "
            "Pass it: load(path, encoder=module)."
        )
    known = set(cls._get_param_names())
    try:
        options = {k: v for k, v in dict(model["parameters"]).items() if k in known}
        made = cls(
            model["measure"],
            encoder=spec,
            encoder_options=model["encoder_options"] or None,
            **options,
        )
        made.classes_ = labels_from_json(documents["labels"])
        made.n_channels_, made.n_times_ = int(model["n_channels"]), int(model["n_times"])
        made.history_, made.best_epoch_ = list(model["history"]), int(model["best_epoch"])
        shape = (made.n_channels_, made.n_times_)
        made_with = None if encoder is not None else model.get("encoder_made")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KernelLengthWarning)  # fit said it
            module = make_encoder(spec, *shape, made.sfreq, made_with or made.encoder_options)
        network = Network(module, len(made.classes_))
        network.load_state_dict(tensors)
        made.normaliser_ = Normaliser.from_state(documents["normalisation"])
        made.normaliser_.transform(np.zeros((1, *shape), np.float32))  # has it these channels?
    except (KeyError, TypeError, ValueError, RuntimeError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelFolderError(
            f"The model folder does not fit together ({type(error).__name__}: {reason}). Save or "
            "copy the model again, or give the encoder that it was trained with."
        ) from error
    made.network_ = network.eval()
    made.provenance_ = documents["provenance"]
    made.training_subjects_ = made.provenance_.get("training_subjects", [])
    made.validation_subjects_ = made.provenance_.get("validation_subjects", [])
    return made
