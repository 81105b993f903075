"""BEGAN: an autoencoder that knows the subject, and an encoder that makes it useless to know."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from autotransfer.censoring.critic import SubjectTable, columns, frozen, standardise
from autotransfer.censoring.measure import Measure, by_mode, choose, number, switch
from autotransfer.censoring.rivals import Rivals, even_weights
from autotransfer.data.validate import as_count
from autotransfer.estimation.cells import Cells, Floats


class Autoencoder(nn.Module):
    """Autoencoder of latents that is told a subject (and a class, where one is given).

    Parameters
    ----------
    n_latent, n_given, hidden : int
        Columns of z, classes that it is told, width of its hidden layers.
    n_subjects : int
        Subjects that it is told, or 0 for an autoencoder that is not told any.
    """

    def __init__(self, n_latent: int, n_subjects: int, n_given: int, hidden: int) -> None:
        super().__init__()
        code = max(n_latent // 2, 1)
        self.n_given = n_given
        self.enter, self.code = nn.Linear(n_latent + n_given, hidden), nn.Linear(hidden, code)
        self.leave, self.out = nn.Linear(code + n_given, hidden), nn.Linear(hidden, n_latent)
        # At first all subjects are the same to it: what it tells apart, it has learnt. One table
        # for both layers that hear of the subject, because a lookup costs more than its numbers.
        self.told = SubjectTable(n_subjects, 2 * hidden, 0.0) if n_subjects else None

    def forward(
        self, u: Tensor, subject: Tensor | None, label: Tensor | None, rows: Tensor | None = None
    ) -> Tensor:
        """Mean absolute error over columns (Q,) of rows of u (N, K) under subjects (Q,).

        `rows` (Q,) says which rows are meant; all, in their order, by default. Labels are (N,).
        """
        h = self.enter(columns(u, label, self.n_given))  # the same under any subject
        if rows is not None:
            h, u = h.index_select(0, rows), u.index_select(0, rows)
            label = None if label is None else label.index_select(0, rows)
        first, second = (0, 0) if self.told is None else self.told(subject).chunk(2, 1)
        h = self.leave(columns(self.code(F.elu(h + first)), label, self.n_given))
        error: Tensor = (self.out(F.elu(h + second)) - u).abs().mean(1)
        return error


class BEGAN(Measure):
    r"""Log-ratio of an autoencoder's errors under the right and under a wrong subject.

        Lzs = mean_m mean_{s_i = m} AE_i(m),    Lz = mean_m mean_{s_i ≠ m} AE_i(m)
        P = (Lzs - c Lz) / sg(Lz),    critic: min Lz - k log(Lzs / Lz)
        k ← clip(k + β (γ - Lzs / Lz), 0, 1)

    AE_i(m) is the mean absolute error of row i when the autoencoder is told subject m. The critic
    learns to do better under wrong labels than under the right ones as far as latents of subjects
    differ; the encoder makes the label useless.

    Parameters
    ----------
    n_latent, n_subjects, n_given : int
        As for `Measure`.
    variant : {"rest", "abs", "literal"}
        "rest" is the form above. "abs" has one autoencoder that is told nothing, with Lz the mean
        error and ``Lzs = Lz + mean_m |L_m - Lz|``. "literal" is the paper's: Lzs = mean_m L_m,
        which equals Lz for balanced batches, so that it cannot see the subject.
    form : {"balanced", "ratio", "difference", "paper"}, optional
        "balanced" is the form above; "ratio" has P = log(Lzs / Lz) with the same critic.
        "difference": P = Lzs - Lz, critic Lz - k Lzs, k ← k + β (γ Lz - Lzs). "paper": the same
        but P = Lzs, and Lz - k Lzs where dependence is raised. By default "balanced", or "paper"
        for the literal variant.
    balance : float
        c of the balanced form. An autoencoder reads the wrong labels better than the right ones,
        so that at c = 1 the encoder gains by latents that are hard to encode, whoever they come
        from; well below by latents that are easy to encode. 0.993 lies between: with shuffled
        labels the leak neither rises nor falls.
    gamma, beta, k : float
        γ, β, first k; for the literal variant the paper's 0.5, 0.001, 0 unless given.
    others : int or "all"
        Wrong labels tried for each row, drawn among the subjects present.
    hidden, n_critic, critic_speed : int, int, float
        As for `Adversary`.
    standardise : bool
        Give the critic standardised latents, so that the encoder cannot win by shrinking them.

    Notes
    -----
    Why not as printed: docs/corrections.md (E12 to E15).

    References
    ----------
    Berthelot, Schumm, Metz, BEGAN: boundary equilibrium generative adversarial networks (2017),
    arXiv:1703.10717.
    """

    strength: ClassVar[dict[str, float]] = by_mode(0.05, 0.05, 0.1)

    def __init__(
        self,
        n_latent: int,
        n_subjects: int,
        n_given: int = 0,
        *,
        variant: str = "rest",
        form: str | None = None,
        balance: float = 0.993,
        gamma: float | None = None,
        beta: float | None = None,
        k: float | None = None,
        others: int | str = 1,
        hidden: int = 48,
        n_critic: int = 3,
        critic_speed: float = 10.0,
        standardise: bool = True,
    ) -> None:
        super().__init__(n_latent, n_subjects, n_given)
        self.variant = choose("variant", variant, ("rest", "abs", "literal"))
        literal = variant == "literal"
        form = form or ("paper" if literal else "balanced")
        self.form = choose("form", form, ("balanced", "ratio", "difference", "paper"))
        self._relative = self.form in ("balanced", "ratio")
        self.balance = number("balance", balance, 0)
        self.gamma = number("gamma", gamma, 0) if gamma is not None else (0.5 if literal else 1.25)
        self.beta = number("beta", beta, 0) if beta is not None else (0.001 if literal else 0.01)
        first = number("k", k, 0, 1) if k is not None else (0.0 if literal else 0.5)
        self.others = others if others == "all" else as_count(others, "others")
        self.n_critic = as_count(n_critic, "n_critic")
        self.critic_speed = number("critic_speed", critic_speed, 1e-6)
        self.standardise = switch("standardise", standardise)
        n_told = n_subjects if variant == "rest" else 0
        hidden = as_count(hidden, "hidden")
        self.critic = Autoencoder(n_latent, n_told, n_given, hidden)
        self.k: Tensor
        self.register_buffer("k", torch.tensor(first))
        self._last: tuple[Tensor, Tensor] | None = None
        self._batch: Rivals | None = None

    def draw(self, cells: Cells, generator: torch.Generator | None = None) -> Any:
        """Choose wrong labels: row numbers, labels and weights (Q,) each, or None."""
        return self._rivals(cells).draw(generator) if self.variant == "rest" else None

    def _rivals(self, cells: Cells) -> Rivals:
        """Look at the labels of a batch once for all steps on it."""
        if self._batch is None or self._batch.cells is not cells:
            self._batch = Rivals(cells, self.others)
        return self._batch

    def losses(self, z: Tensor, cells: Cells, draw: Any) -> tuple[Tensor, Tensor] | None:
        """Lzs and Lz of a batch; None if it has no class with two subjects."""
        right_weight = self._rivals(cells).right
        if not right_weight.any():
            return None
        label = None
        if self.n_given and cells.given is not None:
            label = torch.from_numpy(cells.given).to(z.device, non_blocking=True)
        u = standardise(z) if self.standardise else z
        if draw is None:
            error = self.critic(u, None, label)
            real = even_weights(cells, right_weight)
        else:
            every = np.arange(len(z)), cells.subject  # under the right labels, then the wrong ones
            queries = torch.from_numpy(np.concatenate([every, draw[:2]], 1))
            rows, subject = queries.to(z.device, non_blocking=True).unbind()
            error = self.critic(u, subject, label, rows)
            right_weight, real = (
                np.append(right_weight, 0 * draw[2]),
                np.append(0 * right_weight, draw[2]),
            )
        weight = torch.from_numpy(np.array([right_weight, real])).to(z, non_blocking=True)
        right, mean = (weight @ error).unbind()
        if self.variant == "abs":
            right = mean + _deviation(error, cells, right_weight)
        return right, mean

    def _penalty(self, losses: tuple[Tensor, Tensor]) -> Tensor:
        """Penalty of the encoder."""
        right, mean = losses
        if self.form == "ratio":
            return _log_ratio(right, mean)
        if self.form == "balanced":
            return (right - self.balance * mean) / mean.detach().clamp(min=1e-12)
        return right - mean if self.form == "difference" else right

    def _aim(self, losses: tuple[Tensor, Tensor]) -> Tensor:
        """Loss of the critic."""
        right, mean = losses
        return mean - self.k * (_log_ratio(right, mean) if self._relative else right)

    def censor(self, z: Tensor, cells: Cells, draw: Any) -> Tensor:
        """How much better the autoencoder does under wrong labels (see `Measure.censor`)."""
        with frozen(self):
            losses = self.losses(z, cells, draw)
            return 0 * z.sum() if losses is None else self._penalty(losses)

    def keep(self, z: Tensor, cells: Cells, draw: Any) -> Tensor:
        """Minus the above; in the paper's form Lz - k Lzs."""
        if self.form != "paper":
            return -self.censor(z, cells, draw)
        with frozen(self):
            losses = self.losses(z, cells, draw)
            return 0 * z.sum() if losses is None else self._aim(losses)

    def critic_loss(self, z: Tensor, cells: Cells, draw: Any) -> Tensor:
        """Loss of the autoencoder; moves k."""
        losses = self.losses(z, cells, draw)
        if losses is None:
            return 0 * self.critic.out.bias.sum()  # attached, so that a step can be taken
        loss = self._aim(losses)
        right, mean = (v.detach() for v in losses)
        ratio = right / mean.clamp(min=1e-12)
        gap = self.gamma - ratio if self._relative else self.gamma * mean - right
        # A new tensor: the graph of the loss still holds the old one.
        self.k = (self.k + self.beta * gap).clamp(0, 1)
        self._last = ratio, self.k
        return loss

    def readings(self) -> dict[str, Tensor]:
        """Ratio of errors under right and wrong labels (1: no difference), and k."""
        return {} if self._last is None else {"critic_ratio": self._last[0], "k": self._last[1]}


def _log_ratio(right: Tensor, mean: Tensor) -> Tensor:
    return torch.log(right.clamp(min=1e-12) / mean.clamp(min=1e-12))


def _deviation(error: Tensor, cells: Cells, weight: Floats) -> Tensor:
    """Mean over subjects of |L_m - L|, within a class, then over classes with two subjects."""
    cell = torch.from_numpy(cells.cell).to(error.device)
    count = torch.from_numpy(cells.count).to(error)
    stratum = torch.from_numpy(cells.stratum).to(error.device)
    sums = error.new_zeros(len(cells.count)).index_add(0, cell, error)
    total = error.new_zeros(cells.n_strata).index_add(0, stratum, sums)
    size = error.new_zeros(cells.n_strata).index_add(0, stratum, count)
    share = np.bincount(cells.cell, weight, len(cells.count))
    gap = (sums / count - (total / size)[stratum]).abs()
    return (gap * torch.from_numpy(share).to(error)).sum()
