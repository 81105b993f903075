"""What censoring costs: a training step with each censor against the uncensored step.

A step is encoder and classifier forward, penalty with its critic's steps, backward, optimiser: the
fused EEGNet with cached statistics, 8 subjects in the batch, one thread, CPU time; settings take
turns within a run and the median over turns counts. Then the batched forms against literal loops
over subjects and pairs. Then the same step with few and with very many subjects in the data.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor

import autotransfer as at
from autotransfer.censoring import MEASURES, MODES, make_censor
from autotransfer.encoder.network import Network
from autotransfer.errors import KernelLengthWarning
from autotransfer.estimation.kernels import rbf, square_distances
from autotransfer.estimation.length_scale import median_beta
from autotransfer.estimation.scores import score
from autotransfer.training.loop import task_loss
from autotransfer.training.penalty import Penalty
from benchmarks.common import report

SHAPES = [(16, 128, 64), (8, 200, 128)]
SUBJECTS, CLASSES = 8, 2

# (measure, options, most that a step may cost relative to the uncensored one)
GOALS: list[tuple[str, dict[str, Any], float]] = [
    ("mmd", {}, 1.2),
    ("pairmmd", {}, 1.2),
    ("mige", {"estimator": "tikhonov"}, 1.5),
    ("mige", {"estimator": "stein"}, 1.5),
    ("mige", {"estimator": "ssge"}, 2.0),
    ("mige", {"estimator": "nu"}, 2.0),
    ("adversary", {"n_critic": 1}, 1.5),
    ("began", {"n_critic": 1}, 1.5),
]


class Step:
    """A training step on batches of given subjects and labels."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        measure: str | None,
        mode: str = "marginal",
        options: dict[str, Any] | None = None,
        n_subjects: int = SUBJECTS,
    ) -> None:
        channels, times, self.batch = shape
        torch.manual_seed(0)
        # Four batches of signals: a real step does not find its input in the processor's cache.
        self.x = torch.randn(4 * self.batch, channels, times).transpose(0, 1).contiguous()
        encoder = at.EEGNet(channels, times)
        self.network = Network(encoder, CLASSES)
        self.stats = encoder.prepare(self.x.transpose(0, 1))
        self.optimiser = torch.optim.AdamW(self.network.parameters(), lr=1e-3, fused=True)
        self.weights = torch.full((CLASSES,), 1 / CLASSES)
        # As many chunks of each subject as a batch has places: every batch is then of the size
        # wanted, whatever the number of subjects (50 chunks in batches of 8 are batches of 7).
        per_subject = SUBJECTS * (self.batch // SUBJECTS)
        self.subject = np.repeat(np.arange(n_subjects), per_subject)
        self.label = np.arange(len(self.subject)) % CLASSES
        batches = at.SubjectBatches(
            self.label, self.subject, SUBJECTS, self.batch // SUBJECTS, seed=0
        )
        self._epochs = (trials for n in range(10**9) for trials in batches.epoch(n))
        self.penalty = None
        if measure is not None:
            sizes = {"n_latent": self.network.n_latent, "n_classes": CLASSES}
            censor = make_censor(measure, mode, n_subjects=n_subjects, **sizes, options=options)
            self.penalty = Penalty(censor, 0.1, 0, self.subject, self.label)
            self.penalty.start(1, 1e-3, seed=0)

    def __call__(self) -> None:
        """Take one step."""
        trials = next(self._epochs)
        rows = torch.from_numpy(trials % self.x.shape[1])
        y = torch.from_numpy(self.label[trials])
        self.network.train()
        x = self.x.index_select(1, rows).transpose(0, 1)
        z, logits = self.network(x, self.stats.index_select(0, rows))
        loss = task_loss(logits, y, self.weights)
        if self.penalty is not None:
            loss = loss + self.penalty(z, trials)
            if len(self.penalty._record) > 100:
                self.penalty.finish()
                self.penalty.start(1, 1e-3, seed=0)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
        self.optimiser.step()


def turns(acts: dict[str, Callable[[], None]], n_turns: int, seconds: float) -> dict[str, Any]:
    """CPU seconds of each act in each of several turns."""
    repeats = {}
    for name, act in acts.items():
        act()
        start = time.process_time()
        act()
        repeats[name] = max(1, int(seconds / max(time.process_time() - start, 1e-5)))
    found: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(n_turns):
        for name, act in acts.items():
            start = time.process_time()
            for _ in range(repeats[name]):
                act()
            found[name].append((time.process_time() - start) / repeats[name])
    return found


def ratio(found: dict[str, list[float]], name: str, base: str) -> float:
    """Median over turns of one act's time to another's in the same turn."""
    return median(a / b for a, b in zip(found[name], found[base], strict=True))


def steps(args: Any, rows: list[dict[str, Any]], goals: list[report.Goal]) -> None:
    """Time steps with each censor, relative to the uncensored one."""
    for shape in SHAPES[: 1 if args.smoke else None]:
        acts: dict[str, Callable[[], None]] = {"uncensored": Step(shape, None)}
        bounds = {}
        for measure, options, bound in GOALS:
            name = " ".join([measure, *(f"{k}={v}" for k, v in options.items())])
            acts[name], bounds[name] = Step(shape, measure, options=options), bound
        for measure in MEASURES:
            for mode in MODES:
                acts[f"{measure} {mode}, default"] = Step(shape, measure, mode)
        found = turns(acts, args.turns, args.seconds)
        for name in acts:
            relative = ratio(found, name, "uncensored")
            rows.append(
                {
                    "channels x times, batch": "{} x {}, {}".format(*shape),
                    "censor": name,
                    "ms": 1e3 * median(found[name]),
                    "relative": relative,
                    "goal": bounds.get(name, float("nan")),
                }
            )
            if name in bounds:
                what = "{} x {}, {}: {}".format(*shape, name)
                goals.append(report.Goal(what, relative, bounds[name], at_least=False))


def groups(s: np.ndarray) -> list[Tensor]:
    """Rows of every subject that has two or more."""
    found = [torch.from_numpy(np.flatnonzero(s == m)) for m in np.unique(s)]
    return [rows for rows in found if len(rows) >= 2]


def literal_mmd(z: Tensor, s: np.ndarray) -> Tensor:
    """Compute MMD as printed: for every subject, three kernel matrices."""
    rows = groups(s)
    beta, n = median_beta(square_distances(z)), len(z)
    total = z.new_zeros(())
    for mine in rows:
        own, m = z[mine], len(mine)
        total = total + (rbf(square_distances(z), beta).sum() - n) / (n * (n - 1))
        total = total + (rbf(square_distances(own), beta).sum() - m) / (m * (m - 1))
        total = total - 2 * (rbf(square_distances(z, own), beta).sum() - m) / (m * (n - 1))
    return total / len(rows)


def literal_pairmmd(z: Tensor, s: np.ndarray) -> Tensor:
    """Compute PairMMD as printed: for every pair of subjects, three kernel matrices."""
    rows = groups(s)
    beta = median_beta(square_distances(z))
    total, pairs = z.new_zeros(()), 0
    for i, mine in enumerate(rows):
        for theirs in rows[:i]:
            for group in (mine, theirs):
                n = len(group)
                total = total + (rbf(square_distances(z[group]), beta).sum() - n) / (n * (n - 1))
            cross = rbf(square_distances(z[mine], z[theirs]), beta)
            total, pairs = total - 2 * cross.mean(), pairs + 1
    return total / pairs


def literal_mige(z: Tensor, s: np.ndarray) -> Tensor:
    """Compute the size-matched surrogate, subject by subject."""
    order = torch.randperm(len(z))
    total = z.new_zeros(())
    for mine in groups(s):
        for rows, sign in ((mine, 1.0), (order[mine], -1.0)):
            total = total + sign * (score(z[rows].detach()) * z[rows]).sum() / len(z)
    return total


def loops(args: Any, rows: list[dict[str, Any]], goals: list[report.Goal]) -> None:
    """Batched penalties, with their gradient, against loops over subjects and pairs."""
    literal = {"mmd": literal_mmd, "pairmmd": literal_pairmmd, "mige": literal_mige}
    for people in (10,) if args.smoke else (10, 50, 200):
        s = np.arange(256) % people  # of 200 subjects, 56 have the two rows they need
        z = torch.randn(256, 32, requires_grad=True)
        for measure, function in literal.items():
            options = {"n_min": 2} if measure == "mige" else {}
            censor = make_censor(
                measure, n_latent=32, n_subjects=people, n_classes=2, options=options
            )

            def batched(censor: Any = censor, z: Tensor = z, s: np.ndarray = s) -> None:
                torch.autograd.grad(censor(z, censor.cells(s)), z)

            def looped(f: Any = function, z: Tensor = z, s: np.ndarray = s) -> None:
                torch.autograd.grad(f(z, s), z)

            found = turns({"batched": batched, "loop": looped}, 3, args.seconds / 4)
            speed = ratio(found, "loop", "batched")
            rows.append(
                {
                    "measure": measure,
                    "subjects": people,
                    "batched ms": 1e3 * median(found["batched"]),
                    "loop ms": 1e3 * median(found["loop"]),
                    "speed-up": speed,
                }
            )
            if people == 50:
                goals.append(report.Goal(f"{measure}, 50 subjects: speed-up", speed, 10))


def sizes(args: Any, rows: list[dict[str, Any]], goals: list[report.Goal]) -> None:
    """Time the same step with 10 and with 100,000 subjects in the data."""
    shape, most = SHAPES[0], 20 if args.smoke else 100_000
    settings = [(None, {}), *((m, {}) for m in MEASURES), ("adversary", {"candidates": "all"})]
    for measure, options in settings:
        acts: dict[str, Callable[[], None]] = {
            str(n): Step(shape, measure, options=options, n_subjects=n) for n in (10, most)
        }
        found = turns(acts, args.turns, args.seconds)
        growth = ratio(found, str(most), "10")
        name = " ".join([measure or "uncensored", *options.values()])
        rows.append(
            {
                "censor": name,
                "10 subjects ms": 1e3 * median(found["10"]),
                f"{most:,} subjects ms": 1e3 * median(found[str(most)]),
                "growth": growth,
            }
        )
        if "all" not in options.values():
            goals.append(report.Goal(f"{name}: growth", growth, 1.05, at_least=False))


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.25, help="of each act in a turn")
    args = report.arguments(parser, turns=1, seconds=0.0)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", KernelLengthWarning)
    parts: dict[str, list[dict[str, Any]]] = {"step": [], "loops": [], "size": []}
    goals: list[report.Goal] = []
    for part, measure in (("step", steps), ("loops", loops), ("size", sizes)):
        measure(args, parts[part], goals)
    report.show(
        "Batched against literal loops, 256 rows of 32 columns, with gradient", parts["loops"]
    )
    report.show("A step with few and many subjects in the data", parts["size"])
    report.finish(
        args,
        "A training step with each censor, relative to the uncensored one",
        parts["step"],
        goals,
        loops=parts["loops"],
        sizes=parts["size"],
    )


if __name__ == "__main__":
    main()
