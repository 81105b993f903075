"""`autotransfer export`: a model, or the trials of a run, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotransfer.cli.options import Model, Overwrite, Storage, load_model
from autotransfer.cli.output import print_text, say

_ONNX = "Write an ONNX file that turns signals into probabilities."
_COPY = "Write a copy of the model folder."
_OPTUNA = (
    "Write the trials of a run (also while it goes on) into a storage of Optuna, such as "
    "sqlite:///run.db; again adds what is new."
)


def export(
    source: Model,
    onnx: Annotated[Path | None, typer.Option(metavar="FILE", help=_ONNX)] = None,
    model: Annotated[Path | None, typer.Option(metavar="FOLDER", help=_COPY)] = None,
    optuna: Annotated[str | None, typer.Option(metavar="URL", help=_OPTUNA)] = None,
    overwrite: Overwrite = False,
    storage: Storage = None,
) -> None:
    """Write a model, or the trials of a run, in a form that other programs read.

    A model is that of a run or of a model folder; the paths are printed. Trials (--optuna) are
    those of a run.

    [bold]Examples[/bold]

      autotransfer export runs/gestures --onnx gestures.onnx
      autotransfer export runs/gestures --model gestures.model
      autotransfer export runs/gestures --optuna sqlite:///gestures.db
    """
    if onnx is None and model is None and optuna is None:
        hint = "--onnx FILE, --model FOLDER, --optuna URL"
        raise typer.BadParameter("Say what to write.", param_hint=hint)
    if optuna is not None:
        from autotransfer.search import export_optuna

        say(f"{export_optuna(source, optuna, storage)} trials written for Optuna.")
    if onnx is None and model is None:
        return
    classifier = load_model(source)
    if model is not None:
        print_text(f"{classifier.save(model, overwrite=overwrite)}\n")
    if onnx is not None:
        print_text(f"{classifier.export_onnx(onnx)}\n")
