"""Training: the loop, the estimator, the model folder."""

from autotransfer.training.augment import AUGMENTATIONS, Augmentation
from autotransfer.training.classifier import CensoredClassifier

__all__ = ["AUGMENTATIONS", "Augmentation", "CensoredClassifier"]
