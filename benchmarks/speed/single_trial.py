"""Time from one trial to its label, on one thread: `predict`, `live`, and the exported ONNX graph.

What a person who waits for the answer feels: median and 99th percentile of the clock, one trial
per call, with the checks and the normalisation that every call makes. The ways take turns in one
run. The clock and not CPU time, because here the wait itself is the figure; a busy machine makes it
worse, never better.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

import autotransfer as at
from autotransfer.errors import KernelLengthWarning
from benchmarks.common import report

SHAPES = ((8, 52), (8, 200), (16, 128), (56, 260), (61, 128))
GOAL_SHAPE, GOAL_MS = (16, 128), 10.0
LIVE_SHAPE, LIVE_MS, LIVE_99_MS = (8, 200), 3.0, 15.0


def trained(n_channels: int, n_times: int) -> tuple[at.CensoredClassifier, Any]:
    """Train a little: how well does not matter, as long as `live` has something to go by."""
    data = at.make_subjects(
        n_subjects=4, n_trials=40, n_channels=n_channels, n_times=n_times, random_state=0
    )
    clf = at.CensoredClassifier("mmd", max_epochs=20, random_state=0, device="cpu", verbose=False)
    return clf.fit(data.X, data.y, subject=data.subject), data.X


def session(clf: at.CensoredClassifier, folder: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    file = clf.export_onnx(folder / "model.onnx")
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def answer(run: onnxruntime.InferenceSession, x: Any) -> Any:
    """Predict by the exported graph."""
    return run.run(None, {"signals": x})


def take_turns(ways: dict[str, Callable[[Any], Any]], X: Any, calls: int) -> dict[str, list[float]]:
    """Seconds of every call, each with another trial."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for i in range(-10, calls):  # the first ten warm up
        x = X[i % len(X)][None]
        for name, way in ways.items():
            start = time.perf_counter()
            way(x)
            if i >= 0:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def _differ(one: Any, other: Any) -> bool:
    """Whether the weights of two models differ: `live` waits until it has seen enough classes."""
    weights = (model.network_.encoder.conv_temporal.weight for model in (one, other))
    return not torch.equal(*weights)


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--calls", type=int, default=500)
    args = report.arguments(parser, calls=5)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", KernelLengthWarning)
    rows, goals = [], []
    for shape in SHAPES[: 1 if args.smoke else None]:
        clf, X = trained(*shape)
        with tempfile.TemporaryDirectory() as there:
            run = session(clf, Path(there))
        live = clf.live()
        gap = np.abs(answer(run, X)[0] - clf.predict_proba(X)).max()
        ways: dict[str, Callable[[Any], Any]] = {
            "predict": clf.predict,
            "onnx": partial(answer, run),
            "live": live.predict,
        }
        found = take_turns(ways, X, args.calls)
        row: dict[str, Any] = {"channels x times": f"{shape[0]} x {shape[1]}"}
        for name, seconds in found.items():
            row[f"{name} ms"] = 1e3 * float(np.median(seconds))
            row[f"{name} 99 % ms"] = 1e3 * float(np.quantile(seconds, 0.99))
        # A network that was made meanwhile takes over: here without a pause between trials.
        row["live slowest ms"] = 1e3 * max(found["live"])
        row["largest difference of probabilities"] = f"{gap:.1e}"
        row["live has learned"] = "yes" if _differ(live.model(), clf) else "no"
        rows.append(row)
        if shape == LIVE_SHAPE:
            words = f"{shape[0]} x {shape[1]}: "
            goals += [
                report.Goal(words + "median ms of live", row["live ms"], LIVE_MS, at_least=False),
                report.Goal(
                    words + "99th percentile ms of live",
                    row["live 99 % ms"],
                    LIVE_99_MS,
                    at_least=False,
                ),
            ]
        if shape == GOAL_SHAPE:
            for name in ("predict", "onnx"):
                goal = f"{shape[0]} x {shape[1]}: median ms of {name}"
                goals.append(report.Goal(goal, row[f"{name} ms"], GOAL_MS, at_least=False))
    report.finish(args, "From one trial to its label, one thread", rows, goals, calls=args.calls)


if __name__ == "__main__":
    main()
