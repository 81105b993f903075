"""What a measure of dependence is.

A measure knows how dependence of the latent on the subject is lowered (`censor`), how it is raised
(`keep`), and, if it has a critic, the critic's own loss. It says nothing of modes: those are
written once, over any measure, in `autotransfer.censoring.modes`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from autotransfer.errors import SettingError, join_some
from autotransfer.estimation.cells import Cells


class Measure(nn.Module):
    """A measure of dependence between latent z and subject s.

    Parameters
    ----------
    n_latent : int
        Columns of z.
    n_subjects : int
        Subjects of the training data, for measures with a critic.
    n_given : int
        Classes that a critic sees beside z, or 0.

    Notes
    -----
    To add a measure, write a subclass with `censor` in a file of its own and a line in
    `autotransfer.censoring.registry.MEASURES`; options are keyword arguments of ``__init__``.
    """

    strength: ClassVar[dict[str, float]] = {}
    """Default strength in each mode."""

    smallest_cell: int = 1
    """Rows that a subject (within a class, where one is given) must have in a batch to count."""

    good_cell: ClassVar[int] = 1
    """Rows of such a cell from which the measure's estimate is sound: batches are made for it."""

    n_critic: int = 0
    """Steps of the critic for each step of the encoder; 0 for measures without a critic."""

    critic_speed: float = 1.0
    """Learning rate of the critic, in multiples of the encoder's."""

    def __init__(self, n_latent: int, n_subjects: int, n_given: int = 0) -> None:
        super().__init__()
        self.n_latent, self.n_subjects, self.n_given = n_latent, n_subjects, n_given

    def draw(self, cells: Cells, generator: torch.Generator | None = None) -> Any:
        """Make the measure's random choices for a batch, from labels alone."""
        return None

    def censor(self, z: Tensor, cells: Cells, draw: Any) -> Tensor:
        """Penalty that falls as z depends less on s.

        Its gradient reaches z and never the critic.

        Parameters
        ----------
        z : Tensor of shape (N, n_latent)
            Latents.
        cells : Cells
            Subjects (and classes, where given) of the rows.
        draw : object
            From `draw`.

        Returns
        -------
        Tensor of shape ()
            Attached to `z`; zero if no cell of the batch is usable.
        """
        raise NotImplementedError

    def keep(self, z: Tensor, cells: Cells, draw: Any) -> Tensor:
        """Penalty that falls as z depends more on s."""
        return -self.censor(z, cells, draw)

    def critic_loss(self, z: Tensor, cells: Cells, draw: Any) -> Tensor:
        """Loss of the critic, to be minimised over its parameters on a detached z."""
        raise NotImplementedError(f"{type(self).__name__} has no critic.")

    def readings(self) -> dict[str, Tensor]:
        """Say how the critic stood at its last loss, as 0-d tensors; fetched by nobody yet."""
        return {}


def by_mode(marginal: float, conditional: float, complementary: float) -> dict[str, float]:
    """Write down the default strength in each mode."""
    return {"marginal": marginal, "conditional": conditional, "complementary": complementary}


def choose(name: str, value: Any, options: tuple[str, ...]) -> str:
    """Check an option that is one of several words."""
    if value not in options:
        raise SettingError(f"{name}={value!r} is not known. Choose one of {join_some(options)}.")
    return str(value)


def number(name: str, value: Any, least: float, most: float | None = None) -> float:
    """Check an option that is a number in a range."""
    fine = isinstance(value, int | float | np.integer | np.floating)
    fine = fine and not isinstance(value, bool) and np.isfinite(value)
    if not fine or value < least or (most is not None and value > most):
        words = f"of at least {least:g}" if most is None else f"from {least:g} to {most:g}"
        raise SettingError(f"{name} must be a number {words}, not {value!r}.")
    return float(value)


def switch(name: str, value: Any) -> bool:
    """Check an option that is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise SettingError(f"{name} must be True or False, not {value!r}.")
    return bool(value)
