"""What runs would cost, in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from autotransfer.cli.output import print_json, print_table, tell

if TYPE_CHECKING:
    from autotransfer.search.forecast import Forecast


def print_forecasts(forecasts: Sequence[Forecast], as_json: bool = False) -> None:
    """Print what runs would cost: trials, time, memory."""
    if as_json:
        print_json([forecast.to_json() for forecast in forecasts])
        return
    print_table([forecast_row(forecast) for forecast in forecasts], "What a run will cost here")
    for forecast in forecasts:
        tell(forecast.words)
    recipes = forecasts[0].recipes if forecasts else None
    if recipes:
        rows = [{"of the recipe": name, "tried": _values(v)} for name, v in recipes.items()]
        print_table(rows, "What a run tries; the first is where it begins")


def _values(values: Sequence[dict[str, Any]]) -> str:
    """Write the values of a dimension of the recipes."""
    return "; ".join(
        " ".join(f"{name}={one}" for name, one in value.items() if one is not None) or "none"
        for value in values
    )


def forecast_row(forecast: Forecast) -> dict[str, Any]:
    """Write a forecast as a row of a table."""
    from autotransfer.text import duration

    budget = "none" if forecast.budget is None else duration(forecast.budget)
    if forecast.plan is None:
        return {"budget": budget, "trials": "too short", "time": "", "at once": "", "memory": ""}
    return {
        "budget": budget,
        "trials": str(forecast.trials),
        "time": f"about {duration(forecast.seconds)}",
        "at once": str(forecast.workers),
        "memory": f"about {forecast.memory / 2**30:.1f} GB",
    }
