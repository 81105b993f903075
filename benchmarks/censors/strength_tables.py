"""The tables of `strengths.py`: gains, leakage and importances, from trainings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optuna

from autotransfer.search.settings.space import STRENGTHS
from benchmarks.censors import evidence_tables
from benchmarks.censors.censors_on_recordings import PROBED
from benchmarks.common.censors import name_of
from benchmarks.common.parts_of_people import beside, by_cell

Cell = tuple[str | None, str, float, bool, str]
"""Measure, mode, strength, whether it is the placebo, and MIGE's score estimator ("" elsewhere)."""

UNCENSORED: Cell = (None, "marginal", 0.0, False, "")
BY_CLASS: Cell = (None, "conditional", 0.0, False, "")
"""The uncensored baseline with the batches of conditional censors."""
ESTIMATORS = ("tikhonov", "ssge", "stein", "nu")
"""MIGE's score estimators, the default first."""


def strengths(measure: str) -> tuple[float, ...]:
    """Strengths to try: the least, the middle and the most of what a search tries."""
    return tuple(sorted(STRENGTHS[measure])[::2])


def baseline_of(mode: str) -> Cell:
    """Find the baseline that differs from the censors of a mode by the penalty alone."""
    return BY_CLASS if mode == "conditional" else UNCENSORED


