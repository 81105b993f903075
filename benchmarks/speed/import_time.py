"""How long importing this package takes, against importing torch and scikit-learn.

``import autotransfer`` opens no room before something is asked of it; "all public names" asks for
every one of them, which is what a script that uses the package pays in the end. Each import is
made in a fresh process, the ways take turns, and CPU time is compared. ``autotransfer --help`` is
run once more to see what it imports.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

from benchmarks.common.report import Goal, arguments, finish, parser

BARE = "import torch; import sklearn"
OURS = "import autotransfer"
ALL = "import autotransfer as at; [getattr(at, name) for name in at.__all__]"
WAYS = {
    "torch and scikit-learn": BARE,
    "autotransfer": OURS,
    "autotransfer, all public names": ALL,
}
GOAL = 1.15

TIMED = """
import time
start = time.process_time()
{}
print(time.process_time() - start)
"""
HELP = """
import json, sys
sys.argv = ["autotransfer", "--help"]
from autotransfer.cli import main
try:
    main()
except SystemExit:
    pass
heavy = ("torch", "sklearn", "pandas", "optuna", "scipy", "matplotlib")
print(json.dumps([name for name in heavy if name in sys.modules]))
"""


def last_line(code: str) -> str:
    """Run code in a fresh process and give the last line that it prints."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env
    )
    return done.stdout.splitlines()[-1]


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--repeats", type=int, default=7, help="imports of each kind")
    args = arguments(made, repeats=0)
    ways = dict(list(WAYS.items())[:2]) if args.smoke else WAYS
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(args.repeats + 1):
        for name, code in ways.items():
            took = float(last_line(TIMED.format(code)))
            if turn or args.smoke:  # the first one fills the disk cache
                seconds[name].append(took)
    bare = seconds["torch and scikit-learn"]
    # Neighbours in time are compared, because a machine's speed drifts.
    ratios = {
        name: statistics.median(a / b for a, b in zip(found, bare, strict=True))
        for name, found in seconds.items()
    }
    rows = [
        {
            "import": name,
            "seconds": statistics.median(found),
            "least": min(found),
            "most": max(found),
            "relative": ratios[name],
        }
        for name, found in seconds.items()
    ]
    heavy = json.loads(last_line(HELP))
    print("autotransfer --help imports of the heavy ones:", ", ".join(heavy) or "none")
    goals = [
        Goal("import autotransfer, relative", ratios["autotransfer"], GOAL, at_least=False),
        Goal("heavy modules imported by --help", len(heavy), 0, at_least=False),
    ]
    finish(args, "Import time, CPU seconds", rows, goals)


if __name__ == "__main__":
    main()
