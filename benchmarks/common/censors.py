"""The fifteen censors and the uncensored baseline, for the benchmarks that compare them."""

from __future__ import annotations

from autotransfer.censoring import MEASURES, MODES

Setting = tuple[str | None, str]

CENSORS: list[Setting] = [(measure, mode) for mode in MODES for measure in MEASURES]


def name_of(setting: Setting) -> str:
    """Name of a setting in a table."""
    measure, mode = setting
    if measure is None:
        # With the batches of conditional censors it is another training.
        return "uncensored, by class" if mode == "conditional" else "uncensored"
    return f"{measure} {mode}"
