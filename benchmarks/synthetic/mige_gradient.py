"""MIGE against the exact gradient of the mutual information, on mixtures of Gaussians.

Subjects are z | s ~ N(θ μ_s, I) in 1 and 2 dimensions, equally likely. I(z; s) is then the entropy
of the mixture minus that of a Gaussian, integrated numerically on a grid, and dI/dθ its central
difference. MIGE's estimate is the derivative of its penalty along dz/dθ = μ_s, averaged over
batches of 256 rows. Relative errors for every estimator, in the size-matched and in the textbook
form; and the derivative along z → a z, under which I does not change.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from autotransfer.censoring import make_censor
from autotransfer.estimation.scores import SCORES
from benchmarks.common import report

CIRCLE = [(np.cos(a), np.sin(a)) for a in np.arange(4) * np.pi / 2]
CASES = {
    "1-D, 2 subjects": 1.5 * np.array([[-1.0], [1.0]]),
    "1-D, 4 subjects": np.array([[-2.0], [-0.7], [0.7], [2.0]]),
    "2-D, 4 subjects": 1.5 * np.array(CIRCLE),
}
THETAS = (0.5, 1.0, 2.0)
ROWS = 256


def information(means: np.ndarray, theta: float) -> float:
    """I(z; s) in nats, by integration on a grid of step 0.05 over all that has any weight."""
    people, dim = means.shape
    edge = theta * np.abs(means).max() + 8
    axis = np.arange(-edge, edge, 0.05)
    grid = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), -1).reshape(-1, dim)
    density = np.zeros(len(grid))
    for mean in theta * means:
        density += np.exp(-((grid - mean) ** 2).sum(1) / 2)
    density /= people * (2 * np.pi) ** (dim / 2)
    entropy = -(density * np.log(np.maximum(density, 1e-300))).sum() * 0.05**dim
    return float(entropy - dim / 2 * np.log(2 * np.pi * np.e))


def slopes(means: np.ndarray, theta: float, options: dict[str, Any], batches: int) -> np.ndarray:
    """Compute derivatives of the penalty (batches, 2): in θ, and along z → a z."""
    people, dim = means.shape
    censor = make_censor("mige", n_latent=dim, n_subjects=people, n_classes=2, options=options)
    generator = torch.Generator().manual_seed(0)
    s = np.arange(ROWS) % people
    along = torch.from_numpy(means[s])
    cells = censor.cells(s)
    found = []
    for _ in range(batches):
        noise = torch.randn(ROWS, dim, generator=generator, dtype=torch.float64)
        z = (theta * along + noise).requires_grad_()
        (gradient,) = torch.autograd.grad(censor(z, cells, generator), z)
        found.append([float((gradient * along).sum()), float((gradient * z.detach()).sum())])
    return np.array(found)


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--batches", type=int, default=60)
    args = report.arguments(parser, batches=2)
    cases = list(CASES.items())[: 1 if args.smoke else None]
    torch.set_num_threads(1)
    rows, goals = [], []
    names = [name for name in SCORES if name != "mige"]
    for case, means in cases:
        for theta in THETAS:
            step = 1e-3
            exact = information(means, theta + step) - information(means, theta - step)
            exact /= 2 * step
            for name in names:
                row: dict[str, Any] = {"case": case, "theta": theta, "dI/dθ": exact}
                row["estimator"] = name
                for form, matched in (("matched", True), ("textbook", False)):
                    options = {"estimator": name, "matched": matched}
                    found = slopes(means, theta, options, args.batches)
                    mean, error = found.mean(0), found.std(0, ddof=1) / np.sqrt(args.batches)
                    row[form] = float(mean[0])
                    row[f"{form} s.e."] = float(error[0])
                    row[f"{form} relative error"] = float(abs(mean[0] - exact) / exact)
                    row[f"{form} drift"] = float(mean[1])
                rows.append(row)
                goals.append(report.Goal(f"{case}, θ = {theta}, {name}: sign", row["matched"], 0.0))
                # Where subjects lie far apart, the median distance smooths over the gap.
                if theta < 2 and name in ("tikhonov", "nu", "ssge"):
                    value = row["matched relative error"]
                    what = f"{case}, θ = {theta}, {name}: relative error"
                    goals.append(report.Goal(what, value, 0.35, at_least=False))
    report.finish(args, "Gradient of the mutual information: exact, and by MIGE", rows, goals)


if __name__ == "__main__":
    main()
