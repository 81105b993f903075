"""`autotransfer export`: a model, or the trials of a run, for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotransfer.cli.options import Model, Storage, load_model
from autotransfer.cli.output import say


def export(
    source: Model,
    onnx: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write signals -> probabilities as an ONNX file."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write a copy of the model folder.")
    ] = None,
    optuna: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Write the trials of a run (also while it goes on) into a storage of Optuna, "
            "such as sqlite:///run.db; again adds what is new.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model folder of that name.")
    ] = False,
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
    loaded = load_model(source)
    if model is not None:
        print(loaded.save(model, overwrite=overwrite))
    if onnx is not None:
        from autotransfer.training.onnx import export_onnx

        print(export_onnx(loaded, onnx))
