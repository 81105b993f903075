"""The table of measures that every law is tried on, and batches whose dependence is known.

To add a measure, add a row to `TABLE`. What a row does not say is what all measures must do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import literal
import numpy as np
import pytest
import torch
from torch import Tensor

from autotransfer.censoring import MODES, Censor, Measure, critic_optimisers, make_censor
from autotransfer.censoring.critic import standardise
from autotransfer.encoder.split import split_latent
from autotransfer.estimation.cells import Cells
from autotransfer.estimation.length_scale import LENGTH_SCALES
from autotransfer.estimation.scores import SCORES, score

Array = np.ndarray
Labels = Array | None

# An odd number of columns: the halves of complementary mode differ in width.
N_LATENT, N_SUBJECTS, N_CLASSES = 5, 5, 2


def plain_mmd(part: Any, z: Array, s: Array, y: Labels) -> Callable[[Array], float]:
    held = literal.sigma(z) if part.detach_length_scale else None
    return lambda z: literal.mmd(z, s, y, part.scales, part.literal, held)


def plain_pairmmd(part: Any, z: Array, s: Array, y: Labels) -> Callable[[Array], float]:
    held = literal.sigma(z) if part.detach_length_scale else None
    return lambda z: literal.pairmmd(z, s, y, part.scales, held)


def plain_adversary(part: Any, z: Array, s: Array, y: Labels) -> Callable[[Array], float]:
    cells = Cells.of(s, y)
    return lambda z: literal.adversary(part(torch.from_numpy(z), cells)[0].tolist(), s, y)


def plain_began(part: Any, z: Array, s: Array, y: Labels) -> Callable[[Array], float]:
    label = None if y is None else torch.from_numpy(y)

    def penalty(z: Array) -> float:
        u = standardise(torch.from_numpy(z))
        told = [torch.full((len(s),), m) for m in range(N_SUBJECTS)]
        error = torch.stack([part.critic(u, m, label) for m in told], 1).tolist()
        return literal.began(lambda i, m: error[i][m], s, y)

    return penalty


def plain_mige(part: Any, z: Array, s: Array, y: Labels, draw: Any) -> Array:
    def scores(x: Array) -> Array:
        return score(torch.from_numpy(x), part.estimator, part.gamma, part.length_scale).numpy()

    other = None if draw is None else draw[0]
    return literal.mige_direction(z, s, y, scores, part.smallest_cell, other)


@dataclass(frozen=True)
class Row:
    """A measure with options, and which promises it makes beside those of all measures."""

    measure: str
    options: Mapping[str, Any] = field(default_factory=dict)
    sees: bool = True
    """Its penalty grows with the dependence of z on s."""
    scale_free: bool = False
    """Neither its value nor its gradient tells the scale of z."""
    unbiased: bool = False
    """Its mean is 0 when z does not depend on s. (Said where no other row implies it.)"""
    pays_alone: bool = False
    """A batch of one subject, in which there is nothing to compare, costs something."""
    plain: Callable[..., Callable[[Array], float]] | None = None
    """The same penalty in loops: of (part, z, s, y), a function of z."""
    plain_slope: Callable[..., Array] | None = None
    """The same gradient in loops: of (part, z, s, y, draw)."""

    def __str__(self) -> str:
        return " ".join([self.measure, *(f"{name}={v}" for name, v in self.options.items())])


@dataclass(frozen=True)
class Case:
    """A row of the table in a mode."""

    row: Row
    mode: str

    def __str__(self) -> str:
        return f"{self.row}, {self.mode}"

    def censor(
        self,
        dtype: torch.dtype = torch.float64,
        seed: int = 0,
        n_latent: int = N_LATENT,
        n_subjects: int = N_SUBJECTS,
    ) -> Censor:
        torch.manual_seed(seed)
        sizes = {"n_latent": n_latent, "n_subjects": n_subjects, "n_classes": N_CLASSES}
        made = make_censor(self.row.measure, self.mode, **sizes, options=self.row.options)
        return made.to(dtype)


SCALES = [*LENGTH_SCALES, 1.5]

# Another name of an estimator is not another estimator.
ESTIMATORS = list({id(rule): name for name, rule in reversed(SCORES.items())}.values())[::-1]

TABLE = (
    Row("adversary", pays_alone=True, plain=plain_adversary),
    Row("adversary", {"candidates": "batch"}),
    Row("adversary", {"cap": True}, pays_alone=True),
    *(
        Row("mige", {"estimator": name, "length_scale": scale}, plain_slope=plain_mige)
        for name in ESTIMATORS
        for scale in SCALES
        if not (SCORES[name].curl_free and scale == "tsne")
    ),
    Row("mige", {"matched": False}, plain_slope=plain_mige),
    Row("mige", {"calibrate": True}, scale_free=True),
    Row("mige", {"calibrate": True, "matched": False}, scale_free=True),
    Row("mige", {"n_perm": 3, "weights": "uniform"}),
    Row("mmd", scale_free=True, unbiased=True, plain=plain_mmd),
    Row("mmd", {"detach_length_scale": True}, plain=plain_mmd),
    Row("mmd", {"length_scale": "tsne"}, scale_free=True, unbiased=True),
    Row("mmd", {"length_scale": 1.5}),
    Row("mmd", {"scales": (1.0,)}, scale_free=True, unbiased=True, plain=plain_mmd),
    Row("mmd", {"literal": True}, scale_free=True, pays_alone=True, plain=plain_mmd),
    Row("pairmmd", scale_free=True, unbiased=True, plain=plain_pairmmd),
    Row("pairmmd", {"detach_length_scale": True}, plain=plain_pairmmd),
    Row("pairmmd", {"length_scale": "tsne"}, scale_free=True),
    Row("pairmmd", {"length_scale": 1.5}),
    Row("pairmmd", {"pairs": "bernoulli", "b": 0.6}, scale_free=True),
    Row("pairmmd", {"pairs": "clique", "d": 3}, scale_free=True, unbiased=True),
    Row("began", scale_free=True),
    Row("began", {"others": 3}, scale_free=True),
    Row("began", {"others": "all"}, scale_free=True),
    Row("began", {"form": "ratio", "others": "all"}, scale_free=True, plain=plain_began),
    Row("began", {"standardise": False}),
    Row("began", {"form": "difference"}, scale_free=True),
    Row("began", {"form": "paper"}, scale_free=True),
    Row("began", {"variant": "abs"}, scale_free=True),
    # What this pays for is how hard z is to encode, whoever it is of.
    Row("began", {"variant": "literal"}, scale_free=True, sees=False),
)


def over(rows: Iterable[Row] = TABLE, modes: Iterable[str] = MODES) -> Any:
    """Decorate a law that is to hold for rows of the table in some modes."""
    cases = [Case(row, mode) for row in rows for mode in modes]
    return pytest.mark.parametrize("case", cases, ids=str)


WITH_CRITIC = [row for row in TABLE if Case(row, "marginal").censor().n_critic]
ANALYTIC = [row for row in TABLE if row not in WITH_CRITIC]


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# Rows of every subject in either class: some many, some alone, some absent.
UNEVEN = ((6, 5, 9, 0, 4), (5, 8, 4, 6, 1))
EVEN = ((6,) * N_SUBJECTS,) * N_CLASSES


@dataclass(frozen=True)
class Batch:
    """Latents (N, K), subjects (N,) and classes (N,)."""

    z: Tensor
    s: Array
    y: Array

    def __len__(self) -> int:
        return len(self.s)


def batch(
    counts: tuple[tuple[int, ...], ...] = UNEVEN,
    *,
    theta: float = 1.0,
    dtype: torch.dtype = torch.float64,
    seed: int = 0,
    n_latent: int = N_LATENT,
) -> Batch:
    """Normal latents around `theta` times a centre of the subject plus one of the class."""
    table = np.array(counts)
    y, s = (np.repeat(at, table.ravel()) for at in np.indices(table.shape).reshape(2, -1))
    order = torch.randperm(len(s), generator=seeded(seed)).numpy()
    noise = torch.randn(len(s), n_latent, generator=seeded(seed + 1000), dtype=torch.float64)
    z = noise + theta * centres(n_latent)[s] + torch.tensor([-0.5, 0.5])[y][:, None]
    return Batch(z.to(dtype)[order], s[order], y[order])


def centres(n_latent: int = N_LATENT) -> Tensor:
    """Centre of every subject: the same in all batches."""
    return torch.randn(N_SUBJECTS, n_latent, generator=seeded(77), dtype=torch.float64)


def labels(counts: tuple[int, ...]) -> Array:
    return np.repeat(np.arange(len(counts)), counts)


def degenerate(dtype: torch.dtype) -> dict[str, Batch]:
    """Batches on which a division by a count, a distance or a spread could fail."""

    def made(s: Array, y: Array, change: Callable[[Tensor], Tensor] = lambda z: z) -> Batch:
        z = torch.randn(len(s), N_LATENT, generator=seeded(5), dtype=torch.float64)
        return Batch(change(z).to(dtype), s, y)

    s = labels((0, 1, 2, 7, 9))
    y = np.arange(len(s)) % 2
    return {
        "none, one, two, many trials": made(s, y),
        "one class": made(s, y * 0),
        "one subject": made(s * 0 + 3, y),
        "one subject in one class": made(np.where(y == 0, 3, s), y),
        "all rows equal": made(s, y, lambda z: z * 0 + z[:1]),
        "every row twice": made(s, y, lambda z: z[np.arange(len(s)) // 2]),
        "most rows equal": made(s, y, lambda z: torch.cat([z[:2], z[:1].expand(len(s) - 2, -1)])),
        "one column constant": made(s, y, lambda z: z * torch.tensor([0.0, 1, 1, 0, 1])),
        "far from 0": made(s, y, lambda z: z + 1e4),
        "very small": made(s, y, lambda z: z * 1e-8),
        "very large": made(s, y, lambda z: z * 1e8),
        "everybody once": made(labels((1,) * N_SUBJECTS), np.zeros(N_SUBJECTS, int)),
        "one row": made(s[:1], y[:1]),
        "no row": made(s[:0], y[:0]),
    }


def pull(
    censor: Censor, data: Batch, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Penalty of a batch and its gradient."""
    z = data.z.detach().clone().requires_grad_()
    value = censor(z, censor.cells(data.s, data.y), generator)
    (slope,) = torch.autograd.grad(value, z)
    return value.detach(), slope


