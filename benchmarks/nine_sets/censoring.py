"""Where would censoring pay? Where the person is a shortcut to the class, or an encoder has room.

On nine data sets the training people are thinned out as in ``censors/skew.py`` (each keeps one
class and a fifth of the others), so that who it is tells what it is; and where shares of classes
differ by nature (`ecg`) all trials are taken, too. Three data sets are trained with two larger
encoders of braindecode's, whose latents have more room for the person (two measures in marginal
mode, one seed; what is not on record needs braindecode). Each censor at its middle strength stands
beside the uncensored network of the same seed and batches: conditional censors beside the baseline
with theirs, a placebo, for which people are shuffled, beside one of the same shuffled people, who
also draw its batches and weigh its classes. The recipe is the one that a run begins with, but for
the learning rate of attention. Everybody new is scored with nothing and with a few labels of each
class: does a censored latent need fewer? A probe looks for the person in the latent. People are in
two parts, three for SSVEP, each tested by a network of the others. Seeds are averaged; differences
are paired over people. Finished trainings are kept in --keep FILE: the same command goes on.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import autotransfer as at
from autotransfer.censoring import MEASURES, MODES
from autotransfer.data.problem import Problem
from autotransfer.errors import AutoTransferWarning
from autotransfer.report.statistics import paired
from autotransfer.search.levels.cases import SAME, Case, Scores
from autotransfer.search.levels.person import people_held_out, score_cases
from autotransfer.search.portrait import shuffled
from autotransfer.search.settings.recipe_space import recipe_space
from benchmarks.accuracy.levels import mean_over
from benchmarks.censors.censors_on_recordings import PROBED, probe
from benchmarks.censors.skew import SKEWED, thinned
from benchmarks.censors.strength_tables import strengths
from benchmarks.common import pool, report
from benchmarks.common.censors import name_of
from benchmarks.common.parts_of_people import PARTS, parts
from benchmarks.common.recordings import SETS, arguments, load_set

ALL = "all"
NATURAL = "ecg"
"""Where people differ in what they do by nature."""

EEGNET = "eegnet"
LARGER = ("ShallowFBCSPNet", "EEGConformer")
"""Of braindecode; the second has attention."""

LEARNING_RATE = {"EEGConformer": 5e-4}
"""Instead of the recipe's 0.003, with which attention ended at guessing in two of five trainings on
a part of SSVEP; its authors take 2e-4 for many more steps (Song and others 2023)."""

WITH_LARGER = ("ssvep", "emg", "arithmetic")
OF_LARGER_MEASURES, OF_LARGER_MODES, OF_LARGER_SEEDS = ("adversary", "mmd"), ("marginal",), 1
"""What of them is trained, which takes minutes each and not seconds."""

LABELS = (1, 2, 5)
CASES = [Case("nothing", tested=SAME), *(Case("labels", n, "head") for n in LABELS)]


@dataclass(frozen=True)
class Job(pool.Job):
    """One training."""

    dataset: str
    trials: str
    encoder: str
    measure: str | None
    mode: str
    placebo: bool
    part: int
    seed: int
    n_steps: int | None = None
    """Fewer, for a try."""

    @property
    def cell(self) -> tuple[str, str, str, str | None, str, bool]:
        """What was trained, on whatever part and with whatever seed."""
        return self.dataset, self.trials, self.encoder, self.measure, self.mode, self.placebo


def encoder_of(name: str, data: at.SubjectDataset) -> Any:
    """Make the encoder: ours by its name, or a model of braindecode."""
    if name == EEGNET:
        return name
    from braindecode import models  # only these need it

    shape = {"n_chans": data.n_channels, "n_times": data.n_times, "n_outputs": len(data.labels)}
    short = {"num_layers": 2, "pool_time_length": 20, "pool_time_stride": 5}
    model = getattr(models, name)(**shape, **(short if name == "EEGConformer" else {}))
    # The same numbers, but for which ones dropout draws, in 0.65 to 0.92 of the time of a step,
    # measured with EEGConformer on 8 x 256, 19 x 256 and 8 x 200, batches of 64, one thread.
    return model.to(memory_format=torch.channels_last)


def classifier(job: Job, data: at.SubjectDataset) -> at.CensoredClassifier:
    """Make the unfitted classifier of a job, with the recipe that a run begins with."""
    encoder = encoder_of(job.encoder, data)
    clf = at.CensoredClassifier(
        job.measure,
        job.mode,
        strengths(job.measure)[1] if job.measure else None,
        encoder=encoder,
        sfreq=data.sfreq,
        validation=None,
        random_state=job.seed,
        device="cpu",
        verbose=False,
    )
    recipe = recipe_space(Problem.of(data), clf.options).default
    options = recipe.applied({"encoder_options": None})
    if job.encoder in LEARNING_RATE:
        options["learning_rate"] = LEARNING_RATE[job.encoder]
    if job.n_steps is not None:
        options["n_steps"] = job.n_steps
    clf.set_params(**options)
    return clf


def run(job: Job) -> dict[str, Any]:
    """Train without a part of the people, score these, probe the latent of the others."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", AutoTransferWarning)
    data = load_set(job.dataset)
    fold = parts(data.subject, PARTS.get(job.dataset, 2))[job.part]
    trials = fold.train
    if job.trials == SKEWED:
        trials = np.intersect1d(trials, thinned(data, SKEWED))
    train = data.select(trials=trials)
    subject = shuffled(fold, np.random.default_rng(0)).subject if job.placebo else data.subject
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(job.seed)  # of braindecode's weights
        clf = classifier(job, data)
    clf.fit(train.X, train.y, subject=subject[trials])
    people = people_held_out(Problem.of(data), fold.test, clf, job.seed)
    cases = CASES[:1] if job.n_steps is not None else CASES
    return {
        "cases": score_cases(people, cases),
        "leakage": probe(clf.transform(train.X), train, job.measure, job.mode),
        "trials": len(trials),
    }


