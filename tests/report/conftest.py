"""Fixtures of the report's tests."""

from report_browser import browser  # noqa: F401
from report_runs import fitted, whole_run  # noqa: F401
