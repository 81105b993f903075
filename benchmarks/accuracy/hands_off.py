"""AutoTransfer end to end on real recordings: does it keep its budget, does it resume.

Runs the whole procedure with a budget, then the same call again, which must be over in seconds and
change no file. Prints the candidates with their spread over subjects and the choice; test scores
stand beside the choice and had no part in it. Killed, the same command goes on with its run folder.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any

import autotransfer as at
from autotransfer.search.budget import parse_budget
from autotransfer.search.settings.space import Space
from benchmarks.common import pool, report
from benchmarks.common.recordings import RECORDINGS, arguments, temporary_folder


def files(folder: Path) -> dict[str, str]:
    """Hash every file of a run, but the note of who has it open."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(".in-use")
    }


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=sorted(RECORDINGS), default="ssvep")
    parser.add_argument("--budget", default="20m")
    parser.add_argument("--workers", type=int, default=2, help=pool.WORKERS)
    parser.add_argument("--out", type=Path, help="run folder; by default runs/<dataset>-<budget>")
    args = arguments(parser, budget="1m")
    more: dict[str, Any] = {}
    space = None
    if args.smoke:
        args.out = temporary_folder() / "run"
        more["max_epochs"], space = 1, Space(["mmd"], ["marginal"], {"mmd": [1]})
    recording = RECORDINGS[args.dataset]
    data = recording.load()
    out = args.out or Path("runs") / f"{args.dataset}-{args.budget}"
    begun = out.exists()

    def run() -> tuple[at.AutoTransfer, float]:
        auto = at.AutoTransfer(
            budget=args.budget,
            out=out,
            classifier=at.CensoredClassifier(
                normalise=recording.normalisers[0],
                encoder_options=recording.encoder_options or None,
                sfreq=data.sfreq,
                **recording.options | more,
            ),
            space=space,
            n_folds=recording.n_folds,
            engine="local" if args.workers else pool.executor(0),
            n_jobs=args.workers,
        )
        start = time.monotonic()
        auto.fit(data.X, data.y, subject=data.subject)
        return auto, time.monotonic() - start

    auto, first = run()
    before = files(out)
    auto, again = run()
    changed = [name for name, digest in files(out).items() if before.get(name) != digest]
    budget = parse_budget(args.budget)
    rows: list[dict[str, Any]] = []
    for row in auto.candidates_.to_dict("records"):
        entry: dict[str, Any] = {"setting": ("* " if row["chosen"] else "") + row["setting"]}
        for side in ("validation", "test"):
            for name in ("mean", "sd", "lower_quartile", "worst"):
                entry[f"{side[:3]} {name.replace('lower_quartile', 'quartile')}"] = row[
                    f"{side}_{name}"
                ]
        rows.append(entry)
    print(f"plan: {auto.plan_}")
    print(
        f"first call {first:.0f} s of a budget of {budget:.0f} s; the same call again {again:.1f} s"
    )
    goals = [
        report.Goal("the same call again, seconds", again, 10, at_least=False),
        report.Goal("files changed by it", float(len(changed)), 0, at_least=False),
    ]
    if not begun:  # a run that was resumed has no wall time to speak of
        goals.append(report.Goal("wall time / budget", first / budget, 1.1, at_least=False))
    report.finish(
        args,
        f"AutoTransfer on {args.dataset}, budget {args.budget}, {args.workers} workers",
        rows,
        goals,
        first=None if begun else first,
        again=again,
        plan=auto.plan_.to_json(),
        trials=len(auto.trials_),
        failed=int((auto.trials_["state"] == "failed").sum()),
        chosen=str(auto.choice_.setting),
    )


if __name__ == "__main__":
    main()
