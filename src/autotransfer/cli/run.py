"""`autotransfer run`: the hands-off procedure, from data to report."""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotransfer.cli import options as opt
from autotransfer.cli.forecast import print_forecasts
from autotransfer.cli.output import (
    print_facts,
    print_json,
    print_table,
    print_text,
    say,
    tell,
    working,
)

if TYPE_CHECKING:
    from pathlib import Path

    from autotransfer.auto import AutoTransfer

_OUT = "Folder of the run; autotransfer-runs/<hash of data and options> if not given."
_BUDGET = "Time for all of it: 20m, 1h, 1h30m, 2d; without it, everything is tried."
_PROCEDURE = (
    "What a run does: auto (recipes, censors if asked for, seeds, in the time there is) or paper "
    "(the censors of the paper at one recipe)."
)
_SIGNAL = "Kind of signal: eeg or emg; channel names tell it by default."
_NEW_PERSON = (
    "What you will have of each new person: nothing, recording, stream or labels. The model is "
    "chosen for that case."
)
_N_LABELS = "Labelled trials of each class of a new person, at level labels."
_MEASURE = (
    "A measure of censors to try: adversary, mige, mmd, pairmmd, began, or all of them. May be "
    "repeated. By default auto tries none, because none was worth its time; paper tries all."
)
_MODE = (
    "A mode of censors to try: marginal, conditional, complementary. May be repeated; with a "
    "measure, all by default."
)
_STRENGTHS = "Strengths to try for a measure, such as mmd=1,3,10. May be repeated."
_STRATEGY = "How to walk through the space: grid or tpe."
_N_SETTINGS = "Number of settings to try; the whole grid by default, or 60 with tpe."
_KEEP = "Number of settings of each measure that are cross-validated."
_N_FOLDS = (
    "Groups of people, each held out once; by default as many as the budget carries, or 10 without "
    "one (paper: one person each, or 20 groups of more than 40)."
)
_RULE = (
    "How to choose: safe (auto's), lower_quartile (paper's), mean, worst_subject; oracle for study "
    "only."
)
_PORTRAITS = "Measure and draw latents for the report: up to three more trainings."
_LEVELS = "Score what a recording, a stream and labels of a new person are worth."
_ENGINE_OPTIONS = "An option of the engine, such as address=auto for Ray. May be repeated."

Names = list[str] | None


