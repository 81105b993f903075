"""Training: the loop, the estimator, the model folder."""

from autotransfer.training.classifier import CensoredClassifier

__all__ = ["CensoredClassifier"]
