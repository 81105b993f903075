"""The three modes, written once over any measure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from autotransfer.censoring.measure import Measure
from autotransfer.encoder.split import split_latent
from autotransfer.errors import LabelError, SettingError, ShapeError
from autotransfer.estimation.cells import Cells

Maker = Callable[[int, int, int], Measure]
"""Makes a measure of (n_latent, n_subjects, n_given)."""


class Censor(nn.Module):
    """A measure in a mode: what a training loop sees.

    A step of training is

        cells = censor.cells(subject, label)
        for _ in range(censor.n_critic): ...   # minimise censor.critic_loss(z.detach(), cells)
        loss = task + strength * censor(z, cells)

    Parameters
    ----------
    make : callable
        Makes the measure.
    n_latent, n_subjects, n_classes : int
        Columns of z; subjects of the training data, coded 0, 1, ...; classes, likewise.
    """

    measure: Measure

    def __init__(self, make: Maker, n_latent: int, n_subjects: int, n_classes: int) -> None:
        super().__init__()
        self.measure = make(n_latent, n_subjects, 0)

    @property
    def n_critic(self) -> int:
        """Steps of the critics for each step of the encoder; 0 if there are none."""
        return self.measure.n_critic

    def cells(self, subject: Any, label: Any = None) -> Cells:
        """Cut a batch into cells by its subjects (N,) and, if the mode looks at them, labels."""
        return Cells.of(subject)

    def forward(self, z: Tensor, cells: Cells, generator: torch.Generator | None = None) -> Tensor:
        """Penalty of latents z (N, n_latent): lower is more censored."""
        _same_rows(z, cells)
        return self.measure.censor(z, cells, self.measure.draw(cells, generator))

    def critic_loss(
        self, z: Tensor, cells: Cells, generator: torch.Generator | None = None
    ) -> Tensor:
        """Loss of the critics on detached latents z (N, n_latent)."""
        return self.measure.critic_loss(z, cells, self.measure.draw(cells, generator))

    def readings(self) -> dict[str, Tensor]:
        """Say how the critics stood at their last loss."""
        return self.measure.readings()


class Marginal(Censor):
    """Make z independent of s."""


class Conditional(Censor):
    """Make z independent of s given y: within every class, averaged over classes."""

    def __init__(self, make: Maker, n_latent: int, n_subjects: int, n_classes: int) -> None:
        nn.Module.__init__(self)
        self.measure = make(n_latent, n_subjects, n_classes)

    def cells(self, subject: Any, label: Any = None) -> Cells:
        """Cut a batch into cells by subjects (N,) and labels (N,)."""
        if label is None:  # measures without a critic would censor z whatever the class
            raise LabelError(
                "The mode 'conditional' needs the label of every row. Give the labels, or use "
                "the mode 'marginal'."
            )
        return Cells.of(subject, label)


class Complementary(Censor):
    """Make z1 independent of s and let z2 carry it, z = (z1, z2), each half with its own critic."""

    def __init__(self, make: Maker, n_latent: int, n_subjects: int, n_classes: int) -> None:
        nn.Module.__init__(self)
        if n_latent < 2:
            raise SettingError(
                "The mode 'complementary' splits the latent in two, but this encoder's has "
                f"{n_latent} column. Use an encoder with a larger latent, or another mode."
            )
        half = n_latent // 2
        self.measure = make(half, n_subjects, 0)
        self.carrier = make(n_latent - half, n_subjects, 0)

    def forward(self, z: Tensor, cells: Cells, generator: torch.Generator | None = None) -> Tensor:
        """Penalty of latents z (N, n_latent): z1 forgets, z2 keeps."""
        _same_rows(z, cells)
        z1, z2 = split_latent(z)
        draw = self.measure.draw(cells, generator)  # the same for both halves
        return self.measure.censor(z1, cells, draw) + self.carrier.keep(z2, cells, draw)

    def critic_loss(
        self, z: Tensor, cells: Cells, generator: torch.Generator | None = None
    ) -> Tensor:
        """Sum of the losses of both critics."""
        z1, z2 = split_latent(z)
        draw = self.measure.draw(cells, generator)
        return self.measure.critic_loss(z1, cells, draw) + self.carrier.critic_loss(z2, cells, draw)

    def readings(self) -> dict[str, Tensor]:
        """Say how the critics stood; those of z2 under names that begin with ``z2_``."""
        second = {f"z2_{name}": value for name, value in self.carrier.readings().items()}
        return self.measure.readings() | second


def _same_rows(z: Tensor, cells: Cells) -> None:
    """Refuse latents and labels of different batches: some measures would not notice."""
    if len(z) != len(cells.cell):
        raise ShapeError(
            f"There are {len(z)} rows of latents and {len(cells.cell)} subject ids. Give the cells "
            "of the same batch."
        )
