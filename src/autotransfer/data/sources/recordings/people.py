"""Whose a recording is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autotransfer.errors import MissingSubjectError, SubjectError, join_some

_ENTITY = re.compile(r"(?:^|_)sub-([^_\W]+)(?=[_.]|$)")

# What recorders and EDF files write where nobody is named: two such files are not one person's.
_NOBODY = {"", "x", "0", "none", "n/a", "unknown", "anonymous", "anonymized", "mne_anonymize"}


def subject_in_name(path: Path) -> str | None:
    """Read the subject from a file's name, where it is written as in BIDS: ``sub-01_...``.

    Examples
    --------
    >>> subject_in_name(Path("sub-01_task-rest_eeg.vhdr")), subject_in_name(Path("anna.edf"))
    ('01', None)
    """
    found = _ENTITY.search(path.name)
    return None if found is None else found[1]


def subject_inside(opened: Any) -> str | None:
    """Read the subject from what a recording tells: ``info["subject_info"]["his_id"]``."""
    name = str((opened.info["subject_info"] or {}).get("his_id") or "").strip()
    return None if name.lower() in _NOBODY else name.removeprefix("sub-")


def subjects_of(paths: Sequence[Path], opened: Sequence[Any], subject: Any = None) -> list[Any]:
    """Tell the person of each file.

    Parameters
    ----------
    paths : sequence of Path
        The files.
    opened : sequence of mne.io.Raw or mne.Epochs
        The same, opened.
    subject : subject id, or sequence of them, optional
        Whose they are: one id for all of them, or one for each. By default what the recordings
        tell (``his_id``), else what their names tell (``sub-...``).

    Returns
    -------
    list
        One id for each file.

    Raises
    ------
    MissingSubjectError
        Some files do not tell.
    SubjectError
        There are more or fewer ids than files, or inside and name contradict each other.
    """
    if subject is not None:
        return _given(subject, len(paths))
    inside = [subject_inside(one) for one in opened]
    names = [subject_in_name(path) for path in paths]
    _require_same_people(paths, inside, names)
    # Of one person some files may tell the id and others only the name.
    known = {name: one for name, one in zip(names, inside, strict=True) if one is not None}
    people = [one or known.get(name, name) for one, name in zip(inside, names, strict=True)]
    _require_same_people(paths, people, names)
    unknown = [path.name for path, person in zip(paths, people, strict=True) if person is None]
    if unknown:
        raise MissingSubjectError(
            f"Whose recording is {join_some(unknown)}? Say it by subject=... (--subject): one id, "
            "or one for each file; or hand over a mapping, subject -> files; or name files as in "
            "BIDS: sub-anna_..."
        )
    return people


def _given(subject: Any, n: int) -> list[Any]:
    if isinstance(subject, Mapping):
        raise SubjectError(
            "subject is one id, or one for each file. To say whose each file is, hand over the "
            "mapping instead of the files: load({subject: files}, ...)."
        )
    ids = [subject] * n if np.ndim(subject) == 0 else list(subject)
    if len(ids) != n:
        raise SubjectError(f"subject has {len(ids)} ids for {n} recordings. Give one, or one each.")
    return ids


def _require_same_people(
    paths: Sequence[Path], inside: Sequence[str | None], names: Sequence[str | None]
) -> None:
    """See that the insides and the names of files tell the same people apart."""
    both = [
        (one, other, path.name)
        for one, other, path in zip(inside, names, paths, strict=True)
        if one is not None and other is not None
    ]
    for i, j in ((0, 1), (1, 0)):
        seen: dict[str, tuple[str, str, str]] = {}
        for pair in both:
            first = seen.setdefault(pair[i], pair)
            if first[j] != pair[j]:
                raise SubjectError(
                    f"By their names, {first[2]} and {pair[2]} are of subjects {first[1]} and "
                    f"{pair[1]}, but inside (subject_info) they say {first[0]} and {pair[0]}. Say "
                    "whose they are by subject=[one id for each file] (--subject), or mend them."
                )
