"""What all classifiers of signals have in common once they are trained."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import balanced_accuracy_score
from sklearn.utils.validation import check_is_fitted

from autotransfer.adaptation.fitted import Person
from autotransfer.adaptation.registry import AUTO, FEW, NONE, allowed_by
from autotransfer.adaptation.statistics import PRIOR
from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.info import Recording, SignalInfo, warn_far
from autotransfer.data.trials import Array, TrialArray
from autotransfer.data.validate import as_count, as_labels, as_trials, as_weights
from autotransfer.errors import (
    AdaptationWarning,
    ChannelMismatchError,
    LabelError,
    SettingError,
    ShapeError,
    SubjectError,
    join_some,
)
from autotransfer.notebook import Card, html
from autotransfer.training.live import Live
from autotransfer.training.model.card import model_facts

_IF_ALL = (
    "if you know that all classes are among them, say adapt(X, all_classes=True), --all-classes"
)


class SignalEstimator(TransformerMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of trials x channels x times that also gives latents."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _card(self) -> Card | None:
        """Make what a notebook shows below scikit-learn's diagram, of one that is fitted."""
        return None

    def _card_html(self) -> str:
        card = self._card()
        return "" if card is None else html(card)

    # Jupyter asks for the bundle, other programs for the HTML: scikit-learn has both, and neither
    # with sklearn.set_config(display="text").
    def _repr_mimebundle_(self, **how: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**how)
        if "text/html" in bundle:
            bundle["text/html"] += self._card_html()
        return bundle

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram: Callable[[], str] = super()._repr_html_
        return lambda: diagram() + self._card_html()


