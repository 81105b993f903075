"""`autotransfer run`: the hands-off procedure, from data to report."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotransfer.cli import options as opt
from autotransfer.cli.forecast import print_forecasts
from autotransfer.cli.output import print_json, print_table, say, working

if TYPE_CHECKING:
    from pathlib import Path

    from autotransfer.auto import AutoTransfer


def run(
    data: opt.Data,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of the run; autotransfer-runs/<hash of data and options> if not given.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="Time for all of it: 20m, 1h, 1h30m, 2d; everything is tried without."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would cost, and run nothing.")
    ] = False,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="A measure to try: adversary, mige, mmd, pairmmd, began. May be repeated; all by "
            "default.",
            rich_help_panel=opt.SEARCH,
        ),
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            help="A mode to try: marginal, conditional, complementary. May be repeated; all by "
            "default.",
            rich_help_panel=opt.SEARCH,
        ),
    ] = None,
    strengths: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE=NUMBERS",
            help="Strengths to try for a measure, such as mmd=1,3,10. May be repeated.",
            rich_help_panel=opt.SEARCH,
        ),
    ] = None,
    strategy: Annotated[
        str, typer.Option(help="grid or tpe.", rich_help_panel=opt.SEARCH)
    ] = "grid",
    n_settings: Annotated[
        int | None, typer.Option(help="Settings to try.", rich_help_panel=opt.SEARCH)
    ] = None,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Drop hopeless settings on the way.", rich_help_panel=opt.SEARCH
        ),
    ] = False,
    keep: Annotated[
        int,
        typer.Option(
            help="Settings of each measure that are cross-validated.", rich_help_panel=opt.SEARCH
        ),
    ] = 3,
    n_folds: Annotated[
        int | None,
        typer.Option(
            help="Groups of subjects of the cross-validation; one subject each by default, or 20 "
            "groups if there are more than 40.",
            rich_help_panel=opt.SEARCH,
        ),
    ] = None,
    n_seeds: Annotated[
        int,
        typer.Option(help="Repetitions of the cross-validation.", rich_help_panel=opt.SEARCH),
    ] = 1,
    search_folds: Annotated[
        int,
        typer.Option(
            help="Folds on which the search tries every setting.", rich_help_panel=opt.SEARCH
        ),
    ] = 1,
    rule: Annotated[
        str,
        typer.Option(
            help="How to choose: lower_quartile, mean, worst_subject; oracle for study only.",
            rich_help_panel=opt.SEARCH,
        ),
    ] = "lower_quartile",
    portraits: Annotated[
        bool,
        typer.Option(
            help="Measure and draw latents for the report: three more trainings.",
            rich_help_panel=opt.SEARCH,
        ),
    ] = True,
    normalise: opt.Normalise = "channel",
    encoder: opt.Encoder = "eegnet",
    encoder_options: opt.EncoderOptions = None,
    sfreq: opt.Sfreq = None,
    learning_rate: opt.LearningRate = 3e-3,
    weight_decay: opt.WeightDecay = 0.01,
    max_epochs: opt.MaxEpochs = None,
    patience: opt.Patience = 0,
    warmup_epochs: opt.WarmupEpochs = 0,
    subjects_per_batch: opt.SubjectsPerBatch = None,
    trials_per_subject: opt.TrialsPerSubject = None,
    device: opt.Device = "auto",
    memory_budget: opt.MemoryBudget = 4 * 2**30,
    engine: Annotated[
        str, typer.Option(help="local or ray.", rich_help_panel=opt.ENGINE)
    ] = "local",
    n_jobs: opt.NJobs = 1,
    engine_options: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option of the engine, such as address=auto for Ray. May be repeated.",
            rich_help_panel=opt.ENGINE,
        ),
    ] = None,
    storage: opt.Storage = None,
    time_limit: Annotated[
        str | None, typer.Option(help="Most time of a trial.", rich_help_panel=opt.ENGINE)
    ] = None,
    random_state: opt.RandomState = 0,
    verbose: opt.Verbose = True,
    as_json: opt.Json = False,
) -> None:
    """Find the censor that helps on people never seen, train it, and write the report.

    Searches, cross-validates, selects and refits. Killed or stopped at any
    moment, the same command goes on. Ctrl-C once finishes the trials that run;
    twice stops now.

    [bold]Examples[/bold]

      autotransfer run gestures.npz --out runs/gestures --budget 1h --n-jobs 2
      autotransfer run gestures.npz --budget 1h --dry-run
      autotransfer run gestures.npz --out runs/mmd --measure mmd --mode marginal
    """
    with working("loading"):
        from autotransfer.auto import AutoTransfer
        from autotransfer.data import load
        from autotransfer.training import CensoredClassifier

        loaded = load(data)
    auto = AutoTransfer(
        opt.a_time(budget),
        out=out,
        classifier=CensoredClassifier(
            warmup_epochs=warmup_epochs,
            encoder=encoder,
            encoder_options=opt.named_values(encoder_options, "--encoder-options"),
            sfreq=opt.sampling_rate(sfreq, loaded),
            normalise=normalise,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            max_epochs=max_epochs,
            patience=patience or None,
            subjects_per_batch=subjects_per_batch,
            trials_per_subject=trials_per_subject,
            device=device,
            memory_budget=memory_budget,
        ),
        space=opt.make_space(measure, mode, strengths),
        strategy=strategy,
        n_settings=n_settings,
        prune=prune,
        keep=keep,
        n_folds=n_folds,
        n_seeds=n_seeds,
        search_folds=search_folds,
        rule=rule,
        portraits=portraits,
        engine=engine,
        n_jobs=n_jobs,
        engine_options=opt.named_values(engine_options, "--engine-options"),
        storage=storage,
        time_limit=opt.a_time(time_limit),
        random_state=random_state,
        verbose=verbose,
    )
    given = {"X": loaded.X, "y": loaded.y, "subject": loaded.subject}
    if dry_run:
        print_forecasts(auto.forecast(**given, budgets=[auto.budget]), as_json)
        return
    auto.fit(**given)
    with working("writing the report"):
        from autotransfer.report import write_report

        page = write_report(auto.run_, storage=storage)
    _print(auto, page, as_json)


def _print(auto: AutoTransfer, page: Path, as_json: bool) -> None:
    """Print what came of a run."""
    from autotransfer.search.results import verdict
    from autotransfer.search.run_folder import RunFolder

    files = RunFolder(auto.run_)
    found: dict[str, Any] = json.loads(files.results.read_text())
    if as_json:
        where = {"run": str(files.path), "model": str(files.model), "report": str(page)}
        print_json(where | {"verdict": verdict(found), "results": found})
        return
    if not auto.verbose:
        say(verdict(found))
    shown = {
        "setting": "setting",
        "chosen": "chosen",
        "validation_lower_quartile": "validation q25",
        "test_mean": "test mean",
        "test_lower_quartile": "test q25",
    }
    rows: Any = auto.candidates_[list(shown)].rename(columns=shown).to_dict("records")
    print_table(rows, "Balanced accuracy over subjects (q25: lower quartile)")
    print(f"model:  {files.model}\nreport: {page}")
