"""AutoTransfer against the uncensored baseline, on people never seen.

Runs AutoTransfer on each data set with the options that `benchmarks/baseline.py` chose, and
compares the chosen method with the baseline of the same run, person by person (protocol:
docs/evidence.md). Killed, the same command goes on. `--csv FILE` gets every score: data set,
setting, seed, fold, side, person.

Two figures are given. *Chosen*: one setting for all, by the validation scores of everybody, which
is what a user gets. *Chosen without the person*: for each person the choice that the validation
scores of the others make.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import autotransfer as at
import report
from autotransfer.data import atomic
from autotransfer.report.statistics import Paired, paired
from autotransfer.search.driver import scored
from autotransfer.search.selection import RULES, Scored, by_subject
from autotransfer.search.setting import BASELINE, Setting
from autotransfer.search.status import crossval_trials, open_run
from recordings import RECORDINGS

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from known import network_options

RULE = "lower_quartile"


def run(name: str, args: Any, chosen: Mapping[str, Any] | None) -> at.AutoTransfer:
    """Run AutoTransfer on a data set, or go on with it."""
    recording = RECORDINGS[name]
    data = recording.load()
    options = network_options(name, chosen)
    if args.max_epochs is not None:
        options["max_epochs"] = args.max_epochs
    auto = at.AutoTransfer(
        args.budget,
        out=args.out / name,
        classifier=at.CensoredClassifier(sfreq=data.sfreq, device="cpu", **options),
        n_folds=recording.n_folds,
        n_seeds=args.seeds,
        rule=RULE,
        n_jobs=args.workers,
    )
    return auto.fit(data.X, data.y, subject=data.subject)


def cross_validated(folder: Path) -> dict[Setting, list[Scored]]:
    """Scores of every candidate on every fold with every seed."""
    _, ledger = open_run(folder)
    with ledger:
        wanted = {json.dumps(t.to_json(), sort_keys=True) for t in crossval_trials(ledger) or ()}
        entries = [e for stage in ("search", "crossval") for e in ledger.entries(stage)]
    found: dict[Setting, list[Scored]] = {}
    for entry in entries:
        if json.dumps(entry.definition, sort_keys=True) in wanted and entry.state == "done":
            one = scored(entry)
            found.setdefault(one.setting, []).append(one)
    return found


def without_the_person(found: Mapping[Setting, list[Scored]]) -> dict[str, float]:
    """Test score of each person with the setting that the others' validation scores choose."""
    validation = {setting: by_subject(mine, "validation") for setting, mine in found.items()}
    test = {setting: by_subject(mine, "test") for setting, mine in found.items()}
    # The baseline first: ties are its.
    order = sorted(found, key=lambda setting: setting != BASELINE)
    scores = {}
    for person in test[BASELINE]:
        judged = {
            setting: RULES[RULE].judge(
                np.array([v for who, v in validation[setting].items() if who != person])
            )
            for setting in order
        }
        scores[person] = test[max(order, key=lambda setting: judged[setting])][person]
    return scores


def holm(p: list[float]) -> list[float]:
    """Correct p values for their number (Holm 1979)."""
    order = np.argsort(p)
    corrected, most = np.empty(len(p)), 0.0
    for rank, i in enumerate(order):
        most = max(most, min(1.0, (len(p) - rank) * p[i]))
        corrected[i] = most
    return [float(value) for value in corrected]


def row(name: str, method: str, scores: Mapping[str, float], base: Mapping[str, float]) -> Any:
    """One row of the table, and the comparison behind it."""
    values = np.array(list(scores.values()))
    compared = paired(scores, base)
    assert compared is not None
    difference = compared.difference
    return {
        "data": name,
        "method": method,
        "people": len(values),
        "mean": float(values.mean()),
        "sd": float(values.std(ddof=1)),
        "lower quartile": float(np.percentile(values, 25)),
        "worst": float(values.min()),
        "difference": difference.value,
        "95 % interval": f"{difference.low:+.3f} to {difference.high:+.3f}",
        "p": compared.p,
        "gained / lost": f"{compared.gained} / {compared.lost}",
    }, compared


def csv_rows(name: str, found: Mapping[Setting, list[Scored]]) -> list[dict[str, Any]]:
    """Every score of a data set."""
    return [
        {"data": name, "setting": str(setting), "seed": one.seed, "fold": one.fold}
        | {"side": side, "person": person, "balanced_accuracy": value}
        for setting, mine in found.items()
        for one in mine
        for side in ("validation", "test")
        for person, value in getattr(one, side).items()
    ]


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=list(RECORDINGS), nargs="*", default=list(RECORDINGS))
    parser.add_argument("--budget", default="2h", help="time for each data set")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs") / "evidence")
    parser.add_argument("--options", type=Path, help="what benchmarks/baseline.py --json wrote")
    parser.add_argument("--max-epochs", type=int, help="for a try")
    parser.add_argument("--csv", type=Path, help="write every score there")
    args = parser.parse_args()
    chosen = json.loads(args.options.read_text())["chosen"] if args.options else {}
    rows, scores, compared = [], [], dict[str, Paired]()
    for name in args.dataset:
        auto = run(name, args, chosen.get(name))
        found = cross_validated(args.out / name)
        base = by_subject(found[BASELINE], "test")
        rows.append(row(name, "uncensored", base, base)[0])
        mine = by_subject(found[auto.choice_.setting], "test")
        made, compared[name] = row(name, f"chosen: {auto.choice_.setting}", mine, base)
        rows.append(made)
        rows.append(row(name, "chosen without the person", without_the_person(found), base)[0])
        scores += csv_rows(name, found)
    for name, p in zip(compared, holm([one.p for one in compared.values()]), strict=True):
        rows[3 * args.dataset.index(name) + 1]["p, Holm"] = p
    if args.csv is not None:
        atomic.write_bytes(args.csv, pd.DataFrame(scores).to_csv(index=False).encode())
    goals = []
    for i, name in enumerate(args.dataset):
        base, mine = rows[3 * i], rows[3 * i + 1]
        for figure in ("mean", "lower quartile"):
            words = f"{name}: {figure} of the chosen method above the uncensored by"
            goals.append(report.Goal(words, mine[figure] - base[figure], 0.0))
    corrected = [row["p, Holm"] for row in rows if row.get("p, Holm") is not None]
    goals.append(report.Goal("smallest p after Holm", min(corrected), 0.05, at_least=False))
    report.finish(args, "AutoTransfer against the uncensored baseline", rows, goals)


if __name__ == "__main__":
    main()
