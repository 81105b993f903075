"""Leakage: what a latent tells about the person, judged by probes of its own."""

from autotransfer.leakage.measure import measure_leakage
from autotransfer.leakage.result import Estimate, Leakage, ProbeScore

__all__ = ["Estimate", "Leakage", "ProbeScore", "measure_leakage"]
