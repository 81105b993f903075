"""The real recordings that benchmarks use, and what is known about them."""

from __future__ import annotations

import argparse
import atexit
import functools
import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import autotransfer as at
from autotransfer.data.sources.npz import write_npz
from autotransfer.data.splits import Fold
from benchmarks.common import pool, report


@dataclass(frozen=True)
class Recording:
    """A data set, how it is folded, and what suits it."""

    name: str
    normalisers: tuple[str, ...]
    """The one that suits it first."""
    simple_pipeline: float
    """Leave-one-subject-out balanced accuracy of an untuned classical pipeline (data's README)."""
    shape: tuple[int, int, int, float] = (4, 128, 2, 128.0)
    """Channels, time points, classes, sampling rate: synthetic people have them, too."""
    encoder_options: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    """Further options of the classifier."""
    labels: tuple[int, ...] | None = None
    n_folds: int | None = None

    def load(self) -> at.SubjectDataset:
        """Open the data set."""
        data = at.load(data_folder() / self.name / f"{self.name}.npz")
        return data if self.labels is None else data.select(labels=self.labels)

    def count_folds(self) -> int:
        """Count its folds."""
        return self.n_folds or len(self.load().subject_ids)

    def folds(self, data: at.SubjectDataset) -> list[Fold]:
        """Fold it as AutoTransfer does with the same `n_folds`: one person or group each."""
        return list(at.SubjectFolds(self.n_folds).folds(data.subject))


RECORDINGS = {
    "ssvep": Recording(
        "ssvep_exoskeleton", ("channel", "trial"), 0.655, (8, 256, 4, 128.0), labels=(1, 2, 3)
    ),
    "erp": Recording("uci_eeg_objects", ("trial", "channel"), 0.640, (61, 128, 3, 128.0)),
    "emg": Recording(
        "myo_emg",
        ("trial", "channel"),
        0.735,
        (8, 200, 7, 200.0),
        # Gestures show in amplitude, not in slow waves: 0.16 s instead of half a second.
        {"kernel_length": 32},
        # An epoch is 128 steps here and 15 in the other sets: enough, and the whole run stays
        # within the hour.
        {"max_epochs": 25},
        n_folds=10,
    ),
}


FURTHER = {
    "ciil": "ciil_emg",
    "3dc": "threedc_emg",
    "myodisco": "myodisco_emg",
    "ecg": "mitbih_ecg",
    "arithmetic": "eegmat_eeg",
    "stress": "sam40_eeg",
}
"""Data sets beside `RECORDINGS`, as they are: name -> folder."""

SETS = (*RECORDINGS, *FURTHER)
"""All nine."""

SHOWN = {
    "ssvep": "EEG, flicker",
    "erp": "EEG, pictures",
    "emg": "EMG, Myo armband",
    "ciil": "EMG, Myo, shifted",
    "3dc": "EMG, 3DC armband",
    "myodisco": "EMG, short gestures",
    "ecg": "ECG, kinds of beat",
    "arithmetic": "EEG, arithmetic",
    "stress": "EEG, kinds of task",
}
"""What readers see instead of a name."""


@functools.cache
def load_set(name: str) -> at.SubjectDataset:
    """Open one of the nine data sets."""
    if name in RECORDINGS:
        return RECORDINGS[name].load()
    return at.load(data_folder() / FURTHER[name] / f"{FURTHER[name]}.npz")


OF_THE_ENCODER = ("kernel_seconds", "F1", "drop_prob")


def network_options(
    name: str, chosen: Mapping[str, Any] | None = None, max_epochs: int | None = None
) -> dict[str, Any]:
    """Options of every network of a data set: the recording's own, or those that were chosen.

    Parameters
    ----------
    name : str
        Name of the data set.
    chosen : mapping, optional
        Its part of "chosen" in what ``python -m benchmarks.accuracy.baseline --json`` writes.
    max_epochs : int, optional
        Fewer epochs, for a try.

    Returns
    -------
    dict
        Of `CensoredClassifier`.
    """
    recording = RECORDINGS[name]
    options = {
        "normalise": recording.normalisers[0],
        "encoder_options": dict(recording.encoder_options),
        **recording.options,
    }
    chosen = chosen or {}
    encoder = {option: chosen[option] for option in OF_THE_ENCODER if option in chosen}
    if "kernel_seconds" in encoder:
        # The recording's own length in samples would stand beside the one in seconds.
        encoder["kernel_length"] = None
    rest = {option: value for option, value in chosen.items() if option not in OF_THE_ENCODER}
    fewer = {} if max_epochs is None else {"max_epochs": max_epochs}
    encoder = {**options["encoder_options"], **encoder}
    return {**options, **rest, **fewer, "encoder_options": encoder}


