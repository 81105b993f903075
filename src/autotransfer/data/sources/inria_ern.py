"""The error potentials of the Inria BCI challenge, from the files as published.

The files are those of Kaggle's "BCI Challenge @ NER 2015"
(https://www.kaggle.com/c/inria-bci-challenge/data): ``Data_S02_Sess01.csv`` for each subject and
session, with the columns Time, 56 EEG channels, EOG and FeedBackEvent at 200 Hz, and
``TrainLabels.csv`` with the columns IdFeedBack (``S02_Sess01_FB001``) and Prediction (1 where the
speller's feedback was right, 0 where it was wrong). 16 subjects have labels; each of their
sessions 1 to 4 has 60 feedbacks, session 5 has 100.

The reader was tested on small files of this form, not on the originals.

References
----------
Margaux et al. (2012), Objective and subjective evaluation of online error correction during
P300-based spelling. Advances in Human-Computer Interaction 2012, 578295.
doi:10.1155/2012/578295
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from autotransfer.atomic import PathLike
from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.sources import files
from autotransfer.data.trials import Float32
from autotransfer.errors import (
    ChannelMismatchError,
    DataWarning,
    LabelError,
    SourceError,
    UnknownSubjectError,
    join_some,
)

SFREQ = 200.0
SECONDS = 1.3
"""Length of a trial: 260 samples, as most work on this set has."""

LABELS = "TrainLabels.csv"
EVENT = "FeedBackEvent"
NOT_EEG = ("Time", "EOG", EVENT)
CLASSES = {0: "wrong", 1: "right"}

_NAME = re.compile(r"Data_(S\d+)_Sess(\d{1,9})\.csv")
_ID = re.compile(r"(S\d+)_Sess(\d{1,9})_FB(\d{1,9})")


class _Session(NamedTuple):
    subject: str
    number: int
    file: Path


def read_inria_ern(
    folder: PathLike, subjects: Sequence[str] | None = None, seconds: float = SECONDS
) -> SubjectDataset:
    """Read the error potentials of the Inria BCI challenge.

    Parameters
    ----------
    folder : path
        Where ``train.zip`` was unpacked: holds the ``Data_S*_Sess*.csv`` files, itself or in
        folders below; ``TrainLabels.csv`` is there too, or beside it.
    subjects : sequence of str, optional
        Subjects to read, such as ["S02", "S06"]; by default all that have labels.
    seconds : float
        Length of a trial, which begins at the feedback.

    Returns
    -------
    SubjectDataset
        56 channels x 260 times at 200 Hz, in the units of the files and without a filter; labels 0
        (the feedback was wrong) and 1 (it was right). ``session`` is the session.

    Raises
    ------
    SourceError
        A file is missing or damaged.
    LabelError
        Feedbacks and labels of a session do not fit together.
    """
    root = Path(folder).expanduser()
    files.require_seconds(seconds)
    labels = _labels(_labels_file(root))
    sessions = _sessions(root, subjects, {subject for subject, _ in labels})
    channels: list[str] = []
    blocks: list[Float32] = []
    y: list[int] = []
    subject: list[str] = []
    session: list[int] = []
    for recording in sessions:
        names, block = _cut(recording.file, seconds)
        if channels and names != channels:
            different = sorted(set(names) ^ set(channels)) or ["their order"]
            raise ChannelMismatchError(
                f"{recording.file} has other channels than {sessions[0].file.name}: "
                f"{join_some(different)} differ. Unpack the files of the challenge again."
            )
        channels = names
        session_labels = labels.get((recording.subject, recording.number), {})
        _require_labels(recording, len(block), session_labels)
        blocks.append(block)
        y.extend(session_labels[n] for n in range(1, len(block) + 1))
        subject.extend([recording.subject] * len(block))
        session.extend([recording.number] * len(block))
    return SubjectDataset(
        np.concatenate(blocks),
        y,
        subject,
        session=session,
        recording=[f"{a}/{b}" for a, b in zip(subject, session, strict=True)],
        sfreq=SFREQ,
        channels=channels,
        classes={label: CLASSES[label] for label in sorted(set(y))},
    )


def _labels_file(root: Path) -> Path:
    if not root.is_dir():
        raise SourceError(f"There is no folder {root}. Give the one where train.zip was unpacked.")
    for file in (root / LABELS, root.absolute().parent / LABELS, *sorted(root.rglob(LABELS))):
        if file.is_file():
            return file
    raise SourceError(
        f"There is no {LABELS} in {root}, below it or beside it. Download it from the challenge's "
        "page and put it there."
    )


def _labels(file: Path) -> dict[tuple[str, int], dict[int, int]]:
    """Read the labels: (subject, session) -> number of the feedback -> label."""
    import pandas as pd  # here, because the house opens faster without it

    try:
        table = pd.read_csv(file)
        ids, values = table["IdFeedBack"].astype(str), table["Prediction"]
    except (KeyError, ValueError, OSError) as error:
        raise SourceError(
            f"{file} cannot be read as a table with the columns IdFeedBack and Prediction "
            f"({error}). Download it again."
        ) from None
    labels: dict[tuple[str, int], dict[int, int]] = {}
    for name, value in zip(ids, values.tolist(), strict=True):
        parts = _ID.fullmatch(name)
        if parts is None or value not in CLASSES:
            raise LabelError(
                f"{file} has the label {value!r} for {name!r}; expected 0 or 1 for a name such as "
                "S02_Sess01_FB001. Download it again."
            )
        labels.setdefault((parts[1], int(parts[2])), {})[int(parts[3])] = int(value)
    return labels


def _sessions(root: Path, subjects: Sequence[str] | None, labelled: set[str]) -> list[_Session]:
    """Find the files of the subjects wanted, in the order of subjects and sessions."""
    recordings = [
        _Session(parts[1], int(parts[2]), file)
        for file in root.rglob("Data_S*_Sess*.csv")
        if (parts := _NAME.fullmatch(file.name))
    ]
    if not recordings:
        raise SourceError(
            f"There are no Data_S*_Sess*.csv files in {root} or below. Give the folder where "
            "train.zip of the challenge was unpacked."
        )
    present = {recording.subject for recording in recordings}
    usable = present & labelled
    if subjects is None:
        selected = usable
        unlabelled = sorted(present - labelled)
        if unlabelled:
            warnings.warn(
                f"Subjects {join_some(unlabelled)} have no labels in {LABELS} (they are the "
                "challenge's test subjects) and are left out.",
                DataWarning,
                stacklevel=4,
            )
    else:
        selected = set(files.as_ids(subjects))
    missing = sorted(selected - usable)
    if missing or not selected:
        raise UnknownSubjectError(
            f"There are no recordings with labels of subject {join_some(missing) or '(none)'} in "
            f"{root}. There are of {join_some(sorted(usable), 40) or 'nobody'}."
        )
    return sorted(recording for recording in recordings if recording.subject in selected)


def _cut(file: Path, seconds: float) -> tuple[list[str], Float32]:
    """Read a recording and cut its trials, (n_feedbacks, n_channels, n_times)."""
    import pandas as pd

    n_times = round(seconds * SFREQ)
    try:
        header = list(pd.read_csv(file, nrows=0).columns)
        names = [name for name in header if name not in NOT_EEG]
        if EVENT not in header or not names:
            raise SourceError(
                f"{file} has the columns {join_some(header)}; expected Time, the EEG channels, EOG "
                f"and {EVENT}. Unpack it again."
            )
        table = pd.read_csv(file, usecols=[*names, EVENT], dtype=np.float32)
    except SourceError:
        raise
    except (ValueError, OSError) as error:
        raise SourceError(f"{file} cannot be read ({error}). Unpack it again.") from None
    signals = table[names].to_numpy(np.float32)
    in_event = table[EVENT].to_numpy() != 0
    starts = np.flatnonzero(in_event & ~np.concatenate([[False], in_event[:-1]]))
    if len(starts) and starts[-1] + n_times > len(signals):
        raise SourceError(
            f"{file} ends {(len(signals) - starts[-1]) / SFREQ:.2f} s after its last feedback, but "
            f"trials have {seconds:g} s. Unpack it again if it is incomplete, or use shorter "
            "trials: seconds=..."
        )
    return names, files.cut(signals, starts, n_times)


def _require_labels(recording: _Session, n_feedbacks: int, labels: dict[int, Any]) -> None:
    """See that each feedback has its label, and each label its feedback."""
    if n_feedbacks == 0 or set(range(1, n_feedbacks + 1)) != set(labels):
        raise LabelError(
            f"{recording.file} has {n_feedbacks} feedbacks, but {LABELS} has {len(labels)} labels "
            f"of subject {recording.subject}, session {recording.number}. Unpack the file and "
            "download the labels again."
        )
