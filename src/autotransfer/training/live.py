"""`Live`: a model that goes along with one person, trial by trial."""

from __future__ import annotations

import os
from copy import copy
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from autotransfer.adaptation.fitted import Fitted
from autotransfer.adaptation.guard import ALWAYS
from autotransfer.adaptation.registry import AUTO, require_methods
from autotransfer.adaptation.stream import Stream
from autotransfer.data.trials import Array
from autotransfer.data.validate import require_finite


class Live:
    """A model for level ``stream``: each trial is predicted, and then used.

    Made by `live` of a model, which is not changed. Predictions depend on what came before and
    never on what comes later. May be called from several threads, one of which is served at a time.

    Parameters
    ----------
    model : CensoredClassifier or Ensemble
        That it begins with. If it was saved by `save`, it goes on from there.
    prior : int
        Trials that the statistics of training count for; one that goes on keeps its own.
    method : str
        Of adaptation, as of `live` of a model.

    Examples
    --------
    >>> import autotransfer as at
    >>> data = at.make_subjects(n_subjects=4, n_trials=20, random_state=0)
    >>> clf = at.CensoredClassifier(max_epochs=2, random_state=0, verbose=False).fit(data)
    >>> live = clf.live()
    >>> live.predict(data.X[0]).shape, live.predict(data.X[1:4]).shape, live.n_trials
    ((), (3,), 4)
    """

    def __init__(self, model: Any, prior: int, method: str = AUTO) -> None:
        if method != AUTO:
            require_methods(method, labels=False)
        self._model = model
        self._lock = RLock()
        self._streams = [_begun(member, prior, method) for member in model.members]

    @property
    def n_trials(self) -> int:
        """Trials seen since the beginning, or since it last began anew."""
        return self._streams[0].n_trials

    @property
    def n_resets(self) -> int:
        """How often it began anew by itself, because predictions had become much less certain."""
        return sum(stream.n_resets for stream in self._streams)

    def predict_proba(self, X: Any) -> Array:
        """Estimate class probabilities of a trial (C, T), or of several (n, C, T) in their order.

        Returns
        -------
        array of shape (n_classes,) or (n, n_classes)
        """
        alone = not hasattr(X, "trials") and np.ndim(X) == 2
        trials = self._model._signals(np.asarray(X)[None] if alone else X)[:]
        # Before the first of them is used: a block is used as a whole or not at all.
        require_finite(trials, 0)
        with self._lock:
            rows = [self._predict(trial) for trial in trials]
        answer: Array = rows[0] if alone else np.array(rows)
        return answer

    def _predict(self, trial: Array) -> Array:
        """Predict a trial by the mean of all streams, then use it."""
        # All look before one learns: if one refuses the trial, none has used it.
        looks = [stream.look(trial) for stream in self._streams]
        for stream, (probabilities, seen) in zip(self._streams, looks, strict=True):
            stream.use(trial, probabilities, seen)
        answer: Array = np.mean([told.cpu().numpy() for told, _ in looks], axis=0)
        return answer

    def predict(self, X: Any) -> Array:
        """Predict the label of a trial (C, T), or of several (n, C, T) in their order.

        Returns
        -------
        label, or array of shape (n,)
            As in ``classes_`` of the model.
        """
        labels: Array = self._model.classes_[self.predict_proba(X).argmax(-1)]
        return labels

    def reset(self) -> None:
        """Begin anew with the trained model, as for somebody else."""
        with self._lock:
            for stream in self._streams:
                stream.reset()

    def model(self) -> Any:
        """Give the model for this person as it is now, which does not change any more."""
        with self._lock:
            pairs = zip(self._model.members, self._streams, strict=True)
            members = [_personal(member, stream) for member, stream in pairs]
        return members[0] if len(members) == 1 else type(self._model)(members)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write a model folder for this person: ``load_model(path).live()`` goes on from there.

        It holds the last trials, too, from which the next steps learn; ``model().save(path)``
        writes a folder without them.

        Parameters
        ----------
        path : path
            Folder to make.
        overwrite : bool
            Replace a model folder of that name.
        """
        with self._lock:
            now = self.model()
            for member, stream in zip(now.members, self._streams, strict=True):
                member.stream_ = stream.state()
        saved: Path = now.save(path, overwrite=overwrite)
        return saved


def _begun(member: Any, prior: int, method: str) -> Stream:
    """Begin the stream of a network, or go on with one that was saved."""
    fitted, policy = Fitted(member.network_, member.normaliser_), member.policy
    if method != AUTO:
        policy = replace(policy, stream=method, guard=ALWAYS)
    if member.stream_ is None:
        return Stream(fitted, prior, policy)
    return Stream.resumed(fitted, member.stream_, policy)


def _personal(member: Any, stream: Stream) -> Any:
    personal = copy(member)
    personal.stream_ = None
    personal.network_, personal.normaliser_ = stream.snapshot(), stream.fitted.normaliser
    about: dict[str, Any] = {"n_trials": stream.n_trials, "n_labels": 0, "method": "stream"}
    personal.provenance_ = {**member.provenance_, "adapted": about}
    if stream.policy != member.policy:  # a method was named, with which it goes on
        personal.provenance_["adaptation"] = stream.policy.to_json()
    return personal
