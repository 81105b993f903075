"""The pictures of a run: which there are, what they show, and that in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from autotransfer.leakage.result import Estimate
from autotransfer.report import latent_figures, score_figures, tables
from autotransfer.report.formatting import count, percent
from autotransfer.report.latent_figures import Leak
from autotransfer.report.record import Method, Record
from autotransfer.report.score_figures import Row
from autotransfer.report.statistics import bootstrap_mean
from autotransfer.report.theme import DARK, LIGHT, Theme, drawing, to_png, to_svg
from autotransfer.search.levels.cases import Case
from autotransfer.search.levels.worth import Levels
from autotransfer.search.settings.setting import BASELINE, Setting

MOST_METHODS = 40
"""Most candidates in the picture of scores; the table has all."""

NAMES = ("levels", "methods", "people", "leakage", "curves", "maps", "confusion")
"""All pictures there may be."""


@dataclass(frozen=True)
class Picture:
    """A picture.

    Parameters
    ----------
    name : str
        Of its files; one of `NAMES`.
    alt : str
        What it shows, with its numbers, for those who do not see it.
    draw : callable
        Theme -> Figure.
    """

    name: str
    alt: str
    draw: Callable[[Theme], Figure]


@dataclass(frozen=True)
class Drawing:
    """A picture as files.

    Parameters
    ----------
    alt : str
        As in `Picture`.
    light, dark : bytes
        SVG for light and for dark paper.
    png : bytes or None
        On light paper.
    """

    alt: str
    light: bytes
    dark: bytes
    png: bytes | None = None


def draw(picture: Picture, png: bool) -> Drawing:
    """Draw a picture; as PNG only if that is asked for, because it takes longest."""
    with drawing(LIGHT):
        figure = picture.draw(LIGHT)
        light, pixels = to_svg(figure), to_png(figure) if png else None
    with drawing(DARK):
        return Drawing(picture.alt, light, to_svg(picture.draw(DARK)), pixels)


def stamp_of(record: Record) -> str:
    """Say what must stand on every picture of a run; nothing if it is complete and honest."""
    if not record.complete or record.best_so_far:
        word = "BEST SO FAR" if record.best_so_far else "PARTIAL"
        return f"{word}: unfinished run, {count(record.n_trials, 'trial')} so far"
    return "FOR STUDY ONLY: chosen by TEST scores" if record.for_study_only else ""


def pictures(record: Record) -> dict[str, Picture]:
    """Make the pictures that a run has numbers for."""
    makers = (_levels, _methods, _people, _leakage, _curves, _maps, _confusion)
    return {one.name: one for maker in makers if (one := maker(record)) is not None}


def _picture(record: Record, name: str, alt: str, draw: Callable[..., Figure]) -> Picture:
    stamp = stamp_of(record)
    return Picture(name, f"{stamp}. {alt}" if stamp else alt, partial(draw, stamp=stamp))


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
    words = ", ".join([*parts, recipe] if recipe else parts or ["default recipe"])
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
    stream = levels.scores.get(Case("stream"))
    if stream is not None:
        found["stream"] = {None: stream}
    return {
        level: {amount: bootstrap_mean(list(scores.values())) for amount, scores in curve.items()}
        for level, curve in found.items()
    }


def _levels(record: Record) -> Picture | None:
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
    return _picture(
        record,
        "levels",
        alt,
        lambda theme, stamp: score_figures.levels_figure(
            curves, reference, chance, theme, stamp, without
        ),
    )


def _methods(record: Record) -> Picture | None:
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
    chance = 1 / record.n_classes
    return _picture(
        record,
        "methods",
        alt,
        lambda theme, stamp: score_figures.methods_figure(rows, chance, theme, stamp),
    )


def _mark(record: Record, method: Method) -> str:
    """Say what a method is, in brackets behind its name."""
    role = role_of(record, method)
    return "first answer" if record.auto and role == "baseline" else role


def _people(record: Record) -> Picture | None:
    baseline, chosen = record.baseline, record.chosen
    if baseline is None or not baseline.candidate or not baseline.test:
        return None
    other = None if chosen is None or chosen is baseline else chosen.test
    ranked = sorted(baseline.test, key=lambda person: baseline.test[person])
    ends = [ranked[0], ranked[-1]] if len(ranked) > 12 else ranked
    scores = "; ".join(
        f"{person} {percent(baseline.test[person], 0)}"
        + (f" to {percent(other[person], 0)}" if other and person in other else "")
        for person in ends
    )
    before = "default recipe" if record.auto else "uncensored"
    what = "without and with the chosen censor" if other else "with the uncensored model"
    if record.auto:
        what = "with the default recipe and with the answer" if other else "with the default recipe"
    which = "lowest and highest of them" if len(ends) < len(ranked) else "from lowest to highest"
    alt = (
        f"Test balanced accuracy of each of {len(ranked)} people {what}, sorted by the "
        f"{before if record.auto else 'uncensored'} score; {which}: {scores}."
    )
    chance = 1 / record.n_classes
    return _picture(
        record,
        "people",
        alt,
        lambda theme, stamp: score_figures.people_figure(
            baseline.test, other, chance, theme, stamp, before
        ),
    )


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


def _leakage(record: Record) -> Picture | None:
    shares = leaks(record)
    if not shares:
        return None
    numbers = "; ".join(
        f"{leak.part} of the {leak.name} {percent(leak.value)} (interval {percent(leak.low, 0)} to "
        f"{percent(leak.high, 0)}, guessing {percent(leak.chance)})"
        for leak in shares
    )
    alt = f"How often a fresh probe recognises the person from the latent: {numbers}."
    return _picture(
        record,
        "leakage",
        alt,
        lambda theme, stamp: latent_figures.leakage_figure(shares, theme, stamp),
    )


def _curves(record: Record) -> Picture | None:
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
    return _picture(
        record,
        "curves",
        alt,
        lambda theme, stamp: latent_figures.curves_figure(curves, theme, stamp),
    )


def _maps(record: Record) -> Picture | None:
    maps = {}
    before = record.baseline_portrait
    if before is not None and before.points:
        maps[_latent_of(record, "baseline") if record.auto else "uncensored"] = before.points
    after = None if record.chosen is None else record.portrait(record.chosen.setting)
    if after is not None and after.points and after is not before:
        maps["chosen"] = after.points
    if not maps:
        return None
    trials = next(iter(maps.values()))
    alt = (
        f"Maps in two dimensions of the latents of {len(trials['points'])} trials of "
        f"{len(set(trials['subject']))} training people in {len(set(trials['label']))} classes, "
        f"coloured by person and by class: {' and '.join(maps)}. How well people are told apart is "
        "measured in the picture of leakage."
    )
    return _picture(
        record, "maps", alt, lambda theme, stamp: latent_figures.maps_figure(maps, theme, stamp)
    )


def _confusion(record: Record) -> Picture | None:
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
    return _picture(
        record,
        "confusion",
        alt,
        lambda theme, stamp: score_figures.confusion_figure(counts, names, theme, stamp),
    )
