"""`autotransfer predict` and `adapt`: labels of trials, of people known or new."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotransfer import atomic
from autotransfer.cli.options import (
    Data,
    Json,
    Model,
    Overwrite,
    Reading,
    load_data,
    load_model,
    refuse_reading,
)
from autotransfer.cli.output import print_json, print_table, print_text, say, working
from autotransfer.errors import DataError, LabelError, MissingSubjectError
from autotransfer.text import csv_cell

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from autotransfer.data import SubjectDataset
    from autotransfer.data.info import Recording
    from autotransfer.training import CensoredClassifier, Ensemble

_OUT = "CSV file to write, instead of stdout."
_ADAPT = "Adapt to each person by these very trials, without labels, and then predict them."
_LIVE = (
    "Predict trial by trial, and learn from each after it was predicted. DATA may be - for "
    "standard input: a trial in each line, as a JSON list of channels."
)
_STDIN = "-"
_MODEL = "Folder to write: a model like any other, for this person."
_LABELS = "Use the labels in the file, too; a few trials of each class are enough."
_MORE = "With --labels: a file of further trials of this person, without labels."
_METHOD = (
    "How to adapt: statistics, information, certainty, ring (electrodes around an arm); with "
    "--labels head, firm, covariances or tuning, too; several as statistics+information; auto goes "
    "by what there is."
)
_ALL = (
    "All classes are among the trials, which is how they were recorded: what seems to be of few "
    "classes is adapted to as well."
)

_WITH_ADAPT = f"With --adapt: {_ALL[0].lower()}{_ALL[1:]}"


def predict(
    source: Model,
    data: Data,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=_OUT)] = None,
    adapt: Annotated[bool, typer.Option("--adapt", help=_ADAPT)] = False,
    all_classes: Annotated[bool, typer.Option("--all-classes", help=_WITH_ADAPT)] = False,
    live: Annotated[bool, typer.Option("--live", help=_LIVE)] = False,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Predict the label of every trial, with the probability of each class, as CSV.

    A .npz file need hold nothing but X; it is then one person's. Recordings are
    cut as they were for training: give the same options. Channels are found by
    name, where there are names. If the data have labels, the balanced accuracy
    of each subject is shown too.

    [bold]Examples[/bold]

      autotransfer predict runs/gestures new_person.npz > predicted.csv
      autotransfer predict gestures.model new.npz --out predicted.csv --json
      autotransfer predict gestures.model new_person.npz --adapt > predicted.csv
      autotransfer predict gestures.model new_person.npz --live > predicted.csv
      recorder | autotransfer predict gestures.model - --live
      autotransfer predict gestures.model new.edf --tmax 2 --band 4-40
    """
    if adapt and live:
        hint = "--adapt, --live"
        raise typer.BadParameter("Give one of them: they are two levels.", param_hint=hint)
    if all_classes and not adapt:
        raise typer.BadParameter("It belongs to --adapt.", param_hint="--all-classes")
    if data == _STDIN:
        _from_stdin(source, live, out, as_json, reading)
        return
    with working("loading"):
        model = load_model(source)
        recording, labelled = _load(data, reading)
    with working("predicting"):
        probabilities = _probabilities(model, recording, labelled, adapt, live, all_classes)
    codes = probabilities.argmax(1)
    scores = None if labelled is None else subject_scores(labelled, codes, model)
    if out is not None:
        with atomic.file(out) as handle:
            text = io.TextIOWrapper(handle, "utf-8", newline="")
            _write_csv(text, probabilities, labelled, model)
            text.flush()
            text.detach()
    if as_json:
        result: dict[str, Any] = {"n_trials": len(codes), "classes": model.classes_}
        result["class_names"] = model.class_names_
        if out is None:
            result |= {"predicted": model.classes_[codes], "probabilities": probabilities}
        else:
            result["out"] = str(out)
        print_json(result | {"balanced_accuracy": scores})
        return
    if out is None:
        _write_csv(SimpleNamespace(write=print_text), probabilities, labelled, model)
    _show(scores, beside_csv=out is None)


