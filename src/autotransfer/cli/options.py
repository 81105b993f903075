"""Options that several commands share, and how their words become values.

They have the names and the defaults of the parameters of `AutoTransfer` and `CensoredClassifier`.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotransfer.errors import IncompleteResultsError, SettingError, SourceError

if TYPE_CHECKING:
    from autotransfer.data import SubjectDataset
    from autotransfer.search import Space
    from autotransfer.training import CensoredClassifier, Ensemble

search_option = partial(typer.Option, rich_help_panel="Search")
paper_option = partial(typer.Option, rich_help_panel="Search, with --procedure paper only")
training_option = partial(typer.Option, rich_help_panel="Training")
recording_option = partial(typer.Option, rich_help_panel="Recordings", show_default=False)
engine_option = partial(typer.Option, rich_help_panel="Engine and ledger")
_argument = partial(typer.Argument, show_default=False)

_DATA = (
    "A .npz file, a folder store, recordings (.fif, .edf, .vhdr and so on, a folder of them, or a "
    "BIDS folder), or a name such as moabb:Kalunga2016 (see datasets)."
)
_EVENTS = (
    "What trials are cut around: left,right (annotations, or codes of the stimulus channel), "
    "left=T1,right=T2 (to call them otherwise), or a file of events; all by default."
)
_TMIN = "Beginning of a trial in seconds from its event; the event itself by default."
_TMAX = "End of a trial in seconds from its event."
_BAND = "Pass band in Hz: 4-40; 1- and -40 have one edge."
_TASK = "Task of a BIDS folder, where there are several."
_SUBJECT = (
    "Whose recordings these are, where files do not tell: one id, or one for each file. (To choose "
    "people: --subjects.)"
)
_CHANNELS = "Channels to use: C3,Cz,C4; or common, those that all have."
_RESAMPLE = "Sampling rate in Hz to resample to; that of the recordings by default."
_MODEL = "Folder of a run, whose chosen model is used, or a model folder."
_STORAGE = (
    "Ledger of the run: postgresql://... (password: PGPASSWORD or ~/.pgpass); a file in the run's "
    "folder by default."
)
_NORMALISE = (
    "Scale of the signals: channel (EEG), train or trial (EMG), none; or by each person's own "
    "statistics: person, euclidean, riemannian."
)
_AUGMENT = (
    "Change training trials: mask, ring (electrodes around an arm), shift, noise, mix; several as "
    "mask+shift."
)
_SCHEDULE = (
    "How the learning rate falls: sqrt (with the root of the epoch) or cosine (to 0 at the end)."
)
_ENCODER_OPTIONS = "An option of the encoder, such as kernel_seconds=0.5. May be repeated."
_SFREQ = "Sampling rate in Hz; that of the data by default. Recordings are resampled to it."
_PATIENCE = (
    "Stop after so many epochs without a lower validation loss and keep the weights with the "
    "lowest; 0 trains all epochs and keeps the last weights."
)
_MEMORY = "Bytes of signals to keep in memory; larger data are read batch by batch."

Data = Annotated[str, _argument(metavar="DATA", help=_DATA)]
Subjects = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Only these people, by id or name: ann,bob."),
]
OnlyClasses = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Only these classes, by label or name: fist,open."),
]
Run = Annotated[str, _argument(metavar="RUN", help="Folder of a run (its --out).")]
Model = Annotated[str, _argument(metavar="RUN_OR_MODEL", help=_MODEL)]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace a model folder of that name.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Check = Annotated[bool, typer.Option("--check", help="Exit with 3 if the run is not complete.")]
Storage = Annotated[str | None, engine_option(help=_STORAGE)]
NJobs = Annotated[int, engine_option(help="Trainings at once; -1 for one on each core.")]
Normalise = Annotated[str, training_option(help=_NORMALISE)]
Augment = Annotated[str | None, training_option(help=_AUGMENT)]
Encoder = Annotated[str, training_option(help="Name of the encoder.")]
EncoderOptions = Annotated[
    list[str] | None, training_option(metavar="NAME=VALUE", help=_ENCODER_OPTIONS)
]
Sfreq = Annotated[float | None, training_option(help=_SFREQ, show_default=False)]
MaxEpochs = Annotated[int | None, training_option(help="Most epochs; about 1000 steps by default.")]
NSteps = Annotated[int | None, training_option(help="Steps to train, rounded to whole epochs.")]
Patience = Annotated[int, training_option(help=_PATIENCE)]
LearningRate = Annotated[float, training_option(help="Learning rate of AdamW.")]
Schedule = Annotated[str, training_option(help=_SCHEDULE)]
WeightDecay = Annotated[float, training_option(help="Weight decay of AdamW.")]
WarmupEpochs = Annotated[int, training_option(help="Number of first epochs without a penalty.")]
SubjectsPerBatch = Annotated[int | None, training_option(help="Number of subjects in a batch.")]
TrialsPerSubject = Annotated[
    int | None, training_option(help="Number of trials of each subject in a batch.")
]
Device = Annotated[str, training_option(help="Where to train: auto, cpu, cuda or mps.")]
MemoryBudget = Annotated[int, training_option(help=_MEMORY)]
RandomState = Annotated[int, typer.Option(help="Seed of everything random.")]
Verbose = Annotated[
    bool, typer.Option("--verbose/--quiet", help="Show progress with the time left.")
]


Reading = dict[str, Any]
"""What a command line says of how recordings are to be read: option -> value, None if not given."""

_READING: dict[str, Any] = {
    "events": Annotated[str | None, recording_option(metavar="NAMES", help=_EVENTS)],
    "tmin": Annotated[float | None, recording_option(metavar="SECONDS", help=_TMIN)],
    "tmax": Annotated[float | None, recording_option(metavar="SECONDS", help=_TMAX)],
    "band": Annotated[str | None, recording_option(metavar="LOW-HIGH", help=_BAND)],
    "sfreq": Annotated[float | None, recording_option(metavar="HZ", help=_RESAMPLE)],
    "channels": Annotated[str | None, recording_option(metavar="NAMES", help=_CHANNELS)],
    "subject": Annotated[str | None, recording_option(metavar="IDS", help=_SUBJECT)],
    "task": Annotated[str | None, recording_option(metavar="NAME", help=_TASK)],
}


def reads_recordings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of recordings, which it gets together as `reading`.

    Where the command has an option of that name itself (``sfreq``), it gets that one too.
    """
    own = signature(command, eval_str=True)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _READING.items()
        if name not in own.parameters
    ]

    @functools.wraps(command)
    def run(**options: Any) -> None:
        reading: Reading = {name: options[name] for name in _READING}
        reading["trains"] = "sfreq" in own.parameters
        for one in added:
            del options[one.name]
        command(**options, reading=reading)

    parameters = [one for one in own.parameters.values() if one.name != "reading"] + added
    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def load_data(
    data: str, reading: Reading, subjects: str | None = None, only_classes: str | None = None
) -> SubjectDataset:
    """Open data, and select people and classes by the words of a command line.

    Parameters
    ----------
    data : str
        What `autotransfer.load` takes.
    reading : Reading
        As of `reads_recordings`.
    subjects, only_classes : str, optional
        Names between commas.
    """
    from autotransfer.data import load
    from autotransfer.data.sources.load import kind_of

    options = _loading(reading)
    # Of other data a command that trains is told the rate by --sfreq: nothing is resampled.
    if reading["trains"] and kind_of(Path(data).expanduser()) not in ("recordings", "bids"):
        options.pop("sfreq", None)
    dataset = load(data, **options)
    if subjects is not None:
        dataset = dataset.select(subjects=as_ids(subjects, dataset.subject_ids.tolist()))
    if only_classes is not None:
        dataset = dataset.select(labels=as_ids(only_classes, dataset.labels.tolist()))
    return dataset


