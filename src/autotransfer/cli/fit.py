"""`autotransfer fit`: train one setting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotransfer.cli import options as opt
from autotransfer.cli.output import print_json, print_table, working

if TYPE_CHECKING:
    from autotransfer.data import SubjectDataset


def fit(
    data: opt.Data,
    model: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="Model folder to write.", show_default=False),
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model folder of that name.")
    ] = False,
    measure: Annotated[
        str | None,
        typer.Option(
            help="adversary, mige, mmd, pairmmd or began; the uncensored baseline without one.",
        ),
    ] = None,
    mode: Annotated[str, typer.Option(help="marginal, conditional or complementary.")] = "marginal",
    strength: Annotated[
        float | None,
        typer.Option(help="Weight of the penalty; what suits measure and mode by default."),
    ] = None,
    measure_options: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="An option of the measure, such as estimator=ssge. May be repeated.",
        ),
    ] = None,
    validation: Annotated[
        str,
        typer.Option(
            help="Subjects held out to tell how good the model is, and when to stop if there is a "
            "patience: how many (1), which share (0.2), which ones (ann,bob), or none.",
            rich_help_panel=opt.TRAINING,
        ),
    ] = "1",
    warmup_epochs: opt.WarmupEpochs = 0,
    normalise: opt.Normalise = "channel",
    encoder: opt.Encoder = "eegnet",
    encoder_options: opt.EncoderOptions = None,
    sfreq: opt.Sfreq = None,
    learning_rate: opt.LearningRate = 3e-3,
    weight_decay: opt.WeightDecay = 0.01,
    max_epochs: opt.MaxEpochs = None,
    patience: opt.Patience = 0,
    subjects_per_batch: opt.SubjectsPerBatch = None,
    trials_per_subject: opt.TrialsPerSubject = None,
    device: opt.Device = "auto",
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where a killed fit goes on from, when the same command is given again.",
            rich_help_panel=opt.TRAINING,
        ),
    ] = None,
    checkpoint_every: Annotated[
        int, typer.Option(help="Epochs between checkpoints.", rich_help_panel=opt.TRAINING)
    ] = 10,
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Log every epoch there for TensorBoard.",
            rich_help_panel=opt.TRAINING,
        ),
    ] = None,
    memory_budget: opt.MemoryBudget = 4 * 2**30,
    random_state: opt.RandomState = 0,
    verbose: opt.Verbose = True,
    as_json: opt.Json = False,
) -> None:
    """Train one classifier, censored or not, and write its model folder.

    [bold]Examples[/bold]

      autotransfer fit gestures.npz --model gestures.model --measure mmd
      autotransfer fit gestures.npz --model plain.model --validation ann,bob
    """
    with working("loading"):
        from autotransfer.data import load
        from autotransfer.training import CensoredClassifier
        from autotransfer.training.model_folder import check_target

        check_target(model, overwrite)
        loaded = load(data)
    clf = CensoredClassifier(
        measure,
        mode,
        strength,
        measure_options=opt.named_values(measure_options, "--measure-options"),
        warmup_epochs=warmup_epochs,
        encoder=encoder,
        encoder_options=opt.named_values(encoder_options, "--encoder-options"),
        sfreq=opt.sampling_rate(sfreq, loaded),
        normalise=normalise,
        validation=who_validates(validation, loaded),
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        max_epochs=max_epochs,
        patience=patience or None,
        subjects_per_batch=subjects_per_batch,
        trials_per_subject=trials_per_subject,
        random_state=random_state,
        device=device,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        log=log,
        memory_budget=memory_budget,
        verbose=verbose,
    )
    clf.fit(loaded.X, loaded.y, subject=loaded.subject)
    folder = clf.save(model, overwrite=overwrite)
    scores: Any = clf.provenance_["scores"]
    found = {
        "model": str(folder),
        "epochs": len(clf.history_),
        "best_epoch": clf.best_epoch_,
        "training_subjects": clf.training_subjects_,
        "validation_subjects": clf.validation_subjects_,
        "validation_balanced_accuracy": scores.get("validation_balanced_accuracy"),
    }
    if as_json:
        print_json(found)
    else:
        print_table([_row(found)])
        print(f"model: {folder}")


def _row(found: dict[str, Any]) -> dict[str, Any]:
    return {
        "epochs": found["epochs"],
        "best epoch": found["best_epoch"],
        "subjects trained on": len(found["training_subjects"]),
        "subjects that validate": ", ".join(map(str, found["validation_subjects"])) or "nobody",
        "their balanced accuracy": found["validation_balanced_accuracy"],
    }


def who_validates(given: str, data: SubjectDataset) -> Any:
    """Read ``--validation``: a number, a share, names of subjects, or none."""
    if given.strip().lower() == "none":
        return None
    for kind in (int, float):
        try:
            return kind(given)
        except ValueError:
            continue
    # Ids may be numbers: found by how they are written, and unknown ones told by `fit`.
    ids = {str(one): one for one in data.subject_ids.tolist()}
    return [ids.get(name.strip(), name.strip()) for name in given.split(",") if name.strip()]
