"""What a user hands over, checked once: signals, labels, names, sampling rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.data.trials import TrialArray
from autotransfer.errors import (
    DtypeError,
    EmptyDataError,
    LabelError,
    NonFiniteDataError,
    SamplingRateError,
    ShapeError,
    SubjectError,
    some,
)

Labels = npt.NDArray[Any]


def as_trials(X: Any) -> TrialArray:
    """Check signals handed over by a user and wrap them, without copying, as a `TrialArray`."""
    if isinstance(X, TrialArray):
        trials = X
    else:
        array = _to_array(X, "X")
        if array.dtype == object or array.dtype.kind not in "fiub":
            raise DtypeError(
                f"X must hold real numbers, but its dtype is {array.dtype}. If the trials have "
                "different lengths or channels, cut them to one shape first; if the numbers are "
                "stored as text or objects, convert them with X.astype('float32')."
            )
        if array.ndim != 3:
            hint = " For trials of a single channel use X[:, None, :]." if array.ndim == 2 else ""
            raise ShapeError(
                "X must have three dimensions, trials x channels x times, but has "
                f"{array.ndim}: shape {array.shape}.{hint}"
            )
        trials = TrialArray(array)
    for length, what in zip(trials.shape, ("trials", "channels", "times"), strict=True):
        if length == 0:
            raise EmptyDataError(f"X has no {what}: shape {trials.shape}. Hand over at least one.")
    return trials


def as_labels(values: Any, name: str, n_trials: int) -> Labels:
    """Check one label per trial (y, subject, session or recording) and return a 1-D array."""
    error = LabelError if name == "y" else SubjectError
    if values is None:
        raise error(f"{name} is missing: give one value for each of the {n_trials} trials.")
    array = _to_array(values, name)
    if array.ndim == 2 and 1 in array.shape:
        array = array.reshape(-1)
    if array.ndim != 1:
        hint = " If y is one-hot, use y.argmax(axis=1)." if name == "y" and array.ndim == 2 else ""
        raise ShapeError(
            f"{name} must be one-dimensional, one value per trial, but has shape {array.shape}."
            f"{hint}"
        )
    if len(array) != n_trials:
        raise ShapeError(
            f"{name} has {len(array)} values but X has {n_trials} trials. Each trial needs one."
        )
    if array.dtype == object:
        kinds = sorted({type(value).__name__ for value in array.tolist()})
        if any(kind not in ("str", "int", "float", "bool", "str_") for kind in kinds):
            raise DtypeError(
                f"{name} holds values of type {some(kinds)}. Use numbers or strings, one kind."
            )
        if len(kinds) > 1 and "str" in kinds:
            raise DtypeError(
                f"{name} mixes {some(kinds)}, so its values cannot be ordered. Use one kind, for "
                f"instance {name} = [str(v) for v in {name}]."
            )
        array = np.array(array.tolist())
    if array.dtype.kind not in "fiubUS":
        raise DtypeError(f"{name} has dtype {array.dtype}. Use numbers or strings.")
    if array.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(array))
        if len(bad):
            raise error(
                f"{name} is NaN or infinite for trials {some(bad.tolist())}. Label these trials "
                "or leave them out."
            )
    if name == "y" and array.dtype.kind == "f" and not np.array_equal(array, np.round(array)):
        raise LabelError(
            "y holds continuous values. This package classifies: give class labels, for instance "
            "by binning the values."
        )
    return array


def _to_array(values: Any, name: str) -> npt.NDArray[Any]:
    """Convert to an array, turning numpy's complaint about ragged lists into our own."""
    if hasattr(values, "todense"):
        raise DtypeError(
            f"{name} is a sparse matrix. Sparse signals are not used: hand over {name}.toarray()."
        )
    if hasattr(values, "detach"):  # a torch tensor, perhaps on a device
        values = values.detach().cpu()
    try:
        return np.asanyarray(values)
    except ValueError as error:
        raise ShapeError(
            f"{name} is not a regular array ({error}). All trials must have the same channels and "
            "times."
        ) from None


def require_finite(block: npt.NDArray[Any], start: int = 0, subject: Labels | None = None) -> None:
    """Raise an error that names trials, channels and subjects if a block is not finite.

    Parameters
    ----------
    block : array of shape (n, n_channels, n_times)
        Signals.
    start : int
        Number of the first trial of the block.
    subject : array, optional
        Subject of every trial of the whole data.
    """
    # One product tells that all is well; a sum of squares can also overflow, so it is not proof.
    flat = block.reshape(-1)
    if np.isfinite(np.dot(flat, flat)):
        return
    trials, channels = np.nonzero(~np.isfinite(block).all(2))
    if len(trials) == 0:
        return
    numbers = np.unique(trials) + start
    whose = "" if subject is None else f" of subject {some(np.unique(subject[numbers]).tolist())}"
    raise NonFiniteDataError(
        f"X contains NaN or infinite values: trials {some(numbers.tolist())}{whose}, channels "
        f"{some(np.unique(channels).tolist())}. Leave these trials out, or mend the signals first."
    )


def as_sampling_rate(sfreq: Any) -> float | None:
    """Check a sampling rate in Hz."""
    if sfreq is None:
        return None
    try:
        rate = float(sfreq)
    except (TypeError, ValueError):
        raise SamplingRateError(f"sfreq must be a number in Hz, not {sfreq!r}.") from None
    if not (np.isfinite(rate) and rate > 0):
        raise SamplingRateError(f"sfreq must be a positive number of Hz, not {rate}.")
    return rate


def as_channel_names(channels: Sequence[str] | None, n_channels: int) -> list[str]:
    """Check channel names, or make some."""
    if channels is None:
        return [f"ch{i}" for i in range(n_channels)]
    names = [str(name) for name in channels]
    if len(names) != n_channels:
        raise ShapeError(
            f"{len(names)} channel names for {n_channels} channels in X. Give one name each."
        )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ShapeError(f"Channel names must differ, but {some(twice)} stands more than once.")
    return names


def as_names(names: Any, ids: Labels, what: str) -> list[str]:
    """Display names of labels or subjects, in the order of the sorted ids."""
    if names is None:
        return [str(item) for item in ids.tolist()]
    if hasattr(names, "items"):
        table = {str(key): str(value) for key, value in names.items()}
        return [table.get(str(item), str(item)) for item in ids.tolist()]
    listed = [str(name) for name in names]
    if len(listed) == len(ids):
        return listed
    # Names for more classes than occur: labels are then positions in the list.
    if ids.dtype.kind in "iu" and ids.min() >= 0 and ids.max() < len(listed):
        return [listed[i] for i in ids.tolist()]
    raise ShapeError(
        f"{what} has {len(listed)} names, but the data have {len(ids)}: {some(ids.tolist())}."
    )
