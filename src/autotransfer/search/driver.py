"""The driver: hands trials to the engine and writes what comes back into the ledger.

It is the only one that writes. A trial is on record whole or not at all, so that after any stop
the same call runs exactly what is missing.
"""

from __future__ import annotations

import math
import signal
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from typing import Any

import numpy as np

from autotransfer.errors import (
    AutoTransferError,
    EngineError,
    RunStoppedError,
    SmallCellWarning,
    StalledTrialWarning,
    TrialTimeoutError,
    WorkerDiedError,
)
from autotransfer.search.engines.base import Engine, Handle, WatchedFuture
from autotransfer.search.ledger import Entry, Ledger
from autotransfer.search.progress import RunProgress
from autotransfer.search.settings.selection import TrialScores
from autotransfer.search.settings.trial import Trial
from autotransfer.search.tasks import run_trial
from autotransfer.text import duration

OF_A_TRIAL = (WorkerDiedError, TrialTimeoutError)

TRIES = 3
"""How often a trial is tried whose worker died, or that raised something unforeseen."""

GRACE = 20.0
"""Seconds after SIGTERM in which trials may finish. Slurm (KillWait) and Kubernetes
(terminationGracePeriodSeconds) kill after 30: the rest is to close the ledger and the engine."""

STALLED, STALLED_SECONDS, FIRST_EPOCH = 20, 60.0, 600.0
"""A trial may hang that ends no epoch in so many times the usual time of an epoch, at least so many
seconds; in so many if nothing is known of its epochs."""


