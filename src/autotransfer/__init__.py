"""AutoTransfer: models of biosignals that work on people they have never seen."""

from autotransfer._version import __version__
from autotransfer.data import SubjectDataset

__all__ = ["SubjectDataset", "__version__"]
