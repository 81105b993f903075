"""A record of training for TensorBoard: each training a run, each epoch a step.

It only listens: what is trained is the same to the bit with and without it.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from autotransfer.errors import MissingExtraError, SettingError

Entry = Mapping[str, float | None]
"""What is known of an epoch: names to numbers, as in `CensoredClassifier.history_`."""


def check_log(log: Any) -> None:
    """See, before hours of training, that a log can be written."""
    if log is None:
        return
    if not isinstance(log, str | os.PathLike):
        raise SettingError(f"log must be the path of a folder, not {log!r}.")
    if importlib.util.find_spec("tensorboard") is None:
        raise MissingExtraError(
            "TensorBoard is needed for log=... Install it with pip install tensorboard."
        )


def log_folder(options: Any, training_hash: str) -> Path | None:
    """Name the folder of a training within ``options.log``; None if nothing is logged.

    Parameters
    ----------
    options : TrainingOptions
        Of the training.
    training_hash : str
        Hash of what defines the training: a training that is taken up again goes on in the same
        folder, and trainings of a grid search or a cross-validation have one each.
    """
    if options.log is None:
        return None
    measure = getattr(options.measure, "__name__", options.measure)
    name = "uncensored" if measure is None else f"{measure}-{options.mode}"
    return Path(options.log).expanduser() / f"{name}-{training_hash[:8]}"


class TrainingLog:
    """The log of one training, in one file; a log without a folder writes nothing.

    Parameters
    ----------
    folder : Path or None
        Of the run.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._writer: Any = None

    def epoch(self, entry: Entry) -> None:
        """Write what is known of an epoch, its number under ``"epoch"``."""
        if self._folder is None:
            return
        number = int(entry["epoch"] or 0)
        if self._writer is None:
            # What an earlier attempt logged of this epoch and later ones is hidden.
            again = {"purge_step": number} if self._folder.exists() else {}
            self._writer = _writer(self._folder, **again)
        _write_epoch(self._writer, number, entry)
        self._writer.flush()  # somebody may be watching

    def end(self, options: Mapping[str, Any], scores: Mapping[str, float], step: int) -> None:
        """Write how the training ended, for TensorBoard's HPARAMS tab.

        Parameters
        ----------
        options : mapping
            Options of the training; what is no number or text is written as JSON.
        scores : mapping of str to float
            By name.
        step : int
            Epoch that the scores belong to.
        """
        if self._writer is not None and scores:  # without an epoch the log is complete already
            _write_scores(self._writer, options, scores, step)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()


def write_run(
    folder: Path,
    curves: Mapping[str, list[float | None]],
    options: Mapping[str, Any],
    scores: Mapping[str, float],
    step: int,
) -> None:
    """Log a training that is over: its curves by name, its options and its scores."""
    writer = _writer(folder)
    try:
        for epoch in range(max(map(len, curves.values()), default=0)):
            values = {name: curve[epoch] for name, curve in curves.items() if epoch < len(curve)}
            _write_epoch(writer, epoch + 1, values)
        _write_scores(writer, options, scores, step)
    finally:
        writer.close()


def _writer(folder: Path, **options: Any) -> Any:
    check_log(folder)
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder), **options)


def _write_epoch(writer: Any, epoch: int, entry: Entry) -> None:
    for name, value in entry.items():
        if name != "epoch" and value is not None:
            writer.add_scalar(f"epoch/{name}", value, epoch)


def _write_scores(
    writer: Any, options: Mapping[str, Any], scores: Mapping[str, float], step: int
) -> None:
    from torch.utils.tensorboard.summary import hparams

    for name, value in scores.items():
        writer.add_scalar(f"score/{name}", value, step)
    plain = {
        name: value if isinstance(value, str | int | float) else json.dumps(value, default=str)
        for name, value in options.items()
        if value is not None
    }
    names = {f"score/{name}": value for name, value in scores.items()}
    for summary in hparams(plain, names):  # type: ignore[no-untyped-call]
        writer.file_writer.add_summary(summary)
