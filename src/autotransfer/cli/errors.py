"""How every command ends: exit codes, and errors as a sentence and a next step."""

from __future__ import annotations

import functools
import inspect
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from autotransfer.cli.output import say
from autotransfer.errors import AutoTransferError, AutoTransferWarning, RunStoppedError
from autotransfer.text import visible

DONE, FAILED, USAGE, STOPPED, INTERRUPTED = 0, 1, 2, 3, 130

EXIT_CODES = {
    DONE: "done",
    FAILED: "something failed; the message says what, and what to do next",
    USAGE: "wrong usage: no such command or option, or a value that cannot be read",
    STOPPED: "stopped before the run was complete; the same command goes on "
    "(also: status or report with --check of such a run)",
    INTERRUPTED: "interrupted by Ctrl-C",
}
"""What the exit codes mean; shown by ``autotransfer --help``."""

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def careful(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option ``--debug``, and errors that a person can read."""
    signature = inspect.signature(command, eval_str=True)
    debug = inspect.Parameter(
        "debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Debug
    )

    @functools.wraps(command)
    def run(*, debug: bool = False, **options: Any) -> None:
        with plain_warnings():
            try:
                command(**options)
            except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
                raise  # for typer, which knows what to do
            except (Exception, KeyboardInterrupt) as error:
                if debug:
                    sys.stderr.write(visible(traceback.format_exc()))
                words, code = verdict(error)
                say(words)
                raise typer.Exit(code) from None

    parameters = [*signature.parameters.values(), debug]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def verdict(error: BaseException) -> tuple[str, int]:
    """Say what went wrong and what to do next, and give the exit code.

    Examples
    --------
    >>> verdict(KeyboardInterrupt())
    ('Interrupted.', 130)
    """
    if isinstance(error, KeyboardInterrupt):
        return "Interrupted.", INTERRUPTED
    if isinstance(error, RunStoppedError):
        return f"Stopped: {error}", STOPPED
    if isinstance(error, AutoTransferError):
        return f"Error: {error}", FAILED
    if isinstance(error, MemoryError):
        return (
            "Error: there is not enough memory for this. Close other programs, give fewer "
            "--n-jobs, or keep the data in a folder store, which is read from disk as needed.",
            FAILED,
        )
    if isinstance(error, OSError) and error.filename is not None:
        return (
            f"Error: {error.filename}: {error.strerror}. Check the path, your permission to use "
            "it, and the space that is left on the disk.",
            FAILED,
        )
    lines = str(error).strip().splitlines()
    what = ": ".join([type(error).__name__, *lines[:1]])
    return (
        f"Error: autotransfer failed in a way it should not ({what}). This is a bug of ours: run "
        "the same command with --debug and send us what it prints.",
        FAILED,
    )


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show our warnings as sentences, without the line of code that issued them."""
    with warnings.catch_warnings():
        default = warnings.showwarning

        def show(message: Any, category: Any, *where: Any, **more: Any) -> None:
            if issubclass(category, AutoTransferWarning):
                say(f"Warning: {message}")
            else:
                default(message, category, *where, **more)

        warnings.showwarning = show
        yield