def refuse_reading(reading: Reading, what: str) -> None:
    """Refuse options that cut recordings where there is nothing to cut."""
    from autotransfer.errors import SettingError, join_some

    given = list(_loading(reading))
    if given:
        options = join_some([f"--{name}" for name in given])
        raise SettingError(f"{options} cannot be set for {what}: its trials are cut already.")


def _loading(reading: Reading) -> dict[str, Any]:
    """Turn the words of a command line into options of `autotransfer.load`."""
    options = {n: reading[n] for n in ("tmin", "tmax", "sfreq", "task") if reading[n] is not None}
    if reading["events"] is not None:
        options["events"] = event_names(reading["events"])
    if reading["band"] is not None:
        options["band"] = band_edges(reading["band"])
    if reading["channels"] is not None:
        names = _split([reading["channels"]])
        options["channels"] = "common" if names == ["common"] else names
    if reading["subject"] is not None:
        ids = _split([reading["subject"]])
        options["subject"] = ids[0] if len(ids) == 1 else ids
    return options


def event_names(text: str) -> list[str] | dict[str, str] | Path:
    """Read ``--events``: names between commas, perhaps with names of one's own, or a file.

    Examples
    --------
    >>> event_names("left, right"), event_names("left=T1,right=T2")
    (['left', 'right'], {'left': 'T1', 'right': 'T2'})
    """
    if Path(text).expanduser().is_file():
        return Path(text)
    words = _split([text])
    pairs = [word.partition("=") for word in words]
    if all(equals for _, equals, _ in pairs):
        named = {name.strip(): event.strip() for name, _, event in pairs}
        if len(named) == len(pairs) and all(named) and all(named.values()):
            return named
    elif not any(equals for _, equals, _ in pairs):
        return words
    raise typer.BadParameter(
        f"{text!r} is neither left,right nor left=T1,right=T2, each name once, nor a file.",
        param_hint="--events",
    )


