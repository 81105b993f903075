"""Recordings of many people: data sets, sources, checks, normalisation, folds and batches."""

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
    "read_faces_basic",
    "read_inria_ern",
    "read_npz",
    "read_store",
    "write_npz",
    "write_store",
]