def read_options(path: Path | None) -> dict[str, Any]:
    """Read the options of the networks: {data set: {option: value}}, or a report that has them."""
    if path is None:
        return {}
    found: dict[str, Any] = json.loads(path.read_text())
    chosen: dict[str, Any] = found.get("chosen", found)
    unknown = sorted(set(chosen) - set(RECORDINGS))
    if unknown:
        sys.exit(f"{path} has options of {', '.join(unknown)}; known are {', '.join(RECORDINGS)}.")
    return chosen


def at_work(name: str) -> tuple[Recording, at.SubjectDataset]:
    """Make a worker ready to train on a data set: one thread, no warnings, opened only once."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", at.AutoTransferWarning)
    return RECORDINGS[name], _opened(name)


@functools.cache
def _opened(name: str) -> at.SubjectDataset:
    return RECORDINGS[name].load()


def arguments(parser: argparse.ArgumentParser, **tiny: Any) -> argparse.Namespace:
    """Read the command line of a benchmark on recordings: with --smoke, of synthetic people.

    Parameters
    ----------
    parser : ArgumentParser
        With the options of `pool.add_options`.
    **tiny : dict
        Defaults of the options with --smoke; no other processes are started then.
    """
    args = report.arguments(parser, **{"workers": 0, **tiny})
    if args.smoke:
        use_synthetic_people()
    return args


def use_synthetic_people() -> None:
    """Put a few synthetic people in the place of every recording, until this process ends."""
    folder = temporary_folder()
    for recording in RECORDINGS.values():
        channels, times, classes, sfreq = recording.shape
        # As many people as folds are asked of them, and every class a few times.
        data = at.make_subjects(
            n_subjects=recording.n_folds or 5,
            n_trials=4 * classes,
            n_classes=classes,
            n_channels=channels,
            n_times=times,
            sfreq=sfreq,
        )
        (folder / recording.name).mkdir()
        write_npz(data, folder / recording.name / f"{recording.name}.npz")
    os.environ["AUTOTRANSFER_DATA"] = str(folder)  # workers inherit it
    print("Synthetic people of the recordings' shapes; no recording is read.")


def temporary_folder() -> Path:
    """Make a folder that goes when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="autotransfer-smoke-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def training_parser(words: str | None) -> argparse.ArgumentParser:
    """Make the parser of a benchmark that trains networks on recordings."""
    parser = report.parser(words)
    parser.add_argument("--dataset", choices=list(RECORDINGS), nargs="*", default=list(RECORDINGS))
    parser.add_argument("--options", type=Path, help="what benchmarks.accuracy.baseline wrote")
    parser.add_argument("--max-epochs", type=int, help="for a try")
    pool.add_options(parser)
    return parser


def networks(args: argparse.Namespace) -> dict[str, str]:
    """Options of the network for every data set that was asked for, as JSON."""
    chosen = read_options(args.options)
    options = {n: network_options(n, chosen.get(n), args.max_epochs) for n in args.dataset}
    return {name: json.dumps(one, sort_keys=True) for name, one in options.items()}


def units_of_people(data: at.SubjectDataset) -> dict[tuple[Any, Any], list[np.ndarray]]:
    """Trials of every (person, class) in the order of the data, those of one recording together."""
    unit = np.arange(len(data.y)) if data.recording is None else data.recording
    found: dict[tuple[Any, Any], list[np.ndarray]] = {}
    for who in data.subject_ids:
        for label in data.labels:
            mine = np.flatnonzero((data.subject == who) & (data.y == label))
            names = dict.fromkeys(unit[mine])
            found[who, label] = [mine[unit[mine] == name] for name in names]
    return found


def tested(clf: at.CensoredClassifier, data: at.SubjectDataset, fold: Fold) -> dict[str, float]:
    """Score each of the people who test in a fold."""
    people = (data.select(subjects=[who]) for who in fold.subjects("test"))
    return {one.subject_names[0]: clf.score(one.X, one.y) for one in people}


def data_folder() -> Path:
    """Find the recordings: AUTOTRANSFER_DATA, or shared/data beside the checkout."""
    given = os.environ.get("AUTOTRANSFER_DATA")
    folder = Path(given) if given else Path(__file__).resolve().parents[3] / "shared" / "data"
    if not folder.is_dir():
        raise SystemExit(f"No recordings in {folder}. Set AUTOTRANSFER_DATA to their folder.")
    return folder
