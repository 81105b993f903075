"""Faces and houses from Miller's library of ECoG recordings, from the files as published.

``faces_basic`` of the library (https://purl.stanford.edu/zk881ps0522) has one file for each of 14
people, ``data/ca/ca_faceshouses.mat``: ``data`` (times x electrodes, amplifier units), ``stim``
(one code for each time: 1 to 50 a house, 51 to 100 a face, 101 the time between two pictures, 0
none) and ``srate`` (1000 Hz). A picture is shown for 400 ms, three runs of 100 pictures to each
person.

The reader was tested on small files of this form, not on the originals.

References
----------
Miller (2019), A library of human electrocorticographic data and analyses. Nature Human Behaviour
3, 1225-1235. doi:10.1038/s41562-019-0678-3

Miller et al. (2016), Spontaneous decoding of the timing and content of human object perception from
cortical surface recordings. PLoS Computational Biology 12, e1004660.
doi:10.1371/journal.pcbi.1004660
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from autotransfer.atomic import PathLike
from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.sources import files
from autotransfer.data.sources.matlab import read_mat
from autotransfer.data.trials import Float32
from autotransfer.data.validate import as_count
from autotransfer.errors import (
    ChannelMismatchError,
    DataWarning,
    SamplingRateError,
    SourceError,
    UnknownSubjectError,
    join_some,
)

SECONDS = 0.4
"""Length of a trial: as long as a picture is shown."""

ENDING = "_faceshouses.mat"
HOUSES, FACES = range(1, 51), range(51, 101)  # 101 stands between pictures
_NEEDED = ("data", "stim", "srate")
_SHORTEST = 0.05  # seconds; pictures last 0.4


class _Person(NamedTuple):
    subject: str
    X: Float32
    y: list[str]
    run: list[int]
    sfreq: float


def read_faces_basic(
    folder: PathLike,
    subjects: Sequence[str] | None = None,
    channels: int | None = None,
    seconds: float = SECONDS,
) -> SubjectDataset:
    """Read the faces and houses of Miller's ECoG library.

    Parameters
    ----------
    folder : path
        Where ``faces_basic.zip`` was unpacked: holds the ``*_faceshouses.mat`` files in folders
        below.
    subjects : sequence of str, optional
        Subjects to read by their two letters, such as ["ca", "de"]. All by default.
    channels : int, optional
        Use this many electrodes of each subject: the first ones, in the order of the file. By
        default as many as the subject with the fewest has.
    seconds : float
        Length of a trial, which begins with the picture.

    Returns
    -------
    SubjectDataset
        In amplifier units, without a filter; labels "face" and "house"; ``recording`` is
        "subject/run".

    Raises
    ------
    SourceError
        A file is missing, damaged, or of MATLAB's format 7.3.
    ChannelMismatchError
        A subject has fewer electrodes than `channels`.

    Warns
    -----
    DataWarning
        Whenever there is more than one subject: see the notes.

    Notes
    -----
    Electrodes were placed where each patient needed them, and so differ in number and place between
    subjects: electrode 7 of one person has nothing to do with electrode 7 of another. A data set
    has one number of channels, so each subject's first electrodes are used. The alternative, to
    fill missing electrodes with zeros, would write the name of the person into the signal. With
    ``subjects=["ca"]`` you get all electrodes of one person.
    """
    files.require_seconds(seconds)
    if channels is not None:
        as_count(channels, "channels")
    people = [_read(subject, file, seconds) for subject, file in _files(folder, subjects)]
    counts = {person.subject: person.X.shape[1] for person in people}
    n = min(counts.values()) if channels is None else int(channels)
    too_few = [f"{subject} ({count})" for subject, count in counts.items() if count < n]
    if too_few:
        raise ChannelMismatchError(
            f"Not every subject has {n} electrodes: {join_some(too_few)} have fewer. Ask for at "
            f"most {min(counts.values())}, or leave these subjects out."
        )
    rates = {person.sfreq for person in people}
    if len(rates) > 1:
        raise SamplingRateError(
            f"The files have different sampling rates: {join_some(sorted(rates))} Hz. Read these "
            "subjects apart, resample and combine them."
        )
    if len(people) > 1:
        warnings.warn(
            f"Electrodes differ between subjects in number ({min(counts.values())} to "
            f"{max(counts.values())}) and place; the first {n} of each are used, and a channel is "
            "not the same place in two people.",
            DataWarning,
            stacklevel=2,
        )
    return SubjectDataset(
        np.concatenate([person.X[:, :n] for person in people]),
        [label for person in people for label in person.y],
        [person.subject for person in people for _ in person.y],
        recording=[f"{person.subject}/{run}" for person in people for run in person.run],
        sfreq=rates.pop(),
        channels=[f"electrode {i + 1}" for i in range(n)],
    )


def _files(folder: PathLike, subjects: Sequence[str] | None) -> list[tuple[str, Path]]:
    """Find the files of the subjects wanted."""
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise SourceError(f"There is no folder {root}. Give the one of the unpacked faces_basic.")
    paths = {file.name.removesuffix(ENDING): file for file in sorted(root.rglob(f"*{ENDING}"))}
    if not paths:
        raise SourceError(
            f"There are no *{ENDING} files in {root} or below. Give the folder where "
            "faces_basic.zip was unpacked."
        )
    if subjects is None:
        return list(paths.items())
    selected = files.as_ids(subjects)
    missing = [subject for subject in selected if subject not in paths]
    if missing or not selected:
        raise UnknownSubjectError(
            f"There is no recording of subject {join_some(missing) or '(none)'} in {root}. There "
            f"are of {join_some(list(paths), 40)}."
        )
    return [(subject, paths[subject]) for subject in selected]


def _read(subject: str, file: Path, seconds: float) -> _Person:
    """Read a file and cut its trials."""
    arrays = _load(file)
    signals, stim = arrays["data"], np.ravel(arrays["stim"])
    try:
        sfreq = float(np.ravel(arrays["srate"])[0])
        codes: npt.NDArray[np.intp] = stim.astype(np.intp)
        fine = 0 < sfreq < np.inf and signals.ndim == 2 and signals.dtype.kind in "iuf"
    except (TypeError, ValueError, IndexError):
        fine = False
    if not fine or len(stim) != len(signals) or signals.shape[1] == 0:
        raise SourceError(
            f"{file} should hold data (times x electrodes), stim (one code for each time) and "
            "srate, but they do not fit together. Unpack it again."
        )
    starts, picture_codes, run = _pictures(codes, sfreq)
    n_times = round(seconds * sfreq)
    if not len(starts) or starts[-1] + n_times > len(signals):
        what = "has no picture" if not len(starts) else "ends before the last trial does"
        raise SourceError(
            f"{file} {what}: expected codes 1 to 100 in stim, each followed by {seconds:g} s of "
            "signals. Unpack it again."
        )
    labels = ["house" if code in HOUSES else "face" for code in picture_codes.tolist()]
    return _Person(subject, files.cut(signals, starts, n_times), labels, run.tolist(), sfreq)


def _pictures(
    codes: npt.NDArray[np.intp], sfreq: float
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Find the pictures: where each begins, its code, and the number of its run."""
    starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 1 if len(codes) else 0))
    lengths = np.diff(starts, append=len(codes))
    long_enough = lengths >= _SHORTEST * sfreq  # flickers of the code, as in the file of subject ha
    starts, stable = starts[long_enough], codes[starts[long_enough]]
    changed = np.diff(stable, prepend=-1) != 0  # what a flicker cut in two is one
    starts, stable = starts[changed], stable[changed]
    picture = (stable >= HOUSES.start) & (stable < FACES.stop)
    # No code at all stands before, between and after runs.
    run = np.cumsum(np.diff(stable == 0, prepend=True) & (stable != 0))
    return starts[picture], stable[picture], run[picture]


def _load(file: Path) -> dict[str, Any]:
    """Read the variables of a .mat file; nothing in it is executed."""
    with files.damage(f"{file} cannot be read", "Unpack it again."):
        try:
            arrays = read_mat(file, _NEEDED)
        except NotImplementedError:
            raise SourceError(
                f"{file} is of MATLAB's format 7.3, which cannot be read here (the originals are "
                "not). In MATLAB, load it and save it again with save(name, "
                '"data", "stim", "srate", "-v7").'
            ) from None
    missing = [name for name in _NEEDED if name not in arrays]
    if missing:
        raise SourceError(
            f"{file} lacks the variable {join_some(missing)}; a file of faces_basic has "
            f"{join_some(_NEEDED)}. Unpack it again."
        )
    return arrays
