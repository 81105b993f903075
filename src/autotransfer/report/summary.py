"""What came of a run, in words that need no paper to be read first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autotransfer.report.formatting import interval, p_value, people, percent, points
from autotransfer.report.record import Method, Record
from autotransfer.report.statistics import Paired, bootstrap_mean, paired
from autotransfer.search.results import cut_short
from autotransfer.search.settings.setting import Setting
from autotransfer.search.tasks import ADAPTED_TO
from autotransfer.text import duration

MODES = {
    "marginal": "the latent is made independent of the person",
    "conditional": "the latent is made independent of the person within each class",
    "complementary": "one half of the latent is made independent of the person, the other half "
    "may carry the person",
}

STUDY_ONLY = "For study only: chosen by TEST scores"

VERDICTS = {
    "better": "Censoring helped people the model had never seen.",
    "worse": "The censored model did worse on people it had never seen.",
    "unclear": "A censor was chosen, but on people the model had never seen the difference is not "
    "clear.",
}

LABELS = {
    "search": "Search",
    "crossval": "Cross-validation",
    "first": "First answer",
    "recipe": "Recipes",
    "censor": "Censors",
    "confirm": "Further seeds",
}
"""Stages, as their tiles are called."""


@dataclass(frozen=True)
class Tile:
    """A number to be seen first.

    Parameters
    ----------
    label, value, note : str
        What it is, the number, and what belongs to it.
    """

    label: str
    value: str
    note: str


@dataclass(frozen=True)
class Answer:
    """The first screen of a report.

    Parameters
    ----------
    headline : str
        One sentence.
    tiles : tuple of Tile
        The numbers.
    paragraphs : tuple of str
        The rest of it.
    warnings : tuple of str
        What must be read before anything else.
    next_steps : tuple of (str, str)
        What to do with the model, and the command for it.
    levels : tuple of str
        How it was found what is worth knowing of a new person; stands by the picture of people.
    how : tuple of str
        How it was chosen, and what there was no time for; stands by what was tried.
    """

    headline: str
    tiles: tuple[Tile, ...]
    paragraphs: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    next_steps: tuple[tuple[str, str], ...] = ()
    levels: tuple[str, ...] = ()
    how: tuple[str, ...] = ()


def answer(record: Record) -> Answer:
    """Say what came of a run, or how far it is."""
    chosen, baseline = record.chosen, record.baseline
    if chosen is None or baseline is None:
        return _partial(record)
    warnings = []
    if record.for_study_only:
        warnings.append(study_only())
    assert record.results is not None
    if cut_short(record.results):
        warnings.append(f"{cut_short(record.results)}.")
    change = None if chosen is baseline else paired(record.nested or chosen.test, baseline.test)
    if change is None:
        return _uncensored(record, baseline, tuple(warnings))
    mark = f" ({STUDY_ONLY.lower()})" if record.for_study_only else ""
    tiles = (
        _expected(record, chosen),
        Tile("Without censoring", percent(mean_score(baseline)), _chance(record)),
        Tile(
            "Difference",
            f"{points(change.difference.value)} points",
            f"95 % interval {interval(change.difference)}",
        ),
        Tile(
            "Gained / lost",
            f"{change.gained} / {change.lost}",
            f"of {people(change.n)}" + (f", {change.same} the same" if change.same else ""),
        ),
    )
    paragraphs = (
        f"The chosen method is {chosen.name}{mark}: {censor_words(chosen.setting)}. On a person it "
        f"has never seen, expect it to recognise {percent(_expectation(record, chosen))} of the "
        f"trials, every class counting the same (balanced accuracy{guessing_words(record)}). The "
        f"same model without censoring recognised {percent(mean_score(baseline))}.",
        _beside(record, chosen),
        f"The difference is {points(change.difference.value)} percentage points, with a 95 % "
        f"interval from {interval(change.difference)} (bootstrap over {people(change.n)}). "
        f"{gained_words(change)} {test_words(change)}",
        _how_chosen(record),
        *adapted_words(chosen),
    )
    return Answer(VERDICTS[change.verdict], tiles, paragraphs, tuple(warnings))


def study_only() -> str:
    """Warn of a choice by test scores."""
    return (
        f"{STUDY_ONLY}. The rule 'oracle' looked at the very scores shown here, so they are better "
        "than anything a new group of people would give."
    )


def _uncensored(record: Record, baseline: Method, warnings: tuple[str, ...]) -> Answer:
    mean = bootstrap_mean(list((record.nested or baseline.test).values()))
    tiles = (
        _expected(record, baseline),
        Tile("Without censoring", percent(mean_score(baseline)), _chance(record)),
        Tile(
            "95 % interval",
            f"{percent(mean.low, 0)} to {percent(mean.high, 0)}",
            f"over {people(len(baseline.test))}",
        ),
        Tile("Censors tried", str(len(record.candidates) - 1), "cross-validated, none better"),
    )
    paragraphs = [
        "No censor did better than the uncensored baseline in cross-validation, so the uncensored "
        f"model is what you get. On a person it has never seen, expect it to recognise "
        f"{percent(mean.value)} of the trials, every class counting the same (balanced "
        f"accuracy{guessing_words(record)}).",
        _beside(record, baseline),
        _how_chosen(record),
        *adapted_words(baseline),
    ]
    nearest = _nearest(record)
    if nearest is not None:
        paragraphs.insert(1, nearest)
    return Answer("No censor was chosen: none did better.", tiles, tuple(paragraphs), warnings)


def _partial(record: Record) -> Answer:
    """Say how far a run is; nothing that could be taken for a result."""
    unplanned = "trials" if record.auto else "trials; not planned yet"
    tiles = tuple(
        Tile(
            LABELS[stage.name],
            f"{stage.done + stage.failed}" + (f" of {stage.planned}" if stage.planned else ""),
            ("trials" if stage.planned else unplanned)
            + (f", {stage.failed} failed" if stage.failed else ""),
        )
        for stage in record.status.stages
    )
    refitted = record.counts.get("refit", 0) > 0
    tiles += (Tile("Model", "trained" if refitted else "not trained yet", "on all people"),)
    if record.status.alive:
        left = record.status.left
        now = "The run is going on now" + (
            f", with about {duration(left)} left in this stage." if left else "."
        )
    else:
        now = "Nobody is working on it now. The same command goes on from here; nothing is lost."
    return Answer(
        "This run is not finished: there is no result yet.",
        tiles,
        (
            now,
            "Nothing has been chosen. Pictures and tables below show what is on record so far; "
            "some methods have been tried on more people than others, so they cannot be compared.",
        ),
        ("PARTIAL: this page shows an unfinished run.",),
    )


def _expectation(record: Record, chosen: Method) -> float:
    return float(np.mean(list((record.nested or chosen.test).values())))


def _expected(record: Record, chosen: Method) -> Tile:
    """Give the number to be seen first: what a new person may expect."""
    note = "each person scored under the choice made without them"
    if not record.nested:
        note = chosen.name
    return Tile("New person, nothing known", percent(_expectation(record, chosen)), note)


def _beside(record: Record, chosen: Method) -> str:
    """Say what the first number is, and the other one under its own name."""
    if not record.nested:
        return "There are too few people to choose without each of them."
    return (
        "Everybody validates once, so a choice over all people has seen a score of each of them. "
        "The number above has not: for each person, the choice was made again without that "
        f"person's score. The score of the final choice, {chosen.name}, over all people is "
        f"{percent(mean_score(chosen))}; it may be a little too good."
    )


def mean_score(method: Method) -> float:
    """Average the test scores of people."""
    return float(np.mean(list(method.test.values())))


def censor_words(setting: Setting) -> str:
    """Say what a censor is."""
    mode = MODES.get(setting.mode, f"mode {setting.mode}")
    return f"measure {setting.measure}, mode {setting.mode} ({mode}), strength {setting.strength:g}"


def _chance(record: Record) -> str:
    return f"uncensored baseline; guessing gives {percent(1 / record.n_classes, 0)}"


def guessing_words(record: Record) -> str:
    """Say what guessing gives."""
    n = record.n_classes
    return f"; guessing among {n} classes gives {percent(1 / n)}"


def gained_words(change: Paired) -> str:
    """Say how many gained and lost."""
    same = f", and {change.same} stayed the same" if change.same else ""
    return f"Of {people(change.n)}, {change.gained} gained and {change.lost} lost{same}."


def test_words(change: Paired) -> str:
    """Say what the paired test says."""
    words = f"The paired Wilcoxon test gives {p_value(change.p)}: "
    if change.least_p >= 0.05:
        return words + (
            "with so few people whose score differs it cannot tell a difference from chance, "
            "whatever the difference."
        )
    if change.p < 0.05:
        return words + "a difference like this is unlikely to be chance."
    return words + "a difference like this may well be chance."


def _how_chosen(record: Record) -> str:
    assert record.results is not None
    rule = record.results["rule"]["is"]
    words = (
        f"It was chosen among {len(record.candidates)} candidates, the uncensored baseline among "
        f"them, by the {rule}. No person was tested by a model that had been trained or stopped by "
        "that person's recordings."
    )
    return words


def adapted_words(method: Method) -> list[str]:
    """Say what some unlabelled trials of a new person would be worth."""
    change = paired(method.adapted, method.test)
    if change is None:
        return []
    mean = float(np.mean(list(method.adapted.values())))
    return [
        "Where there are trials of the new person without labels, the model can be adapted to them "
        f"(adapt, or predict --adapt): it then recognised {percent(mean)}, "
        f"{points(change.difference.value)} percentage points against the model as it is (95 % "
        f"interval from {interval(change.difference)}). {gained_words(change)} Every other trial "
        f"of a person was predicted, by a model adapted to up to {ADAPTED_TO} of the rest; nothing "
        "was chosen by it."
    ]


def rule_score(record: Record, method: Method) -> float | None:
    """Judge a method by the rule of the run; None where it failed or nothing is chosen."""
    rule = record.rule
    if rule is None or not method.complete:
        return None
    scores = getattr(method, rule.side)
    return rule.judge(np.array([scores[person] for person in sorted(scores)]))


def _nearest(record: Record) -> str | None:
    """Name the best of the censors that were not chosen."""
    scores = [(rule_score(record, m), m) for m in record.candidates if m.setting.measure]
    ranked = sorted(
        ((value, m) for value, m in scores if value is not None), key=lambda pair: -pair[0]
    )
    baseline = record.baseline
    own = None if baseline is None else rule_score(record, baseline)
    if not ranked or own is None or record.results is None:
        return None
    value, method = ranked[0]
    tie = " Equals go to the baseline." if value == own else ""
    return (
        f"The nearest censor was {method.name}, with {percent(value)} against {percent(own)} "
        f"({record.results['rule']['is']}).{tie}"
    )
