"""What every run does at its end: train the choice on everybody, look at its latents."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any

from autotransfer.errors import EngineError, RunStoppedError
from autotransfer.search.driver import TRIES, Driver
from autotransfer.search.engines.base import Engine, Handle
from autotransfer.search.ledger import Entry, Ledger
from autotransfer.search.levels.worth import Levels
from autotransfer.search.portrait import portrait
from autotransfer.search.procedures.answer import MOST_MEMBERS
from autotransfer.search.progress import RunProgress
from autotransfer.search.settings.trial import Trial, digest
from autotransfer.search.shared import Shared
from autotransfer.search.tasks import refit, score_levels

Start = Callable[[], tuple[Engine, Handle]]


def share_out(
    left: float,
    networks: Callable[[int], Sequence[float]],
    levels: float,
    looking: float | None,
    workers: int,
) -> tuple[int, float, bool]:
    """Share out what time is left at the end: networks on everybody, levels, portraits.

    Parameters
    ----------
    left : float
        Seconds.
    networks : callable
        Gives what each network of the answer takes, of the answer of so many networks at most.
        They need not be seeds of one setting, and others may take longer.
    levels : float
        Seconds that were kept for levels. Half of them are theirs whatever there is to train.
    looking : float or None
        Seconds of a portrait; None where nobody wants one.
    workers : int
        Networks at once.

    Returns
    -------
    most : int
        Networks at most.
    seconds : float
        For levels.
    portraits : bool
        Whether there is time for them. Levels come first, and amply: a person asks for them.
    """

    def takes(most: int) -> float:
        each = networks(most)
        return math.ceil(len(each) / workers) * max(each)

    # One is trained whatever it takes, and with it those that take no time beside it.
    time = max(left - levels / 2, takes(1))
    most = next(most for most in range(MOST_MEMBERS, 0, -1) if takes(most) <= time)
    left -= takes(most)
    portraits = looking is not None and 2 * levels + looking <= left
    return most, max(levels, left - (looking or 0.0) if portraits else left), portraits


def submit(start: Start, work: Callable[..., Any], *given: Any) -> Future[Any]:
    """Have something done by the engine, which is started where it is not there (any more)."""
    engine, handle = start()
    return engine.submit(work, handle, *given)


def submit_refits(trials: Sequence[Trial], start: Start) -> list[Future[Any]]:
    """Have settings trained on all subjects."""
    return [submit(start, refit, trial) for trial in trials]


def await_refits(
    futures: Sequence[Future[Any]],
    trials: Sequence[Trial],
    start: Start,
    driver: Driver,
    progress: RunProgress,
) -> list[dict[str, Any]]:
    """Wait for settings that are trained on all subjects; gives what `refit` gives."""
    progress.stage("refit", len(trials), ())
    results = []
    for future, trial in zip(futures, trials, strict=True):
        again = partial(submit, start, refit, trial)
        results.append(_result(future, again, trial, driver, progress))
        progress.step()
    return results


def _result(
    future: Future[Any],
    again: Callable[[], Future[Any]],
    what: Any,
    driver: Driver,
    progress: RunProgress,
) -> dict[str, Any]:
    """Wait for something that is no trial; it is done again where its worker died."""
    for attempt in range(TRIES):
        try:
            result: dict[str, Any] = driver.result(future)
            return result
        except EngineError as error:
            if attempt + 1 == TRIES:
                raise
            progress.retry(what, error, attempt + 1)
            future = again()
    raise AssertionError


def record_portraits(
    trial: Trial,
    problem_hash: str,
    ledger: Ledger,
    start: Start,
    driver: Driver,
    progress: RunProgress,
) -> None:
    """Put portraits on record of the baseline of a setting, of itself, and of its placebo.

    Parameters
    ----------
    trial : Trial
        Of the choice.
    problem_hash : str
        Hash of the data and of the options that all trials share.
    ledger, start, driver, progress
        Of the run.
    """
    choice = trial.setting
    settings = [(choice.baseline, False)]
    if choice.measure is not None:
        settings += [(choice, False), (choice, True)]
    known = ledger.ids("portrait")
    missing = []
    for setting, placebo in settings:
        one = replace(trial, setting=setting)
        key = digest(["portrait", problem_hash, one.to_json(), placebo, choice.mode])
        if key not in known:
            missing.append((key, one, placebo))
    if not missing:
        return
    progress.stage("portrait", len(missing), ())
    tasks = [partial(submit, start, portrait, one, p, choice.mode) for _, one, p in missing]
    futures = [task() for task in tasks]
    for future, task, (key, one, placebo) in zip(futures, tasks, missing, strict=True):
        name = f"portrait of {one.setting}"
        definition = one.to_json() | {"placebo": placebo}
        record_extra(
            future,
            task,
            name,
            ledger,
            driver,
            progress,
            id=key,
            stage="portrait",
            definition=definition,
            params=one.setting.params(),
        )
        progress.step()


def record_levels(
    trials: Sequence[Trial],
    networks: Sequence[Mapping[str, bytes] | None],
    n_labels: int,
    seconds: float | None,
    shared: Shared,
    ledger: Ledger,
    start: Start,
    driver: Driver,
    progress: RunProgress,
) -> Levels:
    """Put on record what levels are worth to the people whom some trials held out.

    Parameters
    ----------
    trials : sequence of Trial
        One for each group of people.
    networks : sequence of mapping or None
        What they trained: the files of a model folder; None where they are not at hand, and are
        trained again.
    n_labels : int
        Labelled trials of each class, of which the methods are compared.
    seconds : float or None
        Time for each group.
    shared : Shared
        What all trials share.
    ledger, start, driver, progress
        Of the run.
    """
    recording = shared.problem.recording
    of = [shared.hash, None if recording is None else digest(recording.tolist()), n_labels]
    keys = [digest(["levels", *of, trial.to_json()]) for trial in trials]
    known = ledger.ids("levels")
    missing = [one for one in zip(keys, trials, networks, strict=True) if one[0] not in known]
    if missing:
        progress.stage("levels", len(missing), ())
        tasks = [
            partial(submit, start, score_levels, trial, network, n_labels, seconds)
            for _, trial, network in missing
        ]
        futures = [task() for task in tasks]
        for future, task, (key, trial, _) in zip(futures, tasks, missing, strict=True):
            definition = trial.to_json() | {"n_labels": n_labels}
            parts = (f"levels of {trial}", ledger, driver, progress)
            record_extra(future, task, *parts, id=key, stage="levels", definition=definition)
            progress.step()
    entries = [e for e in ledger.entries("levels") if e.id in keys and e.state == "done"]
    return Levels.of([entry.result for entry in entries], len(trials))


def record_extra(
    future: Future[Any],
    again: Callable[[], Future[Any]],
    name: str,
    ledger: Ledger,
    driver: Driver,
    progress: RunProgress,
    **what: Any,
) -> None:
    """Put on record what came of something that the choice and the model stand without.

    Parameters
    ----------
    future : Future
        Its result, which may have ``curves``.
    again : callable
        Has it done again, where a worker died.
    name : str
        What it is, for messages.
    ledger, driver, progress
        Of the run.
    **what : dict
        Fields of its `Entry`.
    """
    try:
        result = _result(future, again, name, driver, progress)
        curves = result.pop("curves", {})
        entry = Entry(state="done", result=result, curves=curves, **what)
    except RunStoppedError:
        raise
    except EngineError as error:
        # Nothing is known of it: the same call tries it again.
        progress.say(f"No {name}: {error}")
        return
    except Exception as error:
        progress.say(f"No {name}: {error}")
        text = "".join(traceback.format_exception(error))
        entry = Entry(state="failed", result={}, error=text, **what)
    ledger.record(entry)
