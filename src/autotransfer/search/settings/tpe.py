"""Settings proposed by Optuna's TPE sampler, the same whoever runs them.

A batch depends on the seed and on the results of the batches before it, in the order of the plan,
and on nothing else: not on workers, engines or interruptions. The sampler works on a study in
memory; what is on record is the ledger's business.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from autotransfer.search.settings.selection import TrialScores
from autotransfer.search.settings.setting import Setting
from autotransfer.search.settings.space import Space

if TYPE_CHECKING:
    import optuna

BATCH = 8
"""Settings asked for at once; part of what a run is."""


def suggest(space: Space, before: Sequence[TrialScores], n: int, seed: int) -> list[Setting]:
    """Propose the next settings.

    Parameters
    ----------
    space : Space
        Whose strengths and gammas become ranges, and whose other options choices.
    before : sequence of TrialScores
        What was tried, in the order of the plan.
    n : int
        How many to propose.
    seed : int
        Of the sampler.
    """
    # Not at the top: few runs ask for it, and in a notebook its tqdm complains when it is imported.
    import optuna

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(
                seed=seed + len(before), multivariate=True, group=True, constant_liar=True
            )
            study = optuna.create_study(sampler=sampler, direction="maximize")
            for one in before:
                if one.setting.measure is not None:
                    study.add_trial(_known(space, one))
            return [_ask(space, study.ask()) for _ in range(n)]
    finally:
        optuna.logging.set_verbosity(verbosity)


def _ranges(space: Space, measure: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Choices, and ranges of numbers, of a measure."""
    strengths = space.strengths_of(measure)
    ranges = {"strength": (min(strengths), max(strengths))}
    choices: dict[str, Any] = {}
    for name in dict.fromkeys(name for options in space.options_of(measure) for name in options):
        values = [options[name] for options in space.options_of(measure) if name in options]
        if all(isinstance(v, float) and v > 0 for v in values):
            ranges[name] = (min(values), max(values))
        else:
            choices[name] = list(dict.fromkeys(values))
    return choices, ranges


def _ask(space: Space, trial: optuna.Trial) -> Setting:
    measure = trial.suggest_categorical("measure", list(space.measures))
    mode = trial.suggest_categorical("mode", list(space.modes))
    choices, ranges = _ranges(space, measure)
    chosen = {n: trial.suggest_categorical(f"{measure} {n}", v) for n, v in choices.items()}
    like = _allowed(space, measure, chosen)
    numbers = {}
    for name, (low, high) in ranges.items():
        if name == "strength" or name in like:
            numbers[name] = _number(trial.suggest_float(f"{measure} {name}", low, high, log=True))
    strength = numbers.pop("strength")
    return Setting.of(measure, mode, strength, **chosen, **numbers)


def _allowed(space: Space, measure: str, chosen: dict[str, Any]) -> set[str]:
    """Options that go with what was chosen: SSGE has no gamma."""
    fits = [o for o in space.options_of(measure) if all(o.get(k) == v for k, v in chosen.items())]
    return {name for options in fits for name in options}


def _number(value: float) -> float:
    """Round to three digits: more would only look exact."""
    return float(f"{value:.3g}")


def _known(space: Space, one: TrialScores) -> optuna.trial.FrozenTrial:
    """Tell the sampler of a trial that is done."""
    import optuna

    measure = str(one.setting.measure)
    choices, ranges = _ranges(space, measure)
    options = {"strength": one.setting.strength, **dict(one.setting.options)}
    params: dict[str, Any] = {"measure": measure, "mode": one.setting.mode}
    kinds: dict[str, Any] = {
        "measure": optuna.distributions.CategoricalDistribution(list(space.measures)),
        "mode": optuna.distributions.CategoricalDistribution(list(space.modes)),
    }
    for name, value in options.items():
        full = f"{measure} {name}"
        if name in choices:
            params[full] = value
            kinds[full] = optuna.distributions.CategoricalDistribution(choices[name])
        elif name in ranges:
            low, high = ranges[name]
            params[full] = min(max(value, low), high)
            kinds[full] = optuna.distributions.FloatDistribution(low, high, log=True)
    failed = bool(one.error)
    states = optuna.trial.TrialState
    # Selection discards a setting that hardly censored: the sampler must not be drawn to it.
    value = 0.0 if one.small_cells else float(np.mean(list(one.validation.values()) or [0.0]))
    return optuna.trial.create_trial(
        state=states.FAIL if failed else states.COMPLETE,
        value=None if failed else value,
        params=params,
        distributions=kinds,
    )