def jobs(
    sets: list[str],
    encoders: list[str],
    measures: list[str],
    modes: list[str],
    seeds: int,
    n_steps: int | None,
) -> list[Job]:
    """List all trainings: the first seed of everything before the others."""
    todo = []
    for seed in range(seeds):
        for name, encoder, trials in [
            *((name, EEGNET, SKEWED) for name in sets if EEGNET in encoders),
            *((name, EEGNET, ALL) for name in sets if EEGNET in encoders and name == NATURAL),
            *((n, e, ALL) for n in sets for e in encoders if e != EEGNET and n in WITH_LARGER),
        ]:
            larger = encoder != EEGNET
            if larger and seed >= OF_LARGER_SEEDS:
                continue
            mine = [m for m in measures if not larger or m in OF_LARGER_MEASURES]
            ways = [mode for mode in modes if not larger or mode in OF_LARGER_MODES]
            cells: list[tuple[str | None, str, bool]] = [
                (None, mode, placebo)
                for mode in dict.fromkeys(_baseline(mode) for mode in ways)
                for placebo in (False, True)
            ]
            cells += [(m, mode, p) for mode in ways for m in mine for p in (False, True)]
            todo += [
                Job(name, trials, encoder, *cell, part, seed, n_steps)
                for part in range(PARTS.get(name, 2))
                for cell in cells
            ]
    return todo


def _baseline(mode: str) -> str:
    """Mode of the uncensored network that has the batches of a mode."""
    return mode if mode == "conditional" else "marginal"


def _suffix(measure: str | None, placebo: bool) -> str:
    """Say of a network that its people were shuffled."""
    return (" placebo" if measure else ", people shuffled") if placebo else ""


Results = Mapping[Job, Mapping[str, Any]]


def scores_of(results: list[Mapping[str, Any]], case: Case) -> Scores:
    """Score of every person in a case, the mean over seeds."""
    return mean_over(
        one["subjects"]
        for result in results
        for one in result["cases"]
        if Case.from_json(one) == case
    )


def rows_of(results: Results) -> list[dict[str, Any]]:
    """Compare every censor, and its placebo, with the uncensored network of the same batches."""
    cells: dict[Any, dict[tuple[int, int], Mapping[str, Any]]] = {}
    for job, result in results.items():
        cells.setdefault(job.cell, {})[job.part, job.seed] = result
    made = []
    for cell, mine in cells.items():
        dataset, trials, encoder, measure, mode, placebo = cell
        base = cells[dataset, trials, encoder, None, _baseline(mode), placebo]
        beside = [base[key] for key in mine]
        part = PROBED[mode][0]
        probes = [
            float(np.mean([one["leakage"][part]["accuracy"] for one in some]))
            for some in (list(mine.values()), beside)
        ]
        made_row = {
            "data": dataset,
            "trials": trials,
            "encoder": encoder,
            "censor": name_of((measure, mode)) + _suffix(measure, placebo),
            "seeds": len({seed for _, seed in mine}),
            "probe": probes[0],
            "probe less": probes[1] - probes[0],
        }
        for case in CASES:
            own, was = scores_of(list(mine.values()), case), scores_of(beside, case)
            name = "accuracy" if case.level == "nothing" else f"{case.amount} labels"
            if not own:
                continue
            made_row[name] = float(np.mean(list(own.values())))
            if measure is not None:
                change = paired(own, was)
                assert change is not None
                made_row[f"{name} up"] = change.difference.value
                if case.level == "nothing":
                    low, high = change.difference.low, change.difference.high
                    made_row |= {"95 % interval": f"{low:+.3f} to {high:+.3f}", "p": change.p}
        made.append(made_row)
    columns = list(dict.fromkeys(column for one in made for column in one))
    return [{column: one.get(column, np.nan) for column in columns} for one in made]


def describe(job: Job, result: Mapping[str, Any]) -> str:
    """Tell of a finished training."""
    mean = np.mean(list(scores_of([result], CASES[0]).values()))
    name = name_of((job.measure, job.mode)) + _suffix(job.measure, job.placebo)
    where = f"{job.dataset} {job.trials} {job.encoder} {name}"
    return f"{where} part {job.part} seed {job.seed}: {mean:.3f}"


def main() -> None:
    parser = report.parser(__doc__)
    parser.add_argument("--dataset", choices=list(SETS), nargs="*", default=list(SETS))
    parser.add_argument(
        "--encoder", choices=(EEGNET, *LARGER), nargs="*", default=[EEGNET, *LARGER]
    )
    measures = ["adversary", "mige", "mmd"]
    parser.add_argument("--measure", choices=list(MEASURES), nargs="*", default=measures)
    modes = ["marginal", "conditional"]
    parser.add_argument("--mode", choices=list(MODES), nargs="*", default=modes)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="fewer, for a try")
    pool.add_options(parser)
    args = arguments(parser, dataset=["emg"], measure=["mmd"], seeds=1, steps=2, encoder=[EEGNET])
    todo = jobs(args.dataset, args.encoder, args.measure, args.mode, args.seeds, args.steps)
    results = pool.run_all(run, todo, args.keep, args.workers, describe)
    report.finish(args, "Where would censoring pay?", rows_of(results))


if __name__ == "__main__":
    main()
