"""MOABB's data sets by name, cut and filtered by the paradigm that suits them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.sources.catalogue import catalogue
from autotransfer.data.sources.moabb import from_moabb
from autotransfer.errors import MissingExtraError, SettingError, join_some
from autotransfer.registry import lookup

PARADIGMS = {"imagery": "MotorImagery", "ssvep": "SSVEP", "p300": "P300"}
"""MOABB's paradigm for each kind of data set that can be had by name."""

RATE = 128.0
"""Hz to which faster recordings are brought. EEGNet's lengths were chosen for it, and it loses
nothing: the paradigms keep what is below 45 Hz at most."""


def from_moabb_name(
    name: str, paradigm: Any = None, subjects: Sequence[Any] | None = None
) -> SubjectDataset:
    """Fetch a MOABB data set by name; MOABB keeps what it downloads.

    Parameters
    ----------
    name : str
        Name of a class in ``moabb.datasets``, such as "Kalunga2016".
    paradigm : moabb paradigm, optional
        Cuts and filters the trials. By default MOABB's ``MotorImagery``, ``SSVEP`` or ``P300``,
        whichever suits the data set, with all its classes and filters of MOABB's choice, at 128 Hz
        if it was recorded faster.
    subjects : sequence of int, optional
        Subjects to use, by MOABB's numbers. All by default.

    Returns
    -------
    SubjectDataset
        As of `from_moabb`.

    Raises
    ------
    SettingError
        There is no such data set, or no paradigm for its kind.
    MissingExtraError
        MOABB is not installed.
    """
    dataset = lookup("MOABB data set", name, _datasets())()
    return from_moabb(dataset, paradigm or suitable_paradigm(dataset), subjects)


def suitable_paradigm(dataset: Any) -> Any:
    """Make the paradigm for a data set: by its kind, at 128 Hz if it was recorded faster."""
    import moabb.paradigms

    if dataset.paradigm not in PARADIGMS:
        raise SettingError(
            f"{dataset.code} is of kind {dataset.paradigm!r}, for which there is no ready choice "
            f"(there is for {join_some(list(PARADIGMS))}). Hand over a paradigm of MOABB: "
            "load(name, paradigm=...)."
        )
    make = getattr(moabb.paradigms, PARADIGMS[dataset.paradigm])
    rate = _rate(dataset)
    # Resampling a slower recording up would only add time points.
    options: dict[str, Any] = {"resample": RATE if rate is None or rate > RATE else None}
    if dataset.paradigm != "p300":
        # By name, or MOABB logs that it had to choose.
        options |= {"events": list(dataset.event_id), "n_classes": len(dataset.event_id)}
    return make(**options)


def _rate(dataset: Any) -> float | None:
    """Look up the sampling rate in MOABB's metadata; None where it says nothing."""
    about = getattr(dataset, "METADATA", None)
    rate = getattr(getattr(about, "acquisition", None), "sampling_rate", None)
    if rate is None:
        rate = getattr(dataset, "sfreq", None)
    return None if rate is None else float(rate)


def _datasets() -> dict[str, Any]:
    """All data sets of the installed MOABB by name; those of the catalogue first."""
    try:
        import moabb.datasets
        from moabb.datasets.base import BaseDataset
    except ImportError as error:
        raise MissingExtraError(
            "MOABB is needed to fetch its data sets. Install it with pip install moabb."
        ) from error
    classes = {
        name: member
        for name, member in vars(moabb.datasets).items()
        if inspect.isclass(member) and issubclass(member, BaseDataset)
    }
    names = [row.name.partition(":")[2] for row in catalogue() if row.name.startswith("moabb:")]
    return {name: classes[name] for name in names if name in classes} | classes
