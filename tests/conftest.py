"""What all tests share."""

import os
from pathlib import Path

from hypothesis import settings

# A busy machine is slow: how long an example takes says nothing about the code.
settings.register_profile("nightly", deadline=None)
settings.register_profile("change", deadline=None, max_examples=30)
settings.load_profile("nightly" if os.environ.get("AUTOTRANSFER_NIGHTLY") == "1" else "change")

# These begin: files are handed to two processes in their order, and the last should be short.
LONGEST = (
    "search/test_run_faults.py",
    "cli/test_run_command.py",
    "acceptance/test_large.py",
    "search/test_auto.py",
    "benchmarks/test_smoke.py",
    "acceptance/test_kill.py",
    "search/engines/test_local.py",
    "search/engines/test_engines.py",
    "search/test_driver.py",
    "search/ledger/test_ledger_faults.py",
    "test_examples.py",
)


def pytest_collection_modifyitems(items):
    """Put the longest files first."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(LONGEST)))
