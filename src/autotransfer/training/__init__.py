"""Training: the loop, the estimators, the model folder."""

from autotransfer.training.classifier import CensoredClassifier
from autotransfer.training.ensemble import Ensemble, load_model

__all__ = ["CensoredClassifier", "Ensemble", "load_model"]
