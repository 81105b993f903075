"""The sections of the page, each from the record of a run."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping

from autotransfer.report.answer import STUDY_ONLY, Answer
from autotransfer.report.gather import Record
from autotransfer.report.look import DARK, LIGHT, drawing, to_svg
from autotransfer.report.markup import Html, el
from autotransfer.report.pictures import Picture, leakage_rows, shown_methods
from autotransfer.report.words import people, percent


def section(name: str, title: str, *parts: object) -> Html:
    """Make a section with a heading that links lead to."""
    return el(
        "section",
        el("h2", title, id=f"{name}-title"),
        *parts,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def figure(picture: Picture | None, *caption: object) -> Html | None:
    """Make a picture that suits light and dark paper, with its caption."""
    if picture is None:
        return None
    images = []
    for look in (LIGHT, DARK):
        with drawing(look):
            svg = to_svg(picture.draw(look))
        images.append("data:image/svg+xml;base64," + b64encode(svg).decode())
    return el(
        "figure",
        el(
            "picture",
            # On paper always the light one.
            el("source", srcset=images[1], media="screen and (prefers-color-scheme: dark)"),
            el("img", src=images[0], alt=picture.alt),
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
    title = "The answer" if record.whole else "How far the run is"
    return section(
        "answer",
        title,
        warnings,
        el("p", answer.headline, class_="headline"),
        el("dl", *tiles, class_="tiles"),
        [el("p", words) for words in answer.paragraphs],
    )


def scores_section(record: Record, found: Mapping[str, Picture]) -> Html:
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
        if record.whole
        else "Nothing is chosen yet. Some methods have been tried on fewer people than others, so "
        "their means cannot be compared."
    )
    other = record.whole and record.chosen is not record.baseline
    return section(
        "scores",
        "Scores on unseen people",
        figure(
            found["methods"],
            "Each dot is a person, tested by a model that had never seen that person; the large "
            f"mark is the mean over people. {order}{left}",
        ),
        figure(
            found.get("people"),
            "Each line is a person: from the score without censoring (open circle) to the score "
            "with the chosen method (square). Blue lines are gains, orange lines are losses."
            if other
            else "Each person's score with the uncensored model.",
        ),
    )


def leakage_section(record: Record, found: Mapping[str, Picture]) -> Html:
    """Say what the latents tell about the person."""
    errors = [
        el(
            "p",
            f"No portrait of {one.setting}{' (placebo)' if one.placebo else ''}: ",
            el("code", one.error.strip().splitlines()[-1]),
        )
        for one in record.portraits
        if one.error
    ]
    if "leakage" not in found:
        why = (
            "This run made no portraits of its latents (portraits=False, or a version before "
            "them), so leakage was not measured."
            if record.whole
            else "Leakage is measured at the end of a run; this one is not there yet."
        )
        unprobed = sorted(
            {
                part["error"]
                for one in record.portraits
                for part in one.leakage.values()
                if "error" in part
            }
        )
        if unprobed:
            why = "The latents could not be probed: " + " ".join(unprobed)
        return section("leakage", "What the latent tells about the person", el("p", why), errors)
    return section(
        "leakage",
        "What the latent tells about the person",
        [el("p", words) for words in leakage_words(record)],
        figure(
            found["leakage"],
            "A probe is a fresh classifier that tries to recognise the person from the latent z, "
            "on recordings that it was not trained on; the dashed line is guessing, bars are 95 % "
            "intervals. z1 and z2 are the halves of z: complementary mode censors z1 and lets z2 "
            "carry the person. The placebo is the chosen censor trained with shuffled subject "
            "labels: what it lowers, censoring did not do. All are of the people of one fold's "
            "training side, whom the encoder had every chance to learn.",
        ),
        errors,
    )


def leakage_words(record: Record) -> list[str]:
    """Say what the numbers of leakage mean."""
    table = leakage_rows(record).set_index(["role", "part"])
    chosen = record.chosen
    complementary = chosen is not None and chosen.setting.mode == "complementary"
    part = "z1" if complementary else "z"
    if ("baseline", part) not in table.index:
        return []
    base = table.loc[("baseline", part)]
    words = [
        f"From the uncensored latent ({part}) a probe recognises which of "
        f"{people(int(base['subjects']))} a trial comes from in {percent(base['accuracy'])} of "
        f"trials; guessing would give {percent(base['chance'])}."
    ]
    if ("chosen", part) not in table.index:
        return words
    mine = table.loc[("chosen", part)]
    less = mine["high"] < base["low"]
    more = mine["low"] > base["high"]
    change = (
        "clearly less"
        if less
        else "clearly more"
        if more
        else "not clearly different (the intervals overlap)"
    )
    words[0] += f" From the chosen one's it is {percent(mine['accuracy'])}: {change}."
    if ("placebo", part) in table.index and less:
        placebo = table.loc[("placebo", part)]
        if placebo["low"] > mine["high"]:
            words.append(
                f"The placebo leaves it at {percent(placebo['accuracy'])}, so it is knowing who is "
                "who that lowered it."
            )
        else:
            words.append(
                f"But the placebo lowers it too, to {percent(placebo['accuracy'])}: the censor "
                "cannot be given the credit."
            )
    return words


def training_section(record: Record, found: Mapping[str, Picture]) -> Html:
    """Show learning curves."""
    name = "" if record.focus is None else record.focus.name
    if "curves" not in found:
        return section(
            "training", "Learning curves", el("p", "No learning curves are on record yet.")
        )
    which = "the chosen method" if record.whole else "the uncensored baseline, nothing being chosen"
    return section(
        "training",
        "Learning curves",
        figure(
            found["curves"],
            f"Of {which} ({name}): thin lines are single trainings, one for each fold and seed, "
            "thick lines their mean as far as half of them go. The weights of the epoch with the "
            "lowest validation loss are kept.",
        ),
    )


def maps_section(record: Record, found: Mapping[str, Picture]) -> Html:
    """Show maps of the latents."""
    if "maps" not in found:
        words = (
            "This run made no portraits of its latents, so there is no map."
            if record.whole
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


def confusion_section(record: Record, found: Mapping[str, Picture]) -> Html:
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
            f"Of {record.focus.name}{mark}, all test people and seeds together. A row is a true "
            "class: the share of its trials, and their number, that the model took for each class.",
        ),
    )
