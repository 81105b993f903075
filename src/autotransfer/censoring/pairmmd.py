"""PairMMD: the distances between the latents of pairs of subjects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from autotransfer.censoring.measure import by_mode, choose, number
from autotransfer.censoring.mmd import SCALES, KernelMeasure
from autotransfer.data.validate import as_count
from autotransfer.estimation.cells import Cells
from autotransfer.estimation.length_scale import LengthScale
from autotransfer.estimation.mmd import pair_weights, usable_pairs


class PairMMD(KernelMeasure):
    r"""Average squared maximum mean discrepancy between pairs of subjects.

        P = mean_{r < t} MMD²(q(z | s = r), q(z | s = t))

    Parameters
    ----------
    n_latent, n_subjects, n_given : int
        As for `Measure`.
    pairs : {"all", "bernoulli", "clique"}
        All pairs of subjects in the batch; each with probability `b`; or all pairs among `d`
        subjects. The sub-selections are the paper's; they save no time here, because all pairs
        come from one kernel matrix.
    b : float
        Probability of a pair, for "bernoulli".
    d : int
        Subjects of the clique, for "clique"; at least 2.
    length_scale, scales, detach_length_scale : object
        As for `MMD`.

    Notes
    -----
    Pairs are unordered and drawn among subjects with two trials or more in the batch; the same
    pairs serve every class and both halves of a latent. Corrections to the paper:
    docs/corrections.md (E9, E11).
    """

    strength: ClassVar[dict[str, float]] = by_mode(5, 5, 1)

    def __init__(
        self,
        n_latent: int,
        n_subjects: int,
        n_given: int = 0,
        *,
        pairs: str = "all",
        b: float = 0.5,
        d: int = 4,
        length_scale: LengthScale = "median",
        scales: Sequence[float] = SCALES,
        detach_length_scale: bool = False,
    ) -> None:
        super().__init__(n_latent, n_subjects, n_given, length_scale, scales, detach_length_scale)
        self.pairs = choose("pairs", pairs, ("all", "bernoulli", "clique"))
        self.b, self.d = number("b", b, 0, 1), as_count(d, "d", least=2)

    def draw(self, cells: Cells, generator: torch.Generator | None = None) -> Any:
        """Choose pairs of subjects: an array of bool (people, people), or None for all."""
        if self.pairs == "all":
            return None
        people = np.unique(cells.person[cells.count >= 2])
        n = int(cells.person.max(initial=-1)) + 1
        pairs = np.zeros((n, n), bool)
        if self.pairs == "clique":
            clique = people[torch.randperm(len(people), generator=generator).numpy()[: self.d]]
            pairs[np.ix_(clique, clique)] = True
            return pairs
        first, second = np.triu_indices(len(people), 1)
        hits = torch.rand(len(first), generator=generator, dtype=torch.float64).numpy() < self.b
        pairs[people[first[hits]], people[second[hits]]] = True
        return pairs | pairs.T

    def censor(self, z: Tensor, cells: Cells, draw: Any) -> Tensor:
        """Average MMD² of the chosen pairs (see `Measure.censor`)."""
        return self.average(z, cells, pair_weights(cells, usable_pairs(cells, draw)))
