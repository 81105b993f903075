"""What came of a hands-off run, in words that need no paper to be read first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Any

import numpy as np

from autotransfer.errors import join_some
from autotransfer.leakage.result import Estimate
from autotransfer.report.formatting import count, interval, people, percent, points
from autotransfer.report.record import Method, Record
from autotransfer.report.statistics import Paired, bootstrap_mean, paired, student_interval
from autotransfer.report.summary import (
    STUDY_ONLY,
    Answer,
    Tile,
    adapted_words,
    answer,
    censor_words,
    gained_words,
    guessing_words,
    mean_score,
    study_only,
    test_words,
)
from autotransfer.search.results import begun_cheaper, cut_short, known_words, not_tried
from autotransfer.search.settings.recipe import Recipe

SCALES = {
    "channel": "every channel of a trial is brought to its own scale",
    "trial": "every trial is brought to one scale, so that its channels keep their proportions",
    "train": "signals are brought to the scale of the people who train, so that amplitudes count",
    "person": "every channel is brought to the scale that it has of this person",
    "euclidean": "channels are made uncorrelated by what they are like of this person",
    "riemannian": "channels are made uncorrelated by what they are like of this person",
    "none": "signals stay as they are",
}


def first_screen(record: Record) -> Answer:
    """Say what came of any run, or how far it is."""
    return auto_answer(record) if record.auto and record.complete else answer(record)


def auto_answer(record: Record) -> Answer:
    """Say what came of a hands-off run, or the best so far."""
    chosen, first = record.chosen, record.baseline
    assert chosen is not None
    assert first is not None
    scores = record.nested or chosen.test
    mean = _expected(record, list(scores.values()))
    lower = float(np.percentile(list(scores.values()), 25))
    change = None if chosen is first else paired(scores, first.test)
    expect = "So far, expect" if record.best_so_far else "Expect"
    assert record.results is not None
    known = known_words(record.results)
    headline = f"{expect} {percent(mean.value)} on a new person{known}."
    worth, knowing = _worth(record), _knowing(record)
    here = record.results.get("new_person", "nothing")
    classical = record.results.get("reference", {}).get("mean")
    beside = "" if classical is None else f", a classical pipeline {percent(classical, 0)}"
    expected = Tile(
        LEVEL_WORDS[here].format(n=record.n_labels),
        percent(mean.value),
        f"95 % interval {percent(mean.low, 0)} to {percent(mean.high, 0)}; guessing gives "
        f"{percent(1 / record.n_classes, 0)}{beside}",
    )
    tiles = (expected, *(_bought(record, level, one) for level, one in worth.items()))
    if not worth:
        tiles = (
            expected,
            Tile("A quarter of people", f"below {percent(lower)}", f"of {people(len(scores))}"),
            Tile("Default recipe alone", percent(mean_score(first)), "the first answer of the run"),
            _difference(record, change),
        )
    how = f"{people(len(scores))}, each scored under choices that others made"
    if not record.nested:
        how = f"bootstrap over {people(len(scores))}, too few to choose without each of them"
    paragraphs = (
        f"On a person whom the model has never seen{known and ',' + known}, expect it to "
        f"recognise {percent(mean.value)} of the trials, every class counting the same (balanced "
        f"accuracy{guessing_words(record)}). The 95 % interval is from {percent(mean.low)} to "
        f"{percent(mean.high)} ({how}); a quarter of "
        f"these people have less than {percent(lower)}.",
        *_choice(record, chosen, first),
    )
    return Answer(
        headline,
        tiles,
        paragraphs,
        tuple(_warnings(record)),
        tuple(_next_steps(record, knowing)),
        levels=tuple(_level_words(record, worth, knowing) if worth else _adapted(record, chosen)),
        how=(*_against_first(record, chosen, first, change), *_how(record)),
    )


LEVEL_WORDS = {
    "nothing": "New person, nothing known",
    "recording": "With a recording, no labels",
    "stream": "Going along, trial by trial",
    "labels": "With {n} labels of each class",
}


def _worth(record: Record) -> dict[str, Paired]:
    """Compare each level with nothing, on the same people, by the same network."""
    answers = record.levels.answers(record.n_labels)
    nothing = answers.pop("nothing", {})
    found = {level: paired(scores, nothing) for level, scores in answers.items()}
    return {level: change for level, change in found.items() if change is not None}


def _bought(record: Record, level: str, change: Paired) -> Tile:
    return Tile(
        LEVEL_WORDS[level].format(n=record.n_labels),
        f"{points(change.difference.value)} points",
        f"95 % interval {interval(change.difference)}; {change.gained} of {change.n} gain, "
        f"{change.lost} lose",
    )


def _knowing(record: Record) -> Paired | None:
    """Say what is gained by knowing that all classes are in a recording, if that is credible."""
    guessed = record.levels.answers(record.n_labels).get("recording", {})
    change = paired(record.levels.of_all_classes, guessed)
    return change if change is not None and change.difference.low > 0 else None


def _level_words(
    record: Record, worth: Mapping[str, Paired], knowing: Paired | None
) -> Iterator[str]:
    """Say how levels were scored."""
    answers = record.levels.answers(record.n_labels)
    nothing = float(np.mean(list(answers["nothing"].values())))
    parts = [
        f"{LEVEL_WORDS[level].format(n=record.n_labels).lower()} "
        f"{percent(float(np.mean(list(answers[level].values()))))}"
        for level in worth
    ]
    one = "one network of the answer" if _members(record)[1:] else "the network of the answer"
    yield (
        f"What is known of a new person was tried on everybody held out, by {one}: it has "
        f"{percent(nothing)} with nothing, {', '.join(parts)}. Half of a person's trials, whole "
        "recordings where these are known, were there to adapt to, and the other half was "
        "predicted. How it adapts was chosen for each person by what others gained, and so is what "
        "the model does when it is adapted; a recording that seems to be of few classes is not "
        "adapted to."
    )
    if knowing is not None:
        how = "all_classes=True" if record.about.get("command") is None else "--all-classes"
        mean = percent(float(np.mean(list(record.levels.of_all_classes.values()))))
        yield (
            "If you know that all classes are in a recording, say so when you adapt to it "
            f"({how}): then nothing is guessed, and it has {mean} with a recording, "
            f"{points(knowing.difference.value)} points more (95 % interval "
            f"{interval(knowing.difference)})."
        )


def _next_steps(record: Record, knowing: Paired | None) -> Iterator[tuple[str, str]]:
    """Say what to type: commands to who came by the command line, Python to the others."""
    if record.about.get("command") is not None:
        run = quote(record.place)
        predict = f"autotransfer predict {run} new.npz"
        adapt = f"autotransfer adapt {run} recording.npz --out person.model"
        labels, sure = f"{adapt} --labels", f"{adapt} --all-classes"
    else:
        predict = f"model = at.load_model({record.place + '/model'!r})\nmodel.predict(X)"
        adapt = "person = model.adapt(X_recording)\nperson.predict(X)"
        labels = "person = model.adapt(X_few, y_few)\nperson.predict(X)"
        sure = "person = model.adapt(X_recording, all_classes=True)\nperson.predict(X)"
    yield "Predict trials of a new person", predict
    yield "First adapt to a recording of theirs, without labels", adapt
    if knowing is not None:
        words = f"Knowing that all classes are in it ({points(knowing.difference.value)} points)"
        yield words, sure
    yield "Or to a few labelled trials", labels


def recipe_words(recipe: Recipe) -> str:
    """Say a recipe in plain words.

    Examples
    --------
    >>> recipe_words(Recipe.of(F1=8, kernel_seconds=0.5, learning_rate=0.003, n_steps=1000))
    '8 temporal filters of 0.5 s, learning rate 0.003, 1000 training steps'
    """
    return ", ".join(_parts({k: v for k, v in recipe.options if v is not None}))


def _parts(options: dict[str, Any]) -> Iterator[str]:
    if "normalise" in options:
        name = str(options.pop("normalise"))
        yield f"normalisation {name}" + (f" ({SCALES[name]})" if name in SCALES else "")
    seconds, samples = options.pop("kernel_seconds", None), options.pop("kernel_length", None)
    length = "" if samples is None else f" of {samples} samples"
    length = length if seconds is None else f" of {_short(seconds)} s"
    if "F1" in options or length:
        number = f"{options.pop('F1')} " if "F1" in options else ""
        yield f"{number}temporal filters{length}"
    if "drop_prob" in options:
        yield f"dropout {_short(options.pop('drop_prob'))}"
    n_people, n_trials = (
        options.pop(name, None) for name in ("subjects_per_batch", "trials_per_subject")
    )
    if n_people is not None and n_trials is not None:
        yield f"batches of {n_people} people with {n_trials} trials each"
    elif n_people is not None or n_trials is not None:
        yield f"batches of {n_people} people" if n_people else f"{n_trials} trials of a person"
    if "learning_rate" in options:
        schedule = f" ({options.pop('schedule')})" if "schedule" in options else ""
        yield f"learning rate {_short(options.pop('learning_rate'))}{schedule}"
    if "n_steps" in options:
        yield f"{options.pop('n_steps')} training steps"
    yield from (f"{name} {_short(value)}" for name, value in options.items())


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _expected(record: Record, scores: list[float]) -> Estimate:
    """Mean over people; with what the choice adds to its interval, where that is known."""
    error = None if record.results is None else record.results.get("nested_error")
    if not record.nested or error is None:
        return bootstrap_mean(scores)
    return student_interval(scores, error)


def _difference(record: Record, change: Paired | None) -> Tile:
    if change is None:
        n = len(record.candidates) - 1
        return Tile("Other settings", str(n), "tried on everybody, none better")
    return Tile(
        "Difference",
        f"{points(change.difference.value)} points",
        f"95 % interval {interval(change.difference)}",
    )


def _choice(record: Record, chosen: Method, first: Method) -> Iterator[str]:
    """Say what was chosen."""
    setting = chosen.setting
    mark = f" ({STUDY_ONLY.lower()})" if record.for_study_only else ""
    words = f"Chosen{mark}: {recipe_words(setting.recipe) or 'the recipe of the run'}."
    changes = setting.recipe.changes(first.setting.recipe)
    words += (
        f" It differs from the {record.first_name} by {changes}."
        if changes
        else f" This is the {record.first_name}."
    )
    if setting.measure is not None:
        words += f" The censor is {setting.censor}: {censor_words(setting)}."
    elif record.counts["censor"]:
        words += " No censor was credibly better than none."
    if chosen.networks > 1:
        assert record.results is not None
        others = sum(
            m["setting"] != record.results["members"][0]["setting"] for m in _members(record)
        )
        of_others = f", {others} of them of the next best settings" if others else ""
        words += (
            f" The model is the mean of {chosen.networks} networks{of_others}: their probabilities "
            "are averaged."
        )
    yield words


def _members(record: Record) -> list[Mapping[str, Any]]:
    assert record.results is not None
    members: list[Mapping[str, Any]] = record.results["members"]
    return members


def _against_first(
    record: Record, chosen: Method, first: Method, change: Paired | None
) -> Iterator[str]:
    """Compare the choice with the first answer, and the number above with the one over all."""
    if change is None:
        yield (
            f"The {record.first_name} is what the run began with, and nothing else that was tried "
            "on everybody was better."
        )
    else:
        yield (
            f"The {record.first_name} alone recognised {percent(mean_score(first))}. The "
            f"difference is {points(change.difference.value)} percentage points, with a "
            f"95 % interval from {interval(change.difference)} (bootstrap over "
            f"{people(change.n)}). {gained_words(change)} {test_words(change)}"
        )
    if record.nested:
        yield (
            "A choice over all people has seen a score of each of them. The first number has not: "
            "everybody was drawn anew many times, each draw made its choice, and each person has "
            "the mean score of the choices of draws without that person. The interval knows that "
            "another group of people would have chosen otherwise (leave-one-out bootstrap). Over "
            f"all people the final choice has {percent(mean_score(chosen))}, which may be a little "
            "too good."
        )


def _how(record: Record) -> Iterator[str]:
    """Say how it was chosen, and what there was no time for."""
    results, rule = record.results, record.rule
    assert results is not None
    assert rule is not None
    some = len(record.methods) - len(record.candidates)
    ensemble = any(m.networks > 1 for m in record.methods)
    words = (
        f"People were put into {results['plan']['n_folds']} groups, each of which was held out "
        "once: nobody was scored by a model that had been trained with that person's recordings. "
        f"{count(len(record.candidates) - ensemble, 'setting')} went through all groups"
    )
    words += f", {some} through some of them. " if some else ". "
    if rule.levels is None:
        words += f"The choice was made by the {results['rule']['is']}."
    else:
        words += "A recipe replaces another if people gain in the mean"
        if record.definition["space"]["measures"]:
            words += ", a censor is added only where they gain with a credibility of "
            words += percent(rule.levels[1], 0)
        words += "."
    # Runs of before this was written down asked for another level than today's.
    level = results.get("mixed_level")
    words += (
        " The mean of several seeds of the chosen setting is taken if people gain by it at all; "
        "networks of other settings join it where a gain is credible"
        + ("." if level is None else f" to {percent(level, 0)}.")
    )
    yield words
    classical = results.get("reference", {}).get("mean")
    if classical is not None:
        yield (
            "On the same groups the best of the classical pipelines (covariances in tangent space "
            f"and logistic regression, untuned) recognised {percent(classical)}."
        )
    if not_tried(results):
        yield f"{not_tried(results)}."


def _adapted(record: Record, chosen: Method) -> list[str]:
    """Say what unlabelled trials are worth, for one network where the answer is a mean."""
    if chosen.networks == 1:
        return adapted_words(chosen)
    alone = next(m for m in record.candidates if m.setting == chosen.setting and m.networks == 1)
    return [f"Of one network of the mean: {words}" for words in adapted_words(alone)]


def _warnings(record: Record) -> Iterator[str]:
    results = record.results
    assert results is not None
    if record.best_so_far:
        waiting = not_tried_yet(record)
        words = "BEST SO FAR: this run is not finished; the same command goes on with it."
        if waiting:
            words += f" Not tried yet: {'; '.join(waiting)}."
        since = record.n_trials - results["trials"]
        if since > 0:
            words += (
                f" {count(since, 'trial')} ended since this answer was written, and had no part "
                "in it."
            )
        yield words
    if record.for_study_only:
        yield study_only()
    yield from (f"{words}." for words in (begun_cheaper(results), cut_short(results)) if words)


def not_tried_yet(record: Record) -> list[str]:
    """Name what a run that is not finished has not tried at all."""
    recipes = [dict(method.setting.recipe.options) for method in record.methods]
    untouched = [
        name
        for name, values in record.definition["recipes"].items()
        if len(values) > 1
        and not any(
            all(recipe.get(k) == v for k, v in value.items())
            for value in values[1:]
            for recipe in recipes
        )
    ]
    waiting = [f"other recipes ({join_some(untouched)})"] if untouched else []
    censors = list(record.definition["space"]["measures"])
    if censors and not record.counts["censor"]:
        waiting.append(f"censors ({join_some(censors)})")
    if not record.counts["confirm"]:
        waiting.append("further seeds, and their mean")
    return waiting
