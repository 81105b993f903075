"""The page: one HTML file that needs nothing but itself, filled in from ``page.html.jinja``."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from importlib.resources import files
from shlex import quote
from typing import Any

import pandas as pd

from autotransfer._version import __version__
from autotransfer.report import sections, tables
from autotransfer.report.auto_summary import first_screen
from autotransfer.report.formatting import count
from autotransfer.report.pictures import Drawing, shown_methods, stamp_of
from autotransfer.report.record import Record
from autotransfer.report.reproduce import python
from autotransfer.text import html_templates, well_formed

MOST_SETTINGS = 2000
"""Most rows of the table of settings; the CSV file has all."""

MOST_FAILURES = 200
"""Most rows of the table of failures; the CSV file has all."""

_SPREAD = {"mean": "mean", "sd": "SD", "lower quartile": "lower quartile", "worst": "worst"}
SCORE_COLUMNS = {
    f"{side} {key}": f"{side.capitalize()} {label}"
    for side in ("test", "validation")  # what a reader looks for first is in sight
    for key, label in _SPREAD.items()
}
HELD_OUT_COLUMNS = {f"test {key}": label[0].upper() + label[1:] for key, label in _SPREAD.items()}
"""Of a hands-off run, where who is held out validates and tests."""


def page(record: Record, drawings: Mapping[str, Drawing], assets: str | None = None) -> str:
    """Write the page of a run.

    Parameters
    ----------
    record : Record
        The run.
    drawings : mapping of str to Drawing
        Its pictures.
    assets : str, optional
        Name of the folder with pictures and tables as files.
    """
    style, script = _text("page.css"), _text("page.js")
    settings = _rows(tables.settings_table(record), MOST_SETTINGS)
    environment = html_templates("autotransfer.report")
    environment.filters["data_uri"] = _data_uri
    text = environment.get_template("page.html.jinja").render(
        record=record,
        about=record.about,
        answer=first_screen(record),
        drawings=drawings,
        facts=sections.facts(record, assets),
        failures=_rows(tables.failures_table(record), MOST_FAILURES),
        focus=sections.focus(record),
        leakage_sentences=sections.leakage_sentences(record),
        n_methods=len(shown_methods(record)),
        # Nothing may be fetched, and nothing runs but the page's own script.
        policy=f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'",
        probe_errors=sections.probe_errors(record),
        python_call=python(record),
        report_command=f"autotransfer report {quote(record.place)}",
        by_level=len(record.levels.answers(record.n_labels)) > 1,
        calibration_words=sections.calibration_words(record),
        confusions=sections.confusions(record),
        row_count=count(len(settings), "row"),
        score_columns=HELD_OUT_COLUMNS if record.auto else SCORE_COLUMNS,
        script=script,
        search_folds=sections.search_folds(record),
        settings=settings,
        stamp=stamp_of(record),
        style=style,
        version=__version__,
    )
    return well_formed(text)


def _rows(table: pd.DataFrame, most: int) -> list[dict[Any, Any]]:
    """First rows of a table, with None where there is no value."""
    head = table.head(most).astype(object)
    return head.where(head.notna(), None).to_dict("records")


def _text(name: str) -> str:
    return files("autotransfer.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _data_uri(svg: bytes) -> str:
    return "data:image/svg+xml;base64," + b64encode(svg).decode()