class SignalModel(SignalEstimator):
    """A classifier of one network or several: sees to what it is given, predicts and scores.

    Those who derive from it say who its `members` are and what they make of trials that fit:
    `_probabilities`, `_latents` and `_for_person`.
    """

    classes_: Array
    class_names_: list[str]
    info_: SignalInfo
    amplitude_: float | None
    n_channels_: int
    n_times_: int

    @property
    def members(self) -> tuple[Any, ...]:
        """Classifiers of one network each, of which this one is made."""
        raise NotImplementedError

    def _probabilities(self, trials: TrialArray) -> Array:
        """Estimate class probabilities (n_trials, n_classes)."""
        raise NotImplementedError

    def _latents(self, trials: TrialArray) -> Array:
        """Encode trials to latents (n_trials, n_latent)."""
        raise NotImplementedError

    def _for_person(self, person: Person, method: str, prior: int) -> Self:
        """Make a copy that is adapted to a person."""
        raise NotImplementedError

    def _signals(self, X: Any) -> TrialArray:
        """Check signals to be predicted against all that the model knows of its own."""
        check_is_fitted(self)
        known = isinstance(X, SubjectDataset | Recording)
        trials = self._of_shape(self.info_.match(X.trials, X.info) if known else X)
        warn_far(trials, self.amplitude_, self.info_.unit)
        return trials

    def _of_shape(self, X: Any) -> TrialArray:
        """Refuse trials of another shape than those of training."""
        check_is_fitted(self)
        trials = as_trials(X)
        _, channels, times = trials.shape
        if channels != self.n_channels_:
            raise ChannelMismatchError(
                f"The model was trained on {self.n_channels_} channels, but X has {channels}. Give "
                "the same channels in the same order."
            )
        if times != self.n_times_:
            raise ShapeError(
                f"The model was trained on trials of {self.n_times_} time points, but those of X "
                f"have {times}. Cut windows of the same length at the same sampling rate."
            )
        return trials

    def transform(self, X: Any) -> Array:
        """Encode trials: latents of shape (n_trials, n_latent)."""
        return self._latents(self._signals(X))

    def predict_proba(self, X: Any) -> Array:
        """Estimate class probabilities, of shape (n_trials, n_classes) as in ``classes_``."""
        return self._probabilities(self._signals(X))

    def probabilities(self, X: Any) -> Array:
        """Estimate class probabilities for those who have checked their trials: only the shape is.

        `predict_proba` compares with all that the model knows of its signals.
        """
        return self._probabilities(self._of_shape(X))

    def predict_codes(self, X: Any) -> Array:
        """Predict the class number of each trial: positions in ``classes_``.

        For those who have checked their trials: only the shape is.
        """
        codes: Array = self._probabilities(self._of_shape(X)).argmax(1)
        return codes

    def predict(self, X: Any) -> Array:
        """Predict the label of each trial. No calibration and no subject id is needed.

        Parameters
        ----------
        X : array of shape (n_trials, n_channels, n_times), or SubjectDataset
            Signals. Of a data set, channels are found by name and the sampling rate is compared
            with that of training; its labels are not looked at.

        Returns
        -------
        array of shape (n_trials,)
            Labels as in ``classes_``; their names are ``class_names_``.
        """
        probabilities = self._probabilities(self._signals(X))
        labels: Array = self.classes_[probabilities.argmax(1)]
        return labels

    def true_codes(self, data: SubjectDataset) -> Array:
        """Find the class number of each label of a data set; -1 where the model has no such class.

        By the names of classes if the data set has names, because every file may number them anew;
        else by the labels as they are written: a file may hold as text what was a number before.
        """
        check_is_fitted(self)
        labels = [str(label) for label in data.labels.tolist()]
        by_label = {str(label): code for code, label in enumerate(self.classes_.tolist())}
        named = data.class_names != labels
        by_name = {name: code for code, name in enumerate(self.class_names_) if named}
        codes = [
            by_name.get(name, by_label.get(label, -1))
            for name, label in zip(data.class_names, labels, strict=True)
        ]
        return np.array(codes)[data.y_code]

    def adapt(
        self,
        X: Any,
        y: Any = None,
        *,
        unlabelled: Any = None,
        method: str = AUTO,
        prior: int = PRIOR,
        all_classes: bool = False,
    ) -> Self:
        """Make a model for one new person from some of their trials, with labels or without.

        Parameters
        ----------
        X : array of shape (n_trials, n_channels, n_times), or SubjectDataset
            Trials of one person. Without labels (level ``recording``) they should hold all classes
            about as often as they will come later. Labels of a data set are not looked at; to use
            them (level ``labels``), hand them over: ``adapt(data, data.y)``.
        y : array of shape (n_trials,), optional
            Labels of `X`, as in ``classes_``; a few of each class are enough.
        unlabelled : array of shape (n, n_channels, n_times), or SubjectDataset, optional
            With `y`: further trials of this person, without labels.
        method : str
            Names in `autotransfer.adaptation.ADAPTATIONS`, joined by "+" where several are applied
            in a row, such as "statistics+information". "auto" goes by what there is; without labels
            it leaves the model as it is, with a warning, if trials seem to be of few classes.
        prior : int
            Trials that the statistics of training count for. Without it (0), fewer than about 16
            trials do more harm than good.
        all_classes : bool
            Say that all classes are among the trials without labels, because that is how they were
            recorded. "auto" then need not guess it, and does what people held out in the run that
            made the model gained by with such recordings.

        Returns
        -------
        CensoredClassifier or Ensemble
            A copy for this person. This one is not changed, and remains right for others.

        See Also
        --------
        autotransfer.adaptation : The methods, their formulas and sources.
        """
        if y is None and unlabelled is not None:
            raise SettingError(
                "unlabelled holds trials beside labelled ones: adapt(X, y, unlabelled=...). "
                "Where no trial has a label, give all of them as X: adapt(X)."
            )
        for given in (X, unlabelled):
            _require_one_person(given)
        trials = self._signals(X)
        codes = None if y is None else self._codes_of(X, y, len(trials))
        rest = None if unlabelled is None else self._signals(unlabelled)
        person = Person.of(trials, codes, rest, all_classes)
        personal = self._for_person(person, method, as_count(prior, "prior", least=0))
        methods = [one.provenance_["adapted"]["method"] for one in personal.members]
        if method == AUTO and FEW in methods:
            warnings.warn(
                "These trials seem to be of few of the classes: predictions were made certain, and "
                "no statistics were taken (method 'certainty'). Give trials of all classes, or "
                f"labels, for more; {_IF_ALL}.",
                AdaptationWarning,
                stacklevel=2,
            )
        if NONE in methods:
            level = "recording" if y is None else "labels"
            never = [one for one in self.members if allowed_by(one.policy, person) == NONE]
            reason = (
                "These trials seem to be of few of the classes, and a model adapted to them would "
                "see the other classes in them: it was left as it is. Give trials of all "
                f"classes, or labels; {_IF_ALL}."
            )
            if never:
                reason = (
                    f"In the run that made this model, people held out did not gain at level "
                    f"{level}: it was left as it is. To adapt it all the same, name a method: "
                    "adapt(X, method='statistics'), --method statistics."
                )
            warnings.warn(reason, AdaptationWarning, stacklevel=2)
        return personal

    def adapt_to_target(
        self, X_target_unlabeled: Any, X_target_labeled: Any, y_target_labeled: Any
    ) -> Self:
        """Adapt to what `fit` was given of a new person; without anything, give the model itself.

        Parameters
        ----------
        X_target_unlabeled, X_target_labeled, y_target_labeled
            As for `autotransfer.CensoredClassifier.fit`.
        """
        if (X_target_labeled is None) != (y_target_labeled is None):
            raise SettingError(
                "X_target_labeled and y_target_labeled belong together: give both, or neither."
            )
        if X_target_labeled is not None:
            given = X_target_unlabeled
            return self.adapt(X_target_labeled, y_target_labeled, unlabelled=given)
        return self if X_target_unlabeled is None else self.adapt(X_target_unlabeled)

    def live(self, *, prior: int = PRIOR, method: str = AUTO) -> Live:
        """Begin to go along with one new person, trial by trial (level ``stream``).

        Parameters
        ----------
        prior : int
            Trials that the statistics of training count for; a model that `Live.save` wrote keeps
            its own.
        method : str
            What is done with trials so far, as for `adapt`. "auto" does what people held out in
            the run that made the model gained by, and else "statistics+information"; it waits
            until enough classes were seen. What is named is done whatever was seen.

        Returns
        -------
        Live
            Its `predict` takes a trial, predicts it and then learns from it, without labels. This
            model is not changed.
        """
        check_is_fitted(self)
        return Live(self, as_count(prior, "prior", least=0), method)

    def _codes_of(self, X: Any, y: Any, n_trials: int) -> Array:
        """Class numbers of labels; of a data set's own labels by the names of classes."""
        labels = as_labels(y, "y", n_trials)
        if isinstance(X, SubjectDataset) and np.array_equal(labels, X.y):
            codes = self.true_codes(X)
        else:
            self._require_kind(labels)
            codes = np.searchsorted(self.classes_, labels).clip(max=len(self.classes_) - 1)
            codes = np.where(self.classes_[codes] == labels, codes, -1)
        if (codes < 0).any():
            strange = list(dict.fromkeys(labels[codes < 0].tolist()))
            raise LabelError(
                f"The model does not know the class {join_some(strange)}. It knows: "
                f"{join_some(self.classes_.tolist())}."
            )
        return codes

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Balanced accuracy: the mean over classes of the share recognised."""
        predicted = self.predict(X)
        if y is None and isinstance(X, SubjectDataset):
            codes = self.true_codes(X)
            if (codes < 0).any():
                strange = [X.class_names[i] for i in np.unique(X.y_code[codes < 0])]
                raise LabelError(
                    f"The model does not know the class {join_some(strange)}. It knows: "
                    f"{join_some(self.class_names_)}."
                )
            y = self.classes_[codes]
        y = as_labels(y, "y", len(predicted))
        self._require_kind(y)
        if sample_weight is not None:
            sample_weight = as_weights(sample_weight, len(y))
        return balanced_accuracy(y, predicted, sample_weight)

    def _require_kind(self, labels: Array) -> None:
        """Refuse text where the model was trained on numbers, and numbers where on text."""
        text = [one.dtype.kind in "US" for one in (labels, self.classes_)]
        if text[0] != text[1]:
            kinds = ["text" if is_text else "numbers" for is_text in text]
            raise LabelError(
                f"y holds {kinds[0]}, but the model was trained on {kinds[1]}: "
                f"{join_some(self.classes_.tolist())}. Use the labels of training."
            )

    def _card(self) -> Card | None:
        if not _is_fitted(self):
            return None
        facts = model_facts(*(member._documents() for member in self.members))
        return Card("What it takes, what it gives, how it was made", sentences=facts)

    def describe(self) -> str:
        """Say in words what the model takes, what it gives, and how it was made."""
        return "\n".join(model_facts(*(member._documents() for member in self.members)))

    def export_onnx(self, path: str | os.PathLike[str], *, opset: int | None = None) -> Path:
        """Write an ONNX model: raw signals (B, C, T) to ``probabilities`` and ``latent``.

        Parameters
        ----------
        path, opset
            As for `autotransfer.training.model.onnx.export_onnx`.

        Returns
        -------
        Path
            The file.
        """
        from autotransfer.training.model.onnx import export_onnx

        return export_onnx(self, path, opset=opset)


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    return True


def _require_one_person(X: Any) -> None:
    """Refuse trials that are known to be of several people."""
    if isinstance(X, SubjectDataset) and len(X.subject_ids) > 1:
        raise SubjectError(
            f"adapt makes a model for one person, but these trials are of "
            f"{join_some(X.subject_names)}. Adapt to each of them: "
            "adapt(data.select(subjects=[one]))."
        )


def balanced_accuracy(y: Array, predicted: Array, sample_weight: Any = None) -> float:
    """Mean over classes of the share recognised."""
    return float(balanced_accuracy_score(y, predicted, sample_weight=sample_weight))
