"""Sentences of the page that depend on the run."""

from __future__ import annotations

import numpy as np

from autotransfer.errors import join_some
from autotransfer.report.formatting import count, hours, people, percent
from autotransfer.report.pictures import leaks
from autotransfer.report.record import Record

CLOSE = 0.05
"""Calibration error below which probabilities are called good."""

MOST_CELLS = 20_000
"""Most numbers in the tables of single people: each is a piece of the page."""


def focus(record: Record) -> str:
    """Name the method that curves and confusion matrix are of."""
    if record.auto and record.chosen is not None:
        alone = ", each network by itself" if record.chosen.networks > 1 else ""
        return f"the chosen setting, {record.chosen.setting}{alone}"
    if record.auto:
        return f"the {record.first_name}"
    if record.focus is None or record.focus.setting.measure is None:
        return "the uncensored baseline"
    return f"the chosen method, {record.focus.name}"


def leakage_sentences(record: Record) -> list[str]:
    """Say what the numbers of leakage mean."""
    by_role = {(leak.role, leak.part): leak for leak in leaks(record)}
    complementary = record.chosen is not None and record.chosen.setting.mode == "complementary"
    part = "z1" if complementary else "z"
    baseline = by_role.get(("baseline", part))
    if baseline is None:
        return []
    whose = "chosen network's" if baseline.name == "chosen" else "uncensored"
    sentence = (
        f"From the {whose} latent ({part}) a probe recognises which of "
        f"{people(baseline.subjects)} a trial comes from in {percent(baseline.value)} of trials; "
        f"guessing would give {percent(baseline.chance)}."
    )
    chosen = by_role.get(("chosen", part))
    if chosen is None:
        return [sentence]
    change = "not clearly different (the intervals overlap)"
    if chosen.high < baseline.low:
        change = "clearly less"
    elif chosen.low > baseline.high:
        change = "clearly more"
    sentence += f" From the chosen one's it is {percent(chosen.value)}: {change}."
    placebo = by_role.get(("placebo", part))
    if placebo is None or chosen.high >= baseline.low:
        return [sentence]
    if placebo.low > chosen.high:
        credit = (
            f"The placebo leaves it at {percent(placebo.value)}, so it is knowing who is who "
            "that lowered it."
        )
    else:
        credit = (
            f"But the placebo lowers it too, to {percent(placebo.value)}: the censor cannot be "
            "given the credit."
        )
    return [sentence, credit]


def calibration_words(record: Record) -> str:
    """Say how far how sure the answer is differs from how often it is right."""
    if record.calibration is None:
        return ""
    confidence, accuracy = record.calibration
    gap = float(np.mean(confidence - accuracy))
    apart = float(np.mean(abs(confidence - accuracy)))
    words = (
        f"On people held out the answer was right in {percent(float(np.mean(accuracy)))} of all "
        f"trials and sure to {percent(float(np.mean(confidence)))} in the mean; over parts of the "
        f"trials the two are {percent(apart)} apart (expected calibration error)."
    )
    if apart < CLOSE:
        return f"{words} Its probabilities can be taken as they are."
    if abs(gap) < apart / 2:
        return f"{words} It is too sure of some trials and not sure enough of others."
    return f"{words} It is {'too sure of itself' if gap > 0 else 'not sure enough of itself'}."


def confusions(record: Record) -> list[tuple[str, str, list[tuple[str, list[int]]]]]:
    """Give the confusions of each person, who has the least first; none where they are too many."""
    if record.n_classes**2 * len(record.confusions) > MOST_CELLS:
        return []
    found = []
    for person, counts in record.confusions.items():
        there = counts.sum(axis=1) > 0
        recall = float(np.mean(counts.diagonal()[there] / counts.sum(axis=1)[there]))
        rows = zip(record.about["classes"], counts.tolist(), strict=True)
        found.append((recall, person, list(rows)))
    ordered = sorted(found, key=lambda one: one[:2])
    return [(person, percent(recall), rows) for recall, person, rows in ordered]


def probe_errors(record: Record) -> list[str]:
    """Say why latents could not be probed, each reason once."""
    parts = [part for portrait in record.portraits for part in portrait.leakage.values()]
    return sorted({part["error"] for part in parts if "error" in part})


