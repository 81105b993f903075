"""Options that several commands share, and how their words become values.

They have the names and the defaults of the parameters of `AutoTransfer` and `CensoredClassifier`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotransfer.errors import IncompleteResultsError, SettingError, SourceError

if TYPE_CHECKING:
    from autotransfer.data import SubjectDataset
    from autotransfer.search import Space

SEARCH, TRAINING, ENGINE = "Search", "Training", "Engine and ledger"

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A .npz file, a folder store, or a name such as moabb:Kalunga2016 (see datasets).",
        show_default=False,
    ),
]
Run = Annotated[
    str, typer.Argument(metavar="RUN", help="Folder of a run (its --out).", show_default=False)
]
Model = Annotated[
    str,
    typer.Argument(
        metavar="RUN_OR_MODEL",
        help="Folder of a run, whose chosen model is used, or a model folder.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Check = Annotated[bool, typer.Option("--check", help="Exit with 3 if the run is not complete.")]
Storage = Annotated[
    str | None,
    typer.Option(
        help="Ledger of the run: postgresql://...; a file in the run's folder by default.",
        rich_help_panel=ENGINE,
    ),
]
NJobs = Annotated[
    int, typer.Option(help="Trials at once; -1 for one on each core.", rich_help_panel=ENGINE)
]
Normalise = Annotated[
    str,
    typer.Option(help="channel (EEG), trial (EMG), train or none.", rich_help_panel=TRAINING),
]
Encoder = Annotated[str, typer.Option(help="Name of the encoder.", rich_help_panel=TRAINING)]
EncoderOptions = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="An option of the encoder, such as kernel_seconds=0.5. May be repeated.",
        rich_help_panel=TRAINING,
    ),
]
Sfreq = Annotated[
    float | None,
    typer.Option(
        help="Sampling rate in Hz; that of the data by default.",
        show_default=False,
        rich_help_panel=TRAINING,
    ),
]
MaxEpochs = Annotated[
    int | None,
    typer.Option(help="Most epochs; about 1000 steps by default.", rich_help_panel=TRAINING),
]
Patience = Annotated[
    int,
    typer.Option(
        help="Stop after so many epochs without a lower validation loss and keep the weights of "
        "the least one; 0 trains all epochs and keeps the last weights.",
        rich_help_panel=TRAINING,
    ),
]
LearningRate = Annotated[
    float, typer.Option(help="Learning rate of AdamW.", rich_help_panel=TRAINING)
]
WeightDecay = Annotated[
    float, typer.Option(help="Weight decay of AdamW.", rich_help_panel=TRAINING)
]
WarmupEpochs = Annotated[
    int, typer.Option(help="First epochs without penalty.", rich_help_panel=TRAINING)
]
SubjectsPerBatch = Annotated[
    int | None, typer.Option(help="Subjects in a batch.", rich_help_panel=TRAINING)
]
TrialsPerSubject = Annotated[
    int | None,
    typer.Option(help="Trials of each subject in a batch.", rich_help_panel=TRAINING),
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.", rich_help_panel=TRAINING)]
MemoryBudget = Annotated[
    int,
    typer.Option(
        help="Bytes of signals to keep in memory; larger data are read batch by batch.",
        rich_help_panel=TRAINING,
    ),
]
RandomState = Annotated[int, typer.Option(help="Seed of everything.")]
Verbose = Annotated[
    bool, typer.Option("--verbose/--quiet", help="Show progress with the time left.")
]


def named_values(given: Sequence[str] | None, option: str) -> dict[str, Any] | None:
    """Read ``name=value`` pairs; values are JSON where they can be, else text.

    Examples
    --------
    >>> named_values(["num_gpus=0.25", "address=auto"], "--engine-options")
    {'num_gpus': 0.25, 'address': 'auto'}
    """
    if not given:
        return None
    found = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE.", param_hint=option)
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            found[name.strip()] = value
    return found


def a_time(given: str | None) -> str | float | None:
    """Read a time: a bare number is seconds.

    Examples
    --------
    >>> a_time("90"), a_time("20m"), a_time(None)
    (90.0, '20m', None)
    """
    try:
        return None if given is None else float(given)
    except ValueError:
        return given


def make_space(
    measure: Sequence[str] | None, mode: Sequence[str] | None, strengths: Sequence[str] | None
) -> Space | None:
    """Make the search space from names; None, the paper's, if nothing was said of it.

    Parameters
    ----------
    measure, mode : sequence of str
        Names; commas may separate them too.
    strengths : sequence of str
        ``measure=1,3,10``.
    """
    if not (measure or mode or strengths):
        return None
    from autotransfer.search import Space

    given: dict[str, Any] = {}
    if measure:
        given["measures"] = _split(measure)
    if mode:
        given["modes"] = _split(mode)
    if strengths:
        given["strengths"] = {
            name: _numbers(text, name)
            for name, text in (named_values(strengths, "--strengths") or {}).items()
        }
    return Space(**given)


def _split(given: Iterable[str]) -> list[str]:
    return [name.strip() for words in given for name in words.split(",") if name.strip()]


def _numbers(given: Any, name: str) -> list[float]:
    try:
        return [float(part) for part in str(given).strip("[]").split(",")]
    except ValueError:
        raise SettingError(
            f"Strengths of {name!r} must be numbers, not {given!r}. Write {name}=1,3,10."
        ) from None


def sampling_rate(given: float | None, data: SubjectDataset) -> float | None:
    """Take the rate that was given, else that of the data."""
    return data.sfreq if given is None else given


if TYPE_CHECKING:
    from autotransfer.training import CensoredClassifier


def load_model(given: str) -> CensoredClassifier:
    """Load the chosen model of a run, or a model folder."""
    from autotransfer.search.run_folder import RunFolder
    from autotransfer.training import CensoredClassifier
    from autotransfer.training.model_folder import MANIFEST

    path = Path(given).expanduser()
    files = RunFolder(path)
    if files.run.is_file():
        if not files.model.is_dir():
            raise IncompleteResultsError(
                f"The run in {path} has no model yet: it is not complete. Give the same "
                f"`autotransfer run` command again, which goes on with it; `autotransfer status "
                f"{path}` says how far it is."
            )
        path = files.model
    elif not (path / MANIFEST).is_file():
        raise SourceError(
            f"{path} is neither a run nor a model. Give the --out of `autotransfer run`, or the "
            "--model of `autotransfer fit` (a folder that save() made)."
        )
    return CensoredClassifier.load(path)
