"""What batch norm's momentum costs: braindecode's 0.01 against torch's 0.1.

The running statistics that predictions use follow the batches with this momentum. With 0.01 they
need several hundred steps to forget their start, and a small set gives about ten steps an epoch.
Leave-one-subject-out on the two small sets of real recordings, everything else equal.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import wilcoxon

from benchmarks.accuracy import erm
from benchmarks.common import pool, report
from benchmarks.common.recordings import arguments


def main() -> None:
    parser = report.parser(__doc__)
    pool.add_options(parser)
    parser.add_argument("--dataset", nargs="*", default=["ssvep", "erp"])
    parser.add_argument("--max-epochs", type=int, default=60)
    args = arguments(parser, dataset=["ssvep"], max_epochs=1)
    scores: dict[tuple[str, float], np.ndarray] = {}
    epochs: dict[tuple[str, float], float] = {}
    for momentum in (0.01, 0.1):
        options = {
            "encoder_options": {"batch_norm_momentum": momentum},
            "max_epochs": args.max_epochs,
            "patience": 30,
            "learning_rate": 1e-3,
        }
        todo = list(erm.jobs(args.dataset, 0, options, all_kinds=False))
        results = erm.run_all(todo, args.keep, args.workers)
        for name in args.dataset:
            mine = [r for job, r in results.items() if job.dataset == name]
            scores[name, momentum] = np.array([s for r in mine for s in r["test"].values()])
            epochs[name, momentum] = float(np.mean([r["best_epoch"] for r in mine]))
    rows = []
    for name in args.dataset:
        slow, fast = scores[name, 0.01], scores[name, 0.1]
        for momentum, found in ((0.01, slow), (0.1, fast)):
            rows.append(
                {
                    "data": name,
                    "momentum": str(momentum),
                    "mean": float(found.mean()),
                    "lower quartile": float(np.quantile(found, 0.25)),
                    "worst": float(found.min()),
                    "kept epoch": epochs[name, momentum],
                    "paired Wilcoxon p": float(wilcoxon(fast, slow).pvalue),
                }
            )
    report.finish(args, "Batch norm momentum, balanced accuracy on people never seen", rows)


if __name__ == "__main__":
    main()
