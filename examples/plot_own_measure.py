"""
A measure of one's own
======================

A measure is one class with one method. Here is CORAL: the squared difference between the
covariance of each subject's latents and that of the batch (Sun and Saenko, Deep CORAL, 2016,
doi:10.1007/978-3-319-49409-8_35). It then works in all three modes, in `CensoredClassifier`, in
pipelines and in cross-validation. To ship it with the package, put the class in a file of
``autotransfer/censoring`` and its name in ``MEASURES``.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

import autotransfer as at
from autotransfer.censoring import Measure


class Coral(Measure):
    """Squared distance of subjects' means and covariances from those of the whole batch."""

    strength: ClassVar[dict[str, float]] = {"marginal": 1, "conditional": 1, "complementary": 0.1}
    smallest_cell = 2

    def __init__(
        self, n_latent: int, n_subjects: int, n_given: int = 0, *, means: bool = True
    ) -> None:
        super().__init__(n_latent, n_subjects, n_given)
        self.means = means

    def censor(self, z: Tensor, cells: Any, draw: Any) -> Tensor:
        """Average over the cells of the batch that have two trials or more."""
        weight = torch.from_numpy(cells.usable(self.smallest_cell)).to(z)
        cell = torch.from_numpy(cells.cell)
        stratum = torch.from_numpy(cells.stratum)
        member = torch.nn.functional.one_hot(cell).to(z)  # rows x cells
        whole = torch.nn.functional.one_hot(stratum[cell]).to(z)
        mean, covariance = moments(z, member)
        mean_all, covariance_all = moments(z, whole)
        gap = (covariance - covariance_all[stratum]).square().mean((1, 2))
        if self.means:
            gap = gap + (mean - mean_all[stratum]).square().mean(1)
        return (weight * gap).sum()


def moments(z: Tensor, member: Tensor) -> tuple[Tensor, Tensor]:
    """Mean (G, K) and covariance (G, K, K) of the rows of each group."""
    share = member / member.sum(0)
    mean = share.T @ z
    second = torch.einsum("ng,ni,nj->gij", share, z, z)
    return mean, second - mean[:, :, None] * mean[:, None]


if __name__ == "__main__":
    data = at.make_subjects(n_subjects=6, n_trials=48, n_channels=8, random_state=0)
    for measure in (None, Coral):
        clf = at.CensoredClassifier(measure, "marginal", max_epochs=10, random_state=0)
        clf.fit(data.X, data.y, subject=data.subject)
        print(measure, clf.provenance_["scores"], clf.history_[-1].get("penalty"))
