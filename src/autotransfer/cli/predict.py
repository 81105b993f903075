"""`autotransfer predict`: labels of trials, of people known or new."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotransfer import atomic
from autotransfer.cli.options import Data, Json, Model, load_model
from autotransfer.cli.output import print_json, print_table, print_text, say, working
from autotransfer.text import csv_cell

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from autotransfer.data import SubjectDataset
    from autotransfer.data.info import Recording
    from autotransfer.training import CensoredClassifier, Ensemble

_OUT = "CSV file to write, instead of stdout."
_ADAPT = "Take each person's statistics from these very trials, without labels."


def predict(
    source: Model,
    data: Data,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help=_OUT)] = None,
    adapt: Annotated[bool, typer.Option("--adapt", help=_ADAPT)] = False,
    as_json: Json = False,
) -> None:
    """Predict the label of every trial, with the probability of each class, as CSV.

    A .npz file need hold nothing but X; it is then one person's. Channels are found
    by name, where there are names. If the data have labels, the balanced accuracy of
    each subject is shown too.

    [bold]Examples[/bold]

      autotransfer predict runs/gestures new_person.npz > predicted.csv
      autotransfer predict gestures.model new.npz --out predicted.csv --json
      autotransfer predict gestures.model new_person.npz --adapt > predicted.csv
    """
    with working("loading"):
        model = load_model(source)
        recording, labelled = _load(data)
    with working("predicting"):
        probabilities = _probabilities(model, recording, labelled, adapt)
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


def _load(data: str) -> tuple[SubjectDataset | Recording, SubjectDataset | None]:
    """Load signals, and their labels if there are any."""
    from autotransfer.data import load
    from autotransfer.data.sources.npz import read_recording

    path = Path(data).expanduser()
    if path.suffix.lower() == ".npz" and path.is_file():
        recording = read_recording(path)
        if recording is not None:
            return recording, None
    dataset = load(data)
    return dataset, dataset


def _probabilities(
    model: CensoredClassifier | Ensemble,
    recording: SubjectDataset | Recording,
    labelled: SubjectDataset | None,
    adapt: bool,
) -> npt.NDArray[np.float64]:
    """Probabilities of the classes, perhaps by a model adapted to each person."""
    import numpy as np

    if not adapt:
        return model.predict_proba(recording)
    if labelled is None:
        return model.adapt(recording).predict_proba(recording)
    probabilities = np.empty((labelled.n_trials, len(model.classes_)))
    for code in range(len(labelled.subject_ids)):
        trials = np.flatnonzero(labelled.subject_code == code)
        of_person = labelled.select(trials=trials)
        probabilities[trials] = model.adapt(of_person).predict_proba(of_person)
    return probabilities


def _write_csv(
    handle: Any,
    probabilities: npt.NDArray[np.float64],
    labelled: SubjectDataset | None,
    model: CensoredClassifier | Ensemble,
) -> None:
    """Write a row for each trial, by the names of classes and people."""
    classes = model.class_names_
    people = [] if labelled is None else ["subject", "true"]
    writer = csv.writer(handle, lineterminator="\n")
    columns = (f"probability of {name}" for name in classes)
    writer.writerow(["trial", *people, "predicted", *columns])
    for trial, row in enumerate(probabilities):
        who = []
        if labelled is not None:
            who = [
                labelled.subject_names[labelled.subject_code[trial]],
                labelled.class_names[labelled.y_code[trial]],
            ]
        numbers = (f"{value:.6g}" for value in row.tolist())
        names = map(csv_cell, [*who, classes[row.argmax()]])
        writer.writerow([trial, *names, *numbers])


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
