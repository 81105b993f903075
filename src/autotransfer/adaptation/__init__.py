"""Adaptation: what trials of the new person add to a trained network."""

from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.adaptation.registry import ADAPTATIONS, LEVELS, Adaptation, adapt

__all__ = ["ADAPTATIONS", "LEVELS", "Adaptation", "Fitted", "Person", "adapt"]
