"""What drives the result: accuracy and leakage against strength, for every measure in every mode.

Each censor is trained at several strengths, and at all but the weakest once more with the subject
labels of the training trials shuffled (the placebo: what the penalty does by merely being there).
Options are those that `benchmarks/baseline.py` chose (`--options`). People are put into two or
three parts, and each part is tested by a model of the others: with a model for each person, as in
`benchmarks/evidence.py`, the same time would show two people instead of all. So fewer people train
here than there. Nobody validates: all trainings are equally long, and nothing is chosen.

Scores are compared person by person with those of the uncensored baseline, which is trained with
several seeds: were it trained once, its luck would be in every difference. How far a single one of
these trainings is from all of them is shown beside it. Probes look for the person in the latents of
the training subjects. Importances are Optuna's (fANOVA) over these trainings. Finished trainings
are kept in --keep FILE; `--no-run` makes the tables from the parts that are whole there.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import torch

import autotransfer as at
import pool
import report
from autotransfer.censoring import MODES
from autotransfer.data.splits import Fold
from autotransfer.report.portrait import shuffled
from autotransfer.search.space import LARGE, STRENGTHS
from censors import CENSORS, name_of
from censors_on_recordings import PROBED, probe
from recordings import RECORDINGS, network_options, read_options, tested

Cell = tuple[str | None, str, float, bool, str]
"""Measure, mode, strength, whether it is the placebo, and MIGE's score estimator ("" elsewhere)."""

UNCENSORED: Cell = (None, "marginal", 0.0, False, "")
PARTS = {"ssvep": 3, "erp": 2, "emg": 2}
"""Parts of the people; SSVEP has only twelve, and half of them teach too little."""
BASELINES = 5
"""Seeds of the uncensored baseline."""
ESTIMATORS = ("tikhonov", "ssge", "stein", "nu")
"""MIGE's score estimators, the default first."""


@dataclass(frozen=True)
class Job:
    """One training."""

    dataset: str
    measure: str | None
    mode: str
    strength: float
    placebo: bool
    estimator: str
    parts: int
    part: int
    seed: int
    options: str
    """Of the classifier, as JSON."""

    @property
    def key(self) -> str:
        """Identity in the file of kept results."""
        return json.dumps(self.__dict__, sort_keys=True)

    @property
    def cell(self) -> Cell:
        """What was trained, on whatever part."""
        return self.measure, self.mode, self.strength, self.placebo, self.estimator


def strengths(measure: str) -> tuple[float, ...]:
    """Strengths to try: the paper's range for the measure, and below it where it starts at 1."""
    return (0.1, 1.0, 10.0) if STRENGTHS[measure] == LARGE else (0.01, 0.1, 1.0)


def cells() -> list[Cell]:
    """Everything to train for a part; the uncensored baseline first."""
    made: list[Cell] = [UNCENSORED]
    for placebo in (False, True):
        for measure, mode in CENSORS:
            assert measure is not None
            estimator = ESTIMATORS[0] if measure == "mige" else ""
            # The weakest penalties do next to nothing; so do their placebos.
            tried = strengths(measure)[int(placebo) :]
            made += [(measure, mode, s, placebo, estimator) for s in tried]
    middle = strengths("mige")[1]
    others = (("mige", mode, middle, False, one) for mode in MODES for one in ESTIMATORS)
    return made + [cell for cell in others if cell not in made]


def parts(subject: Any, n: int) -> list[Fold]:
    """Put people into parts, in random order; each part tests, all others train."""
    pairs = list(at.SubjectFolds(2 * n, shuffle=True, random_state=0).folds(subject))[::2]
    nobody = np.array([], dtype=np.intp)
    return [Fold(f.subject, f.train, nobody, np.union1d(f.validation, f.test)) for f in pairs]


_loaded: dict[str, at.SubjectDataset] = {}


