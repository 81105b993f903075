"""AutoTransfer: models of biosignals that work on people they have never seen."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from autotransfer._driver import leave_with_driver
from autotransfer._version import __version__

if TYPE_CHECKING:
    from autotransfer.auto import AutoTransfer
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
    from autotransfer.leakage import measure_leakage
    from autotransfer.training import CensoredClassifier, Ensemble, load_model

__all__ = [
    "AutoTransfer",
    "AutoTransferError",
    "AutoTransferWarning",
    "CensoredClassifier",
    "EEGNet",
    "Ensemble",
    "SubjectBatches",
    "SubjectDataset",
    "SubjectFolds",
    "__version__",
    "check",
    "combine",
    "load",
    "load_model",
    "make_leak",
    "make_subjects",
    "measure_leakage",
]

leave_with_driver()

# Rooms are opened when somebody asks for what is in them: `autotransfer --help` needs no torch.
_ROOMS = {
    "auto": ("AutoTransfer",),
    "data": (
        "SubjectBatches",
        "SubjectDataset",
        "SubjectFolds",
        "check",
        "combine",
        "load",
        "make_leak",
        "make_subjects",
    ),
    "encoder": ("EEGNet",),
    "errors": ("AutoTransferError", "AutoTransferWarning"),
    "leakage": ("measure_leakage",),
    "training": ("CensoredClassifier", "Ensemble", "load_model"),
}
_WHERE = {name: room for room, names in _ROOMS.items() for name in names}
_OTHERS = ("adaptation", "censoring", "estimation", "plots", "report", "search")


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        found = getattr(import_module(f"autotransfer.{_WHERE[name]}"), name)
        globals()[name] = found
        return found
    # What a plain import would have made known: autotransfer.censoring and the like.
    if name in _ROOMS or name in _OTHERS:
        return import_module(f"autotransfer.{name}")
    raise AttributeError(f"module 'autotransfer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
