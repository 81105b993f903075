"""CPU time of a training step of EEGNet: layer by layer, and fused.

One thread, one run, the two networks taking turns, least of several repeats. A step is forward,
backward and AdamW. The fused network gets its batch as the training loop hands it over: memory
laid out by channel, trial statistics prepared once ("cached") or computed in the step.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn

from autotransfer.encoder import EEGNet
from autotransfer.errors import KernelLengthWarning
from benchmarks.common import report

GOALS = {
    (8, 52, 64): 4,
    (8, 200, 64): 4,
    (16, 128, 64): 7,
    (16, 128, 256): 12,
    (56, 260, 64): 20,
    (61, 128, 64): 24,
}
N_CLASSES = 4


def stepper(
    net: nn.Module, head: nn.Linear, y: Tensor, *inputs: Tensor | None
) -> Callable[[], None]:
    optimiser = torch.optim.AdamW([*net.parameters(), *head.parameters()], lr=1e-3, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        loss = nn.functional.cross_entropy(head(net(*inputs)), y)
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
        optimiser.step()

    return step


def least(steps: dict[str, Callable[[], None]], repeats: int, seconds: float) -> dict[str, float]:
    """Least CPU seconds per step; the contestants take turns, so that all see the same machine."""
    count = {}
    for name, step in steps.items():
        step()
        start = time.process_time()
        step()
        count[name] = max(2, int(seconds / (time.process_time() - start)))
    best = dict.fromkeys(steps, float("inf"))
    for _ in range(repeats):
        for name, step in steps.items():
            start = time.process_time()
            for _ in range(count[name]):
                step()
            best[name] = min(best[name], (time.process_time() - start) / count[name])
    return best


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.3, help="CPU time of one repeat")
    args = report.arguments(parser, repeats=1, seconds=0.0)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", KernelLengthWarning)
    rows, goals = [], []
    for (channels, times, batch), goal in list(GOALS.items())[: 1 if args.smoke else None]:
        torch.manual_seed(0)
        x = torch.randn(batch, channels, times)
        y = torch.randint(N_CLASSES, (batch,))
        fused = EEGNet(channels, times)
        again = EEGNet(channels, times)
        literal = fused.literal()
        heads = [nn.Linear(fused.n_latent, N_CLASSES) for _ in range(3)]
        by_channel = x.transpose(0, 1).contiguous().transpose(0, 1)
        stats = fused.prepare(x)
        seconds = least(
            {
                "literal": stepper(literal, heads[0], y, x),
                "cached": stepper(fused, heads[1], y, by_channel, stats),
                "per batch": stepper(again, heads[2], y, by_channel, None),
            },
            args.repeats,
            args.seconds,
        )
        ratio = {name: seconds["literal"] / seconds[name] for name in ("cached", "per batch")}
        rows.append(
            {
                "channels x times, batch": f"{channels} x {times}, {batch}",
                "literal ms": 1e3 * seconds["literal"],
                "fused, cached ms": 1e3 * seconds["cached"],
                "speed-up": ratio["cached"],
                "fused, per batch ms": 1e3 * seconds["per batch"],
                "speed-up per batch": ratio["per batch"],
            }
        )
        goals.append(report.Goal(f"{channels} x {times}, {batch}: speed-up", ratio["cached"], goal))
    report.finish(args, "EEGNet training step, CPU time, one thread", rows, goals)


if __name__ == "__main__":
    main()
