"""The ledger: what is on record of every trial of a run, and what was planned."""

from autotransfer.search.ledger.entry import Entry
from autotransfer.search.ledger.ledger import Ledger
from autotransfer.search.ledger.run_ledger import RunLedger

__all__ = ["Entry", "Ledger", "RunLedger"]
