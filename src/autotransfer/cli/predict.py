"""`autotransfer predict`: labels of trials, of people known or new."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotransfer.cli.options import Data, Json, Model, load_model
from autotransfer.cli.output import print_json, print_table, print_text, say, working
from autotransfer.text import csv_cell

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from autotransfer.data import SubjectDataset, TrialArray
    from autotransfer.training import CensoredClassifier

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

    A .npz file need hold nothing but X; it is then one person's. If the data have
    labels, the balanced accuracy of each subject is shown too.

    [bold]Examples[/bold]

      autotransfer predict runs/gestures new_person.npz > predicted.csv
      autotransfer predict gestures.model new.npz --out predicted.csv --json
      autotransfer predict gestures.model new_person.npz --adapt > predicted.csv
    """
    with working("loading"):
        model = load_model(source)
        signals, labelled = _load(data)
    with working("predicting"):
        probabilities = _probabilities(model, signals, labelled, adapt)
    classes = model.classes_.tolist()
    predicted = [classes[code] for code in probabilities.argmax(1)]
    scores = None if labelled is None else subject_scores(labelled, predicted, model.classes_)
    table = _csv(predicted, probabilities, classes)
    if out is not None:
        from autotransfer.data import atomic

        atomic.write_bytes(out, table.encode())
    if as_json:
        result: dict[str, Any] = {"n_trials": len(predicted), "classes": classes}
        if out is None:
            result |= {"predicted": predicted, "probabilities": probabilities}
        else:
            result |= {"out": str(out)}
        print_json(result | {"balanced_accuracy": scores})
        return
    if out is None:
        print_text(table)
    _show(scores, beside_csv=out is None)


def _load(data: str) -> tuple[TrialArray | Any, SubjectDataset | None]:
    """Load signals, and their labels if there are any."""
    from autotransfer.data import load
    from autotransfer.data.sources.npz import read_signals

    path = Path(data).expanduser()
    if path.suffix.lower() == ".npz" and path.is_file():
        signals = read_signals(path)
        if signals is not None:
            return signals, None
    dataset = load(data)
    return dataset.X, dataset


def _probabilities(
    model: CensoredClassifier, signals: Any, labelled: SubjectDataset | None, adapt: bool
) -> npt.NDArray[np.float64]:
    """Probabilities of the classes, perhaps by a model adapted to each person."""
    import numpy as np

    if not adapt:
        return model.predict_proba(signals)
    if labelled is None:
        return model.adapt(signals).predict_proba(signals)
    probabilities = np.empty((labelled.n_trials, len(model.classes_)))
    for code in range(len(labelled.subject_ids)):
        trials = np.flatnonzero(labelled.subject_code == code)
        X = labelled.select(trials=trials).X
        probabilities[trials] = model.adapt(X).predict_proba(X)
    return probabilities


def _csv(predicted: list[Any], probabilities: npt.NDArray[np.float64], classes: list[Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["trial", "predicted", *(f"probability of {label}" for label in classes)])
    for trial, (label, row) in enumerate(zip(predicted, probabilities.tolist(), strict=True)):
        writer.writerow([trial, csv_cell(label), *(f"{value:.6g}" for value in row)])
    return text.getvalue()


def subject_scores(
    data: SubjectDataset, predicted: list[Any], classes: npt.NDArray[Any]
) -> dict[str, float] | None:
    """Balanced accuracy of each subject, over the classes that the subject has.

    Returns
    -------
    dict or None
        Subject -> score; None if no label is one that the model knows.
    """
    import numpy as np

    # By how they are written: a file may hold as text what was a number in training.
    codes = {str(label): code for code, label in enumerate(classes.tolist())}
    true = np.array([codes.get(str(label), -1) for label in data.y.tolist()])
    right = true == np.array([codes[str(label)] for label in predicted])
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
