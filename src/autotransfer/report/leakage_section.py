"""The section about what the latents tell of the person."""

from __future__ import annotations

from collections.abc import Mapping

from autotransfer.report.formatting import people, percent
from autotransfer.report.markup import Html, el
from autotransfer.report.pictures import Drawn, leaks
from autotransfer.report.record import Record
from autotransfer.report.sections import figure, section


def leakage_section(record: Record, found: Mapping[str, Drawn]) -> Html:
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
            if record.complete
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
    found = {(leak.role, leak.part): leak for leak in leaks(record)}
    chosen = record.chosen
    complementary = chosen is not None and chosen.setting.mode == "complementary"
    part = "z1" if complementary else "z"
    base = found.get(("baseline", part))
    if base is None:
        return []
    words = [
        f"From the uncensored latent ({part}) a probe recognises which of {people(base.subjects)} "
        f"a trial comes from in {percent(base.value)} of trials; guessing would give "
        f"{percent(base.chance)}."
    ]
    mine = found.get(("chosen", part))
    if mine is None:
        return words
    change = "not clearly different (the intervals overlap)"
    if mine.high < base.low:
        change = "clearly less"
    elif mine.low > base.high:
        change = "clearly more"
    words[0] += f" From the chosen one's it is {percent(mine.value)}: {change}."
    placebo = found.get(("placebo", part))
    if placebo is not None and mine.high < base.low:
        words.append(
            f"The placebo leaves it at {percent(placebo.value)}, so it is knowing who is who "
            "that lowered it."
            if placebo.low > mine.high
            else f"But the placebo lowers it too, to {percent(placebo.value)}: the censor "
            "cannot be given the credit."
        )
    return words
