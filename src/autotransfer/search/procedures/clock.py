"""Time that a run has."""

from __future__ import annotations

import math
import time


class Clock:
    """Time that is left of a budget.

    Parameters
    ----------
    budget : float or None
        Seconds; None for a run without one.
    spent : float
        What earlier calls have used of it.
    """

    def __init__(self, budget: float | None, spent: float = 0.0) -> None:
        self.budget = budget
        self._end = math.inf if budget is None else time.monotonic() + budget - spent

    @property
    def left(self) -> float:
        """Seconds."""
        return self._end - time.monotonic()