def _load(data: str, reading: Reading) -> tuple[SubjectDataset | Recording, SubjectDataset | None]:
    """Load signals, and their labels if there are any."""
    from autotransfer.data.sources.npz import members, read_recording

    path = Path(data).expanduser()
    if path.suffix.lower() == ".npz" and path.is_file():
        names = members(path)
        if "y" not in names:
            refuse_reading(reading, "a .npz file without labels")
            return read_recording(path), None
        if "subject" not in names and reading["subject"] is None:
            reading = reading | {"subject": path.name}
    try:
        dataset = load_data(data, reading)
    except MissingSubjectError:
        if not path.is_file():
            raise
        # One file is one person's, somebody new, whose name need not be known.
        dataset = load_data(data, reading | {"subject": path.name})
    return dataset, dataset


def _probabilities(
    model: CensoredClassifier | Ensemble,
    recording: SubjectDataset | Recording,
    labelled: SubjectDataset | None,
    adapt: bool,
    live: bool,
    all_classes: bool,
) -> npt.NDArray[np.float64]:
    """Probabilities of the classes, perhaps by a model for each person."""
    import numpy as np

    if not adapt and not live:
        return model.predict_proba(recording)

    def personal(person: SubjectDataset | Recording) -> npt.NDArray[np.float64]:
        made = model.live() if live else model.adapt(person, all_classes=all_classes)
        return made.predict_proba(person)

    if labelled is None:
        return personal(recording)
    probabilities = np.empty((labelled.n_trials, len(model.classes_)))
    for code in range(len(labelled.subject_ids)):
        trials = np.flatnonzero(labelled.subject_code == code)
        probabilities[trials] = personal(labelled.select(trials=trials))
    return probabilities


def _from_stdin(source: str, live: bool, out: Path | None, as_json: bool, reading: Reading) -> None:
    """Predict trials as they come in, and write each row at once."""
    if not live or out is not None or as_json:
        hint = "DATA"
        raise typer.BadParameter(
            "Standard input (-) is for --live, and rows go to standard output.", param_hint=hint
        )
    given = [f"--{name}" for name, value in reading.items() if value not in (None, False)]
    if given:
        raise typer.BadParameter(
            "Trials on standard input are cut already.", param_hint=", ".join(given)
        )
    model = load_model(source)
    going = model.live()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(_columns(model, []))
    sys.stdout.flush()
    for trial, signals in enumerate(_trials(sys.stdin)):
        row = going.predict_proba(signals)
        writer.writerow(_row(trial, [], row, model))
        sys.stdout.flush()  # whoever waits for the answer has it now


def _trials(lines: Any) -> Iterator[npt.NDArray[np.float32]]:
    """Read trials (C, T), one in each line of JSON."""
    import numpy as np

    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            signals = np.asarray(json.loads(line), dtype=np.float32)
        except (ValueError, TypeError, OverflowError, RecursionError):
            signals = np.zeros(0, np.float32)
        if signals.ndim != 2:
            raise DataError(
                f"Line {number} of standard input is not a trial: a JSON list of channels, each a "
                "list of as many numbers as there are time points."
            )
        yield signals


