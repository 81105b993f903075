"""A trial: one training, with an id that is the hash of what defines it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from autotransfer.search.settings.setting import Setting

if TYPE_CHECKING:
    from autotransfer.data.problem import Problem
    from autotransfer.data.splits import Fold

PROTOCOL = 3
"""Raised when the same trial would give another result: old records are then not reused."""


@dataclass(frozen=True)
class Trial:
    """A setting on a fold with a seed.

    Parameters
    ----------
    setting : Setting
        How to censor.
    fold, n_folds : int
        Which of how many folds of `SubjectFolds`.
    seed : int
        Number of the repetition.
    epochs : int
        Most epochs.
    grouped : bool
        Whether one group of people is held out, which validates and tests, and all others train;
        otherwise one validates and the next one tests, as in the paper.
    """

    setting: Setting
    fold: int
    n_folds: int
    seed: int
    epochs: int
    grouped: bool = False

    def to_json(self) -> dict[str, Any]:
        """Give what JSON can hold."""
        # Not where it is False, so that the trials of the paper's procedure keep their id.
        grouped = {"grouped": True} if self.grouped else {}
        return grouped | {
            "setting": self.setting.to_json(),
            "fold": self.fold,
            "n_folds": self.n_folds,
            "seed": self.seed,
            "epochs": self.epochs,
        }

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Self:
        """Make a trial from what `to_json` gave."""
        rest = {name: int(given[name]) for name in ("fold", "n_folds", "seed", "epochs")}
        return cls(Setting.from_json(given["setting"]), **rest, grouped=bool(given.get("grouped")))

    def fold_of(self, problem: Problem) -> Fold:
        """Find the fold that it is trained on."""
        folds = problem.groups if self.grouped else problem.folds
        return folds(self.n_folds)[self.fold]

    def id(self, problem: str) -> str:
        """Hash what defines the trial.

        Parameters
        ----------
        problem : str
            Identity of the data and of the classifier's options.
        """
        return digest([PROTOCOL, problem, self.to_json()])

    def random_state(self, problem: str) -> int:
        """Seed of weights, batches and dropout.

        The setting has no part in it: all settings start a fold from the same weights, and all
        but the conditional ones see the same batches, so that their differences are not those of
        their seeds.
        """
        return int(digest([problem, self.fold, self.n_folds, self.seed])[:8], 16) >> 1

    def __str__(self) -> str:
        seed = f", seed {self.seed}" if self.seed else ""
        return f"{self.setting}, fold {self.fold + 1} of {self.n_folds}{seed}"


def digest(parts: Any) -> str:
    """Hash JSON to 32 hexadecimal digits."""
    text = json.dumps(parts, sort_keys=True, allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
