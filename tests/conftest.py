"""What all tests share."""

import os

from hypothesis import settings

# A busy machine is slow: how long an example takes says nothing about the code.
settings.register_profile("nightly", deadline=None)
settings.register_profile("change", deadline=None, max_examples=30)
settings.load_profile("nightly" if os.environ.get("AUTOTRANSFER_NIGHTLY") == "1" else "change")

# These begin: files are handed to two processes in their order, and the last should be short.
LONGEST = (
    "test_run_faults.py",
    "test_run_command.py",
    "test_large.py",
    "test_auto.py",
    "test_smoke.py",
    "test_kill.py",
    "test_local.py",
    "test_engines.py",
    "test_driver.py",
    "test_ledger_faults.py",
    "test_examples.py",
    "test_fuzz.py",
    "test_hostile_files.py",
)


def pytest_collection_modifyitems(items):
    """Put the longest files first."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(LONGEST)))
