"""What runs would cost, in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from autotransfer.cli.output import print_json, print_table, tell

if TYPE_CHECKING:
    from autotransfer.search.forecast import Forecast


def print_forecasts(found: Sequence[Forecast], as_json: bool = False) -> None:
    """Print what runs would cost: trials, time, memory."""
    if as_json:
        print_json([one.to_json() for one in found])
        return
    print_table([forecast_row(one) for one in found], "What a run will cost here")
    for one in found:
        tell(one.words)


def forecast_row(one: Forecast) -> dict[str, Any]:
    """Write a forecast as a row of a table."""
    from autotransfer.training.progress import duration

    budget = "none" if one.budget is None else duration(one.budget)
    if one.plan is None:
        return {"budget": budget, "trials": "too short", "time": "", "at once": "", "memory": ""}
    return {
        "budget": budget,
        "trials": str(one.trials),
        "time": f"about {duration(one.plan.seconds)}",
        "at once": str(one.workers),
        "memory": f"about {one.memory / 2**30:.1f} GB",
    }
