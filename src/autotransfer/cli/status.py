"""`autotransfer status` and `autotransfer report`: how far a run is, and what it found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotransfer.cli.errors import STOPPED
from autotransfer.cli.options import Check, Json, Run, Storage
from autotransfer.cli.output import print_json, print_table, print_text, say, working

if TYPE_CHECKING:
    from autotransfer.search.status import RunStatus

_OUT = "Where to write the page; in the run's folder by default."
_ASSETS = "Where to write figures and tables; beside the page by default."


def status(run: Run, storage: Storage = None, check: Check = False, as_json: Json = False) -> None:
    """Say how far a run is and how long it will take, also while it goes on.

    [bold]Examples[/bold]

      autotransfer status runs/gestures
      autotransfer status runs/gestures --check --json
    """
    from autotransfer.search.status import read_status

    run_status = read_status(Path(run), storage)
    if as_json:
        print_json(run_status.to_json())
    else:
        print_table([_row(stage) for stage in run_status.stages])
        print(_words(run_status))
    if check and not run_status.complete:
        raise typer.Exit(STOPPED)


def _row(stage: Any) -> dict[str, Any]:
    from autotransfer.search.status import OF_TRIALS, STAGES

    # How far a hands-off run goes depends on what it sees.
    unknown = "open" if stage.name in OF_TRIALS["auto"][1:] else "not yet known"
    return {
        "stage": STAGES[stage.name],
        "planned": unknown if stage.planned is None else str(stage.planned),
        "done": stage.done,
        "failed": stage.failed,
    }


def _words(run_status: RunStatus) -> str:
    from autotransfer.text import duration

    expected = ""
    if run_status.expected is not None:
        spread = run_status.expected
        expected = (
            f" Expect balanced accuracy {spread['mean']:.3f} "
            f"(lower quartile {spread['lower_quartile']:.3f}) on a new person."
        )
    if run_status.complete:
        return f"The run is complete.{expected}"
    model = expected
    if (run_status.folder / "model").is_dir():
        model += " Its model so far can be used already."
    if not run_status.alive:
        words = "The run is not complete, and nobody works on it: give the same command again."
        return words + model
    left = run_status.left
    more = "" if left is None else f"; this stage takes about {duration(left)} more"
    return f"The run goes on{more}.{model}"


def report(
    run: Run,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=_OUT)] = None,
    assets: Annotated[Path | None, typer.Option(metavar="FOLDER", help=_ASSETS)] = None,
    storage: Storage = None,
    check: Check = False,
) -> None:
    """Write the report of a run, one HTML page, and print its path.

    The page of a run that is not complete says so.

    [bold]Examples[/bold]

      autotransfer report runs/gestures
      autotransfer report runs/gestures --out gestures.html --assets figures
    """
    with working("writing the report"):
        from autotransfer.report import write_report
        from autotransfer.search.status import read_status

        complete = read_status(Path(run), storage).complete
        page = write_report(Path(run), out, storage=storage, assets=assets)
    if not complete:
        say("The run is not complete, and its report says so.")
    print_text(f"{page}\n")
    if check and not complete:
        raise typer.Exit(STOPPED)
