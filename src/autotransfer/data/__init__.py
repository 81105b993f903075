"""Recordings of many people: data sets, sources, checks, normalisation, folds and batches."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from autotransfer.data.batches import SubjectBatches
    from autotransfer.data.checks import check
    from autotransfer.data.checks.findings import Finding, Report
    from autotransfer.data.checks.view import dataset_html
    from autotransfer.data.combining import combine
    from autotransfer.data.dataset import SubjectDataset
    from autotransfer.data.normalise import NORMALISERS, Normaliser
    from autotransfer.data.sources.catalogue import Listed, catalogue
    from autotransfer.data.sources.faces_basic import read_faces_basic
    from autotransfer.data.sources.inria_ern import read_inria_ern
    from autotransfer.data.sources.load import load
    from autotransfer.data.sources.mne import from_mne
    from autotransfer.data.sources.moabb import from_moabb
    from autotransfer.data.sources.moabb_name import from_moabb_name
    from autotransfer.data.sources.npz import read_npz, write_npz
    from autotransfer.data.sources.recordings.bids import read_bids
    from autotransfer.data.sources.recordings.read import read_recordings
    from autotransfer.data.sources.store import StoreWriter, read_store, write_store
    from autotransfer.data.splits import Fold, SubjectFolds
    from autotransfer.data.synthetic import make_leak, make_subjects
    from autotransfer.data.trials import TrialArray

__all__ = [
    "NORMALISERS",
    "Finding",
    "Fold",
    "Listed",
    "Normaliser",
    "Report",
    "StoreWriter",
    "SubjectBatches",
    "SubjectDataset",
    "SubjectFolds",
    "TrialArray",
    "catalogue",
    "check",
    "combine",
    "dataset_html",
    "from_mne",
    "from_moabb",
    "from_moabb_name",
    "load",
    "make_leak",
    "make_subjects",
    "read_bids",
    "read_faces_basic",
    "read_inria_ern",
    "read_npz",
    "read_recordings",
    "read_store",
    "write_npz",
    "write_store",
]

# Opened when somebody asks: `autotransfer datasets` needs no scikit-learn.
_WHERE = {
    "NORMALISERS": "normalise",
    "Finding": "checks.findings",
    "Fold": "splits",
    "Listed": "sources.catalogue",
    "Normaliser": "normalise",
    "Report": "checks.findings",
    "StoreWriter": "sources.store",
    "SubjectBatches": "batches",
    "SubjectDataset": "dataset",
    "SubjectFolds": "splits",
    "TrialArray": "trials",
    "catalogue": "sources.catalogue",
    "check": "checks",
    "combine": "combining",
    "dataset_html": "checks.view",
    "from_mne": "sources.mne",
    "from_moabb": "sources.moabb",
    "from_moabb_name": "sources.moabb_name",
    "load": "sources.load",
    "make_leak": "synthetic",
    "make_subjects": "synthetic",
    "read_bids": "sources.recordings.bids",
    "read_faces_basic": "sources.faces_basic",
    "read_inria_ern": "sources.inria_ern",
    "read_npz": "sources.npz",
    "read_recordings": "sources.recordings.read",
    "read_store": "sources.store",
    "write_npz": "sources.npz",
    "write_store": "sources.store",
}
_MODULES = {path.partition(".")[0] for path in _WHERE.values()}


def __getattr__(name: str) -> Any:
    # What a plain import would have made known: autotransfer.data.splits and the like.
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
