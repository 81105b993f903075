"""Several networks as one model: the mean of their probabilities.

The model folder of an ensemble:

    ensemble.json    what it is: format and version, names of the members' folders
    member-1/ ...    a model folder of each member (`autotransfer.training.model.folder`)
    README.md        a model card for all of it; nothing depends on it

Each member's files are compared with that member's own manifest.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from autotransfer import atomic
from autotransfer.adaptation.fitted import Person
from autotransfer.data.trials import Array, TrialArray
from autotransfer.documents import misfit, parse
from autotransfer.errors import ModelFolderError, SettingError, join_some
from autotransfer.training.classifier import CensoredClassifier
from autotransfer.training.estimator import SignalModel
from autotransfer.training.model.card import CARD, model_card
from autotransfer.training.model.folder import (
    AGAIN,
    DOCUMENTS,
    ENSEMBLE,
    as_path,
    check_target,
    labels_to_json,
    read_manifest,
    write_files,
)
from autotransfer.training.options import versions

FORMAT = "autotransfer-ensemble"
FORMAT_VERSION = 1
MOST = 100
"""Most members: each is a network in memory, and every prediction asks all of them."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")  # no path leads out of the folder


class Ensemble(SignalModel):
    """The mean of several trained classifiers, as one model.

    `AutoTransfer` makes one where people gain by it; other classifiers of the same classes and
    signals can be put together too.

    Parameters
    ----------
    members : sequence of CensoredClassifier
        Fitted. They agree on classes, channels, time points, sampling rate and unit; all else, such
        as normalisation, encoder and censor, may differ.

    Attributes
    ----------
    classes_, class_names_, info_, n_channels_, n_times_, sfreq
        As of every member.
    amplitude_ : float or None
        Median of the members'.
    training_subjects_ : list
        Whom any member was trained on.
    validation_subjects_ : list
        Who validated a member, and trained none.
    provenance_ : dict
        The versions that put it together, these subjects, and the provenance of each member.

    Examples
    --------
    >>> import autotransfer as at
    >>> data = at.make_subjects(n_subjects=4, n_trials=20, random_state=0)
    >>> options = {"max_epochs": 2, "verbose": False}
    >>> members = [at.CensoredClassifier(random_state=seed, **options) for seed in range(3)]
    >>> ensemble = Ensemble([member.fit(data) for member in members])
    >>> ensemble.predict(data.X[:3]).shape
    (3,)
    """

    def __init__(self, members: Sequence[CensoredClassifier]) -> None:
        self._members = tuple(members)
        _require_agreement(self._members)
        first = self._members[0]
        self.classes_, self.class_names_ = first.classes_, first.class_names_
        self.n_channels_, self.n_times_ = first.n_channels_, first.n_times_
        self.info_, self.sfreq = first.info_, first.sfreq
        amplitudes = [one.amplitude_ for one in self._members if one.amplitude_]
        self.amplitude_ = float(np.median(amplitudes)) if amplitudes else None
        self.training_subjects_ = _union(one.training_subjects_ for one in self._members)
        validated = _union(one.validation_subjects_ for one in self._members)
        self.validation_subjects_ = [s for s in validated if s not in self.training_subjects_]
        self.provenance_: dict[str, Any] = {
            **versions(),
            "training_subjects": [str(s) for s in self.training_subjects_],
            "validation_subjects": [str(s) for s in self.validation_subjects_],
            "members": [one.provenance_ for one in self._members],
        }

    @property
    def members(self) -> tuple[CensoredClassifier, ...]:
        """The classifiers of which it is made."""
        return self._members

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        # A clone is there to be fitted, which an ensemble refuses: `fit` says what to do instead.
        return self

    def fit(self, X: Any, y: Any = None, **more: Any) -> NoReturn:
        """Refuse to train: the members are trained before they are put together."""
        raise SettingError(
            "An ensemble is made of classifiers that are trained already. Fit each member and then "
            "make Ensemble(members), or let AutoTransfer().fit(data) make it."
        )

    def _probabilities(self, trials: TrialArray) -> Array:
        mean: Array = np.mean([one._probabilities(trials) for one in self._members], axis=0)
        return mean

    def _latents(self, trials: TrialArray) -> Array:
        return np.concatenate([one._latents(trials) for one in self._members], axis=1)

    def _for_person(self, person: Person, method: str, prior: int) -> Self:
        return type(self)([one._for_person(person, method, prior) for one in self._members])

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write the model folder of an ensemble: JSON and safetensors, nothing that executes.

        Parameters
        ----------
        path : path
            Folder to make.
        overwrite : bool
            Replace a model folder of that name.

        Returns
        -------
        Path
            The folder.
        """
        target = as_path(path)
        check_target(target, overwrite)
        models = [one.files() for one in self._members]
        with atomic.folder(target, overwrite=overwrite) as folder:
            write_members(folder, models)
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str], encoder: Any = None) -> Self:
        """Read the model folder of an ensemble. Nothing in it is executed.

        Parameters
        ----------
        path : path
            Folder that `save` made.
        encoder : nn.Module or callable, optional
            As for `CensoredClassifier.load`: the architecture of all members.

        Returns
        -------
        Ensemble
            Ready to predict.
        """
        folder = as_path(path)
        members = [CensoredClassifier.load(one, encoder) for one in _member_folders(folder)]
        try:
            return cls(members)
        except SettingError as error:
            raise ModelFolderError(
                f"The members in {folder} do not fit together: {error} {AGAIN}"
            ) from error


def load_model(path: str | os.PathLike[str], encoder: Any = None) -> CensoredClassifier | Ensemble:
    """Load a model folder, of one network or of an ensemble. Nothing in it is executed.

    Parameters
    ----------
    path : path
        Folder that `save` made; that of a run is ``model`` in the run's folder.
    encoder : nn.Module or callable, optional
        The encoder's architecture, if the model was not trained with a named one: code is not part
        of a model folder.

    Returns
    -------
    CensoredClassifier or Ensemble
        Ready to predict.
    """
    folder = as_path(path)
    kind = Ensemble if (folder / ENSEMBLE).is_file() else CensoredClassifier
    return kind.load(folder, encoder)


def write_members(folder: Path, models: Sequence[Mapping[str, bytes]]) -> None:
    """Write all of an ensemble into its folder.

    Parameters
    ----------
    folder : Path
        There, and empty.
    models : sequence of mapping
        File name -> content, of each member's model folder (`CensoredClassifier.files`).
    """
    names = [f"member-{number}" for number in range(1, len(models) + 1)]
    for name, files in zip(names, models, strict=True):
        (folder / name).mkdir()
        write_files(folder / name, files)
    documents = [{one: parse(files[f"{one}.json"]) for one in DOCUMENTS} for files in models]
    about = {"format": FORMAT, "format_version": FORMAT_VERSION, "members": names}
    text = {ENSEMBLE: json.dumps(about, indent=1) + "\n", CARD: model_card(*documents)}
    write_files(folder, {name: content.encode() for name, content in text.items()})


def _member_folders(folder: Path) -> list[Path]:
    """Find the members' folders, all of them within that of the ensemble."""
    file = folder / ENSEMBLE
    about = read_manifest(file, FORMAT, FORMAT_VERSION)
    departure = misfit(about, {"members": [str, ...]}, ENSEMBLE)
    if departure:
        raise ModelFolderError(f"{file} is not as save() writes it: {departure}. {AGAIN}")
    names = about["members"]
    if len(names) > MOST:
        raise ModelFolderError(f"{file} lists {len(names)} members, more than {MOST}. {AGAIN}")
    strange = [name[:64] for name in names if not _NAME.fullmatch(name)]
    if strange or len(set(names)) < len(names):
        which = f"such as {strange[0]!r}" if strange else "and some of them twice"
        raise ModelFolderError(
            f"{file} lists members that save() would not name so, {which}. The folder was "
            f"changed; {AGAIN[0].lower()}{AGAIN[1:]}"
        )
    for name in names:
        # A link could point anywhere on this machine.
        if (folder / name).is_symlink() or not (folder / name).is_dir():
            raise ModelFolderError(f"The member {folder / name} is missing or is a link. {AGAIN}")
    return [folder / name for name in names]


