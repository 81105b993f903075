"""`autotransfer fit`: train one setting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotransfer.cli import options as opt
from autotransfer.cli.output import print_json, print_table, print_text, working

if TYPE_CHECKING:
    from autotransfer.data import SubjectDataset

_MEASURE = (
    "Measure to censor with: adversary, mige, mmd, pairmmd or began; without one, the uncensored "
    "baseline is trained."
)
_MODE = "Mode of the censor: marginal, conditional or complementary."
_STRENGTH = "Weight of the penalty; what suits measure and mode by default."
_MEASURE_OPTIONS = "An option of the measure, such as estimator=ssge. May be repeated."
_VALIDATION = (
    "Subjects held out to tell how good the model is, and when to stop if there is a patience: how "
    "many (1), which share (0.2), which ones (ann,bob), or none."
)
_CHECKPOINT = "Where a killed fit goes on from, when the same command is given again."
_LOG = "Log every epoch there for TensorBoard."


def fit(
    data: opt.Data,
    model: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Model folder to write.", show_default=False)
    ],
    overwrite: opt.Overwrite = False,
    subjects: opt.Subjects = None,
    only_classes: opt.OnlyClasses = None,
    measure: Annotated[str | None, typer.Option(help=_MEASURE)] = None,
    mode: Annotated[str, typer.Option(help=_MODE)] = "marginal",
    strength: Annotated[float | None, typer.Option(help=_STRENGTH)] = None,
    measure_options: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help=_MEASURE_OPTIONS)
    ] = None,
    validation: Annotated[str, opt.training_option(help=_VALIDATION)] = "1",
    warmup_epochs: opt.WarmupEpochs = 0,
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
    subjects_per_batch: opt.SubjectsPerBatch = None,
    trials_per_subject: opt.TrialsPerSubject = None,
    device: opt.Device = "auto",
    checkpoint: Annotated[
        Path | None, opt.training_option(metavar="FILE", help=_CHECKPOINT)
    ] = None,
    checkpoint_every: Annotated[int, opt.training_option(help="Epochs between checkpoints.")] = 10,
    log: Annotated[Path | None, opt.training_option(metavar="FOLDER", help=_LOG)] = None,
    memory_budget: opt.MemoryBudget = 4 * 2**30,
    random_state: opt.RandomState = 0,
    verbose: opt.Verbose = True,
    as_json: opt.Json = False,
    *,
    reading: opt.Reading,
) -> None:
    """Train one classifier, censored or not, and write its model folder.

    [bold]Examples[/bold]

      autotransfer fit gestures.npz --model gestures.model --measure mmd
      autotransfer fit gestures.npz --model plain.model --validation ann,bob
    """
    # First, while there is nothing else: an option is named as the parameter that it sets.
    options = dict(locals())
    with working("loading"):
        from autotransfer.training.model.folder import check_target

        check_target(model, overwrite)
        dataset = opt.load_data(data, reading, subjects, only_classes)
    options["validation"] = validation_subjects(validation, dataset)
    clf = opt.make_classifier(options)
    clf.fit(dataset)
    folder = clf.save(model, overwrite=overwrite)
    scores: Any = clf.provenance_["scores"]
    result = {
        "model": str(folder),
        "epochs": len(clf.history_),
        "best_epoch": clf.best_epoch_,
        "training_subjects": clf.training_subjects_,
        "validation_subjects": clf.validation_subjects_,
        "validation_balanced_accuracy": scores.get("validation_balanced_accuracy"),
    }
    if as_json:
        print_json(result)
    else:
        print_table([_row(result)])
        print_text(f"model: {folder}\n")


def _row(result: dict[str, Any]) -> dict[str, Any]:
    return {
        "epochs": result["epochs"],
        "best epoch": result["best_epoch"],
        "subjects trained on": len(result["training_subjects"]),
        "subjects that validate": ", ".join(map(str, result["validation_subjects"])) or "nobody",
        "their balanced accuracy": result["validation_balanced_accuracy"],
    }


def validation_subjects(text: str, data: SubjectDataset) -> Any:
    """Read ``--validation``: a number, a share, names of subjects, or none."""
    if text.strip().lower() == "none":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return opt.as_ids(text, data.subject_ids.tolist())  # `fit` reports unknown ones
