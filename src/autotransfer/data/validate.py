"""What a user hands over, checked once: signals, labels, names, sampling rate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.data.trials import Index, TrialArray
from autotransfer.errors import (
    DataError,
    DtypeError,
    EmptyDataError,
    LabelError,
    MissingSubjectError,
    NonFiniteDataError,
    SamplingRateError,
    SettingError,
    ShapeError,
    SubjectError,
    join_some,
)

Labels = npt.NDArray[Any]

_HALF = re.compile("[\ud800-\udfff]")


def as_trials(X: Any) -> TrialArray:
    """Check signals handed over by a user and wrap them, without copying, as a `TrialArray`."""
    array = X.base if isinstance(X, TrialArray) else _to_array(X, "X")
    require_real(array)
    if array.ndim != 3:
        hint = " For trials of a single channel use X[:, None, :]." if array.ndim == 2 else ""
        raise ShapeError(
            "X must have three dimensions, trials x channels x times, but has "
            f"{array.ndim}: shape {array.shape}.{hint}"
        )
    trials = X if isinstance(X, TrialArray) else TrialArray(array)
    for length, what in zip(trials.shape, ("trials", "channels", "times"), strict=True):
        if length == 0:
            raise EmptyDataError(f"X has no {what}: shape {trials.shape}. Hand over at least one.")
    return trials


def require_real(array: npt.NDArray[Any]) -> None:
    """Raise an error if signals are not real numbers."""
    if array.dtype.kind not in "fiub":
        raise DtypeError(
            f"X must hold real numbers, but its dtype is {array.dtype}. If the trials have "
            "different lengths or channels, cut them to one shape first; if the numbers are "
            "stored as text or objects, convert them with X.astype('float32')."
        )


def as_labels(values: Any, name: str, n_trials: int | None = None) -> Labels:
    """Check one label per trial (y, subject, session or recording) and return a 1-D array."""
    error = LabelError if name == "y" else SubjectError
    if values is None:
        missing = MissingSubjectError if name == "subject" else error
        every = "every trial" if n_trials is None else f"each of the {n_trials} trials"
        raise missing(f"{name} is missing: give one value for {every}.")
    array = _to_array(values, name)
    if array.ndim == 2 and 1 in array.shape:
        array = array.reshape(-1)
    if array.ndim != 1:
        hint = " If y is one-hot, use y.argmax(axis=1)." if name == "y" and array.ndim == 2 else ""
        raise ShapeError(
            f"{name} must be one-dimensional, one value per trial, but has shape {array.shape}."
            f"{hint}"
        )
    if n_trials is not None and len(array) != n_trials:
        raise ShapeError(
            f"{name} has {len(array)} values but X has {n_trials} trials. Each trial needs one."
        )
    if array.dtype == object:
        kinds = sorted({type(value).__name__ for value in array.tolist()})
        if any(kind not in ("str", "int", "float", "bool", "str_") for kind in kinds):
            raise DtypeError(
                f"{name} holds values of type {join_some(kinds)}. Use numbers or strings, one kind."
            )
        if len(kinds) > 1 and "str" in kinds:
            raise DtypeError(
                f"{name} mixes {join_some(kinds)}, so its values cannot be ordered. Use one kind, "
                f"for instance {name} = [str(v) for v in {name}]."
            )
        array = np.array(array.tolist())
    if array.dtype.kind not in "fiubUS":
        raise DtypeError(f"{name} has dtype {array.dtype}. Use numbers or strings.")
    if array.dtype.kind == "U" and array.size:
        _require_unicode(array, name)
    if array.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(array))
        if len(bad):
            raise error(
                f"{name} is NaN or infinite for trials {join_some(bad.tolist())}. Label these "
                "trials or leave them out."
            )
    if name == "y" and array.dtype.kind == "f" and not np.array_equal(array, np.round(array)):
        raise LabelError(
            "y holds continuous values. This package classifies: give class labels, for instance "
            "by binning the values."
        )
    return array


def _require_unicode(texts: Labels | list[str], name: str) -> None:
    """Refuse half a character (of a file's name in another encoding): nothing can be made of it."""
    if isinstance(texts, list):
        bad = [i for i, text in enumerate(texts) if _HALF.search(text)]
    else:
        codes = np.ascontiguousarray(texts, texts.dtype.newbyteorder("=")).view(np.uint32)
        wrong = ((codes >= 0xD800) & (codes < 0xE000)) | (codes > 0x10FFFF)
        bad = np.flatnonzero(wrong.reshape(len(texts), -1).any(1)).tolist()
    if bad:
        raise DtypeError(
            f"{name} holds text that is no Unicode (half a character, a lone surrogate) in the "
            f"values numbered {join_some(bad)}. Write these texts anew."
        )


def _to_array(values: Any, name: str) -> npt.NDArray[Any]:
    """Convert to an array, turning numpy's complaint about ragged lists into our own."""
    if hasattr(values, "todense"):
        raise DtypeError(
            f"{name} is a sparse matrix. Sparse signals are not used: hand over {name}.toarray()."
        )
    if hasattr(values, "detach"):  # a torch tensor, perhaps on a device
        values = values.detach().cpu()
    if isinstance(values, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(values)
        if masked.any():
            trials = np.unique(np.nonzero(masked)[0]).tolist() if masked.ndim else []
            raise DtypeError(
                f"{name} is a masked array with masked values in trials {join_some(trials)}. Leave "
                f"these trials out, or put numbers there with {name}.filled(value)."
            )
        values = values.data
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

    Notes
    -----
    Values so large that a sum over the times of a trial leaves the float32 range are refused too:
    the mean, and all that follows, would be infinite.
    """
    # One product tells that all is well; a sum of squares can also overflow, so it is not proof.
    flat = block.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.dot(flat, flat)):
            return
    limit = np.finfo(np.float32).max / block.shape[2]
    trials, channels = np.nonzero(~np.isfinite(block).all(2))
    what, advice = "NaN or infinite values", "mend the signals first"
    if not len(trials):
        trials, channels = np.nonzero((np.abs(block) > limit).any(2))
        what, advice = f"values beyond {limit:.0e}", "give the signals in a sensible unit"
    if not len(trials):
        return
    numbers = np.unique(trials) + start
    whose = (
        "" if subject is None else f" of subject {join_some(np.unique(subject[numbers]).tolist())}"
    )
    raise NonFiniteDataError(
        f"X contains {what} (as float32): trials {join_some(numbers.tolist())}{whose}, channels "
        f"{join_some(np.unique(channels).tolist())}. Leave these trials out, or {advice}."
    )


def as_trial_numbers(trials: Any, n_trials: int) -> Index:
    """Turn a mask, slice or list of numbers into checked trial numbers."""
    if isinstance(trials, slice):
        return np.arange(n_trials)[trials]
    array = np.asarray(trials)
    if array.dtype == bool:
        if array.shape != (n_trials,):
            raise ShapeError(f"The mask has shape {array.shape}, but there are {n_trials} trials.")
        return np.flatnonzero(array)
    if array.size == 0:
        return np.zeros(0, np.intp)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise DtypeError("trials must be a mask, a slice or a list of trial numbers.")
    outside = array[(array < -n_trials) | (array >= n_trials)]
    if len(outside):
        raise ShapeError(f"No trials numbered {join_some(outside.tolist())}: there are {n_trials}.")
    return array.astype(np.intp) % n_trials


def not_among(items: Sequence[Any], labels: Labels) -> list[Any]:
    """List what is wanted but is none of the known labels."""
    valid = set(labels.tolist())
    plain = [item.item() if isinstance(item, np.generic) else item for item in items]
    # Labels are of these kinds; anything else may not even be hashable.
    return [v for v in plain if not isinstance(v, str | bytes | int | float) or v not in valid]


def as_weights(weights: Any, n_trials: int) -> npt.NDArray[np.float64]:
    """Check one weight per trial."""
    array = _to_array(weights, "sample_weight")
    if array.shape != (n_trials,):
        raise ShapeError(
            f"sample_weight has shape {array.shape}, but there are {n_trials} trials. Each needs "
            "one."
        )
    if array.dtype.kind not in "fiub" or not np.isfinite(array).all():
        raise DataError("sample_weight must hold finite numbers, one for each trial.")
    return array.astype(np.float64)


def as_seed(value: Any, name: str = "random_state") -> int:
    """Check a seed: a whole number that numpy's and torch's generators take."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value < 2**64:
        raise SettingError(f"{name} must be a whole number from 0 to below 2**64, not {value!r}.")
    return int(value)


def as_count(value: Any, name: str, least: int = 1) -> int:
    """Check a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise SettingError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    return int(value)


def as_sampling_rate(sfreq: Any) -> float | None:
    """Check a sampling rate in Hz."""
    if sfreq is None:
        return None
    try:
        rate = float(sfreq)
    except (TypeError, ValueError, OverflowError):
        raise SamplingRateError(f"sfreq must be a number in Hz, not {sfreq!r:.40}.") from None
    if not (np.isfinite(rate) and rate > 0):
        raise SamplingRateError(f"sfreq must be a positive number of Hz, not {rate}.")
    return rate


def as_channel_names(channels: Sequence[str] | None, n_channels: int) -> list[str]:
    """Check channel names, or make some."""
    if channels is None:
        return list(standard_names(n_channels))
    names = as_list(channels, "channels")
    if len(names) != n_channels:
        raise ShapeError(
            f"{len(names)} channel names for {n_channels} channels in X. Give one name each."
        )
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise ShapeError(
            f"Channel names must differ, but {join_some(twice)} stands more than once."
        )
    return names


def standard_names(n_channels: int) -> tuple[str, ...]:
    """Names of channels that nobody has named."""
    return tuple(f"ch{i}" for i in range(n_channels))


def as_unit(unit: Any) -> str | None:
    """Check the unit of signals; micro is written u.

    Examples
    --------
    >>> as_unit("µV")
    'uV'
    """
    if unit is None or unit == "":
        return None
    if not isinstance(unit, str) or len(unit) > 80:
        raise DataError(f"unit must be a word such as 'uV' or 'V', not {unit!r}.")
    return unit.strip().replace("\u00b5", "u").replace("\u03bc", "u")


def as_list(names: Any, what: str) -> list[str]:
    """Check that names are a list; a single word would be taken for its letters."""
    if isinstance(names, str | bytes) or not isinstance(names, Iterable):
        raise ShapeError(f"{what} must be a list of names, not {names!r}.")
    words = [str(name) for name in names]
    _require_unicode(words, what)
    return words


def as_names(names: Any, ids: Labels, what: str) -> list[str]:
    """Display names of labels or subjects, in the order of the sorted ids."""
    if names is None:
        return [str(item) for item in ids.tolist()]
    if hasattr(names, "items"):
        table = {str(key): str(value) for key, value in names.items()}
        return as_list([table.get(str(item), str(item)) for item in ids.tolist()], what)
    words = as_list(names, what)
    if len(words) == len(ids):
        return words
    # Names for more classes than occur: labels are then positions in the list.
    if ids.dtype.kind in "iu" and ids.min() >= 0 and ids.max() < len(words):
        return [words[i] for i in ids.tolist()]
    raise ShapeError(
        f"{what} has {len(words)} names, but the data have {len(ids)}: {join_some(ids.tolist())}."
    )
