"""The sections about the run itself: every setting tried, what was run, and how to do it again."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote
from typing import Any

import pandas as pd

from autotransfer.errors import join_some
from autotransfer.report import tables
from autotransfer.report.formatting import count, hours, people
from autotransfer.report.markup import Html, el
from autotransfer.report.record import Record
from autotransfer.report.reproduce import python
from autotransfer.report.sections import section

SHOWN = 2000
"""Most rows of the table of settings; the CSV file has all."""

_SPREAD = {"mean": "mean", "sd": "SD", "lower quartile": "lower quartile", "worst": "worst"}
_COLUMNS = {
    "setting": "Setting",
    "tried in": "Tried in",
    "people": "People",
    "trials": "Trials",
    "failed": "Failed",
    **{
        f"{side} {key}": f"{side.capitalize()} {words}"
        for side in ("validation", "test")
        for key, words in _SPREAD.items()
    },
}


def settings_section(record: Record) -> Html:
    """Show every setting tried in a table that can be sorted and filtered."""
    table = tables.settings_table(record)
    title = "Every setting tried"
    if table.empty:
        return section("settings", title, el("p", "No trial is on record yet."))
    shown = table.head(SHOWN)
    left = f" The first {SHOWN} of {len(table)} are shown." if len(table) > SHOWN else ""
    head = el(
        "tr",
        *(
            el("th", el("button", words, type="button"), scope="col", class_=_kind(key))
            for key, words in _COLUMNS.items()
        ),
    )
    body = [_row(record, row) for row in shown.to_dict("records")]
    return section(
        "settings",
        title,
        el(
            "p",
            "Balanced accuracy in percent, with its spread over people. Settings that were tried "
            f"in the search only have the people of {_searched(record)} behind them. Press a "
            f"column's name to sort by it.{left}",
        ),
        el(
            "p",
            el("label", "Show only rows with these words ", for_="filter"),
            el("input", id="filter", type="search", autocomplete="off", aria_controls="tried"),
            " ",
            el("output", count(len(shown), "row"), id="shown", for_="filter"),
            class_="filter",
        ),
        _scrolling(
            "Every setting tried, with its scores",
            el(
                "table",
                el("caption", "Every setting tried. Scores are percent."),
                el("thead", head),
                el("tbody", *body),
                id="tried",
                class_="sortable",
            ),
        ),
    )


def _kind(key: str) -> str | None:
    return None if key in ("setting", "tried in") else "figure"


def _row(record: Record, row: dict[Any, Any]) -> Html:
    badges = []
    if row["chosen"]:
        words = "chosen, for study only" if record.for_study_only else "chosen"
        badges.append(el("span", words, class_="badge"))
    if row["measure"] == "uncensored":
        badges.append(el("span", "baseline", class_="badge quiet"))
    cells = [el("th", row["setting"], *(part for b in badges for part in (" ", b)), scope="row")]
    for key in list(_COLUMNS)[1:]:
        value = row[key]
        if key.startswith(("validation", "test")):
            there = value is not None and not pd.isna(value)
            shown = f"{100 * value:.1f}" if there else ""
            cells.append(el("td", shown, data_value=value if there else "", class_="figure"))
        elif key == "trials" and row["missing"]:
            words = f"{value} of {value + row['missing'] + row['failed']}"
            cells.append(el("td", words, data_value=value, class_="figure"))
        else:
            cells.append(el("td", value, class_=_kind(key)))
    return el("tr", *cells, class_="chosen" if row["chosen"] else None)


def run_section(record: Record, assets: str | None) -> Html:
    """Say what was run."""
    facts = [el("div", el("dt", name), el("dd", words)) for name, words in _facts(record, assets)]
    return section("run", "What was run", el("dl", *facts, class_="facts"), _failures(record))


def _facts(record: Record, assets: str | None) -> Iterable[tuple[str, Any]]:
    about, definition = record.about, record.definition
    yield "Data fingerprint", el("code", definition["data"])
    shape = about.get("shape")
    if shape:
        yield "Recordings", f"{shape[0]} trials, {shape[1]} channels, {shape[2]} samples"
    subjects = about.get("subjects")
    if subjects:
        yield "People", f"{people(len(subjects))}: {join_some(subjects, 60)}"
    if about.get("classes"):
        yield "Classes", join_some(about["classes"], 60)
    if about.get("begun"):
        yield "Begun", about["begun"].replace("T", " ").replace("Z", " UTC")
    versions = [
        f"{n} {about[n]}" for n in ("autotransfer", "torch", "numpy", "python") if n in about
    ]
    yield "Versions", ", ".join(versions)
    seeds = f"random_state {definition['seed']}"
    yield "Seeds", f"{seeds}; {count(definition['n_seeds'], 'repetition')} of the cross-validation"
    yield (
        "Folds",
        f"{definition['n_folds']} folds of people; at most {definition['max_epochs']} epochs",
    )
    yield "Search", _search(record)
    counts = ", ".join(f"{n} in {stage}" for stage, n in record.counts.items() if n)
    failed = len(record.failures)
    yield "Trials on record", f"{counts or 'none'}; {failed or 'none'} failed"
    yield "Time of computing", f"{hours(record.seconds)} (sum over all trainings)"
    if record.results is not None:
        yield "Rule of choice", f"{record.results['rule']['name']}: {record.results['rule']['is']}"
    if assets:
        yield "Files", f"the pictures as SVG and PNG and the tables as CSV are in {assets}"


def _search(record: Record) -> str:
    definition = record.definition
    words = f"{definition['strategy']} over {', '.join(definition['space']['measures'])}"
    words += f" in mode {', '.join(definition['space']['modes'])}"
    words += f", on {_searched(record)}"
    if definition["prune"]:
        words += ", with pruning"
    if definition["budget"] is not None:
        words += f"; budget {hours(definition['budget'])}"
    return words + f"; the best {definition['keep']} of each measure are cross-validated"


def _searched(record: Record) -> str:
    # A budget may have cut them.
    asked = record.definition if record.results is None else record.results["plan"]
    return count(asked["search_folds"], "fold")


def _failures(record: Record) -> Html | None:
    table = tables.failures_table(record)
    if table.empty:
        return None
    shown = table.head(SHOWN // 10)
    head = el("tr", *(el("th", str(name).capitalize(), scope="col") for name in table))
    body = [
        el("tr", *(el("td", el("code", v) if k == "error" else v) for k, v in row.items()))
        for row in shown.to_dict("records")
    ]
    first = record.failures[0]
    return el(
        "div",
        el("h3", "Failures"),
        el(
            "p",
            f"{len(table)} failed. A failed trial was tried again where that could help; a "
            "candidate that failed on some fold cannot be chosen.",
        ),
        _scrolling(
            "Trials that failed",
            el(
                "table",
                el("caption", "Trials that failed, with the last line of the error."),
                el("thead", head),
                el("tbody", *body),
            ),
        ),
        el(
            "details",
            el("summary", "The first error in full"),
            el("pre", first.error, tabindex="0"),
        ),
    )


def again_section(record: Record) -> Html:
    """Say how to make the run again."""
    words = (
        "The same data and options give the same trials and the same table, bit for bit on the "
        "same kind of machine."
        if record.complete
        else "The same call goes on with the run: what is on record is not done again."
    )
    return section(
        "again",
        "How to run it again",
        el("p", words),
        el("pre", el("code", python(record)), tabindex="0"),
        el("p", "This page alone, from the folder of the run:"),
        el("pre", el("code", f"autotransfer report {quote(record.name)}"), tabindex="0"),
    )


def _scrolling(label: str, table: Html) -> Html:
    """Let a wide table scroll in a box of its own, also with the keyboard."""
    return el("div", table, class_="scroll", tabindex="0", role="region", aria_label=label)
