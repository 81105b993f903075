"""Data sets from MOABB, the collection of public BCI recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.sources.mne import Recorded, check_rates_and_times, common_channels
from autotransfer.errors import (
    MissingExtraError,
    SettingError,
    ShapeError,
    UnknownSubjectError,
    join_some,
)


def from_moabb(
    dataset: Any, paradigm: Any, subjects: Sequence[Any] | None = None
) -> SubjectDataset:
    """Make a data set from a MOABB data set, preprocessed by a MOABB paradigm.

    Parameters
    ----------
    dataset : moabb data set
        For instance ``moabb.datasets.Kalunga2016()``. MOABB downloads what it does not have.
    paradigm : moabb paradigm
        Cuts and filters the trials, for instance ``moabb.paradigms.SSVEP()``.
    subjects : sequence of int, optional
        Subjects to use, by MOABB's numbers. All by default.

    Returns
    -------
    SubjectDataset
        Signals as float32 in the units of ``paradigm.get_data`` (microvolts); ``session`` is
        MOABB's, ``recording`` is "subject/session/run".

    Raises
    ------
    SettingError
        The paradigm does not fit the data set.
    UnknownSubjectError
        The data set has no such subject.
    MissingExtraError
        MOABB is not installed.

    Notes
    -----
    Subjects are fetched one after the other, so that MOABB's float64 copies of all of them never
    are in memory together.
    """
    try:
        import mne
        import moabb  # noqa: F401 -- only to tell that it is missing
    except ImportError as error:
        raise MissingExtraError(
            "MOABB is needed to read its data sets. Install it with pip install moabb."
        ) from error
    numbers = _subjects(dataset, paradigm, subjects)
    signals, y, recorded = [], [], []
    meta: dict[str, list[Any]] = {"subject": [], "session": [], "run": []}
    for subject in numbers:
        with mne.utils.use_log_level("ERROR"):
            # Epochs and not arrays: only they know the channels and the sampling rate.
            epochs, labels, table = paradigm.get_data(dataset, [subject], return_epochs=True)
        if len(epochs) != len(labels):
            raise ShapeError(
                f"The paradigm {type(paradigm).__name__} gives several filtered versions of each "
                "trial (a filter bank). Use a paradigm with one pass band."
            )
        # The factor by which MOABB turns epochs (volts) into its arrays.
        block = epochs.get_data(copy=False, verbose="ERROR") * dataset.unit_factor
        signals.append(block.astype(np.float32))
        y.extend(np.asarray(labels).tolist())
        for column, values in meta.items():
            values.extend(table[column].tolist())
        rate = float(epochs.info["sfreq"])
        recorded.append(Recorded(subject, list(epochs.ch_names), rate, epochs.times))
    check_rates_and_times(recorded)
    names = common_channels(recorded, None)
    for number, part in enumerate(recorded):
        if part.channels != names:
            signals[number] = signals[number][:, [part.channels.index(name) for name in names]]
    runs = zip(*meta.values(), strict=True)
    return SubjectDataset(
        np.concatenate(signals),
        y,
        meta["subject"],
        session=meta["session"],
        recording=["/".join(map(str, run)) for run in runs],
        sfreq=recorded[0].sfreq,
        channels=names,
        unit="uV" if dataset.unit_factor == 1e6 else None,
    )


def _subjects(dataset: Any, paradigm: Any, subjects: Sequence[Any] | None) -> list[Any]:
    """Check, before anything is downloaded, that the three fit together."""
    if not hasattr(paradigm, "get_data"):
        raise SettingError(
            "paradigm must be a MOABB paradigm object, for instance "
            f"moabb.paradigms.LeftRightImagery(), not {paradigm!r}."
        )
    if not paradigm.is_valid(dataset):
        raise SettingError(
            f"The paradigm {type(paradigm).__name__} does not fit the data set {dataset.code}, "
            f"which is of kind {dataset.paradigm!r} with events "
            f"{join_some(list(dataset.event_id))}. Choose another paradigm or other events."
        )
    available = list(dataset.subject_list)
    selected = available if subjects is None else np.atleast_1d(subjects).tolist()
    missing = [subject for subject in selected if subject not in available]
    if missing or not selected:
        raise UnknownSubjectError(
            f"{dataset.code} has no subject {join_some(missing) or '(none was asked for)'}. Known: "
            f"{join_some(available, 40)}."
        )
    return selected
