"""Report: what came of a run, on one page."""

from autotransfer.report.write import write_report

__all__ = ["write_report"]
