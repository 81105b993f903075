"""A setting: one point of the search space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from autotransfer.search.settings.recipe import Recipe


@dataclass(frozen=True)
class Setting:
    """How to train: a recipe, and a measure in a mode at a strength, or no censoring at all.

    Parameters
    ----------
    measure : str or None
        Measure of dependence; None is the uncensored baseline.
    mode : str
        Mode. It also says how batches are drawn: in those of "conditional" every person's trials
        have their share of the classes. The uncensored baseline has either kind of batches.
    strength : float
        Weight of the penalty; 0 for the baseline.
    options : tuple of (str, value)
        Options of the measure, sorted by name.
    recipe : Recipe
        Everything of the training but the censor, where it differs from the run's options.

    Examples
    --------
    >>> setting = Setting.of("mige", "conditional", 0.1, estimator="ssge")
    >>> str(setting)
    'mige conditional 0.1 estimator=ssge'
    >>> Setting.from_json(setting.to_json()) == setting
    True
    """

    measure: str | None
    mode: str = "marginal"
    strength: float = 0.0
    options: tuple[tuple[str, Any], ...] = ()
    recipe: Recipe = field(default_factory=Recipe)

    @classmethod
    def of(cls, measure: str | None, mode: str, strength: float, **options: Any) -> Self:
        """Make a setting from options by name."""
        return cls(measure, mode, float(strength), tuple(sorted(options.items())))

    def __str__(self) -> str:
        recipe = str(self.recipe)
        return f"{self.censor} ({recipe})" if recipe else self.censor

    @property
    def censor(self) -> str:
        """The censor in words, without the recipe."""
        if self.measure is None:
            return "uncensored, by class" if self.mode == "conditional" else "uncensored"
        words = [self.measure, self.mode, f"{self.strength:.4g}"]
        for name, value in self.options:
            words.append(f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}")
        return " ".join(words)

    def beside(self, default: Recipe, called: str = "default recipe") -> str:
        """Call a setting by what it changes in the default recipe, or in another by its name.

        Examples
        --------
        >>> setting = Setting(None, recipe=Recipe.of(F1=8, n_steps=40))
        >>> setting.beside(Recipe.of(F1=8, n_steps=20))
        'the default recipe with n_steps=40'
        """
        changes = self.recipe.changes(default)
        words = f"the {called} with {changes}" if changes else f"the {called}"
        plain = self.measure is None and self.mode == "marginal"
        return words if plain else f"{self.censor}, {words}"

    @property
    def family(self) -> str:
        """The measure's name, or "uncensored"."""
        return self.measure or "uncensored"

    @property
    def baseline(self) -> Setting:
        """The uncensored setting with the same batches: what a censor is compared with."""
        one = BASELINE_BY_CLASS if self.mode == "conditional" else BASELINE
        return replace(one, recipe=self.recipe)

    def to_json(self) -> dict[str, Any]:
        """Give what JSON can hold."""
        return {
            "measure": self.measure,
            "mode": self.mode,
            "strength": self.strength,
            "options": dict(self.options),
            # Left out where it is empty, so that the trials of the paper's procedure keep their id.
            **({"recipe": dict(self.recipe.options)} if self.recipe else {}),
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Make a setting from what `to_json` gave."""
        options = tuple(sorted(given["options"].items()))
        recipe = Recipe.of(**given.get("recipe", {}))
        return cls(given["measure"], given["mode"], float(given["strength"]), options, recipe)

    def classifier_options(self, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Options of `CensoredClassifier` that this setting stands for, over those of a run."""
        chosen = self.recipe.applied(options or {}) | {"measure": self.measure, "mode": self.mode}
        if self.measure is not None:
            chosen |= {"strength": self.strength, "measure_options": dict(self.options) or None}
        return chosen

    def params(self) -> dict[str, Any]:
        """Flat values for dashboards."""
        if self.measure is None:
            return {"measure": self.censor} | dict(self.recipe.options)
        named = {"measure": self.measure, "mode": self.mode, "strength": self.strength}
        return named | dict(self.options) | dict(self.recipe.options)


BASELINE = Setting(None)
"""No censoring: the candidate that every marginal or complementary censor must beat."""

BASELINE_BY_CLASS = Setting(None, "conditional")
"""No censoring, with the batches of conditional censors: the candidate that these must beat."""
