"""AutoTransfer: the search for the setting that works on people never seen."""

from typing import TYPE_CHECKING, Any

from autotransfer.search.engines import ENGINES, make_engine
from autotransfer.search.ledger import Entry, Ledger
from autotransfer.search.settings.selection import RULES
from autotransfer.search.settings.setting import BASELINE, BASELINE_BY_CLASS, Setting
from autotransfer.search.settings.space import Space
from autotransfer.search.tensorboard import write_tensorboard

if TYPE_CHECKING:
    from autotransfer.search.optuna_export import export_optuna

__all__ = [
    "BASELINE",
    "BASELINE_BY_CLASS",
    "ENGINES",
    "RULES",
    "Entry",
    "Ledger",
    "Setting",
    "Space",
    "export_optuna",
    "make_engine",
    "write_tensorboard",
]


def __getattr__(name: str) -> Any:
    # Every worker imports this package, and Optuna's storage would be a tenth of what that takes.
    if name == "export_optuna":
        from autotransfer.search.optuna_export import export_optuna

        return export_optuna
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