def fix_draw(censor: Censor, draw: Any) -> None:
    """Let a censor make these random choices for every batch."""
    censor.measure.draw = lambda cells, generator=None: draw  # type: ignore[method-assign]


def reordered(draw: Any, order: Array) -> Any:
    """The same random choices for rows in another order."""
    place = np.argsort(order)
    if isinstance(draw, list):  # MIGE: who replaces each row
        return [place[other[order]] for other in draw]
    if isinstance(draw, tuple):  # BEGAN: rows, wrong subjects, weights
        return (place[draw[0]], *draw[1:])
    return draw  # about subjects


def renamed(draw: Any, new: Array) -> Any:
    """The same random choices when subject m is called new[m], and all subjects are there."""
    old = np.argsort(new)
    return draw[np.ix_(old, old)] if isinstance(draw, np.ndarray) else draw


def parts(censor: Censor, z: Tensor) -> list[tuple[Measure, Tensor, float]]:
    """The measures in a censor, the columns that each looks at, and the sign of its penalty."""
    if not hasattr(censor, "carrier"):
        return [(censor.measure, z, 1.0)]
    z1, z2 = split_latent(z)
    return [(censor.measure, z1, 1.0), (censor.carrier, z2, -1.0)]


def train_critics(censor: Censor, batches: list[Batch], steps: int) -> None:
    """Let the critics learn from batches, one after the other and again."""
    optimisers, generator = critic_optimisers(censor, 1e-2), seeded(0)
    for step in range(steps):
        data = batches[step % len(batches)]
        loss = censor.critic_loss(data.z, censor.cells(data.s, data.y), generator)
        for optimiser in optimisers:
            optimiser.zero_grad()
        loss.backward()
        for optimiser in optimisers:
            optimiser.step()


def close(found: Any, expected: Any, rtol: float = 1e-7, atol: float = 1e-9) -> None:
    found, expected = (np.asarray(v) for v in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