def facts(record: Record, assets: str | None) -> dict[str, str]:
    """Say what was run: name -> words.

    Parameters
    ----------
    record : Record
        The run.
    assets : str or None
        Name of the folder with pictures and tables as files, if there is one.
    """
    about = record.about
    trials, channels, samples = about["shape"]
    programs = ("autotransfer", "torch", "numpy", "python")
    counts = ", ".join(f"{n} in {stage}" for stage, n in record.counts.items() if n)
    facts = {
        "Recordings": f"{trials} trials, {channels} channels, {samples} samples",
        "People": f"{people(len(about['subjects']))}: {join_some(about['subjects'], 60)}",
        "Classes": join_some(about["classes"], 60),
        "Begun": about["begun"].replace("T", " ").replace("Z", " UTC"),
        "Versions": ", ".join(f"{name} {about[name]}" for name in programs),
        **(_auto_done(record) if record.auto else _done(record)),
        "Search": _auto_search(record) if record.auto else _search(record),
        "Trials on record": f"{counts or 'none'}; {len(record.failures) or 'none'} failed",
        "Time of computing": f"{hours(record.seconds)} (sum over all trainings)",
    }
    if record.results is not None:
        rule = record.results["rule"]
        facts["Rule of choice"] = f"{rule['name']}: {rule['is']}"
    if assets:
        facts["Files"] = f"the pictures as SVG and PNG and the tables as CSV are in {assets}"
    return facts


def _done(record: Record) -> dict[str, str]:
    """Say what was done; of a run that goes on, what was asked for, which a budget may cut."""
    definition = record.definition
    seed = f"random_state {definition['seed']}"
    if record.results is None:
        return {
            "Asked for": f"{seed}; {count(definition['n_seeds'], 'repetition')} of the "
            f"cross-validation on {definition['n_folds']} folds, at most "
            f"{definition['max_epochs']} epochs"
            + ("" if definition["budget"] is None else "; the budget may allow less")
        }
    plan, in_a_fold = record.results["plan"], record.results["people_in_a_fold"]
    numbers = {side: " or ".join(map(str, n)) for side, n in in_a_fold.items()}
    return {
        "Seeds": f"{seed}; {count(plan['n_seeds'], 'repetition')} of the cross-validation",
        "Folds": f"{plan['n_folds']} folds; in each, {numbers['train']} people train, "
        f"{numbers['validation']} validate, {numbers['test']} test",
        "Epochs": f"at most {plan['rungs'][-1]} in the cross-validation",
    }


def _auto_done(record: Record) -> dict[str, str]:
    """Say on which groups a hands-off run scores."""
    seed = f"random_state {record.definition['seed']}"
    if record.results is None:
        return {"Asked for": seed}
    plan, in_a_fold = record.results["plan"], record.results["people_in_a_fold"]
    train, held_out = (" or ".join(map(str, in_a_fold[side])) for side in ("train", "validation"))
    return {
        "Seeds": f"{seed}; {count(plan['n_seeds'], 'seed')} of the chosen setting",
        "Groups": f"{plan['n_folds']} groups of people, each held out once: {train} people train, "
        f"{held_out} are held out",
        "Epochs": f"{plan['rungs'][-1]} make the steps of the chosen recipe",
    }


def _auto_search(record: Record) -> str:
    """Say what a hands-off run tries."""
    definition, space = record.definition, record.definition["space"]
    values = [
        f"{name} ({count(len(values), 'value')})" for name, values in definition["recipes"].items()
    ]
    stages = [f"recipes: {join_some(values, 20) or 'none'}"]
    if space["measures"]:
        measures, modes = ", ".join(space["measures"]), ", ".join(space["modes"])
        stages.append(f"censors: {measures} in mode {modes}")
    words = "; then ".join([*stages, "seeds"])
    if definition["budget"] is not None:
        words += f"; budget {hours(definition['budget'])}"
    return words


def _search(record: Record) -> str:
    definition, space = record.definition, record.definition["space"]
    words = f"{definition['strategy']} over {', '.join(space['measures'])}"
    words += f" in mode {', '.join(space['modes'])}, on {search_folds(record)}"
    if definition["prune"]:
        words += ", with pruning"
    if definition["budget"] is not None:
        words += f"; budget {hours(definition['budget'])}"
    keep = definition["keep"] if record.results is None else record.results["plan"]["keep"]
    return words + f"; the best {keep} of each measure are cross-validated"


def search_folds(record: Record) -> str:
    """Say on how many folds the search was; a budget may have cut them."""
    # An definition does not name the default.
    plan = record.definition if record.results is None else record.results["plan"]
    return count(plan.get("search_folds", 1), "fold")
