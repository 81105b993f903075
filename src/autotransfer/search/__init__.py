"""AutoTransfer: the search for the setting that works on people never seen."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotransfer.search.engines import ENGINES, make_engine
    from autotransfer.search.ledger import Entry, Ledger
    from autotransfer.search.optuna_export import export_optuna
    from autotransfer.search.settings.recipe import Dimension, Recipe, RecipeSpace
    from autotransfer.search.settings.recipe_space import recipe_space
    from autotransfer.search.settings.selection import RULES
    from autotransfer.search.settings.setting import BASELINE, BASELINE_BY_CLASS, Setting
    from autotransfer.search.settings.space import Space
    from autotransfer.search.tensorboard import write_tensorboard

__all__ = [
    "BASELINE",
    "BASELINE_BY_CLASS",
    "ENGINES",
    "RULES",
    "Dimension",
    "Entry",
    "Ledger",
    "Recipe",
    "RecipeSpace",
    "Setting",
    "Space",
    "export_optuna",
    "make_engine",
    "recipe_space",
    "write_tensorboard",
]

# Opened when somebody asks: `autotransfer status` needs no torch, and a worker no Optuna.
_WHERE = {
    "BASELINE": "settings.setting",
    "BASELINE_BY_CLASS": "settings.setting",
    "ENGINES": "engines",
    "RULES": "settings.selection",
    "Dimension": "settings.recipe",
    "Entry": "ledger",
    "Ledger": "ledger",
    "Recipe": "settings.recipe",
    "RecipeSpace": "settings.recipe",
    "Setting": "settings.setting",
    "Space": "settings.space",
    "export_optuna": "optuna_export",
    "make_engine": "engines",
    "recipe_space": "settings.recipe_space",
    "write_tensorboard": "tensorboard",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
