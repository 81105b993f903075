"""Report: what came of a run, and what a model's latents give away, in numbers to be checked."""

from autotransfer.report.leakage import leakage
from autotransfer.report.leakage_result import Estimate, Leakage, ProbeScore
from autotransfer.report.write import write_report

__all__ = ["Estimate", "Leakage", "ProbeScore", "leakage", "write_report"]
