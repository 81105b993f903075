"""Named errors and warnings.

Every error this package raises about what a person handed over derives from `AutoTransferError`
and from the built-in error a scikit-learn user would expect (`ValueError`, ...), so that both
``except at.DataError`` and ``except ValueError`` work. A message says what was wrong in the
user's words (which subject, which channel, which class, which trials) and then what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence

from autotransfer.text import visible


class AutoTransferError(Exception):
    """Base class of every error raised by this package."""

    # A message names what stands in the data, and is printed by whoever meets it.
    def __str__(self) -> str:
        return visible(super().__str__())


class DataError(AutoTransferError, ValueError):
    """The recordings or their labels cannot be used as they are."""


class ShapeError(DataError):
    """An array has the wrong number of dimensions or a length that does not fit the others."""


class DtypeError(DataError, TypeError):
    """An array holds something that is not a real number (or not a label)."""


class NonFiniteDataError(DataError):
    """The signals contain NaN or infinite values."""


class EmptyDataError(DataError):
    """There are no trials, channels or time points."""


class LabelError(DataError):
    """The task labels cannot be used: one class only, missing values, unknown classes."""


class SubjectError(DataError):
    """The subject ids cannot be used: too few subjects, missing or unknown ids."""


class MissingSubjectError(SubjectError, TypeError):
    """`subject` was not given where it is needed."""


class UnknownSubjectError(SubjectError, KeyError):
    """A subject was asked for that the data do not contain."""

    # KeyError would show the message as a quoted repr.
    def __str__(self) -> str:
        return visible(str(self.args[0])) if self.args else ""


class ChannelMismatchError(DataError):
    """Subjects (or training and new data) were recorded with different channels."""


class SamplingRateError(DataError):
    """Sampling rates differ, are missing where they are needed, or are not positive."""


class UnitError(DataError):
    """Signals are in units that cannot be turned into one another."""


class WindowTooShortError(DataError):
    """The trials are too short for the encoder."""


class SubjectLeakageError(AutoTransferError, ValueError):
    """A subject would be on both sides of a train / validation / test boundary."""


class FoldError(AutoTransferError, ValueError):
    """The folds asked for cannot be made from these subjects."""


class SettingError(AutoTransferError, ValueError):
    """An option has a value outside what is possible."""


class SourceError(AutoTransferError, OSError):
    """A data file or folder cannot be read as any known source."""


class MissingExtraError(AutoTransferError, ImportError):
    """An optional dependency is needed and not installed."""


class ModelFolderError(AutoTransferError, OSError):
    """A saved model cannot be loaded: missing, damaged, tampered with or of a newer format."""


class CheckpointError(AutoTransferError, OSError):
    """A checkpoint belongs to another run or is damaged."""


class NonFiniteLossError(AutoTransferError, ArithmeticError):
    """The training loss stopped being a finite number."""


class EngineError(AutoTransferError, RuntimeError):
    """The engine that runs trials cannot be started, or can no longer be used."""


class WorkerDiedError(EngineError):
    """The process that ran a trial ended before the trial did."""


class TrialTimeoutError(EngineError, TimeoutError):
    """A trial took longer than its time limit and was stopped."""


class LedgerError(AutoTransferError, OSError):
    """The record of trials cannot be read or written."""


class RunInUseError(AutoTransferError, RuntimeError):
    """Another process is working on the same run."""


class RunMismatchError(AutoTransferError, ValueError):
    """A run folder belongs to other data or other options."""


class RunStoppedError(AutoTransferError, RuntimeError):
    """A run was stopped before it was complete; the same call goes on with it."""


class BudgetError(AutoTransferError, ValueError):
    """The budget is not a time, or too short for these data."""


class IncompleteResultsError(AutoTransferError, RuntimeError):
    """A result was asked of a run that is not complete."""


class AutoTransferWarning(UserWarning):
    """Base class of every warning raised by this package."""

    def __str__(self) -> str:
        return visible(super().__str__())


class DataWarning(AutoTransferWarning):
    """Something in the data is doubtful but can be used."""


class SmallCellWarning(DataWarning):
    """A (subject, class) cell has too few trials for a reliable estimate."""


class KernelLengthWarning(AutoTransferWarning):
    """The encoder's default kernel lengths do not fit this sampling rate or window."""


class AdaptationWarning(AutoTransferWarning):
    """A model was not adapted to a person, because their trials do not suffice."""


class StalledTrialWarning(AutoTransferWarning):
    """A trial has not ended an epoch for much longer than its epochs take; it may hang."""


class TrainingWarning(AutoTransferWarning):
    """Training ended in a way that should be looked at."""


class CriticDeadWarning(TrainingWarning):
    """A censor's critic never told subjects apart."""


class CriticWinsWarning(TrainingWarning):
    """A censor's critic still told subjects apart when training ended."""


class LatentCollapseWarning(TrainingWarning):
    """The latent shrank to almost nothing under a penalty."""


class LatentExplosionWarning(TrainingWarning):
    """The latent grew without bounds under a penalty."""


def join_some(items: Sequence[object], limit: int = 8) -> str:
    """Write a list for a message: the first few items and how many there are in all.

    Examples
    --------
    >>> join_some([3, 1, 2])
    '3, 1, 2'
    >>> join_some(range(100), limit=3)
    '0, 1, 2, ... (100 in all)'
    """
    shown = ", ".join(str(item) for item in items[:limit])
    return shown if len(items) <= limit else f"{shown}, ... ({len(items)} in all)"