def _require_agreement(members: Sequence[Any]) -> None:
    """Refuse members of which no mean can be taken."""
    if not members:
        raise SettingError("An ensemble needs members. Give it classifiers that are fitted.")
    for number, member in enumerate(members, 1):
        if not isinstance(member, CensoredClassifier):
            raise SettingError(
                f"The members of an ensemble are fitted CensoredClassifiers, but member {number} "
                f"is of type {type(member).__name__}."
            )
        check_is_fitted(member)
        wanted, other = _signature(members[0]), _signature(member)
        differ = [
            f"{what} ({wanted[what]} and {other[what]})"[:120]
            for what in wanted
            if wanted[what] != other[what]
        ]
        if differ:
            raise SettingError(
                f"Members 1 and {number} differ in {join_some(differ, 3)}. Train all members on "
                "the same classes and signals."
            )


def _signature(member: CensoredClassifier) -> dict[str, Any]:
    """List what all members must have in common."""
    info = member.info_
    return {
        "classes": labels_to_json(member.classes_),
        "names of classes": member.class_names_,
        "number of channels": member.n_channels_,
        "time points": member.n_times_,
        "names of channels": info.channels,
        "sampling rate": info.sfreq,
        "unit": info.unit,
    }


def _union(lists: Iterable[Iterable[Any]]) -> list[Any]:
    return list(dict.fromkeys(item for items in lists for item in items))
