"""AutoTransfer: models of biosignals that work on people they have never seen."""

from autotransfer._version import __version__
from autotransfer.data import (
    SubjectBatches,
    SubjectDataset,
    SubjectFolds,
    check,
    combine,
    load,
    make_leak,
    make_subjects,
)
from autotransfer.encoder import EEGNet
from autotransfer.errors import AutoTransferError, AutoTransferWarning
from autotransfer.report import leakage
from autotransfer.search import AutoTransfer
from autotransfer.training import CensoredClassifier

__all__ = [
    "AutoTransfer",
    "AutoTransferError",
    "AutoTransferWarning",
    "CensoredClassifier",
    "EEGNet",
    "SubjectBatches",
    "SubjectDataset",
    "SubjectFolds",
    "__version__",
    "check",
    "combine",
    "leakage",
    "load",
    "make_leak",
    "make_subjects",
]