class Stop:
    """Whether somebody asked to stop: once to finish what runs, twice to stop now."""

    def __init__(self) -> None:
        self.asked = 0
        self._until = math.inf

    @property
    def now(self) -> bool:
        """Whether what runs is not waited for any more."""
        return self.asked > 1 or time.monotonic() >= self._until

    @contextmanager
    def listening(self, progress: RunProgress) -> Iterator[None]:
        """Let Ctrl-C and SIGTERM ask, in the main thread; elsewhere nobody can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def ask(number: int, frame: Any) -> None:
            self.asked += 1
            words = "the trials that run are finished first. Ctrl-C again to stop now."
            if number == signal.SIGTERM:
                self._until = min(self._until, time.monotonic() + GRACE)
                words = (
                    f"the trials that run have {GRACE:g} s to finish; the same command runs the "
                    "others again."
                )
            progress.say(f"Stopping: {words}" if self.asked == 1 else "Stopping now.")

        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class Driver:
    """Runs trials.

    Parameters
    ----------
    ledger : Ledger
        Open for writing.
    start : callable
        () -> (engine, handle of the problem): starts the engine, or gives the one that runs.
        Called when there is something to run.
    problem_hash : str
        Hash of the data and of the options that all trials share.
    progress : RunProgress
        Tells a person.
    stop : Stop
        Asked between trials.
    work : callable
        What a worker does; `run_trial` but in tests.
    keep : callable, optional
        Takes the predictions of a trial and its network, before it is on record: (id, bytes, file
        name -> content).
    """

    def __init__(
        self,
        ledger: Ledger,
        start: Callable[[], tuple[Engine, Handle]],
        problem_hash: str,
        progress: RunProgress,
        stop: Stop,
        work: Callable[..., dict[str, Any]] = run_trial,
        keep: Callable[[str, bytes, dict[str, bytes]], None] | None = None,
    ) -> None:
        self._ledger, self._start, self._problem_hash = ledger, start, problem_hash
        self._progress, self._stop, self._work, self._keep = progress, stop, work, keep
        self._stalled: set[str] = set()
        self._epoch_seconds = 0.0  # of the slowest trial so far
        self._known: dict[str, Entry] = {
            entry.id: entry for stage in ledger.stages() for entry in ledger.entries(stage)
        }

    def run(self, stage: str, trials: Sequence[Trial]) -> list[TrialScores]:
        """Run what is missing of some trials.

        Parameters
        ----------
        stage : str
            Under which they are recorded. A trial on record in any stage is not run again.
        trials : sequence of Trial
            In the order in which they start.

        Returns
        -------
        list of TrialScores
            In the order of the trials, whatever the order in which they ended.

        Raises
        ------
        RunStoppedError
            If somebody asked to stop before all were done.
        """
        ids = [trial.id(self._problem_hash) for trial in trials]
        waiting = deque(
            (key, trial)
            for key, trial in dict(zip(ids, trials, strict=True)).items()
            if key not in self._known
        )
        self._progress.stage(
            stage, len(set(ids)), [self._known[i] for i in set(ids) & set(self._known)]
        )
        if waiting:
            self._run_missing(stage, waiting)
        left = sum(key not in self._known for key in set(ids))
        if left:
            raise RunStoppedError(
                f"The run was stopped in the {stage} stage with {left} of {len(set(ids))} trials "
                "to go. Nothing that was finished is lost: the same call goes on from here."
            )
        return [scores_of(self._known[key]) for key in ids]

    def _run_missing(self, stage: str, waiting: deque[tuple[str, Trial]]) -> None:
        """Run trials until there are none left, or somebody asks to stop."""
        engine, handle = self._start()
        running: dict[Future[Any], tuple[str, Trial]] = {}
        attempts: dict[str, int] = {}
        try:
            while (waiting and not self._stop.asked) or running:
                # One more than there are workers, so that none waits for the driver.
                while waiting and not self._stop.asked and len(running) <= engine.n_workers:
                    key, trial = waiting.popleft()
                    attempts[key] = attempts.get(key, 0) + 1
                    running[self._submit(engine, handle, trial)] = key, trial
                self._progress.running(min(len(running), engine.n_workers))
                done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                self._progress.tick()
                self._name_stalled(running)
                for future in done:
                    key, trial = running.pop(future)
                    entry = self._judge(future, stage, key, trial, attempts[key])
                    if entry is None:
                        waiting.append((key, trial))
                        continue
                    self._ledger.record(entry)
                    self._known[key] = entry
                    self._progress.done(entry)
                if self._stop.asked:
                    self._give_back(running)
                if self._stop.now:
                    break
        except BaseException:
            engine.shutdown(wait=False, cancel_futures=True)
            raise
        if self._stop.asked:
            engine.shutdown(wait=False, cancel_futures=True)

    def result(self, future: Future[Any]) -> Any:
        """Wait for something that is no trial; stops at once when asked to."""
        while not self._stop.asked:
            try:
                return future.result(timeout=0.2)
            except TimeoutError:
                if future.done():
                    raise
                self._progress.tick()
        self._start()[0].shutdown(wait=False, cancel_futures=True)
        raise RunStoppedError(
            "The run was stopped. Nothing that was finished is lost: the same call goes on from "
            "here."
        )

    def _submit(self, engine: Engine, handle: Handle, trial: Trial) -> Future[Any]:
        try:
            return engine.submit(self._work, handle, trial)
        except WorkerDiedError as error:  # a worker that cannot be started is one that died
            failed: Future[Any] = Future()
            failed.set_exception(error)
            time.sleep(0.5)
            return failed

    def _give_back(self, running: dict[Future[Any], tuple[str, Trial]]) -> None:
        """Take back what has not begun."""
        for future in [f for f in running if f.cancel()]:
            del running[future]

    def _name_stalled(self, running: dict[Future[Any], tuple[str, Trial]]) -> None:
        """Warn, once for each trial, of those that seem to hang; they are left alone."""
        for future, (key, trial) in running.items():
            if not isinstance(future, WatchedFuture) or key in self._stalled:
                continue
            each = self._epoch_seconds
            if future.epochs:
                each = (future.news - future.began) / future.epochs
                self._epoch_seconds = max(each, self._epoch_seconds)
            silence = time.monotonic() - future.news
            if silence < (max(STALLED * each, STALLED_SECONDS) if each else FIRST_EPOCH):
                continue
            self._stalled.add(key)
            usual = f"; an epoch takes about {duration(each)}" if each else ""
            warnings.warn(
                f"{trial}: no epoch has ended for {duration(silence)}{usual}. The trial may hang; "
                "it is left to run. Give a time_limit (--time-limit) to have such trials stopped "
                "and tried again, or stop the run and give the same command again.",
                StalledTrialWarning,
                stacklevel=2,
            )

    def _judge(
        self, future: Future[Any], stage: str, key: str, trial: Trial, attempt: int
    ) -> Entry | None:
        """Make the record of a trial that ended; None if it is to be tried again."""
        error = future.exception()
        what: dict[str, Any] = {
            "id": key,
            "stage": stage,
            "definition": trial.to_json(),
            "attempts": attempt,
            "params": trial.setting.params(),
        }
        if error is None:
            result = future.result()
            value = result["validation"]["balanced_accuracy"]
            if np.isfinite(value):
                predictions, network = (result.pop(k, None) for k in ("probabilities", "network"))
                if predictions is not None and self._keep is not None:
                    self._keep(key, predictions, network)
                curves = result.pop("curves", {})
                return Entry(state="done", result=result, value=value, curves=curves, **what)
            error = ValueError(f"The trial gave the score {value}.")
        if isinstance(error, EngineError) and not isinstance(error, OF_A_TRIAL):
            raise error  # no trial can be run any more: that is no trial's failure
        # What this package raises by name (a loss that is not finite, a class without trials)
        # would be raised again; a dead worker may have been somebody else's doing.
        final = isinstance(error, AutoTransferError) and not isinstance(error, EngineError)
        text = "".join(traceback.format_exception(error))
        if attempt < TRIES and not final:
            self._progress.retry(trial, error, attempt)
            return None
        return Entry(state="failed", result={}, error=text, **what)


def scores_of(entry: Entry) -> TrialScores:
    """Scores of a record."""
    trial = entry.trial
    if entry.state != "done":
        return TrialScores(trial.setting, trial.fold, trial.seed, error=entry.error or "failed")
    return TrialScores(
        trial.setting,
        trial.fold,
        trial.seed,
        entry.result["validation"]["subjects"],
        entry.result["test"]["subjects"],
        adapted=entry.result["adapted"],
        small_cells=SmallCellWarning.__name__ in entry.result.get("warnings", ()),
    )
