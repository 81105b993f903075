"""Report: what a model's latents give away, in numbers that can be checked."""

from autotransfer.report.leakage import leakage
from autotransfer.report.leakage_result import Estimate, Leakage, ProbeScore

__all__ = ["Estimate", "Leakage", "ProbeScore", "leakage"]
