"""Measures and modes by name, and the one way in which a censor is made."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from autotransfer.censoring.adversary import Adversary
from autotransfer.censoring.began import BEGAN
from autotransfer.censoring.measure import Measure
from autotransfer.censoring.mige import MIGE
from autotransfer.censoring.mmd import MMD
from autotransfer.censoring.modes import Censor, Complementary, Conditional, Marginal
from autotransfer.censoring.pairmmd import PairMMD
from autotransfer.registry import check_options, lookup

MEASURES: dict[str, type[Measure]] = {
    "adversary": Adversary,
    "mige": MIGE,
    "mmd": MMD,
    "pairmmd": PairMMD,
    "began": BEGAN,
}
"""Measures of dependence by name."""

MODES: dict[str, type[Censor]] = {
    "marginal": Marginal,
    "conditional": Conditional,
    "complementary": Complementary,
}
"""Modes by name."""


def lookup_measure(measure: str | type[Measure]) -> type[Measure]:
    """Find a measure by name; a class of one's own is taken as it is."""
    if isinstance(measure, type) and issubclass(measure, Measure):
        return measure
    return lookup("measure", measure, MEASURES)


def lookup_mode(mode: str) -> type[Censor]:
    """Find a mode by name."""
    return lookup("mode", mode, MODES)


def options_of(measure: str | type[Measure]) -> dict[str, Any]:
    """Options of a measure with their defaults.

    Examples
    --------
    >>> options_of("mmd")
    {'length_scale': 'median', 'scales': None, 'detach_length_scale': False, 'literal': False}
    """
    parameters = inspect.signature(lookup_measure(measure)).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def default_strength(measure: str | type[Measure], mode: str) -> float:
    """Strength that suits a measure in a mode; 1 where the measure does not say."""
    lookup_mode(mode)
    return lookup_measure(measure).strength.get(mode, 1.0)


def make_censor(
    measure: str | type[Measure],
    mode: str = "marginal",
    *,
    n_latent: int,
    n_subjects: int,
    n_classes: int,
    options: Mapping[str, Any] | None = None,
) -> Censor:
    """Make the censor of a measure in a mode.

    Parameters
    ----------
    measure : str or type
        A name in `MEASURES`, or a subclass of `Measure`.
    mode : str
        A name in `MODES`.
    n_latent : int
        Columns of the latent.
    n_subjects, n_classes : int
        Subjects and classes of the training data, coded 0, 1, ...
    options : mapping, optional
        Options of the measure (see `options_of`).

    Returns
    -------
    Censor
        An ``nn.Module``; its parameters are those of its critics.

    Examples
    --------
    >>> import torch
    >>> censor = make_censor("mmd", "marginal", n_latent=2, n_subjects=2, n_classes=2)
    >>> z = torch.tensor([[0.0, 0.0], [0.0, 1.0], [3.0, 0.0], [3.0, 1.0]])
    >>> bool(censor(z, censor.cells([0, 0, 1, 1])) > censor(z, censor.cells([0, 1, 0, 1])))
    True
    """
    kind, own = lookup_measure(measure), dict(options or {})
    check_options(own, options_of(kind), f"The measure {measure!r}")
    return lookup_mode(mode)(lambda *sizes: kind(*sizes, **own), n_latent, n_subjects, n_classes)
