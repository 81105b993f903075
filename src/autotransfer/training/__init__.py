"""Training: the loop, the estimators, the model folder."""

from autotransfer.training.augment import AUGMENTATIONS, Augmentation
from autotransfer.training.classifier import CensoredClassifier
from autotransfer.training.ensemble import Ensemble, load_model

__all__ = ["AUGMENTATIONS", "Augmentation", "CensoredClassifier", "Ensemble", "load_model"]