def run(
    context: typer.Context,
    data: opt.Data,
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help=_OUT, show_default=False)
    ] = None,
    budget: Annotated[str | None, typer.Option(help=_BUDGET)] = None,
    procedure: Annotated[str, typer.Option(help=_PROCEDURE)] = "auto",
    signal: Annotated[str | None, typer.Option(help=_SIGNAL)] = None,
    new_person: Annotated[str, typer.Option(help=_NEW_PERSON)] = "nothing",
    n_labels: Annotated[int, typer.Option(help=_N_LABELS)] = 5,
    subjects: opt.Subjects = None,
    only_classes: opt.OnlyClasses = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would cost, and run nothing.")
    ] = False,
    measure: Annotated[Names, opt.search_option(help=_MEASURE)] = None,
    mode: Annotated[Names, opt.search_option(help=_MODE)] = None,
    strengths: Annotated[
        Names, opt.search_option(metavar="MEASURE=NUMBERS", help=_STRENGTHS)
    ] = None,
    n_folds: Annotated[int | None, opt.search_option(help=_N_FOLDS)] = None,
    rule: Annotated[str | None, opt.search_option(help=_RULE)] = None,
    strategy: Annotated[str, opt.paper_option(help=_STRATEGY)] = "grid",
    n_settings: Annotated[int | None, opt.paper_option(help=_N_SETTINGS)] = None,
    prune: Annotated[
        bool, opt.paper_option("--prune", help="Drop hopeless settings on the way.")
    ] = False,
    keep: Annotated[int, opt.paper_option(help=_KEEP)] = 3,
    n_seeds: Annotated[int, opt.paper_option(help="Repetitions of the cross-validation.")] = 1,
    search_folds: Annotated[
        int, opt.paper_option(help="Folds on which the search tries every setting.")
    ] = 1,
    portraits: Annotated[bool, opt.search_option(help=_PORTRAITS)] = True,
    levels: Annotated[bool, opt.search_option(help=_LEVELS)] = True,
    normalise: opt.Normalise = "channel",
    augment: opt.Augment = None,
    encoder: opt.Encoder = "eegnet",
    encoder_options: opt.EncoderOptions = None,
    sfreq: opt.Sfreq = None,
    learning_rate: opt.LearningRate = 3e-3,
    schedule: opt.Schedule = "sqrt",
    weight_decay: opt.WeightDecay = 0.01,
    max_epochs: opt.MaxEpochs = None,
    n_steps: opt.NSteps = None,
    patience: opt.Patience = 0,
    warmup_epochs: opt.WarmupEpochs = 0,
    subjects_per_batch: opt.SubjectsPerBatch = None,
    trials_per_subject: opt.TrialsPerSubject = None,
    device: opt.Device = "auto",
    memory_budget: opt.MemoryBudget = 4 * 2**30,
    engine: Annotated[str, opt.engine_option(help="What runs the trials: local or ray.")] = "local",
    n_jobs: opt.NJobs = 1,
    engine_options: Annotated[
        Names, opt.engine_option(metavar="NAME=VALUE", help=_ENGINE_OPTIONS)
    ] = None,
    storage: opt.Storage = None,
    time_limit: Annotated[
        str | None, opt.engine_option(help="Longest time that a training may take: 90s, 30m.")
    ] = None,
    random_state: opt.RandomState = 0,
    verbose: opt.Verbose = True,
    as_json: opt.Json = False,
    *,
    reading: opt.Reading,
) -> None:
    """Find the best model for people never seen, train it, and write the report.

    First a good network, then what can be added to it, as far as the budget
    goes. Killed or stopped at any moment, the same command goes on. Ctrl-C once
    finishes the trainings that run; twice stops now.

    Training options are searched unless you give them: their defaults below are
    those of fit, and of --procedure paper.

    [bold]Examples[/bold]

      autotransfer run gestures.npz --out runs/gestures --budget 1h --n-jobs 2
      autotransfer run gestures.npz --budget 1h --dry-run
      autotransfer run gestures.npz --out runs/mmd --measure mmd --mode marginal
      autotransfer run bids_folder --task hands --tmax 2 --band 4-40 --sfreq 128
    """
    # First, while there is nothing else: an option is named as the parameter that it sets.
    options = dict(locals())
    with working("loading"):
        from autotransfer.auto import AutoTransfer

        dataset = opt.load_data(data, reading, subjects, only_classes)
    # These are the search's here; a trial has its own.
    of_search = {"measure", "mode", "random_state", "verbose"}
    training = {name: value for name, value in options.items() if name not in of_search}
    converted = {
        "engine_options": opt.named_values(engine_options, "--engine-options"),
        "classifier": opt.make_classifier(training),
        "space": opt.make_space(measure, mode, strengths),
        # What somebody has written is not searched, even if it is the default.
        "fixed": [name for name in options if opt.is_written(context, name)],
    }
    auto = AutoTransfer(**opt.arguments(AutoTransfer, options) | converted)
    if dry_run:
        print_forecasts(auto.forecast(dataset, budgets=[auto.budget]), as_json)
        return
    cores = os.cpu_count() or 1
    if verbose and cores > 1 and n_jobs == 1 and engine == "local":
        say(f"autotransfer: one of {cores} cores is used; --n-jobs -1 uses all of them")
    auto._command = _command(storage)
    auto.fit(dataset)
    with working("writing the report"):
        from autotransfer.report import write_report

        page = write_report(auto.run_, storage=storage)
    _print(auto, page, as_json)


def _command(storage: str | None) -> str:
    """Give what was typed, for the report; an address without its password."""
    from autotransfer.search.ledger.connection import place

    words = sys.argv[1:]
    if storage is not None:  # alone, or behind --storage=
        words = [word.replace(storage, place(storage)) for word in words]
    return shlex.join(["autotransfer", *words])


def _print(auto: AutoTransfer, page: Path, as_json: bool) -> None:
    """Print what came of a run: what its report says first."""
    from autotransfer.search.results import not_tried, verdict
    from autotransfer.search.run_folder import RunFolder

    files = RunFolder(auto.run_)
    results: dict[str, Any] = json.loads(files.results.read_text())
    if as_json:
        where = {"run": str(files.path), "model": str(files.model), "report": str(page)}
        print_json(where | {"verdict": verdict(results), "results": results})
        return
    answer = auto._first_screen()
    tell(answer.headline, "bold")
    print_facts([(tile.label, tile.value, tile.note) for tile in answer.tiles])
    if "members" not in results:
        print_table(*_candidates(auto))
    more = [f"{words}." for words in [not_tried(results)] if words]
    for words in (*answer.paragraphs[1:], *answer.warnings, *more):
        tell(f"\n{words}")
    print_text("\n")
    for words, command in answer.next_steps:
        tell(f"{words}:")
        print_text(f"  {command}\n")
    print_text(f"model:  {files.model}\nreport: {page}\n")


def _candidates(auto: AutoTransfer) -> tuple[Any, str]:
    """Make the closing table of the paper's procedure: rows and title."""
    columns = {
        "setting": "setting",
        "chosen": "chosen",
        "validation_lower_quartile": "validation q25",
        "test_mean": "test mean",
        "test_lower_quartile": "test q25",
    }
    rows = auto.candidates_[list(columns)].rename(columns=columns).to_dict("records")
    return rows, "Balanced accuracy over subjects (q25: lower quartile)"
