"""What the encoder prepares of a data set, against the training that it is prepared for.

EEGNet's share of every trial in the window moments depends on data, normalisation and kernel, not
on weights: each training computes it once. Were it kept for all workers of a search, they would
save that. CPU time of one thread: preparing everything; steps of a training of the recipe that a
run begins with, from two short ones; and the share of preparing in a whole training.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import torch

import autotransfer as at
from autotransfer.data.normalise import Normaliser
from autotransfer.data.problem import Problem
from autotransfer.data.splits import Fold
from autotransfer.encoder.registry import make_encoder
from autotransfer.errors import AutoTransferWarning
from autotransfer.search.settings.recipe_space import recipe_space
from benchmarks.common import report
from benchmarks.common.recordings import RECORDINGS, arguments

GOAL = 0.1


def preparing(problem: Problem, clf: at.CensoredClassifier) -> float:
    """CPU seconds of preparing all trials."""
    _, channels, times = problem.X.shape
    encoder = make_encoder(clf.encoder, channels, times, problem.info.sfreq, clf.encoder_options)
    normaliser = Normaliser(clf.normalise).fit(problem.X, None, problem.subject)
    blocks = [torch.from_numpy(normaliser.transform(x)) for _, x in problem.X.chunks()]
    start = time.process_time()
    for block in blocks:
        for piece in torch.split(block, 256):  # as in training
            encoder.prepare(piece)  # type: ignore[operator]
    return time.process_time() - start


def step(problem: Problem, clf: at.CensoredClassifier, steps: int) -> float:
    """CPU seconds of a step of training, from a training and one three times as long."""
    everybody = np.arange(len(problem.codes))
    fold = Fold(problem.subject, everybody, everybody[:0], everybody[:0])
    seconds = []
    for n_steps in (steps, steps, 3 * steps):  # the first warms up
        clf.set_params(n_steps=n_steps)
        start = time.process_time()
        clf.fit_fold(problem, fold, 0)
        seconds.append((len(clf.history_), time.process_time() - start))
    _, (first, short), (last, long) = seconds
    per_epoch = (long - short) / (last - first)
    batch = (clf.subjects_per_batch or 8) * (clf.trials_per_subject or 8)
    return per_epoch / max(1, round(len(everybody) / batch))


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=list(RECORDINGS), nargs="*", default=list(RECORDINGS))
    parser.add_argument("--steps", type=int, default=150)
    args = arguments(parser, dataset=["ssvep"], steps=2)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", AutoTransferWarning)
    rows, goals = [], []
    for name in args.dataset:
        problem = Problem.of(RECORDINGS[name].load())
        base = at.CensoredClassifier(validation=None, device="cpu", verbose=False, random_state=0)
        space = recipe_space(problem, base.options)
        kernels = space.dimension("kernel").values
        for kernel in kernels:
            options = space.default.with_options(kernel).applied({"encoder_options": None})
            n_steps = options["n_steps"]
            clf = base.set_params(**options)
            once = preparing(problem, clf)
            whole = once + n_steps * step(problem, clf, args.steps)
            rows.append(
                {
                    "data": name,
                    "kernel": str(*kernel.values()),
                    "trials": len(problem.codes),
                    "preparing s": once,
                    "training s": whole,
                    "share": once / whole,
                }
            )
            goal = f"{name}, kernel of {rows[-1]['kernel']} s: share of preparing"
            goals.append(report.Goal(goal, once / whole, GOAL, at_least=False))
    report.finish(args, "Preparing window moments beside training, CPU seconds", rows, goals)


if __name__ == "__main__":
    main()