def people(results: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Test score of every person, a mean where there are several."""
    found: dict[str, list[float]] = {}
    for result in results:
        for who, score in result["test"].items():
            found.setdefault(who, []).append(score)
    return {who: float(np.mean(scores)) for who, scores in found.items()}


def row(
    name: str, cell: Cell, mine: list[dict[str, Any]], base: list[dict[str, Any]]
) -> dict[str, Any]:
    """Summarise a cell, beside the baseline on the same people."""
    measure, mode, strength, placebo, estimator = cell
    scores, was = people(mine), people(base)
    gain = np.array([scores[who] - was[who] for who in scores])
    part = PROBED[mode][0]
    found, was_found = (
        float(np.mean([r["leakage"][part]["accuracy"] for r in some])) for some in (mine, base)
    )
    return {
        "data": name,
        "censor": name_of((measure, mode)),
        "strength": strength,
        "placebo": placebo,
        "estimator": estimator,
        "people": len(scores),
        "accuracy": float(np.mean(list(scores.values()))),
        "lower quartile": float(np.percentile(list(scores.values()), 25)),
        "gain": float(gain.mean()),
        "gain se": float(gain.std(ddof=1) / np.sqrt(len(gain))),
        "probed": part,
        "probe": found,
        "probe uncensored": was_found,
        # Modes are about different parts of the latent; only changes can be compared.
        "probe change": found - was_found,
        "chance": float(np.mean([r["leakage"][part]["chance"] for r in mine])),
    }


def tables(results: Mapping[Any, dict[str, Any]], name: str) -> tuple[list[Any], list[Any]]:
    """Summarise a data set: a row for each cell, and the importances."""
    of = by_cell(results, name)
    alone: dict[tuple[Cell, int], list[dict[str, Any]]] = {}
    for job, result in results.items():
        if job.dataset == name and job.measure is None:
            alone.setdefault((job.cell, job.seed), []).append(result)
    base = {cell: people(of[cell]) for cell, _ in alone}
    # How far a single training of a baseline is from the mean of all: the luck of a seed.
    apart = [
        np.mean([s - base[cell][who] for who, s in people(one).items()])
        for (cell, _), one in alone.items()
    ]
    free = len(apart) - len(base)
    noise = float(np.sqrt(np.sum(np.square(apart)) / free)) if free else None
    rows = [
        {**row(name, cell, mine, beside(results, name, cell, baseline_of(cell[1]))), "noise": noise}
        for cell, mine in of.items()
    ]
    targets = ("gain", "probe change")
    return rows, [{"data": name, "of": target, **importances(rows, target)} for target in targets]


def batches_alone(results: Mapping[Any, dict[str, Any]], name: str) -> dict[str, Any]:
    """Compare the two baselines: what a way of drawing batches does without any penalty."""
    of = by_cell(results, name)
    by_class, random = (people(of[cell]) for cell in (BY_CLASS, UNCENSORED))
    made = evidence_tables.row(name, "", random, by_class)
    return (
        {"data": name, "people": made["people"], "by class": float(np.mean([*by_class.values()]))}
        | {"at random": made["mean"]}
        | {column: made[column] for column in ("difference", "95 % interval", "p")}
    )


WORDS = ("weak", "middle", "strong")
"""The three strengths of a measure."""


def ranked(rows: Sequence[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """Rows of a data set's censors, their strength in words: the ranges of measures differ."""
    return [
        {**one, "rank": WORDS[strengths(one["censor"].split()[0]).index(one["strength"])]}
        for one in rows
        if one["data"] == name and not one["censor"].startswith("uncensored")
    ]


def by_censor(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Gain and change of the probe of every censor, its strengths and placebos side by side."""
    made: dict[tuple[str, ...], dict[str, Any]] = {}
    for name in dict.fromkeys(one["data"] for one in rows):
        for one in ranked(rows, name):
            words = f"{'placebo ' * one['placebo']}{one['rank']}"
            censor = f"{one['censor']} {one['estimator']}".strip()
            line = made.setdefault((name, censor), {"data": name, "censor": censor})
            line |= {words: one["gain"], f"probe {words}": one["probe change"]}
    return list(made.values())


def digest(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Average over all censors, strength by strength, beside their placebos.

    Single rows have the noise of a training in them; what censoring does to accuracy, if anything,
    is the difference between the two averages.
    """
    made = []
    for name in dict.fromkeys(one["data"] for one in rows):
        mine = [one for one in ranked(rows, name) if one["estimator"] in ("", ESTIMATORS[0])]
        for words in WORDS:
            found: dict[str, Any] = {"data": name, "strength": words}
            for placebo, prefix in ((False, ""), (True, "placebo ")):
                kind = [o for o in mine if (o["rank"], o["placebo"]) == (words, placebo)]
                gains = [one["gain"] for one in kind]
                changes = [one["probe change"] for one in kind]
                found |= {
                    f"{prefix}gain": float(np.mean(gains)) if kind else None,
                    f"{prefix}gain sd": float(np.std(gains, ddof=1)) if kind else None,
                    f"{prefix}probe": float(np.mean(changes)) if kind else None,
                }
            made.append(found | {"noise": mine[0]["noise"]})
    return made


def importances(rows: Sequence[Mapping[str, Any]], target: str) -> dict[str, float]:
    """Share of each factor in the variance of a figure (fANOVA, Hutter et al. 2014).

    Of measure, mode and strength over all censors (MIGE with its default estimator); of the score
    estimator, beside mode, over MIGE at its middle strength.
    """
    default = ESTIMATORS[0]
    censors = [one for one in rows if not one["censor"].startswith("uncensored")]
    real = [one for one in censors if not one["placebo"]]
    whole = [
        dict(zip(("measure", "mode"), one["censor"].split(), strict=True))
        # As a rank within the measure: the ranges differ.
        | {"strength": strengths(one["censor"].split()[0]).index(one["strength"])}
        | {"value": one[target]}
        for one in real
        if one["estimator"] in ("", default)
    ]
    mige = [
        {"mode": one["censor"].split()[1], "estimator": one["estimator"], "value": one[target]}
        for one in real
        if one["estimator"] and one["strength"] == strengths("mige")[1]
    ]
    return fanova(whole) | {"MIGE's estimator": fanova(mige)["estimator"]}


def fanova(found: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Optuna's importances; every key but "value" is a factor with a few levels."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    factors = [factor for factor in found[0] if factor != "value"]
    if len({one["value"] for one in found}) == 1:
        return dict.fromkeys(factors, 0.0)  # nothing varies; Optuna would fail
    levels = {factor: sorted({one[factor] for one in found}) for factor in factors}
    kinds: dict[str, optuna.distributions.BaseDistribution] = {
        factor: optuna.distributions.CategoricalDistribution(v) for factor, v in levels.items()
    }
    study = optuna.create_study()
    for one in found:
        params = {factor: one[factor] for factor in factors}
        made = optuna.trial.create_trial(params=params, distributions=kinds, value=one["value"])
        study.add_trial(made)
    judge = optuna.importance.FanovaImportanceEvaluator(seed=0)
    shares = optuna.importance.get_param_importances(study, evaluator=judge)
    return {factor: float(shares.get(factor, 0.0)) for factor in factors}