def run(job: Job) -> dict[str, Any]:
    """Train without a part of the people, score these, probe the latent of the others."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", at.AutoTransferWarning)
    recording = RECORDINGS[job.dataset]
    data = _loaded.setdefault(job.dataset, recording.load())
    fold = parts(data.subject, job.parts)[job.part]
    subject = shuffled(fold, np.random.default_rng(0)).subject if job.placebo else data.subject
    clf = at.CensoredClassifier(
        job.measure,
        job.mode,
        job.strength if job.measure else None,
        measure_options={"estimator": job.estimator} if job.estimator else None,
        sfreq=data.sfreq,
        validation=None,
        random_state=job.seed,
        device="cpu",
        verbose=False,
        **json.loads(job.options),
    )
    start = time.process_time()
    train = data.select(trials=fold.train)
    clf.fit(train.X, train.y, subject=subject[fold.train])
    return {
        "test": tested(clf, data, fold),
        "leakage": probe(clf.transform(train.X), train, job.measure, job.mode),
        "seconds": time.process_time() - start,
    }


def describe(job: Job, result: dict[str, Any]) -> str:
    """Tell of a finished training."""
    score = np.mean(list(result["test"].values()))
    name = f"{name_of((job.measure, job.mode))} {job.strength:g}{' placebo' * job.placebo}"
    return f"{job.dataset} {name} part {job.part}: {score:.3f}"


def people(results: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Test score of every person, a mean where there are several."""
    found: dict[str, list[float]] = {}
    for result in results:
        for who, score in result["test"].items():
            found.setdefault(who, []).append(score)
    return {who: float(np.mean(scores)) for who, scores in found.items()}


def row(
    name: str, cell: Cell, mine: list[dict[str, Any]], base: list[dict[str, Any]]
) -> dict[str, Any]:
    """Summarise a cell, beside the baseline on the same people."""
    measure, mode, strength, placebo, estimator = cell
    scores, was = people(mine), people(base)
    gain = np.array([scores[who] - was[who] for who in scores])
    part = PROBED[mode][0]
    return {
        "data": name,
        "censor": name_of((measure, mode)),
        "strength": strength,
        "placebo": placebo,
        "estimator": estimator,
        "people": len(scores),
        "accuracy": float(np.mean(list(scores.values()))),
        "lower quartile": float(np.percentile(list(scores.values()), 25)),
        "gain": float(gain.mean()),
        "gain se": float(gain.std(ddof=1) / np.sqrt(len(gain))),
        "probed": part,
        "probe": float(np.mean([r["leakage"][part]["accuracy"] for r in mine])),
        "probe uncensored": float(np.mean([r["leakage"][part]["accuracy"] for r in base])),
        "chance": float(np.mean([r["leakage"][part]["chance"] for r in mine])),
    }


def importances(rows: Sequence[Mapping[str, Any]], target: str) -> dict[str, float]:
    """Share of each factor in the variance of a figure (fANOVA, Hutter et al. 2014).

    Of measure, mode and strength over all censors (MIGE with its default estimator); of the score
    estimator, beside mode, over MIGE at its middle strength.
    """
    default = ESTIMATORS[0]
    real = [one for one in rows if one["censor"] != "uncensored" and not one["placebo"]]
    whole = [
        dict(zip(("measure", "mode"), one["censor"].split(), strict=True))
        # As a rank within the measure: the ranges differ.
        | {"strength": strengths(one["censor"].split()[0]).index(one["strength"])}
        | {"value": one[target]}
        for one in real
        if one["estimator"] in ("", default)
    ]
    mige = [
        {"mode": one["censor"].split()[1], "estimator": one["estimator"], "value": one[target]}
        for one in real
        if one["estimator"] and one["strength"] == strengths("mige")[1]
    ]
    return fanova(whole) | {"MIGE's estimator": fanova(mige)["estimator"]}