def band_edges(text: str) -> tuple[float | None, float | None]:
    """Read ``--band``.

    Examples
    --------
    >>> band_edges("4-40"), band_edges("0.5-"), band_edges("-40")
    ((4.0, 40.0), (0.5, None), (None, 40.0))
    """
    low, dash, high = text.partition("-")
    try:
        if not dash:
            raise ValueError
        return float(low) if low.strip() else None, float(high) if high.strip() else None
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no band. Write 4-40, in Hz; 1- or -40 for one edge.", param_hint="--band"
        ) from None


def as_ids(text: str, known: Iterable[Any]) -> list[Any]:
    """Read names between commas; known ids may be numbers, and are compared as text.

    Examples
    --------
    >>> as_ids("13, rest", [13, 17])
    [13, 'rest']
    """
    ids = {str(one): one for one in known}
    return [ids.get(name.strip(), name.strip()) for name in text.split(",") if name.strip()]


def arguments(function: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Pick the values that are named as parameters of a function.

    Examples
    --------
    >>> arguments(divmod, {"x": 7, "z": 0})
    {'x': 7}
    """
    return {name: values[name] for name in signature(function).parameters if name in values}


def is_written(context: typer.Context, name: str) -> bool:
    """Whether somebody wrote an option on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def make_classifier(values: Mapping[str, Any]) -> CensoredClassifier:
    """Make the classifier that the options of a command describe.

    Parameters
    ----------
    values : mapping
        Option -> value; options of other things are left out.
    """
    from autotransfer.training import CensoredClassifier

    options = arguments(CensoredClassifier, values)
    for name in ("encoder_options", "measure_options"):
        options[name] = named_values(options.get(name), f"--{name.replace('_', '-')}")
    return CensoredClassifier(**options | {"patience": options.get("patience") or None})


def named_values(pairs: Sequence[str] | None, option: str) -> dict[str, Any] | None:
    """Read ``name=value`` pairs; values are JSON where they can be, else text.

    Examples
    --------
    >>> named_values(["num_gpus=0.25", "address=auto"], "--engine-options")
    {'num_gpus': 0.25, 'address': 'auto'}
    """
    if not pairs:
        return None
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE.", param_hint=option)
        try:
            values[name.strip()] = json.loads(value)
        except ValueError:
            values[name.strip()] = value
    return values


def make_space(
    measure: Sequence[str] | None, mode: Sequence[str] | None, strengths: Sequence[str] | None
) -> Space | None:
    """Make the search space from names; None, that of the procedure, if nothing was said of it.

    Parameters
    ----------
    measure, mode : sequence of str
        Names; commas may separate them too. ``all`` is all measures.
    strengths : sequence of str
        ``measure=1,3,10``.

    Examples
    --------
    >>> make_space(["all"], ["marginal"], []).measures
    ('adversary', 'mige', 'mmd', 'pairmmd', 'began')
    """
    if not (measure or mode or strengths):
        return None
    from autotransfer.search import Space

    options: dict[str, Any] = {}
    names = _split(measure or [])
    if names and names != ["all"]:
        options["measures"] = names
    if mode:
        options["modes"] = _split(mode)
    if strengths:
        pairs = named_values(strengths, "--strengths") or {}
        options["strengths"] = {name: _numbers(text, name) for name, text in pairs.items()}
    return Space(**options)


def _split(texts: Iterable[str]) -> list[str]:
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def _numbers(text: Any, name: str) -> list[float]:
    try:
        return [float(part) for part in str(text).strip("[]").split(",")]
    except ValueError:
        raise SettingError(
            f"Strengths of {name!r} must be numbers, not {text!r}. Write {name}=1,3,10."
        ) from None


def load_model(folder: str) -> CensoredClassifier | Ensemble:
    """Load the chosen model of a run, or a model folder."""
    from autotransfer.search.run_folder import RunFolder
    from autotransfer.training import load_model
    from autotransfer.training.model.folder import is_model

    path = Path(folder).expanduser()
    files = RunFolder(path)
    if files.run.is_file():
        if not files.model.is_dir():
            raise IncompleteResultsError(
                f"The run in {path} has no model yet: it is not complete. Give the same "
                f"`autotransfer run` command again, which goes on with it; `autotransfer status "
                f"{path}` says how far it is."
            )
        path = files.model
    elif not is_model(path):
        raise SourceError(
            f"{path} is neither a run nor a model. Give the --out of `autotransfer run`, or the "
            "--model of `autotransfer fit` (a folder that save() made)."
        )
    return load_model(path)
