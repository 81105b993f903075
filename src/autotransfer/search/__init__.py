"""AutoTransfer: the search for the setting that works on people never seen."""

from autotransfer.search.engines import ENGINES, make_engine
from autotransfer.search.ledger import Entry, Ledger
from autotransfer.search.optuna_export import export_optuna
from autotransfer.search.settings.selection import RULES
from autotransfer.search.settings.setting import BASELINE, BASELINE_BY_CLASS, Setting
from autotransfer.search.settings.space import Space
from autotransfer.search.tensorboard import write_tensorboard

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
