"""The search space: which settings are tried.

A `Space` is Table II of the AutoTransfer paper if nothing else is said: five strengths for each
measure, and for MIGE a score estimator, its regularisation and a length scale, all in the three
modes. Strengths of the two MMDs are a tenth of the paper's. The paper's procedure searches it; a
hands-off run tries censors only where somebody names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from autotransfer.censoring import MEASURES, MODES, lookup_measure, lookup_mode
from autotransfer.censoring.registry import make_censor
from autotransfer.errors import SettingError, join_some
from autotransfer.search.settings.setting import BASELINE, Setting

SMALL = (1.0, 0.3, 0.1, 0.03, 0.01)
LARGE = (0.1, 0.3, 1.0, 3.0, 10.0)
"""The paper has 1 to 100. At 10 the MMDs cost up to 0.3 of accuracy on real recordings; at 1 next
to nothing, complementary pairwise MMD on SSVEP apart (0.1). The search begins in the middle
(docs/protocol.md, strengths)."""

STRENGTHS: dict[str, tuple[float, ...]] = {
    "adversary": SMALL,
    "mige": SMALL,
    "mmd": LARGE,
    "pairmmd": LARGE,
    "began": SMALL,
}
"""Strengths of the paper's Table II, but for the two MMDs."""


def _mige_options() -> tuple[dict[str, Any], ...]:
    """Score estimators, their gamma where they have one, and the length scale."""
    gammas = (0.01, 0.001, 0.0001)
    made: list[dict[str, Any]] = []
    for estimator, scale in product(("ssge", "stein", "tikhonov", "nu"), ("median", "tsne")):
        # The regularisation belongs to the three alternatives to SSGE (corrections, E8). With
        # t-SNE scales, whose kernel is indefinite, less than 0.01 is raised to it (E16).
        usable = (None,) if estimator == "ssge" else gammas if scale == "median" else gammas[:1]
        for gamma in usable:
            entry = {"estimator": estimator, "length_scale": scale}
            made.append(entry if gamma is None else entry | {"gamma": gamma})
    return tuple(made)


@dataclass(frozen=True)
class Space:
    """Settings to try.

    Parameters
    ----------
    measures : sequence of str
        Measures of dependence. Without any there are no censors to try.
    modes : sequence of str
        Modes.
    strengths : mapping, optional
        Measure -> strengths to try, where they are not the paper's.
    options : mapping, optional
        Measure -> dicts of options to try, where they are not the paper's.

    Examples
    --------
    >>> space = Space(["mmd"], ["marginal"])
    >>> [str(setting) for setting in space.grid()]
    ['mmd marginal 0.1', 'mmd marginal 0.3', 'mmd marginal 1', 'mmd marginal 3', 'mmd marginal 10']
    """

    measures: Sequence[str] = tuple(MEASURES)
    modes: Sequence[str] = tuple(MODES)
    strengths: Mapping[str, Sequence[float]] = field(default_factory=dict)
    options: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.measures:
            lookup_measure(name)
        for name in self.modes:
            lookup_mode(name)
        for given in (self.strengths, self.options):
            stray = [name for name in given if name not in self.measures]
            if stray:
                raise SettingError(
                    f"The space gives values for {join_some(stray)}, which is not among its "
                    "measures "
                    f"({join_some(list(self.measures))})."
                )
        for measure in self.measures:
            values = self.strengths_of(measure)
            if not values or not all(np.isfinite(v) and v > 0 for v in values):
                raise SettingError(
                    f"Strengths of {measure!r} must be numbers above 0, not {list(values)!r}."
                )
            for options in self.options_of(measure):
                sizes = {"n_latent": 2, "n_subjects": 2, "n_classes": 2}
                make_censor(measure, self.modes[0], **sizes, options=options)

    def strengths_of(self, measure: str) -> tuple[float, ...]:
        """Strengths to try for a measure."""
        return tuple(float(v) for v in self.strengths.get(measure, STRENGTHS.get(measure, SMALL)))

    def options_of(self, measure: str) -> tuple[Mapping[str, Any], ...]:
        """Options to try for a measure."""
        if measure in self.options:
            return tuple(self.options[measure]) or ({},)
        return _mige_options() if measure == "mige" else ({},)

    def baselines(self) -> list[Setting]:
        """Uncensored settings, one for each way of drawing batches."""
        each = (Setting(None, mode).baseline for mode in self.modes)
        return list(dict.fromkeys([BASELINE, *each]))

    def grid(self) -> Iterator[Setting]:
        """Walk over all settings, without the baseline."""
        for measure, mode in product(self.measures, self.modes):
            for options, strength in product(self.options_of(measure), self.strengths_of(measure)):
                yield Setting.of(measure, mode, strength, **options)

    def spread(self, n: int | None, seed: int) -> list[Setting]:
        """Choose n settings that cover the space: measures and modes in turn, the rest at random.

        Parameters
        ----------
        n : int or None
            How many; None for the whole grid, in its order.
        seed : int
            Of the order within a measure and mode.
        """
        grid = list(self.grid())
        if n is None or n >= len(grid):
            return grid
        rng = np.random.default_rng(seed)
        cells: dict[tuple[str | None, str], list[Setting]] = {}
        for setting in grid:
            cells.setdefault((setting.measure, setting.mode), []).append(setting)
        # Strengths in turn, from the middle: an extreme one tells little by itself.
        queues = [_middle_out(cell, rng) for cell in cells.values()]
        chosen: list[Setting] = []
        for turn in range(max(map(len, queues))):
            chosen += [queue[turn] for queue in queues if turn < len(queue)]
        return chosen[:n]

    def params(self) -> dict[str, list[Any]]:
        """Give all values in the space of every name in `Setting.params`."""
        values: dict[str, list[Any]] = {}
        for setting in (*self.baselines(), *self.grid()):
            for name, value in setting.params().items():
                if value not in values.setdefault(name, []):
                    values[name].append(value)
        return values

    def to_json(self) -> dict[str, Any]:
        """Give what defines the space, for the definition of a run."""
        return {
            "modes": list(self.modes),
            "measures": {
                name: {
                    "strengths": list(self.strengths_of(name)),
                    "options": [dict(options) for options in self.options_of(name)],
                }
                for name in self.measures
            },
        }


def default_space(procedure: str) -> Space:
    """Give the censors that a run tries where nobody names any.

    None in a hands-off run: on three data sets the choice among all censors was within 0.005 of no
    censor (docs/evidence.md), and to try each measure in each mode takes as long as all recipes.
    """
    return Space(()) if procedure == "auto" else Space()


def _middle_out(cell: list[Setting], rng: np.random.Generator) -> list[Setting]:
    """Order the settings of a measure and mode: middle strengths first, options at random."""
    strengths = sorted({setting.strength for setting in cell})
    middle = (len(strengths) - 1) / 2
    by_distance = sorted(strengths, key=lambda s: abs(strengths.index(s) - middle))
    queues = []
    for strength in by_distance:
        same = [setting for setting in cell if setting.strength == strength]
        queues.append([same[i] for i in rng.permutation(len(same))])
    return [queue[turn] for turn in range(len(queues[0])) for queue in queues if turn < len(queue)]
