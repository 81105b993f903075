"""The ledger: what is on record of every trial of a run, and what was planned."""

from autotransfer.search.ledger.entry import Entry
from autotransfer.search.ledger.ledger import Ledger

__all__ = ["Entry", "Ledger"]
