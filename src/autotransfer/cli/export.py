"""`autotransfer export`: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autotransfer.cli.options import Model, load_model


def export(
    source: Model,
    onnx: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write signals -> probabilities as an ONNX file."),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write a copy of the model folder.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model folder of that name.")
    ] = False,
) -> None:
    """Write a model in a form that other programs read; prints the paths.

    [bold]Examples[/bold]

      autotransfer export runs/gestures --onnx gestures.onnx
      autotransfer export runs/gestures --model gestures.model
    """
    if onnx is None and model is None:
        raise typer.BadParameter("Say what to write.", param_hint="--onnx FILE, --model FOLDER")
    loaded = load_model(source)
    if model is not None:
        print(loaded.save(model, overwrite=overwrite))
    if onnx is not None:
        from autotransfer.training.onnx import export_onnx

        print(export_onnx(loaded, onnx))
