"""The application: its commands, its help, its version."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from autotransfer._version import __version__
from autotransfer.cli.datasets import datasets
from autotransfer.cli.errors import EXIT_CODES, INTERRUPTED, careful
from autotransfer.cli.export import export
from autotransfer.cli.fit import fit
from autotransfer.cli.inspect_data import inspect_data
from autotransfer.cli.leakage import leak
from autotransfer.cli.options import reads_recordings
from autotransfer.cli.predict import adapt_model, predict
from autotransfer.cli.run import run
from autotransfer.cli.status import report, status

_CODES = "\n\n".join(f"{code}: {words}." for code, words in EXIT_CODES.items())

app = typer.Typer(
    name="autotransfer",
    help="Models of biosignals (EEG, EMG, ECG, ECoG) that work on people they have never seen.",
    epilog=f"Exit codes:\n\n{_CODES}",
    no_args_is_help=True,
    rich_markup_mode="rich",
    # Errors are ours to tell; a traceback comes with --debug.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("inspect")(careful(reads_recordings(inspect_data)))
app.command("run")(careful(reads_recordings(run)))
app.command("status")(careful(status))
app.command("report")(careful(report))
app.command("fit")(careful(reads_recordings(fit)))
app.command("predict")(careful(reads_recordings(predict)))
app.command("adapt")(careful(reads_recordings(adapt_model)))
app.command("leakage")(careful(reads_recordings(leak)))
app.command("export")(careful(export))
app.command("datasets")(careful(datasets))


def _version(show: bool) -> None:
    if show:
        print(__version__)
        raise typer.Exit


@app.callback()
def _everything(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    # The docstring would take the place of the help above.
    del version


def main() -> None:
    """Run the command line."""
    try:
        app(prog_name="autotransfer")
    except SystemExit as end:
        if end.code == INTERRUPTED:
            # An interrupt that passed through an exec of text, as imports do, is remembered by
            # Python, which then ends itself by the signal whatever the exit code is.
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        raise
