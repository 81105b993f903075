"""The page: one HTML file that needs nothing but itself."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from importlib.resources import files

from autotransfer._version import __version__
from autotransfer.report.leakage_section import leakage_section
from autotransfer.report.markup import Html, el
from autotransfer.report.pictures import Drawn, stamp_of
from autotransfer.report.record import Record
from autotransfer.report.run_sections import again_section, run_section, settings_section
from autotransfer.report.sections import (
    answer_section,
    confusion_section,
    maps_section,
    scores_section,
    training_section,
)
from autotransfer.report.summary import answer

LINKS = {
    "answer": "Answer",
    "scores": "Scores",
    "leakage": "Leakage",
    "training": "Training",
    "maps": "Maps",
    "confusion": "Confusion",
    "settings": "Settings",
    "run": "The run",
    "again": "Again",
}


def page(record: Record, found: Mapping[str, Drawn], assets: str | None = None) -> str:
    """Write the page of a run.

    Parameters
    ----------
    record : Record
        The run.
    found : mapping of str to Drawn
        Its pictures.
    assets : str, optional
        Name of the folder with pictures and tables as files.
    """
    style, script = _text("page.css"), _text("page.js")
    # Nothing may be fetched, and nothing runs but the script below.
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    stamp = stamp_of(record)
    title = f"{'PARTIAL: ' if not record.complete else ''}{record.name}: AutoTransfer report"
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="referrer", content="no-referrer"),
        el("title", title),
        el("style", Html(style)),
    )
    links = [el("a", words, href=f"#{name}") for name, words in LINKS.items()]
    shape = record.about.get("shape")
    subjects = record.about.get("subjects")
    about = [f"{len(subjects)} people" if subjects else "", f"{shape[0]} trials" if shape else ""]
    about.append(record.about.get("begun", "")[:10])
    body = el(
        "body",
        el("aside", stamp, class_="stamp", aria_label="State of the run") if stamp else None,
        el(
            "header",
            el("p", "AutoTransfer report", class_="kind"),
            el("h1", record.name),
            el("p", " · ".join(part for part in about if part), class_="about"),
            el("nav", *links, aria_label="Sections"),
        ),
        el(
            "main",
            answer_section(answer(record), record),
            scores_section(record, found),
            leakage_section(record, found),
            training_section(record, found),
            maps_section(record, found),
            confusion_section(record, found),
            settings_section(record),
            run_section(record, assets),
            again_section(record),
        ),
        el("footer", el("p", f"Written by autotransfer {__version__} from the record of the run.")),
        el("script", Html(script)),
    )
    return f"<!DOCTYPE html>\n{el('html', head, body, lang='en')}\n"


def _text(name: str) -> str:
    return files("autotransfer.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()