def adapt_model(
    source: Model,
    data: Data,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help=_MODEL)],
    labels: Annotated[bool, typer.Option("--labels", help=_LABELS)] = False,
    unlabelled: Annotated[str | None, typer.Option(metavar="DATA", help=_MORE)] = None,
    method: Annotated[str, typer.Option(help=_METHOD)] = "auto",
    all_classes: Annotated[bool, typer.Option("--all-classes", help=_ALL)] = False,
    overwrite: Overwrite = False,
    *,
    reading: Reading,
) -> None:
    """Make a model for one new person from trials of theirs.

    Without --labels no label is looked at, even if the file has them; all classes
    should be among the trials, about as often as they will come in use. The model
    stores statistics and weights, no signals. A model that was adapted can be
    adapted again, such as to a recording of another day.

    [bold]Examples[/bold]

      autotransfer adapt runs/gestures first_minute.npz --out person.model
      autotransfer adapt gestures.model few.npz --labels --out person.model
      autotransfer predict person.model rest.npz > predicted.csv
    """
    from autotransfer.adaptation.registry import NONE
    from autotransfer.training.model.folder import check_target

    check_target(out, overwrite)
    with working("loading"):
        model = load_model(source)
        recording, labelled = _load(data, reading)
        more = None if unlabelled is None else _load(unlabelled, reading)[0]
    if labels and labelled is None:
        raise LabelError(f"--labels needs labels, and {data} has none. Leave --labels out.")
    y = labelled.y if labels and labelled is not None else None
    with working("adapting"):
        personal = model.adapt(
            recording, y, unlabelled=more, method=method, all_classes=all_classes
        )
    about = personal.members[0].provenance_["adapted"]
    methods = {one.provenance_["adapted"]["method"] for one in personal.members}
    known = f", {about['n_labels']} of them with labels" if about["n_labels"] else ""
    if methods == {NONE}:
        say(f"Not adapted by {about['n_trials']} trials: the model is written as it was.")
    else:
        say(f"Adapted by {about['n_trials']} trials{known}: {', '.join(sorted(methods))}.")
    print_text(f"{personal.save(out, overwrite=overwrite)}\n")


def _write_csv(
    handle: Any,
    probabilities: npt.NDArray[np.float64],
    labelled: SubjectDataset | None,
    model: CensoredClassifier | Ensemble,
) -> None:
    """Write a row for each trial, by the names of classes and people."""
    writer = csv.writer(handle, lineterminator="\n")
    writer.writerow(_columns(model, [] if labelled is None else ["subject", "true"]))
    for trial, row in enumerate(probabilities):
        who = []
        if labelled is not None:
            who = [
                labelled.subject_names[labelled.subject_code[trial]],
                labelled.class_names[labelled.y_code[trial]],
            ]
        writer.writerow(_row(trial, who, row, model))


def _columns(model: CensoredClassifier | Ensemble, people: list[str]) -> list[str]:
    columns = (f"probability of {name}" for name in model.class_names_)
    return ["trial", *people, "predicted", *columns]


def _row(
    trial: int,
    who: list[str],
    probabilities: npt.NDArray[np.float64],
    model: CensoredClassifier | Ensemble,
) -> list[Any]:
    numbers = (f"{value:.6g}" for value in probabilities.tolist())
    names = map(csv_cell, [*who, model.class_names_[probabilities.argmax()]])
    return [trial, *names, *numbers]


def subject_scores(
    data: SubjectDataset,
    predicted: npt.NDArray[np.intp],
    model: CensoredClassifier | Ensemble,
) -> dict[str, float] | None:
    """Balanced accuracy of each subject, over the classes that the subject has.

    Parameters
    ----------
    data : SubjectDataset
        With the true labels, which are recognised as they are written, or by their names.
    predicted : array of int of shape (n_trials,)
        Class numbers.
    model : CensoredClassifier or Ensemble
        That predicted them.

    Returns
    -------
    dict or None
        Subject -> score; None if no label is one that the model knows.
    """
    import numpy as np

    true = model.true_codes(data)
    right = true == predicted
    if not (true >= 0).any():
        return None
    scores = {}
    for code, name in enumerate(data.subject_names):
        of_subject = data.subject_code == code
        labels = np.unique(true[of_subject & (true >= 0)])
        shares = [right[of_subject & (true == label)].mean() for label in labels]
        if shares:
            scores[str(name)] = float(np.mean(shares))
    return scores


def _show(scores: dict[str, float] | None, beside_csv: bool) -> None:
    """Show scores: on stdout, or in words on stderr if the CSV is there."""
    if not scores:
        return
    mean = sum(scores.values()) / len(scores)
    if not beside_csv:
        rows = [{"subject": name, "balanced accuracy": value} for name, value in scores.items()]
        print_table([*rows, {"subject": "mean", "balanced accuracy": mean}])
        return
    for name, value in scores.items():
        say(f"balanced accuracy of subject {name}: {value:.3f}")
    say(f"mean balanced accuracy of {len(scores)} subject(s): {mean:.3f}")
