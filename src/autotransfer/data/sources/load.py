"""`load`: one door for every source of data."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.sources.catalogue import catalogue
from autotransfer.data.sources.faces_basic import read_faces_basic
from autotransfer.data.sources.inria_ern import read_inria_ern
from autotransfer.data.sources.mne import from_mne
from autotransfer.data.sources.moabb import from_moabb
from autotransfer.data.sources.moabb_name import from_moabb_name
from autotransfer.data.sources.npz import read_npz
from autotransfer.data.sources.recordings.bids import is_bids, read_bids
from autotransfer.data.sources.recordings.cut import OPTIONS
from autotransfer.data.sources.recordings.files import ending, has_recordings
from autotransfer.data.sources.recordings.read import read_recordings
from autotransfer.data.sources.store_format import DESCRIPTION, read_store
from autotransfer.errors import MissingSubjectError, SettingError, SourceError, join_some
from autotransfer.registry import lookup

LOADABLE = (
    "What can be loaded: a .npz file with X, y and subject; a store (a folder with dataset.json); "
    "recordings that MNE reads (.fif, .edf, .bdf, .vhdr, .set, ...), a list, mapping subject -> "
    "files or folder of them, or a BIDS folder; a list of mne.Epochs or a mapping subject -> "
    "mne.Epochs; a MOABB data set with paradigm=...; arrays, as (X, y, subject) or as a mapping "
    'with these keys; a SubjectDataset; a name such as "moabb:Kalunga2016", see catalogue().'
)

# What stands before the colon of a name -> what reads it, and the options that it takes.
_BY_NAME: dict[str, tuple[Callable[..., SubjectDataset], tuple[str, ...]]] = {
    "moabb": (from_moabb_name, ("paradigm", "subjects")),
    "inria-ern": (read_inria_ern, ("subjects", "seconds")),
    "faces-basic": (read_faces_basic, ("subjects", "channels", "seconds")),
}

_ARRAYS = ("X", "y", "subject")
_KNOWN = (*_ARRAYS, "session", "recording", "sfreq", "channels", "unit", "classes", "subjects")
_PICKLE = (
    "Reading a pickle can execute any code that somebody put into it, so it is refused. In the "
    "program that wrote it, save the arrays with numpy.savez(path, X=X, y=y, subject=subject)."
)
_TABLE = "Read it with pandas, build X (trials x channels x times) and use load((X, y, subject))."
_HDF5 = "Read it with h5py and use load((X, y, subject)) on its arrays."
_ADVICE = {
    **dict.fromkeys((".pkl", ".pickle", ".joblib", ".pt", ".pth"), _PICKLE),
    **dict.fromkeys((".csv", ".tsv", ".xlsx", ".parquet"), _TABLE),
    ".mat": "Read it with scipy.io.loadmat and use load((X, y, subject)) on its arrays.",
    **dict.fromkeys((".h5", ".hdf5"), _HDF5),
    ".npy": "It is a single array. Use load((X, y, subject)) on the three arrays.",
    ".json": "Hand over the folder or the .npz file that it describes.",
}


def load(source: Any, **options: Any) -> SubjectDataset:
    """Load a data set from wherever it is.

    Parameters
    ----------
    source : path, name, mne.Epochs, MOABB data set, arrays or SubjectDataset
        A ``.npz`` file (`read_npz`), a folder store (`read_store`), a recording that MNE reads, a
        list of such files, a mapping subject -> files or a folder of them (`read_recordings`), a
        BIDS folder (`read_bids`), a list of epochs or mapping subject -> epochs (`from_mne`), a
        MOABB data set (`from_moabb`), a tuple (X, y, subject) with X of shape (n_trials,
        n_channels, n_times), or a mapping with these keys. A `SubjectDataset` is returned as it
        is. By name: ``"moabb:Kalunga2016"`` and the like (`from_moabb_name`),
        ``"inria-ern:FOLDER"`` (`read_inria_ern`), ``"faces-basic:FOLDER"`` (`read_faces_basic`);
        `catalogue` lists them.
    **options
        For recordings: ``events``, ``tmin``, ``tmax``, ``band``, ``sfreq``, ``channels`` and, where
        they do not tell it, ``subject``; for a BIDS folder ``task`` instead. For epochs:
        ``subject``, ``label``, ``channels``. For MOABB: ``paradigm``, ``subjects``. For a ``.npz``
        file of one person that does not say whose it is: ``subject``. For arrays: what
        `SubjectDataset` takes by name, for instance ``sfreq``. For a name: what its reader takes.

    Returns
    -------
    SubjectDataset
        The labelled trials.

    Raises
    ------
    SourceError
        The source does not exist or is of no known kind.
    SettingError
        There is no data set of this name, or no such option.

    Examples
    --------
    >>> import numpy as np
    >>> load((np.ones((4, 2, 50)), [0, 1, 0, 1], ["ann", "ann", "bob", "bob"]), sfreq=100)
    SubjectDataset(4 trials, 2 subjects, 2 classes, 2 channels x 50 times, 100 Hz)
    """
    if isinstance(source, SubjectDataset):
        _only(options, (), "a SubjectDataset")
        return source
    if isinstance(source, str) and _is_name(source):
        return _with_source(_load_name(source, options), source)
    if isinstance(source, (str, os.PathLike)):
        path = Path(source).expanduser()
        return _with_source(_load_path(path, options), path.resolve().name)
    if _holds_paths(source):
        _only(options, (*OPTIONS, "subject"), "recordings")
        return read_recordings(source, **options)
    if _is_a(source, "mne", "BaseEpochs") or _holds_epochs(source):
        _only(options, ("subject", "label", "channels"), "epochs")
        return from_mne(source, **options)
    if _is_a(source, "moabb", "BaseDataset"):
        _only(options, ("paradigm", "subjects"), "a MOABB data set")
        if options.get("paradigm") is None:
            raise SourceError(
                "A MOABB data set needs a paradigm, which cuts and filters the trials: for "
                "instance load(dataset, paradigm=moabb.paradigms.LeftRightImagery())."
            )
        return from_moabb(source, **options)
    if isinstance(source, Mapping) and all(isinstance(key, str) for key in source):
        return _load_arrays(dict(source), options)
    if isinstance(source, (tuple, list)) and len(source) == 3:
        return _load_arrays(dict(zip(_ARRAYS, source, strict=True)), options)
    if isinstance(source, tuple) and len(source) == 2:
        raise MissingSubjectError(
            "(X, y) does not say who each trial comes from, which is what transfer between people "
            "is about. Give three arrays: load((X, y, subject)), with one id for each trial."
        )
    raise SourceError(f"A {type(source).__name__} cannot be loaded. {LOADABLE}")


def _with_source(data: SubjectDataset, source: str) -> SubjectDataset:
    """Note where data came from: reports are called so."""
    data.source = source
    return data


def _is_name(source: str) -> bool:
    """Tell a name from a path, which may have a colon too (and on Windows begins with one)."""
    kind, colon, _ = source.partition(":")
    if kind in _BY_NAME or not colon:
        return bool(colon)
    word = len(kind) > 1 and not any(sign in kind for sign in "/\\.~")
    return word and not Path(source).exists()


def _load_name(source: str, options: dict[str, Any]) -> SubjectDataset:
    kind, _, target = source.partition(":")
    otherwise = "the path of a file or folder that exists"
    reader, allowed = lookup("source of data", kind, _BY_NAME, otherwise)
    _only(options, allowed, f"{kind}:...")
    if not target:
        what = "the folder of its files" if kind != "moabb" else "the name of a data set"
        raise SettingError(f"{source!r} lacks {what} after the colon. See catalogue().")
    return reader(target, **options)


def kind_of(path: Path) -> str:
    """Tell what a file or folder is, by names alone: "store", "bids", "recordings" or ""."""
    if path.is_dir() and (path / DESCRIPTION).exists():
        return "store"
    if ending(path):  # some recordings (.mff) are folders
        return "recordings"
    if not path.is_dir():
        return ""
    return "bids" if is_bids(path) else "recordings" if has_recordings(path) else ""


def _load_path(path: Path, options: dict[str, Any]) -> SubjectDataset:
    suffix = path.suffix.lower()
    if not path.exists():
        matches = [row.name for row in catalogue() if path.name in row.name.split(":")]
        hint = f"Did you mean {matches[0]!r}?" if matches else "Check the path."
        raise SourceError(f"{path} does not exist. {hint} {LOADABLE}")
    kind = kind_of(path)
    if kind == "bids":
        _only(options, (*OPTIONS, "task"), "a BIDS folder")
        return read_bids(path, **options)
    if kind == "recordings":
        _only(options, (*OPTIONS, "subject"), "recordings")
        return read_recordings(path, **options)
    if path.is_dir() and kind != "store":
        inside = sorted(item.name for item in path.iterdir())
        raise SourceError(
            f"The folder {path} is not a store: it has no {DESCRIPTION}, only "
            f"{join_some(inside) or 'nothing'}. {LOADABLE}"
        )
    allowed = ("subject",) if suffix == ".npz" and not kind else ()
    _only(options, allowed, "a store" if kind else f"a {suffix or 'plain'} file")
    if kind == "store":
        return read_store(path)
    if suffix == ".npz":
        return read_npz(path, **options)
    if suffix in _ADVICE:
        raise SourceError(f"{path} cannot be loaded directly. {_ADVICE[suffix]}")
    raise SourceError(f"{path} is of no known kind ({suffix or 'no ending'}). {LOADABLE}")


def _load_arrays(arrays: dict[str, Any], options: dict[str, Any]) -> SubjectDataset:
    _only(options, _KNOWN[3:], "arrays")
    missing = [key for key in _ARRAYS if key not in arrays]
    unknown = [key for key in arrays if key not in _KNOWN]
    if missing or unknown:
        raise SourceError(
            f"The mapping has keys {join_some(list(arrays)) or '(none)'}. Needed are "
            f"{join_some(_ARRAYS)}; possible are {join_some(_KNOWN[3:])} too. {LOADABLE}"
        )
    return SubjectDataset(**{**arrays, **options})


def _only(options: dict[str, Any], allowed: tuple[str, ...], what: str) -> None:
    unknown = [name for name in options if name not in allowed]
    if unknown:
        raise SettingError(
            f"{join_some(unknown)} cannot be set for {what}. What can be: "
            f"{join_some(allowed) or 'nothing'}."
        )


def _is_a(obj: Any, package: str, name: str) -> bool:
    """Tell what an object is without importing the package that it may come from."""
    return any(
        cls.__name__ == name and cls.__module__.split(".")[0] == package
        for cls in type(obj).__mro__
    )


def _holds_paths(source: Any) -> bool:
    """Tell whether these are paths: in a list, a mapping, or a mapping of lists."""
    if isinstance(source, Mapping):
        return bool(source) and all(
            isinstance(value, (str, os.PathLike)) or _holds_paths(value)
            for value in source.values()
        )
    if isinstance(source, (list, tuple)):
        return bool(source) and all(isinstance(item, (str, os.PathLike)) for item in source)
    return False


def _holds_epochs(source: Any) -> bool:
    """Tell whether these are epochs: in a list, a mapping, or a mapping of lists."""
    if isinstance(source, Mapping):
        return any(_holds_epochs([value]) or _holds_epochs(value) for value in source.values())
    if isinstance(source, (list, tuple)):
        return any(_is_a(item, "mne", "BaseEpochs") for item in source)
    return False
