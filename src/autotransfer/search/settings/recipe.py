"""A recipe: everything of a training but the censor. And spaces of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from autotransfer.errors import SettingError, join_some

ENCODER_OPTIONS = {
    "eegnet": ("kernel_seconds", "kernel_length", "F1", "drop_prob", "person_norm"),
    "covariance": ("bands", "drop_prob"),
}
"""Options of a recipe that are options of an encoder."""

ENCODER = "encoder"
"""Name of the dimension of other encoders, and of the option."""


@dataclass(frozen=True)
class Recipe:
    """Options of `CensoredClassifier`, and of its encoder, that differ from those of the run.

    Parameters
    ----------
    options : tuple of (str, value)
        Sorted by name; values are those that JSON has.

    Examples
    --------
    >>> recipe = Recipe.of(normalise="trial", F1=16)
    >>> str(recipe)
    'F1=16 normalise=trial'
    >>> recipe.applied({"normalise": "channel", "encoder_options": None})
    {'normalise': 'trial', 'encoder_options': {'F1': 16}}
    """

    options: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, **options: Any) -> Self:
        """Make a recipe from options by name."""
        return cls(tuple(sorted(options.items())))

    def __str__(self) -> str:
        return " ".join(
            f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.options
            if value is not None  # what is not set says nothing
        )

    def __bool__(self) -> bool:
        return bool(self.options)

    @property
    def encoder(self) -> str:
        """Name of the encoder; "" where it is the run's."""
        return str(dict(self.options).get(ENCODER, ""))

    def with_options(self, options: Mapping[str, Any]) -> Recipe:
        """Give the same recipe with some options changed."""
        return Recipe.of(**dict(self.options) | dict(options))

    def changes(self, other: Recipe) -> Recipe:
        """Name the options in which it differs from another recipe; one that is left out as "none".

        Options of an encoder that it does not have are not named.

        Examples
        --------
        >>> str(Recipe.of(F1=8, n_steps=40).changes(Recipe.of(F1=8, n_steps=20)))
        'n_steps=40'
        >>> str(Recipe.of(augment=None).changes(Recipe.of(augment="mask")))
        'augment=none'
        """
        theirs = dict(other.options)
        of_encoders = {name for names in ENCODER_OPTIONS.values() for name in names}
        own = [(k, v) for k, v in self.options if (k, v) not in theirs.items()]
        own = [(k, v) for k, v in own if v is not None or (k in theirs and k not in of_encoders)]
        return Recipe(tuple((k, "none" if v is None else v) for k, v in own))

    def applied(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Put the recipe's options in the place of those of the run.

        Options of an encoder that is not the recipe's are left out.
        """
        own = dict(self.options)
        every = {name for names in ENCODER_OPTIONS.values() for name in names}
        encoder = {name: own.pop(name) for name in sorted(every & own.keys())}
        which = own.get(ENCODER, options.get(ENCODER))
        known = ENCODER_OPTIONS.get(which, every) if isinstance(which, str) else every
        encoder = {name: value for name, value in encoder.items() if name in known}
        if encoder:
            own["encoder_options"] = {**(options.get("encoder_options") or {}), **encoder}
        return {**options, **own}


@dataclass(frozen=True)
class Dimension:
    """Something of a recipe that can be changed, with the values to try.

    Parameters
    ----------
    name : str
        What it is, in a word.
    values : tuple of dict
        Options of a recipe; the first is that of the default recipe.
    gain : float
        Balanced accuracy that the best value was worth on our recordings, about
        (docs/protocol.md): the order in which dimensions are tried.
    cost : tuple of float
        How long a training takes with each value, the first being 1.
    encoder : str
        The encoder of which it is an option, or "" for what all have.
    """

    name: str
    values: tuple[Mapping[str, Any], ...]
    gain: float
    cost: tuple[float, ...] = ()
    encoder: str = ""

    @property
    def effort(self) -> float:
        """How many trainings of the default recipe it takes to try all values but the first.

        What makes trainings longer makes all later ones longer, too: it counts three times.
        """
        costs = [self.cost_of(value) for value in self.values[1:]]
        return sum(cost + 2 * max(cost - 1, 0) for cost in costs) or 1.0

    def cost_of(self, value: Mapping[str, Any]) -> float:
        """How many times as long as with the first value a training takes."""
        return self.cost[self.values.index(value)] if self.cost else 1.0


@dataclass(frozen=True)
class RecipeSpace:
    """Recipes to try: a default one, and what can be changed in it.

    Parameters
    ----------
    dimensions : sequence of Dimension
        In no particular order.

    Examples
    --------
    >>> space = RecipeSpace([Dimension("filters", ({"F1": 8}, {"F1": 16}), 0.01, (1, 1.7))])
    >>> [str(recipe) for recipe in space.neighbours(space.default, "filters")]
    ['F1=16']
    """

    dimensions: Sequence[Dimension]

    def __post_init__(self) -> None:
        names = [dimension.name for dimension in self.dimensions]
        empty = [dimension.name for dimension in self.dimensions if not dimension.values]
        if len(set(names)) < len(names) or empty:
            raise SettingError(
                "The dimensions of a RecipeSpace have different names and at least one value each, "
                f"which is not so for {join_some(empty or names)}."
            )

    @property
    def default(self) -> Recipe:
        """The recipe that is tried first."""
        options: dict[str, Any] = {}
        for dimension in self.dimensions:
            options |= dimension.values[0]
        return Recipe.of(**options)

    def dimension(self, name: str) -> Dimension:
        """Find a dimension by name."""
        return next(d for d in self.dimensions if d.name == name)

    def neighbours(self, recipe: Recipe, name: str) -> Iterator[Recipe]:
        """Walk over the recipes that differ from one in one dimension.

        There are none where the recipe has none of the dimension's values: then another dimension
        of the same options has been decided for it. Nor are there of options that the recipe's
        encoder does not have.
        """
        dimension = self.dimension(name)
        if dimension.encoder and recipe.encoder not in ("", dimension.encoder):
            return
        values = dimension.values
        others = [recipe.with_options(value) for value in values]
        if recipe in others:
            yield from (other for other in others if other != recipe)

    def cost(self, recipe: Recipe) -> float:
        """How many times as long as the default recipe's a training takes, about."""
        chosen = dict(recipe.options)
        factor = 1.0
        for dimension in self.dimensions:
            # Another encoder comes with options that other dimensions may have changed since.
            others = {
                name
                for other in self.dimensions
                if dimension.name == ENCODER and other != dimension
                for value in other.values
                for name in value
            }
            for value in dimension.values:
                if all(chosen.get(k) == v for k, v in value.items() if k not in others):
                    factor *= dimension.cost_of(value)
                    break
        return factor

    def cheaper(self) -> Iterator[tuple[dict[str, Any], float]]:
        """Walk over what makes the default recipe cheaper: options, and their cost beside it.

        Examples
        --------
        >>> steps = Dimension("fewer steps", ({"n_steps": 9}, {"n_steps": 4}), 0.01, (1.0, 0.4))
        >>> space = RecipeSpace([steps])
        >>> list(space.cheaper())
        [({'n_steps': 4}, 0.4)]
        """
        # Another encoder is another thing, and not a cheaper one of the same.
        own = [d for d in self.dimensions if d.name != ENCODER]
        found = [(d.cost_of(v), v) for d in own for v in d.values if d.cost_of(v) < 1]
        options: dict[str, Any] = {}
        factor = 1.0
        for cost, value in sorted(found, key=lambda one: one[0]):
            if not options.keys() & value.keys():
                options = options | dict(value)
                factor *= cost
                yield options, factor

    def to_json(self) -> dict[str, Any]:
        """Give what JSON can hold: dimension -> values."""
        return {d.name: [dict(value) for value in d.values] for d in self.dimensions}
