"""What a trained classifier does: encode, predict, adapt, be judged, be kept."""

from __future__ import annotations

import os
from copy import copy
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.metrics import balanced_accuracy_score
from sklearn.utils.validation import check_is_fitted

from autotransfer.data.trials import TrialArray
from autotransfer.data.validate import as_count, as_labels, as_trials, as_weights
from autotransfer.errors import ChannelMismatchError, LabelError, ShapeError, some
from autotransfer.training import model_folder, settings
from autotransfer.training.adapt import PRIOR, adapted
from autotransfer.training.given import SignalEstimator
from autotransfer.training.infer import encode_trials

Array = npt.NDArray[Any]


class TrainedClassifier(SignalEstimator):
    """The part of `CensoredClassifier` that needs its training to be over."""

    def _signals(self, X: Any) -> TrialArray:
        """Check signals to be predicted."""
        check_is_fitted(self, "network_")
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

    def _encode(self, X: TrialArray, logits: bool) -> Array:
        return encode_trials(self.network_, self.normaliser_, X, logits)

    def transform(self, X: Any) -> Array:
        """Encode trials: latents of shape (n_trials, n_latent)."""
        return self._encode(self._signals(X), logits=False)

    def predict_proba(self, X: Any) -> Array:
        """Estimate class probabilities, of shape (n_trials, n_classes) as in ``classes_``."""
        logits = self._encode(self._signals(X), logits=True).astype(np.float64)
        shifted = np.exp(logits - logits.max(1, keepdims=True))
        probabilities: Array = shifted / shifted.sum(1, keepdims=True)
        return probabilities

    def predict_codes(self, X: Any) -> Array:
        """Predict the class number of each trial: positions in ``classes_``."""
        codes: Array = self._encode(self._signals(X), logits=True).argmax(1)
        return codes

    def predict(self, X: Any) -> Array:
        """Predict the label of each trial. No calibration and no subject id is needed."""
        codes = self.predict_codes(X)  # says so if nothing was fitted
        predicted: Array = self.classes_[codes]
        return predicted

    def adapt(self, X: Any, *, prior: int = PRIOR) -> Self:
        """Make a model for one new person from some of their trials, without labels.

        Takes the statistics of every batch norm from these trials; all else stays. Where people
        differ in scale (muscles under an armband), this is worth more than any censor.

        Parameters
        ----------
        X : array of shape (n_trials, n_channels, n_times)
            Trials of one person, with all classes about as often as they will come later.
        prior : int
            Trials that the statistics of training count for. Without it (0), fewer than about 16
            trials do more harm than good.

        Returns
        -------
        CensoredClassifier
            A copy for this person. This one is not changed, and remains right for others.

        See Also
        --------
        autotransfer.training.adapt.adapted : The formula, and its sources.
        """
        trials = self._signals(X)
        made = copy(self)
        made.network_ = adapted(
            self.network_, self.normaliser_, trials, as_count(prior, "prior", least=0)
        )
        made.provenance_ = {**self.provenance_, "adapted": {"n_trials": len(trials)}}
        return made

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Balanced accuracy: the mean over classes of the share recognised."""
        predicted = self.predict(X)
        y = as_labels(y, "y", len(predicted))
        text = [labels.dtype.kind in "US" for labels in (y, self.classes_)]
        if text[0] != text[1]:
            kinds = ["text" if is_text else "numbers" for is_text in text]
            raise LabelError(
                f"y holds {kinds[0]}, but the model was trained on {kinds[1]}: "
                f"{some(self.classes_.tolist())}. Use the labels of training."
            )
        if sample_weight is not None:
            sample_weight = as_weights(sample_weight, len(y))
        return balanced_accuracy(y, predicted, sample_weight)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write a model folder: JSON and safetensors, nothing that executes.

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
        check_is_fitted(self, "network_")
        model = {
            "measure": getattr(self.measure, "__name__", self.measure),
            "encoder": self.encoder if isinstance(self.encoder, str) else None,
            "encoder_options": self.encoder_options or {},
            # With today's defaults, so that later ones do not change an old model.
            "encoder_made": getattr(self.network_.encoder, "options", None),
            "parameters": settings.to_json(self),
            "n_channels": self.n_channels_,
            "n_times": self.n_times_,
            "n_latent": self.network_.n_latent,
            "history": self.history_,
            "best_epoch": self.best_epoch_,
        }
        documents = {
            "model": model,
            "labels": model_folder.labels_to_json(self.classes_),
            "normalisation": self.normaliser_.state(),
            "provenance": self.provenance_,
        }
        target = settings.as_path(path)
        model_folder.write_model(target, documents, self.network_.state_dict(), overwrite)
        return target

    def export_onnx(self, path: str | os.PathLike[str], *, opset: int | None = None) -> Path:
        """Write an ONNX model: raw signals (B, C, T) to ``probabilities`` and ``latent``.

        Parameters
        ----------
        path, opset
            As for `autotransfer.training.onnx.export_onnx`.

        Returns
        -------
        Path
            The file.
        """
        from autotransfer.training.onnx import export_onnx

        return export_onnx(self, path, opset=opset)

    @classmethod
    def load(cls, path: str | os.PathLike[str], encoder: Any = None) -> Self:
        """Read a model folder. Nothing in it is executed.

        Parameters
        ----------
        path : path
            Folder that `save` made.
        encoder : nn.Module or callable, optional
            The encoder's architecture, if the model was not trained with a named one: code is
            not part of a model folder.

        Returns
        -------
        CensoredClassifier
            Ready to predict.
        """
        documents, tensors = model_folder.read_model(settings.as_path(path))
        loaded: Self = settings.rebuild(cls, documents, tensors, encoder)
        return loaded


def balanced_accuracy(y: Array, predicted: Array, sample_weight: Any = None) -> float:
    """Mean over classes of the share recognised."""
    return float(balanced_accuracy_score(y, predicted, sample_weight=sample_weight))
