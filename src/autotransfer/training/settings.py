"""What surrounds an estimator: checks of its options, devices, seeds, versions, its rebuilding."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils import check_random_state
from torch import Tensor

from autotransfer._version import __version__
from autotransfer.data.normalise import Normaliser, lookup_normaliser
from autotransfer.encoder.registry import make_encoder
from autotransfer.errors import ModelFolderError, SettingError
from autotransfer.training.model_folder import labels_from_json
from autotransfer.training.network import Network

DEVICES = ("auto", "cpu", "cuda", "mps")


def check(estimator: Any) -> None:
    """Raise a `SettingError` that names the first option with an impossible value."""
    if estimator.measure is not None:
        raise SettingError(
            f"measure={estimator.measure!r} is not known. This version trains the uncensored "
            "baseline only: measure=None."
        )
    lookup_normaliser(estimator.normalise)
    for name in ("max_epochs", "patience", "checkpoint_every"):
        value = getattr(estimator, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise SettingError(f"{name} must be a whole number of at least 1, not {value!r}.")
    for name, least in (("learning_rate", 1e-12), ("weight_decay", 0.0), ("memory_budget", 0)):
        value = getattr(estimator, name)
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or value < least:
            raise SettingError(f"{name} must be a positive number, not {value!r}.")


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
        if random_state < 0:
            raise SettingError(f"random_state must not be negative, but is {random_state}.")
        return int(random_state)
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


def identity(estimator: Any, data: str, validation: npt.NDArray[np.intp], seed: int) -> str:
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
    for name in ("checkpoint", "checkpoint_every", "verbose", "random_state", "validation"):
        del options[name]
    if not isinstance(estimator.encoder, str):
        options["encoder"] = repr(estimator.encoder)  # a module's structure stands for it
    parts = [data, seed, __version__, options, hashlib.sha256(validation.tobytes()).hexdigest()]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


# Options of a fit that a saved model does not need to predict, and that JSON may not hold.
_NOT_SAVED = ("measure", "encoder", "encoder_options", "checkpoint", "validation", "random_state")


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
    options = {k: v for k, v in dict(model.get("parameters", {})).items() if k in known}
    try:
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
        network = Network(
            make_encoder(spec, *shape, made.sfreq, made.encoder_options), len(made.classes_)
        )
        network.load_state_dict(tensors)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise ModelFolderError(
            f"The model folder does not fit together ({error}). Save the model again."
        ) from error
    made.network_ = network.eval()
    made.normaliser_ = Normaliser.from_state(documents["normalisation"])
    made.provenance_ = documents["provenance"]
    made.training_subjects_ = made.provenance_.get("training_subjects", [])
    made.validation_subjects_ = made.provenance_.get("validation_subjects", [])
    return made
