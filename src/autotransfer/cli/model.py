"""The model that a command is to use: of a run, or of a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from autotransfer.errors import IncompleteResultsError, SourceError

if TYPE_CHECKING:
    from autotransfer.training import CensoredClassifier


def load_model(given: str) -> CensoredClassifier:
    """Load the chosen model of a run, or a model folder."""
    from autotransfer.search.run_folder import RunFolder
    from autotransfer.training import CensoredClassifier
    from autotransfer.training.model_folder import MANIFEST

    path = Path(given).expanduser()
    files = RunFolder(path)
    if files.run.is_file():
        if not files.model.is_dir():
            raise IncompleteResultsError(
                f"The run in {path} has no model yet: it is not whole. Give the same "
                f"`autotransfer run` command again, which goes on with it; `autotransfer status "
                f"{path}` says how far it is."
            )
        path = files.model
    elif not (path / MANIFEST).is_file():
        raise SourceError(
            f"{path} is neither a run nor a model. Give the --out of `autotransfer run`, or the "
            "--model of `autotransfer fit` (a folder that save() made)."
        )
    return CensoredClassifier.load(path)
