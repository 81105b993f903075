"""Engines: what runs trials in parallel."""

from autotransfer.search.engines.base import Engine, Handle
from autotransfer.search.engines.make import ENGINES, make_engine

__all__ = ["ENGINES", "Engine", "Handle", "make_engine"]
