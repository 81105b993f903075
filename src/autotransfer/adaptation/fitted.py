"""What methods of adaptation work on: a trained network, and what there is of somebody new."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from autotransfer.data.align import MOST
from autotransfer.data.normalise import Normaliser
from autotransfer.data.trials import Array, Float32, Index, TrialArray, evenly
from autotransfer.data.validate import require_finite
from autotransfer.encoder.network import Network
from autotransfer.errors import SettingError


@dataclass(frozen=True)
class Fitted:
    """A trained network and how signals come to it. Methods give a new one and change none.

    Parameters
    ----------
    network : Network
        Trained.
    normaliser : Normaliser
        As in training.
    """

    network: Network
    normaliser: Normaliser

    def signals(self, trials: Array) -> Tensor:
        """Normalise trials (n_trials, C, T) as the network takes them, where it stands."""
        device = self.network.head.weight.device
        return torch.from_numpy(self.normaliser.transform(trials)).to(device)

    @torch.inference_mode()
    def probabilities(self, trials: Array, size: int = 256) -> Tensor:
        """Estimate class probabilities (n_trials, n_classes) of trials in memory, in float64."""
        self.network.eval()
        blocks = [trials[start : start + size] for start in range(0, len(trials), size)]
        logits = [self.network(self.signals(block))[1].double() for block in blocks]
        return torch.cat(logits).softmax(1).cpu()

    def with_normaliser(self, normaliser: Normaliser) -> Self:
        """Give the same with signals that come to it otherwise."""
        return replace(self, normaliser=normaliser)

    def with_network(self, network: Network) -> Self:
        """Give the same with another network."""
        return replace(self, network=network.eval())


@dataclass(frozen=True)
class Person:
    """What there is of somebody new.

    Parameters
    ----------
    unlabelled : Float32 array of shape (n, C, T)
        Trials without labels; may be none.
    labelled : Float32 array of shape (m, C, T), optional
        Trials with labels.
    codes : array of int of shape (m,), optional
        Class numbers of `labelled`.
    counted : int, optional
        How many trials there were of which these are some; by default, these.
    all_classes : bool
        Whether somebody knows that all classes are among the trials, which the guard then need not
        guess.
    """

    unlabelled: Float32
    labelled: Float32 | None = None
    codes: Index | None = None
    counted: int | None = None
    all_classes: bool = False

    @classmethod
    def of(
        cls,
        X: TrialArray,
        codes: Index | None = None,
        unlabelled: TrialArray | None = None,
        all_classes: bool = False,
    ) -> Self:
        """Read what is looked at of a person's trials.

        Parameters
        ----------
        X : TrialArray of shape (n_trials, C, T)
            Trials; with `codes`, those that have labels.
        codes : array of int of shape (n_trials,), optional
            Class numbers.
        unlabelled : TrialArray, optional
            Further trials, without labels.
        all_classes : bool
            Whether all classes are known to be among them.
        """
        if codes is None:
            return cls(_some(X), counted=len(X), all_classes=all_classes)
        labelled = _some(X)
        rest = labelled[:0] if unlabelled is None else _some(unlabelled)
        counted = len(X) + (0 if unlabelled is None else len(unlabelled))
        looked_at = np.asarray(codes)[evenly(len(X), MOST)]
        return cls(rest, labelled, looked_at, counted, all_classes)

    @property
    def trials(self) -> Float32:
        """All that is looked at, labelled or not, without the labels."""
        if self.labelled is None:
            return self.unlabelled
        both: Float32 = np.concatenate([self.labelled, self.unlabelled])
        return both

    def with_labels(self) -> tuple[Float32, Index]:
        """Give the labelled trials and their class numbers, for methods that need them."""
        if self.labelled is None or self.codes is None:
            raise SettingError("This method needs labelled trials of the person: adapt(X, y).")
        return self.labelled, self.codes

    @property
    def n_trials(self) -> int:
        """How many trials there are of this person."""
        return len(self.trials) if self.counted is None else self.counted


def _some(X: TrialArray) -> Float32:
    trials = X[evenly(len(X), MOST)]
    require_finite(trials, 0)
    return trials
