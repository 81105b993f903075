"""What a run results, in tables and in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from autotransfer.data.splits import Fold
from autotransfer.errors import join_some
from autotransfer.search.budget import Plan
from autotransfer.search.ledger import Entry
from autotransfer.search.settings.recipe import Recipe
from autotransfer.search.settings.selection import (
    Choice,
    TrialScores,
    by_subject,
    describe,
    lookup_rule,
)
from autotransfer.search.settings.setting import Setting


def candidate_table(choice: Choice, scores: list[TrialScores]) -> pd.DataFrame:
    """Make the table of candidates: spread of validation and test scores over subjects."""
    return settings_table(by_setting(scores), choice.setting, choice.failed)


def scores_table(choice: Choice, scores: list[TrialScores]) -> pd.DataFrame:
    """List the test score of everybody: person, level, method, seed, score.

    Every candidate with every seed, and the choice made without the person, which has no seed.
    """
    parts = [("nothing", str(one.setting), one.seed, one.test) for one in scores]
    nested = "choice without this person"
    return tidy_scores([*parts, ("nothing", nested, None, choice.nested)])


def tidy_scores(
    parts: Iterable[tuple[str, str, int | None, Mapping[str, float]]],
) -> pd.DataFrame:
    """Make a table with a row for each score.

    Parameters
    ----------
    parts : iterable of (level, method, seed, scores)
        What is known of a new person, how it was predicted, with which seed (None for several),
        and the balanced accuracy of each person.

    Examples
    --------
    >>> tidy_scores([("nothing", "answer", None, {"eve": 0.5})])
      person    level  method  seed  score
    0    eve  nothing  answer  <NA>    0.5
    """
    rows = [
        (person, level, method, seed, score)
        for level, method, seed, scores in parts
        for person, score in scores.items()
    ]
    table = pd.DataFrame(rows, columns=["person", "level", "method", "seed", "score"])
    return table.astype({"seed": "Int64", "score": "float64"})


def settings_table(
    trials: Mapping[Setting, list[TrialScores]],
    chosen: Setting,
    failed: Mapping[Setting, int],
) -> pd.DataFrame:
    """Make a table of settings: spread of validation and test scores over subjects.

    Parameters
    ----------
    trials : mapping
        Setting -> its trials.
    chosen : Setting
        The one that is marked.
    failed : mapping
        Setting -> how many of its trials failed, where any did.
    """
    rows = []
    for setting, own in trials.items():
        row: dict[str, Any] = {
            "setting": str(setting),
            "measure": setting.family,
            "mode": setting.mode if setting.measure else "",
            "chosen": setting == chosen,
            "failed": failed.get(setting, 0),
        }
        for side in ("validation", "test"):
            spread = describe(by_subject(own, side))
            row |= {f"{side}_{name}": value for name, value in spread.items()}
        rows.append(row)
    return pd.DataFrame(rows)


def by_setting(scores: Iterable[TrialScores]) -> dict[Setting, list[TrialScores]]:
    """Put the trials of each setting together, in the order of the settings."""
    trials: dict[Setting, list[TrialScores]] = {}
    for one in scores:
        trials.setdefault(one.setting, []).append(one)
    return trials


def setting_summary(setting: Setting, own: list[TrialScores]) -> dict[str, Any]:
    """Sum up the trials of a setting, as JSON."""
    return {
        "setting": setting.to_json(),
        "name": str(setting),
        **{side: describe(by_subject(own, side)) for side in ("validation", "test")},
        "test_subjects": by_subject(own, "test"),
        "adapted": describe(by_subject(own, "adapted")),
    }


def run_summary(
    rule: str, chosen: Setting, entries: list[Entry], own: list[Entry], folds: list[Fold]
) -> dict[str, Any]:
    """Sum up what every run has, as JSON.

    Parameters
    ----------
    rule : str
        Of selection.
    chosen : Setting
        The chosen one.
    entries, own : list of Entry
        All trials, and those that are done of the chosen setting.
    folds : list of Fold
        Of the cross-validation.
    """
    by = lookup_rule(rule)
    return {
        "rule": {"name": rule, "is": by.words, "for_study_only": by.for_study_only},
        "censors": chosen.measure is not None,
        "people_in_a_fold": {
            side: sorted({len(fold.subjects(side)) for fold in folds})
            for side in ("train", "validation", "test")
        },
        "still_falling": sum(entry.result["still_falling"] for entry in own),
        "trainings": len(own),
        "trials": len(entries),
        "failed": [
            {"setting": str(entry.trial.setting), "id": entry.id, "error": entry.error}
            for entry in entries
            if entry.state == "failed"
        ],
    }


def done_trials(entries: list[Entry], setting: Setting) -> list[Entry]:
    """Trials of a setting that came to their end."""
    return [e for e in entries if e.state == "done" and e.trial.setting == setting]


def summary(
    choice: Choice,
    scores: list[TrialScores],
    plan: Plan,
    entries: list[Entry],
    folds: list[Fold],
) -> dict[str, Any]:
    """Sum up a whole run, as JSON.

    Parameters
    ----------
    choice : Choice
        What was chosen.
    scores : list of TrialScores
        Of the cross-validation.
    plan : Plan
        What was done.
    entries : list of Entry
        All trials.
    folds : list of Fold
        Of the cross-validation.
    """
    trials = by_setting(scores)
    baseline = choice.setting.baseline
    own = done_trials(entries, choice.setting)
    own = [e for e in own if (e.trial.epochs, e.trial.n_folds) == (plan.epochs, plan.n_folds)]
    return {
        "complete": True,
        "nested": describe(choice.nested),
        "nested_subjects": choice.nested,
        "nested_settings": {p: str(setting) for p, setting in choice.without.items()},
        "chosen": setting_summary(choice.setting, trials[choice.setting]),
        "baseline": setting_summary(baseline, trials.get(baseline, [])),
        "plan": plan.to_json() | {"seconds": None},
        **run_summary(choice.rule, choice.setting, entries, own, folds),
    }


def verdict(results: dict[str, Any]) -> str:
    """Say in some sentences, a line each, what came of it."""
    chosen, baseline = results["chosen"], results["baseline"]
    mark = " (chosen by TEST scores: for study only)" if results["rule"]["for_study_only"] else ""
    sentences = []
    if results["nested"]["mean"] is not None:
        sentences.append(
            f"Expect {_score(results['nested'])} on a new person{known_words(results)}: each "
            "person was tested by a model that had never seen them, and chosen without their score"
        )
    if "members" in results:
        sentences += _found(results)
    elif not results["censors"]:
        sentences.append(
            "No censor did better than the uncensored baseline in cross-validation, so that is "
            f"what you get: {_score(baseline['test'])} over all people"
        )
    else:
        sentences.append(
            f"Chosen: {chosen['name']}{mark}, which over all people has {_score(chosen['test'])}, "
            f"against {_score(baseline['test'])} uncensored"
        )
    if results.get("levels"):
        sentences.append(_worth(results["levels"], results["n_labels"]))
    elif chosen["adapted"]["mean"] is not None:
        who = "Adapted to each of them without labels"
        if len(results.get("members", ())) > 1:
            who = f"One of these networks ({chosen['test']['mean']:.3f}), adapted to each of them"
            who += " without labels"
        sentences.append(f"{who}: {_score(chosen['adapted'])}")
    sentences += filter(None, [begun_cheaper(results), cut_short(results)])
    if results["failed"]:
        sentences.append(f"{len(results['failed'])} trials failed")
    return "\n".join(f"{sentence}." for sentence in sentences)


def _found(results: dict[str, Any]) -> list[str]:
    """Say what a hands-off run has chosen, and what it had no time for."""
    n, first = len(results["members"]), results["first"]
    recipe, called = Setting.from_json(first["setting"]).recipe, first_name(results.get("instead"))
    name = Setting.from_json(results["chosen"]["setting"]).beside(recipe, called)
    if n > 1:
        own = sum(one["setting"] == results["chosen"]["setting"] for one in results["members"])
        others = f" and {n - own} of other settings" if n > own else ""
        name = f"the mean of {n} networks ({own} of {name}{others})"
    if n == 1 and results["chosen"]["setting"] == first["setting"]:
        sentence = (
            f"Nothing else was better than the {called}, so that is what you get: "
            f"{_score(first['test'])} over all people"
        )
    else:
        mark = " (by TEST scores: for study only)" if results["rule"]["for_study_only"] else ""
        sentence = (
            f"Chosen{mark}: {name}, which over all people has "
            f"{_score(results['together'])}; the {called} alone has {_score(first['test'])}"
        )
    sentences = [sentence]
    if results["reference"]["mean"] is not None:
        sentences.append(f"The best of the classical pipelines has {_score(results['reference'])}")
    return [*sentences, *filter(None, [not_tried(results)])]


def not_tried(results: Mapping[str, Any]) -> str:
    """Say what a hands-off run had no time for; "" where there is nothing."""
    waiting = results.get("not_tried")
    return f"Not tried for want of time: {join_some(waiting, 5)}" if waiting else ""


def known_words(results: dict[str, Any]) -> str:
    """Say what a run takes to be known of a new person; "" for nothing."""
    n = results.get("n_labels")
    words = {
        "recording": " of whom there is a recording without labels",
        "stream": " with whom it goes along, trial by trial",
        "labels": f" of whom there are {n} labelled trials of each class",
    }
    return words.get(results.get("new_person", ""), "")


def _worth(levels: dict[str, Any], n_labels: int) -> str:
    """Say what trials of the new person would be worth."""
    words = {
        "recording": "unlabelled trials of them",
        "stream": "going along with them trial by trial",
        "labels": f"{n_labels} labelled trials of each class",
    }
    parts = [
        f"{words[level]} {one['nothing']:.3f} -> {one['mean']:.3f}" for level, one in levels.items()
    ]
    return f"What a new person's own trials are worth, by one network: {'; '.join(parts)}"


def begun_cheaper(results: dict[str, Any]) -> str:
    """Say that a run began with a cheaper recipe than the default one, if it did; "" otherwise."""
    instead = results.get("instead")
    if not instead:
        return ""
    return (
        "The budget did not carry the default recipe: the first recipe, which is trained first "
        f"and compared with, is a cheaper one ({Recipe.of(**instead)})"
    )


def first_name(instead: Mapping[str, Any] | None) -> str:
    """Name the recipe that a run began with: the default one, unless a cheaper one stood in."""
    return "first recipe" if instead else "default recipe"


def cut_short(results: dict[str, Any]) -> str:
    """Say that trainings ended too early, if most of them did; "" otherwise.

    A run that has tried longer ones, by which people gained nothing, does not ask for them either.
    """
    falling, trainings = results["still_falling"], results["trainings"]
    if not trainings or 2 * falling <= trainings or results.get("longer_tried"):
        return ""
    more = "recipes with more steps" if "members" in results else "more max_epochs"
    return (
        f"Training ended too early: in {falling} of {trainings} trainings the validation loss was "
        f"still falling after {results['plan']['rungs'][-1]} epochs. A larger budget or {more} "
        "would probably give a better model"
    )


def _score(spread: dict[str, Any]) -> str:
    if spread["mean"] is None:
        return "no score"
    return f"balanced accuracy {spread['mean']:.3f} (lower quartile {spread['lower_quartile']:.3f})"
