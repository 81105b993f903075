"""The pictures of a run: which there are, what they show, and that in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from autotransfer.data.trials import evenly
from autotransfer.leakage.result import Estimate
from autotransfer.report import tables
from autotransfer.report.figures import classes, filters, latents, scores
from autotransfer.report.figures.latents import Leak
from autotransfer.report.figures.scores import Row
from autotransfer.report.figures.theme import DARK, LIGHT, Sheet, drawing, figure_of, to_png, to_svg
from autotransfer.report.formatting import count, percent
from autotransfer.report.record import Method, Record
from autotransfer.report.statistics import bootstrap_mean
from autotransfer.search.levels.cases import Case
from autotransfer.search.levels.worth import Levels
from autotransfer.search.settings.setting import BASELINE, Setting

MOST_METHODS = 40
"""Most candidates in the picture of scores; the table has all."""

MOST_ON_MAP = 8
"""Most people on a map of latents: more colours nobody tells apart."""


Made = tuple[str, Callable[[Sheet], Axes | list[Axes]]] | None
"""What a picture shows in words, and what draws it; None without numbers."""

LEVEL_WORDS = {
    "nothing": "nothing known",
    "recording": "a recording, no labels",
    "stream": "trial by trial",
}
"""What is known of a new person, where there is little room."""


@dataclass(frozen=True)
class Picture:
    """A picture.

    Parameters
    ----------
    name : str
        Of its files; a name in `MAKERS`.
    alt : str
        What it shows, with its numbers, for those who do not see it.
    draw : callable
        Sheet -> axes.
    stamp : str
        What must stand on it.
    """

    name: str
    alt: str
    draw: Callable[[Sheet], Axes | list[Axes]]
    stamp: str = ""


@dataclass(frozen=True)
class Drawing:
    """A picture as files.

    Parameters
    ----------
    alt : str
        As in `Picture`.
    light, dark : bytes
        SVG for light and for dark paper.
    tall : bool
        Whether it is higher than wide, such as one with a line for each person.
    png : bytes or None
        On light paper.
    """

    alt: str
    light: bytes
    dark: bytes
    tall: bool = False
    png: bytes | None = None


def draw(picture: Picture, png: bool) -> Drawing:
    """Draw a picture; as PNG only if that is asked for, because it takes longest."""
    with drawing(LIGHT):
        figure = figure_of(picture.draw(Sheet(LIGHT, picture.stamp)))
        light, pixels = to_svg(figure), to_png(figure) if png else None
        width, height = figure.get_size_inches()
    with drawing(DARK):
        dark = to_svg(figure_of(picture.draw(Sheet(DARK, picture.stamp))))
    return Drawing(picture.alt, light, dark, height > width, pixels)


def stamp_of(record: Record) -> str:
    """Say what must stand on every picture of a run; nothing if it is complete and honest."""
    if not record.complete or record.best_so_far:
        word = "BEST SO FAR" if record.best_so_far else "PARTIAL"
        return f"{word}: unfinished run, {count(record.n_trials, 'trial')} so far"
    return "FOR STUDY ONLY: chosen by TEST scores" if record.for_study_only else ""


def pictures(record: Record) -> dict[str, Picture]:
    """Make the pictures that a run has numbers for."""
    return {name: one for name in MAKERS if (one := picture(record, name)) is not None}


def picture(record: Record, name: str) -> Picture | None:
    """Make a picture, if the run has numbers for it.

    Parameters
    ----------
    record : Record
        The run.
    name : str
        A name in `MAKERS`.
    """
    made = MAKERS[name](record)
    if made is None:
        return None
    (alt, draw), stamp = made, stamp_of(record)
    return Picture(name, f"{stamp}. {alt}" if stamp else alt, draw, stamp)


def role_of(record: Record, method: Method) -> str:
    """Tell what a method is: "chosen", "baseline", or neither."""
    if method is record.chosen:
        return "chosen"
    return "baseline" if method is record.baseline else ""


def short_name(setting: Setting) -> str:
    """Name a setting without the names of options that are words: there is little room.

    Examples
    --------
    >>> short_name(Setting.of("mige", "marginal", 0.1, estimator="stein", gamma=0.01))
    'mige marginal 0.1 stein gamma=0.01'
    """
    words = [str(Setting(setting.measure, setting.mode, setting.strength))]
    words += [v if isinstance(v, str) else f"{name}={v}" for name, v in setting.options]
    return " ".join(words)


def label(record: Record, method: Method) -> str:
    """Name a method where there is little room; in a hands-off run by what its recipe changes."""
    censor = short_name(method.setting)
    if not record.auto or record.baseline is None:
        return censor
    recipe = str(method.setting.recipe.changes(record.baseline.setting.recipe))
    parts = [] if censor == str(BASELINE) else [censor]
    words = ", ".join([*parts, recipe] if recipe else parts or [record.first_name])
    return f"mean of {method.networks}: {words}" if method.networks > 1 else words


def shown_methods(record: Record) -> list[Method]:
    """Candidates in the order of the picture: chosen, baseline, the others as they were judged."""
    methods = [m for m in tables.ranked_methods(record) if m.candidate and m.test]
    first = {"chosen": 0, "baseline": 1, "": 2}
    return sorted(methods, key=lambda m: first[role_of(record, m)])[:MOST_METHODS]


def level_curves(levels: Levels) -> dict[str, dict[int | None, Estimate]]:
    """Mean over people, with its interval, against what is known of a new person."""
    nothing = levels.scores.get(Case("nothing"))
    if nothing is None:
        return {}
    found = {level: {0: nothing, **levels.curve(level)} for level in ("recording", "labels")}
    stream = levels.chosen("stream", None)
    if stream:
        found["stream"] = {None: stream}
    return {
        level: {amount: bootstrap_mean(list(scores.values())) for amount, scores in curve.items()}
        for level, curve in found.items()
    }


def _levels(record: Record) -> Made:
    curves, without = level_curves(record.levels), level_curves(record.uncensored_levels)
    if not any(len(curves.get(level, {})) > 1 for level in ("recording", "labels")):
        return None
    words = {"recording": "trials without labels", "labels": "labels of each class"}
    words["stream"] = "trials one by one"
    numbers = "; ".join(
        f"{'all' if amount is None else amount} {words[level]} {percent(one.value)}"
        for level, curve in curves.items()
        for amount, one in curve.items()
    )
    alt = f"Balanced accuracy of people held out against what is known of them: {numbers}."
    reference = (record.results or {}).get("reference", {}).get("mean")
    chance = 1 / record.n_classes
    return alt, lambda sheet: scores.draw_levels(curves, reference, chance, sheet, without)


def _methods(record: Record) -> Made:
    rows = [
        Row(label(record, m), list(m.test.values()), role_of(record, m), _mark(record, m))
        for m in shown_methods(record)
    ]
    if not rows:
        return None
    means = "; ".join(
        f"{row.name}{f' ({row.mark})' if row.mark else ''} {percent(float(np.mean(row.scores)))} "
        f"over {len(row.scores)}"
        for row in rows
    )
    which = "setting that was tried on everybody" if record.auto else "cross-validated method"
    alt = (
        f"Dot plot: test balanced accuracy of every person with each {which}, the "
        f"mean marked. Means: {means}."
    )
    return alt, lambda sheet: scores.draw_rows(rows, 1 / record.n_classes, sheet)


def _mark(record: Record, method: Method) -> str:
    """Say what a method is, in brackets behind its name."""
    role = role_of(record, method)
    return "first answer" if record.auto and role == "baseline" else role


def people_scores(record: Record) -> dict[str, dict[str, float]]:
    """Scores of each person that a report compares, the least first.

    Where levels were scored: with nothing, with a recording, with labels, on the same trials.
    Otherwise without and with what was chosen.
    """
    answers = record.levels.answers(record.n_labels)
    if len(answers) > 1:
        words = {**LEVEL_WORDS, "labels": f"{record.n_labels} labels of each class"}
        if len(answers) > 2:  # four marks on a line are too many
            answers.pop("stream", None)
        return {words[level]: answers[level] for level in words if level in answers}
    baseline, chosen = record.baseline, record.chosen
    if baseline is None or not baseline.candidate or not baseline.test:
        return {}
    found = {record.first_name if record.auto else "uncensored": baseline.test}
    if chosen is not None and chosen is not baseline:
        found["chosen"] = chosen.test
    return found


def _people(record: Record) -> Made:
    found = people_scores(record)
    if not found:
        return None
    first = next(iter(found.values()))
    ranked = sorted(first, key=lambda person: first[person])
    ends = [ranked[0], ranked[-1]] if len(ranked) > 12 else ranked
    numbers = "; ".join(
        f"{person} {' to '.join(percent(s[person], 0) for s in found.values() if person in s)}"
        for person in ends
    )
    which = "lowest and highest of them" if len(ends) < len(ranked) else "from lowest to highest"
    alt = (
        f"Balanced accuracy of each of {len(ranked)} people held out, sorted by the first score "
        f"({', '.join(found)}); {which}: {numbers}."
    )
    return alt, lambda sheet: scores.draw_people(found, 1 / record.n_classes, sheet)


def _classes(record: Record) -> Made:
    names = record.about["classes"]
    rows = [
        Row(name, [c[i, i] / c[i].sum() for c in record.confusions.values() if c[i].any()])
        for i, name in enumerate(names)
    ]
    rows = [row for row in rows if row.scores]
    if not rows:
        return None
    means = "; ".join(f"{row.name} {percent(float(np.mean(row.scores)))}" for row in rows)
    alt = f"Dot plot: how much of each class was recognised of every person. Means: {means}."
    of = "trials of the class that were recognised, %"
    return alt, lambda sheet: scores.draw_rows(rows, 1 / record.n_classes, sheet, of)


def _calibration(record: Record) -> Made:
    if record.calibration is None:
        return None
    confidence, accuracy = record.calibration
    numbers = "; ".join(
        f"sure to {percent(c, 0)}, right in {percent(a, 0)}"
        for c, a in zip(confidence, accuracy, strict=True)
    )
    alt = f"How often the model was right against how sure it was, on people held out: {numbers}."
    chance = 1 / record.n_classes
    return alt, lambda sheet: classes.draw_calibration(confidence, accuracy, chance, sheet)


def _filters(record: Record) -> Made:
    found = record.filters
    if found is None:
        return None
    unit = "Hz" if found.in_hertz else "cycles per sample"
    shown = range(min(filters.MOST_FILTERS, len(found.spatial)))
    numbers = "; ".join(
        f"most at channel {found.channels[int(abs(found.spatial[i]).argmax())]} and at "
        f"{found.frequencies[int(found.response[i].argmax())]:.3g} {unit}"
        for i in shown
    )
    alt = f"Spatial filters of the network that weigh most, with their frequencies: {numbers}."
    parts = found.spatial, found.response, found.frequencies, found.channels
    return alt, lambda sheet: filters.draw_filters(*parts, sheet, found.in_hertz)


def leaks(record: Record) -> list[Leak]:
    """Leakage of the latents that the report compares."""
    # While nothing is chosen the baseline is all that may be shown.
    portraits = {"baseline": record.baseline_portrait}
    if record.chosen is not None and record.chosen.setting.measure is not None:
        portraits["chosen"] = record.portrait(record.chosen.setting)
        portraits["placebo"] = record.portrait(record.chosen.setting, placebo=True)
    return [
        Leak(
            role,
            part,
            **leakage["best"]["accuracy"],
            chance=leakage["chance"],
            subjects=len(leakage["subjects"]),
            name=_latent_of(record, role),
        )
        for role, portrait in portraits.items()
        for part, leakage in ({} if portrait is None else portrait.leakage).items()
        if "best" in leakage
    ]


def _latent_of(record: Record, role: str) -> str:
    """Name the latent of a role: of a hands-off run the uncensored one is no baseline."""
    if not record.auto or role != "baseline":
        return role
    chosen = record.chosen is not None and record.chosen.setting.measure is None
    return "chosen" if chosen else "uncensored"


def _leakage(record: Record) -> Made:
    shares = leaks(record)
    if not shares:
        return None
    numbers = "; ".join(
        f"{leak.part} of the {leak.name} {percent(leak.value)} (interval {percent(leak.low, 0)} to "
        f"{percent(leak.high, 0)}, guessing {percent(leak.chance)})"
        for leak in shares
    )
    alt = f"How often a fresh probe recognises the person from the latent: {numbers}."
    return alt, lambda sheet: latents.draw_leakage(shares, sheet)


def _curves(record: Record) -> Made:
    curves = [curve for curve in record.curves if curve.get("task_loss")]
    if not curves or record.focus is None:
        return None
    names = {
        "task_loss": "task loss of training people",
        "validation_loss": "task loss of validation people",
        "penalty": "penalty",
    }
    parts = []
    for key, words in names.items():
        ends = [(c[key][0], c[key][c["best_epoch"] - 1]) for c in curves if c.get(key)]
        if ends:
            first, best = np.mean(np.array(ends, np.float64), axis=0)
            parts.append(f"{words} {first:.3g} after the first epoch, {best:.3g} at the one kept")
    alt = f"Learning curves of {record.focus.name} in {len(curves)} trainings: {'; '.join(parts)}."
    return alt, lambda sheet: latents.draw_curves(curves, sheet)


def _maps(record: Record) -> Made:
    maps: dict[str, Mapping[str, Any]] = {}
    # Where a probe cannot tell people apart, a map of them says nothing.
    if not any(leak.low > leak.chance for leak in leaks(record)):
        return None
    before = record.baseline_portrait
    if before is not None and before.points:
        maps[_latent_of(record, "baseline") if record.auto else "uncensored"] = before.points
    after = None if record.chosen is None else record.portrait(record.chosen.setting)
    if after is not None and after.points and after is not before:
        maps["chosen"] = after.points
    if not maps:
        return None
    maps = {title: _of_few(points) for title, points in maps.items()}
    trials = next(iter(maps.values()))
    alt = (
        f"Maps in two dimensions of the latents of {len(trials['points'])} trials of "
        f"{len(set(trials['subject']))} training people in {len(set(trials['label']))} classes, "
        f"coloured by person and by class: {' and '.join(maps)}. How well people are told apart is "
        "measured in the picture of leakage."
    )
    return alt, lambda sheet: latents.draw_maps(maps, sheet)


def _of_few(points: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave so many people on a map as can be told apart."""
    people = sorted(set(points["subject"]))
    few = {people[i] for i in evenly(len(people), MOST_ON_MAP)}
    kept = [i for i, person in enumerate(points["subject"]) if person in few]
    return {name: [points[name][i] for i in kept] for name in ("points", "subject", "label")}


def _confusion(record: Record) -> Made:
    counts = record.confusion
    if counts is None or record.focus is None:
        return None
    names = record.about["classes"]
    total = counts.sum(axis=1)
    hits = "; ".join(
        f"{name} {percent(counts[i, i] / total[i], 0)} of {total[i]}"
        for i, name in enumerate(names)
        if total[i]
    )
    alt = (
        f"Confusion matrix of {record.focus.name} on test people. Recognised of each class: {hits}."
    )
    return alt, lambda sheet: classes.draw_confusion(counts, names, sheet)


MAKERS: dict[str, Callable[[Record], Made]] = {
    "levels": _levels,
    "people": _people,
    "classes": _classes,
    "confusion": _confusion,
    "curves": _curves,
    "leakage": _leakage,
    "maps": _maps,
    "filters": _filters,
    "calibration": _calibration,
    "methods": _methods,
}
"""All pictures there may be, in the order of the page."""
