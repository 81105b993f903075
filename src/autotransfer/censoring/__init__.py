"""Censoring: penalties that keep the subject out of the latent.

Five measures of dependence, each in a file of its own, and three modes, written once over any
measure. A censor is a measure in a mode, made by `make_censor`; it is a plain ``nn.Module`` and
works in any training loop.
"""

from autotransfer.censoring.critic import critic_optimisers
from autotransfer.censoring.measure import Measure
from autotransfer.censoring.modes import Censor
from autotransfer.censoring.registry import (
    MEASURES,
    MODES,
    default_strength,
    lookup_measure,
    lookup_mode,
    make_censor,
    options_of,
)

__all__ = [
    "MEASURES",
    "MODES",
    "Censor",
    "Measure",
    "critic_optimisers",
    "default_strength",
    "lookup_measure",
    "lookup_mode",
    "make_censor",
    "options_of",
]
