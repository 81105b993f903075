"""Training: the loop, the estimators, the model folder."""

from autotransfer.training.augment import AUGMENTATIONS, Augmentation
from autotransfer.training.classifier import CensoredClassifier
from autotransfer.training.ensemble import Ensemble, load_model
from autotransfer.training.schedule import SCHEDULES, Schedule

__all__ = [
    "AUGMENTATIONS",
    "SCHEDULES",
    "Augmentation",
    "CensoredClassifier",
    "Ensemble",
    "Schedule",
    "load_model",
]
