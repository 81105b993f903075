"""The sections of the page, each from the record of a run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

from autotransfer.report.markup import Html, el
from autotransfer.report.pictures import Drawn, shown_methods
from autotransfer.report.record import Record
from autotransfer.report.summary import STUDY_ONLY, Answer


def section(name: str, title: str, *parts: object) -> Html:
    """Make a section with a heading that links lead to."""
    return el(
        "section",
        el("h2", title, id=f"{name}-title"),
        *parts,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def figure(picture: Drawn | None, *caption: object) -> Html | None:
    """Make a picture that suits light and dark paper, with its caption."""
    if picture is None:
        return None
    light, dark = (
        "data:image/svg+xml;base64," + b64encode(svg).decode()
        for svg in (picture.light, picture.dark)
    )
    return el(
        "figure",
        el(
            "picture",
            # On paper always the light one.
            el("source", srcset=dark, media="screen and (prefers-color-scheme: dark)"),
            el("img", src=light, alt=picture.alt),
        ),
        el("figcaption", *caption),
    )


def answer_section(answer: Answer, record: Record) -> Html:
    """Say what came of it: the first screen."""
    warnings = [el("p", el("strong", words), class_="warning") for words in answer.warnings]
    tiles = [
        el(
            "div",
            el("dt", tile.label),
            el("dd", el("span", tile.value, class_="number"), el("span", tile.note, class_="note")),
            class_="tile",
        )
        for tile in answer.tiles
    ]
    title = "The answer" if record.complete else "How far the run is"
    return section(
        "answer",
        title,
        warnings,
        el("p", answer.headline, class_="headline"),
        el("dl", *tiles, class_="tiles"),
        [el("p", words) for words in answer.paragraphs],
    )


def scores_section(record: Record, found: Mapping[str, Drawn]) -> Html:
    """Show the paper's two pictures."""
    if "methods" not in found:
        return section(
            "scores",
            "Scores on unseen people",
            el("p", "No method has been cross-validated yet, so there are no scores to show."),
        )
    shown, all_ = len(shown_methods(record)), len(record.candidates)
    left = f" The first {shown} of {all_} are shown; the table has all." if shown < all_ else ""
    order = (
        "The chosen one comes first, then the uncensored baseline, then the others in the order of "
        "their validation scores, which is what the choice went by."
        if record.complete
        else "Nothing is chosen yet. Some methods have been tried on fewer people than others, so "
        "their means cannot be compared."
    )
    guess = "" if record.n_classes is None else ", the dashed line what guessing gives"
    other = record.complete and record.chosen is not record.baseline
    return section(
        "scores",
        "Scores on unseen people",
        figure(
            found["methods"],
            "Each dot is a person, tested by a model that had never seen that person; the large "
            f"mark is the mean over people{guess}. {order}{left}",
        ),
        figure(
            found.get("people"),
            "Each line is a person, sorted by the score without censoring: from that score (open "
            "circle) to the one with the chosen method (square). Blue lines are gains, orange ones "
            "are losses."
            if other
            else "Each person's score with the uncensored model.",
        ),
    )


def training_section(record: Record, found: Mapping[str, Drawn]) -> Html:
    """Show learning curves."""
    if "curves" not in found:
        return section(
            "training", "Learning curves", el("p", "No learning curves are on record yet.")
        )
    why = "" if record.complete else ", nothing being chosen yet"
    return section(
        "training",
        "Learning curves",
        figure(
            found["curves"],
            f"Of {_of_focus(record)}{why}. Thin lines are single trainings, one for each fold and "
            "seed, thick lines their mean as far as half of them go. The weights of the epoch with "
            "the lowest validation loss are kept.",
        ),
    )


def maps_section(record: Record, found: Mapping[str, Drawn]) -> Html:
    """Show maps of the latents."""
    if "maps" not in found:
        words = (
            "This run made no portraits of its latents, so there is no map."
            if record.complete
            else "Maps are drawn at the end of a run; this one is not there yet."
        )
        return section("maps", "Maps of the latents", el("p", words))
    return section(
        "maps",
        "Maps of the latents",
        figure(
            found["maps"],
            "Each point is a trial of a training person; trials with similar latents lie close "
            "together (t-SNE). Censoring that works mixes the colours of people and keeps those of "
            "classes apart. A map is an impression, no measurement: sizes and distances of "
            "clusters mean little.",
        ),
    )


def confusion_section(record: Record, found: Mapping[str, Drawn]) -> Html:
    """Show which classes are taken for which."""
    if "confusion" not in found or record.focus is None:
        return section(
            "confusion",
            "Which classes are confused",
            el(
                "p",
                "No confusion matrix is on record: the run is not there yet, or it was made "
                "by a version that did not note it.",
            ),
        )
    mark = f" ({STUDY_ONLY.lower()})" if record.for_study_only else ""
    return section(
        "confusion",
        "Which classes are confused",
        figure(
            found["confusion"],
            f"Of {_of_focus(record)}{mark}, all test people and seeds together. A row is a true "
            "class: the share of its trials, and their number, that the model took for each class.",
        ),
    )


def _of_focus(record: Record) -> str:
    """Name the method that curves and confusion matrix are of."""
    if record.focus is None or record.focus.setting.measure is None:
        return "the uncensored baseline"
    return f"the chosen method, {record.focus.name}"
