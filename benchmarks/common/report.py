"""What every benchmark does with its figures: print the table, write JSON, check the goals."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Goal:
    """A figure, and the bound it should keep."""

    name: str
    value: float
    bound: float
    at_least: bool = True
    strictly: bool = False
    """Whether to equal the bound is to miss it."""

    @property
    def kept(self) -> bool:
        """Whether the figure keeps its bound."""
        if self.value == self.bound:
            return not self.strictly
        return (self.value > self.bound) == self.at_least

    def __str__(self) -> str:
        word = "at least" if self.at_least else "at most"
        if self.strictly:
            word = "above" if self.at_least else "below"
        return f"{self.name}: {self.value:.4g}, goal {word} {self.bound:g}"


def parser(description: str | None) -> argparse.ArgumentParser:
    """Make a parser with the options that every benchmark has."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    made.add_argument("--check", action="store_true", help="exit 1 when a goal is missed")
    made.add_argument(
        "--smoke",
        action="store_true",
        help="Tiny sizes, seconds: does the command run? Figures mean nothing and goals are not "
        "checked.",
    )
    return made


def arguments(parser: argparse.ArgumentParser, **tiny: Any) -> argparse.Namespace:
    """Read the command line.

    Parameters
    ----------
    parser : ArgumentParser
        Made by `parser`, perhaps with further options.
    **tiny : dict
        Defaults of the options with --smoke.
    """
    args = parser.parse_args()
    if not args.smoke:
        return args
    if args.json or args.check:
        parser.error("--smoke has no figures for --json, and none for --check.")
    parser.set_defaults(**tiny)
    print("Tiny sizes (--smoke): the figures mean nothing.")
    return parser.parse_args()


def commit() -> str:
    """Name the commit of the code, or "" where that cannot be told: figures of long runs age."""
    command = ["git", "rev-parse", "--short=7", "HEAD"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()


def show(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print a table."""
    table = Table(title=title)
    for column in rows[0]:
        table.add_column(
            column,
            justify="right" if _number(rows[0][column]) else "left",
            overflow="fold",  # a figure that is cut is none
        )
    for row in rows:
        table.add_row(*(f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values()))
    # A log file has no width; tables must not be folded in it.
    Console(width=None if sys.stdout.isatty() else 400).print(table)


def finish(
    args: argparse.Namespace,
    title: str,
    rows: Sequence[dict[str, Any]],
    goals: Sequence[Goal] = (),
    **more: Any,
) -> None:
    """Print the table, write the JSON file, name every goal that was missed."""
    show(title, rows)
    text = _as_json(title, rows, goals, more)  # with --smoke, too: can it be written?
    if args.smoke:
        return
    missed = [goal for goal in goals if not goal.kept]
    for goal in goals:
        print(("met    " if goal.kept else "MISSED ") + str(goal))
    if args.json:
        args.json.write_text(text)
    if args.check and missed:
        sys.exit(1)


def _as_json(
    title: str, rows: Sequence[dict[str, Any]], goals: Sequence[Goal], more: dict[str, Any]
) -> str:
    """Write all figures, with the command that took them and the machine."""
    machine = {
        "python": platform.python_version(),
        "torch": version("torch"),
        "processor": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
    }
    spec = sys.modules["__main__"].__spec__
    # Files by name: where they lay on one machine says nothing to another.
    words = (Path(word).name if os.sep in word else word for word in sys.argv[1:])
    command = " ".join(["python", "-m", spec.name if spec else "", *words])
    found = {"title": title, "command": command, "rows": list(rows), "machine": machine, **more}
    found["goals"] = [{**goal.__dict__, "kept": goal.kept} for goal in goals]
    return json.dumps(_plain(found), indent=1, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    """Write null for what is not a finite number: JSON has neither NaN nor infinity."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
