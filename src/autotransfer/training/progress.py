"""What a person sees while a network trains."""

from __future__ import annotations

import sys
import time

from autotransfer.training.live import Viewed


class EpochProgress(Viewed):
    """A live view on a terminal, a plain line now and then in a log, or nothing.

    Parameters
    ----------
    shown : bool
        Whether to show anything.
    max_epochs : int
        Epochs at most.
    every : float
        Seconds between lines where there is no terminal; trainings shorter than this are silent
        there.
    """

    def __init__(self, shown: bool, max_epochs: int, every: float = 30.0) -> None:
        self._max, self._every = max_epochs, every
        self._start = self._last = time.monotonic()
        self._done_before: int | None = None
        super().__init__(shown)

    def epoch(self, epoch: int, loss: float, best: float | None, patience_left: int | None) -> None:
        """Tell that an epoch is done."""
        if self._console is None:
            return
        now = time.monotonic()
        if self._done_before is None:
            self._done_before = epoch - 1
        per_epoch = (now - self._start) / (epoch - self._done_before)
        notes = [f"loss {loss:.3f}"]
        if patience_left is not None:
            notes.append(f"best validation {best:.3f}, stops in {patience_left} unless better")
        elif best is not None:
            notes.append(f"validation {best:.3f}")
        # Early stopping can end it sooner, so this is a bound.
        notes.append(f"at most {duration(per_epoch * (self._max - epoch))} left")
        if self._view is not None:
            # Epochs of small data take less time than drawing them.
            if now - self._last >= 0.1 or epoch == self._max:
                self._last = now
                self._view.draw("training", epoch, self._max, notes)
        elif now - self._last >= self._every:
            self._last = now
            words = ", ".join([f"epoch {epoch}/{self._max}", *notes])
            print(f"autotransfer: {words}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Write a time span in words.

    Examples
    --------
    >>> duration(42), duration(600), duration(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
