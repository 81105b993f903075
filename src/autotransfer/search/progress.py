"""What a person sees while a run goes on."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from autotransfer.search.ledger import Entry
from autotransfer.search.settings.setting import BASELINE, BASELINE_BY_CLASS, Setting
from autotransfer.search.status import OF_TRIALS, STAGES
from autotransfer.text import duration, visible
from autotransfer.training.progress import Viewed

BASE = str(BASELINE)
UNCENSORED = (BASE, str(BASELINE_BY_CLASS))


class RunProgress(Viewed):
    """A live view on a terminal or in a notebook, a plain line now and then in a log, or nothing.

    Parameters
    ----------
    shown : bool
        Whether to show anything.
    every : float
        Seconds between lines where there is no terminal.
    heartbeat : Path, optional
        File in which others can see that the run is alive and how long it will take.
    """

    def __init__(self, shown: bool, every: float = 30.0, heartbeat: Path | None = None) -> None:
        self._heartbeat, self._beat = heartbeat, 0.0
        self.name_of: Callable[[Setting], str] = str
        super().__init__(shown)
        self._every, self._last = every, time.monotonic()
        # Setting -> trial -> scores of its people: a trial may be told of more than once.
        self._scores: dict[str, dict[tuple[int, str], dict[str, float]]] = {}
        self._stage, self._total, self._done, self._failed, self._running = "", 0, 0, 0, 0
        self._fresh, self._start = 0, time.monotonic()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        if self._heartbeat is not None:
            with contextlib.suppress(OSError):
                self._heartbeat.unlink()

    def say(self, words: str) -> None:
        """Print a line."""
        if self._console is None:
            return
        words = visible(words)
        if self._view is not None:
            self._view.say(words)
        else:
            print(f"autotransfer: {words}", file=sys.stderr, flush=True)

    def stage(self, name: str, total: int, known: Iterable[Entry]) -> None:
        """Begin a stage, part of which may be on record already."""
        self._stage, self._total, self._running = name, total, 0
        self._done, self._failed, self._fresh = 0, 0, 0
        if name in OF_TRIALS["paper"]:
            self._scores = {}
        for entry in known:
            self._count(entry)
        self._start = time.monotonic()
        if self._done and self._done < total:
            self.say(f"{self._words()}: {self._done} of {total} trials are on record already.")
        self._draw()

    def running(self, n: int) -> None:
        """Tell how many trials run."""
        self._running = n

    def step(self) -> None:
        """Tell that a part of a stage ended that is no trial."""
        self._done += 1
        self._fresh += 1
        self._draw()

    def done(self, entry: Entry) -> None:
        """Tell of a trial that ended."""
        self._count(entry)
        self._fresh += 1
        if entry.state == "failed":
            reason = entry.error.strip().splitlines()[-1] if entry.error else "unknown"
            trial = entry.trial
            where = f"{self.name_of(trial.setting)}, fold {trial.fold + 1}"
            self.say(f"Failed: {where}, after {entry.attempts} tries: {reason}")
        self._draw()

    def retry(self, trial: Any, error: BaseException, attempt: int) -> None:
        """Tell of a trial that will be tried again."""
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        self.say(f"Trying again ({attempt + 1}): {trial}: {reason}")

    def tick(self) -> None:
        """Let time be seen to pass."""
        self._sign_of_life()
        if self._view is not None or time.monotonic() - self._last >= self._every:
            self._draw()

    def _sign_of_life(self) -> None:
        if self._heartbeat is None or time.monotonic() - self._beat < 5:
            return
        self._beat = time.monotonic()
        with contextlib.suppress(OSError):  # a full disk is for the ledger to report
            sign = {"at": time.time(), "left": self._left(), "pid": os.getpid()}
            self._heartbeat.write_text(json.dumps(sign | {"host": platform.node()}))

    def _count(self, entry: Entry) -> None:
        self._done += 1
        if entry.state == "failed":
            self._failed += 1
            return
        trials = self._scores.setdefault(self.name_of(entry.trial.setting), {})
        trials[entry.trial.seed, entry.id] = entry.result["validation"]["subjects"]

    def _words(self) -> str:
        return STAGES.get(self._stage, self._stage)

    def _facts(self) -> list[str]:
        """How it goes; the best so far; what it is compared with."""
        left = self._left()
        going = [f"about {duration(left)} left"] if left else []
        more = []
        if self._stage in chain(*OF_TRIALS.values()):
            going = [f"{self._running} running", f"{self._failed} failed", *going]
            auto = self._stage in OF_TRIALS["auto"]
            more = self._of_settings() if auto else self._of_censors()
        return [", ".join(going or ["done" if self._fresh else "starting"]), *more]

    def _of_censors(self) -> list[str]:
        """Say which censor is best so far, and the baseline."""
        facts = []
        scores = {name: _values(trials) for name, trials in self._scores.items()}
        censored = {n: v for n, v in scores.items() if n not in UNCENSORED}
        if censored:
            best = max(censored, key=lambda n: float(np.mean(censored[n])))
            facts.append(f"best so far {_spread(censored[best])} {best}")
        if BASE in scores:
            facts.append(f"baseline    {_spread(scores[BASE])} {BASE}")
        return facts

    def _of_settings(self) -> list[str]:
        """Say which setting is best so far, and the first answer."""
        seeds = {name: _by_seed(trials) for name, trials in self._scores.items()}
        most = max((len(people) for own in seeds.values() for people in own.values()), default=0)
        # What was tried on some groups of people only is not compared with the rest; nor is a
        # further seed of a setting, before it was.
        scores = {
            name: [value for people in own.values() if len(people) == most for value in people]
            for name, own in seeds.items()
        }
        scores = {name: values for name, values in scores.items() if values}
        if not scores:
            return []
        first = next(iter(self._scores))  # what a hands-off run begins with
        best = max(scores, key=lambda n: float(np.mean(scores[n])))
        facts = [f"first answer {_spread(scores[first])} {first}"] if first in scores else []
        return facts if best == first else [f"best so far  {_spread(scores[best])} {best}", *facts]

    def _left(self) -> float | None:
        """Seconds to the end of the stage, from what its trials took so far."""
        if not self._fresh:
            return None
        each = (time.monotonic() - self._start) / self._fresh
        return each * (self._total - self._done)

    def _draw(self) -> None:
        if self._console is None or not self._stage:
            return
        if self._view is not None:
            self._view.draw(self._words(), self._done, self._total, self._facts())
        elif time.monotonic() - self._last >= self._every or self._done == self._total:
            self._last = time.monotonic()
            facts = ", ".join(" ".join(fact.split()) for fact in self._facts())
            self.say(f"{self._words()}: {self._done}/{self._total}, {facts}")


def _values(trials: dict[tuple[int, str], dict[str, float]]) -> list[float]:
    """Scores of people in some trials."""
    return [value for people in trials.values() for value in people.values()]


def _by_seed(trials: dict[tuple[int, str], dict[str, float]]) -> dict[int, list[float]]:
    """Scores of people by the seed of the trials, which hold out each person once."""
    found: dict[int, list[float]] = {}
    for (seed, _), people in trials.items():
        found.setdefault(seed, []).extend(people.values())
    return found


def _spread(values: list[float]) -> str:
    """Mean and standard deviation over subjects."""
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}"
