"""Recordings of many people: data sets, sources, checks, normalisation, folds and batches."""

from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.trials import TrialArray

__all__ = ["SubjectDataset", "TrialArray"]
