"""A run as a user's script would make it, for tests that kill it: ``drive.py FOLDER [OPTIONS]``.

Prints ``done`` when the run is complete. Options are those of `AutoTransfer`, as JSON.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import autotransfer as at
from autotransfer.search import Space

SPACE = Space(["mmd", "adversary"], ["marginal"], {"mmd": [1, 10], "adversary": [0.1, 1]})


def data():
    return at.make_subjects(n_subjects=5, n_trials=24, n_times=64, random_state=0)


def auto(out, **options):
    given = {
        "out": out,
        "classifier": at.CensoredClassifier(max_epochs=3, device="cpu"),
        "space": SPACE,
        "procedure": "paper",
        "keep": 1,
        "n_jobs": 2,
        "portraits": False,
        "verbose": False,
    }
    return at.AutoTransfer(**given | options)


# Workers in processes import torch first, which takes longer than a small run.
THREAD = ThreadPoolExecutor(1)


def quick(out, **options):
    """Make a run without worker processes, for tests whose subject is not the engine."""
    return auto(out, **{"engine": THREAD} | options)


def main() -> None:
    options = json.loads(sys.argv[2]) if len(sys.argv) > 2 else {}
    made = data()
    auto(sys.argv[1], **options).fit(made.X, made.y, subject=made.subject)
    print("done", flush=True)


if __name__ == "__main__":
    main()
