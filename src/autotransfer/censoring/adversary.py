"""Adversary: a network that guesses the subject, and an encoder that makes it guess badly."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from autotransfer.censoring.critic import SubjectTable, columns, frozen, spread
from autotransfer.censoring.measure import Measure, by_mode, choose, number, switch
from autotransfer.data.validate import as_count
from autotransfer.estimation.cells import Cells


class Adversary(Measure):
    r"""Cross entropy of a network that guesses the subject from the latent.

        P = -CE(s, α(z)),   critic: min CE

    I(z; s) = H(s) - H(s | z) >= H(s) - CE: the critic tightens the bound, the encoder lowers it.
    Where a class is given, the critic sees it beside z and every class weighs the same.

    Parameters
    ----------
    n_latent, n_subjects, n_given : int
        As for `Measure`.
    hidden : int
        Width of the critic's hidden layers.
    n_critic : int
        Steps of the critic for each of the encoder.
    critic_speed : float
        The critic's learning rate, in multiples of the encoder's.
    candidates : {"auto", "all", "batch"}
        Subjects among whom the critic chooses: all, at a cost that grows with their number; or
        those of the batch, at one that does not. "auto" takes all up to 1,000.
    cap : bool
        Take no credit for a cross entropy above that of guessing blindly.

    Notes
    -----
    A critic no faster than the encoder hardly censors (docs/corrections.md). Corrections to the
    paper: E1, E3, E5 there.

    References
    ----------
    Ganin et al., Domain-adversarial training of neural networks, JMLR 17 (2016).
    """

    strength: ClassVar[dict[str, float]] = by_mode(0.3, 0.3, 0.3)

    def __init__(
        self,
        n_latent: int,
        n_subjects: int,
        n_given: int = 0,
        *,
        hidden: int = 64,
        n_critic: int = 5,
        critic_speed: float = 5.0,
        candidates: str = "auto",
        cap: bool = False,
    ) -> None:
        super().__init__(n_latent, n_subjects, n_given)
        self.n_critic = as_count(n_critic, "n_critic")
        self.critic_speed = number("critic_speed", critic_speed, 1e-6)
        choose("candidates", candidates, ("auto", "all", "batch"))
        if candidates == "auto":
            candidates = "all" if n_subjects <= SubjectTable.DENSE else "batch"
        self.candidates, self.cap = candidates, switch("cap", cap)
        hidden = as_count(hidden, "hidden")
        self.body = nn.Sequential(
            nn.Linear(n_latent + n_given, hidden), nn.ELU(), nn.Linear(hidden, hidden), nn.ELU()
        )
        self.table = SubjectTable(n_subjects, hidden, spread(hidden))
        # All lines at once have a dense gradient, which a sparse optimiser refuses.
        self.table.sparse &= candidates == "batch"
        self._last: tuple[Tensor, Tensor] | None = None

    def forward(self, z: Tensor, cells: Cells) -> tuple[Tensor, Tensor]:
        """Logits (N, candidates) and the place of each row's subject among the candidates."""
        label = None
        if self.n_given and cells.given is not None:
            label = torch.from_numpy(cells.given).to(z.device, non_blocking=True)
        hidden = self.body(columns(z, label, self.n_given))
        if self.candidates == "all":
            lines, target = self.table.weight, cells.subject
        else:
            target = cells.person[cells.cell]
            present = np.empty(target.max(initial=-1) + 1, np.intp)
            present[target] = cells.subject
            lines = self.table.once(torch.from_numpy(present).to(z.device, non_blocking=True))
        return hidden @ lines.T, torch.from_numpy(target).to(z.device, non_blocking=True)

    def censor(self, z: Tensor, cells: Cells, draw: Any) -> Tensor:
        """Minus the critic's cross entropy (see `Measure.censor`)."""
        if not len(z):
            return 0 * z.sum()
        with frozen(self):
            logits, target = self(z, cells)
        losses = F.cross_entropy(logits, target, reduction="none")
        if self.cap:
            losses = losses.clamp(max=math.log(logits.shape[1]))
        return -weighted_mean(losses, cells)

    def critic_loss(self, z: Tensor, cells: Cells, draw: Any) -> Tensor:
        """Cross entropy of the critic's guesses."""
        logits, target = self(z, cells)
        self._last = logits.detach(), target
        return weighted_mean(F.cross_entropy(logits, target, reduction="none"), cells)

    def readings(self) -> dict[str, Tensor]:
        """Share of rows whose subject the critic guessed, and of a blind guess."""
        if self._last is None:
            return {}
        logits, target = self._last
        right = (logits.argmax(1) == target).to(logits.dtype).mean()
        return {"critic_accuracy": right, "critic_chance": right.new_full((), 1 / logits.shape[1])}


def weighted_mean(losses: Tensor, cells: Cells) -> Tensor:
    """Mean over rows, every class present weighing the same where a class is given."""
    if cells.given is None:
        return losses.sum() / max(len(losses), 1)  # of no rows: 0, and not 0/0
    stratum = cells.stratum[cells.cell]
    weight = 1 / (cells.n_strata * np.bincount(stratum)[stratum])
    return (losses * torch.from_numpy(weight).to(losses, non_blocking=True)).sum()