def fanova(found: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Optuna's importances; every key but "value" is a factor with a few levels."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    factors = [factor for factor in found[0] if factor != "value"]
    if len({one["value"] for one in found}) == 1:
        return dict.fromkeys(factors, 0.0)  # nothing varies; Optuna would fail
    levels = {factor: sorted({one[factor] for one in found}) for factor in factors}
    kinds = {f: optuna.distributions.CategoricalDistribution(v) for f, v in levels.items()}
    study = optuna.create_study()
    for one in found:
        params = {factor: one[factor] for factor in factors}
        made = optuna.trial.create_trial(params=params, distributions=kinds, value=one["value"])
        study.add_trial(made)
    judge = optuna.importance.FanovaImportanceEvaluator(seed=0)
    shares = optuna.importance.get_param_importances(study, evaluator=judge)
    return {factor: float(shares.get(factor, 0.0)) for factor in factors}


def tables(results: Mapping[Job, dict[str, Any]], name: str) -> tuple[list[Any], list[Any]]:
    """Summarise a data set: a row for each cell, and the importances."""
    of: dict[Cell, list[dict[str, Any]]] = {}
    alone: dict[int, list[dict[str, Any]]] = {}
    for job, result in results.items():
        if job.dataset == name:
            of.setdefault(job.cell, []).append(result)
            if job.cell == UNCENSORED:
                alone.setdefault(job.seed, []).append(result)
    base = people(of[UNCENSORED])
    # How far a single training of the baseline is from the mean of all: the noise of every row.
    apart = [np.mean([s - base[who] for who, s in people(one).items()]) for one in alone.values()]
    noise = float(np.std(apart, ddof=1)) if len(apart) > 1 else None
    rows = [{**row(name, cell, mine, of[UNCENSORED]), "noise": noise} for cell, mine in of.items()]
    targets = ("gain", "probe")
    return rows, [{"data": name, "of": target, **importances(rows, target)} for target in targets]


def whole_parts(todo: Sequence[Job], keep: Path) -> list[Job]:
    """Leave out the parts of the people that miss a training."""
    done = {json.loads(line)["key"] for line in keep.read_text().splitlines()}
    missing = {(job.dataset, job.part) for job in todo if job.key not in done}
    return [job for job in todo if (job.dataset, job.part) not in missing]


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=list(RECORDINGS), nargs="*", default=list(RECORDINGS))
    parser.add_argument("--parts", type=int, help="of the people; each is tested by the others")
    parser.add_argument("--options", type=Path, help="what benchmarks/baseline.py --json wrote")
    parser.add_argument("--max-epochs", type=int, help="for a try")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep finished trainings here")
    parser.add_argument("--no-run", action="store_true", help="make the tables, train nothing")
    args = parser.parse_args()
    if args.no_run and (args.keep is None or not args.keep.exists()):
        parser.error("--no-run needs --keep FILE with finished trainings.")
    chosen = read_options(args.options)
    todo = []
    for name in args.dataset:
        options = network_options(name, chosen.get(name), args.max_epochs)
        text = json.dumps(options, sort_keys=True)
        n = args.parts or PARTS[name]
        again = [(UNCENSORED, seed) for seed in range(1, BASELINES)]
        # Parts outside, cells inside: a run that is stopped has whole parts of everything.
        todo += [
            Job(name, *cell, n, part, seed, text)
            for part in range(n)
            for cell, seed in [*((cell, 0) for cell in cells()), *again]
        ]
    todo = whole_parts(todo, args.keep) if args.no_run else todo
    results = pool.run_all(run, todo, args.keep, args.workers, describe)
    rows, matters = [], []
    for name in dict.fromkeys(job.dataset for job in todo):
        mine, shares = tables(results, name)
        rows += mine
        matters += shares
    report.show("Importance over these settings (fANOVA)", matters)
    report.finish(
        args,
        "Accuracy on people never seen, and leakage, against strength",
        rows,
        importances=matters,
        trainings=[{**job.__dict__, **result} for job, result in results.items()],
    )


if __name__ == "__main__":
    main()
