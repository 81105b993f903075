"""The classical pipeline of the field on the same people: what a network has to beat."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from autotransfer.data.trials import evenly
from autotransfer.search.engines.base import Handle
from autotransfer.search.shared import Shared
from autotransfer.search.tasks import scores

MOST_TRIALS = 5000
"""Training trials at most, evenly over all: more cost minutes and change little."""


def reference(handle: Handle, n_groups: int) -> dict[str, Any]:
    """Score everybody by covariances in tangent space and logistic regression, held out by groups.

    Covariance matrices of the channels, shrunk, are mapped to the tangent space at their Riemannian
    mean (Barachant et al., 2012, doi 10.1109/TBME.2011.2172210), as pyRiemann does it with its
    defaults; the classifier is scikit-learn's, with classes of equal weight. Nothing is tuned.

    Parameters
    ----------
    handle : Handle
        Of what all trials share, a `Shared`.
    n_groups : int
        Groups of people, those of the trials.

    Returns
    -------
    dict
        ``subjects``: balanced accuracy of each person; ``seconds``.
    """
    # Here and not above: drivers import this module, and do not need them.
    from pyriemann.estimation import Covariances
    from pyriemann.tangentspace import TangentSpace
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    shared: Shared = handle.get()
    problem = shared.problem
    start = time.perf_counter()
    subjects: dict[str, float] = {}
    for fold in problem.groups(n_groups):
        train = fold.train[evenly(len(fold.train), MOST_TRIALS)]
        pipeline = make_pipeline(
            Covariances("oas"),
            TangentSpace(),
            StandardScaler(),
            LogisticRegression(C=0.1, max_iter=1000, class_weight="balanced"),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of convergence: it is scored as it is
            pipeline.fit(_scaled(problem.X[train]), problem.codes[train])
            predicted = np.concatenate(
                [
                    pipeline.predict(_scaled(block))
                    for _, block in problem.X.take(fold.validation).chunks()
                ]
            )
        subjects |= scores(problem, fold.validation, predicted)["subjects"]
    return {"subjects": subjects, "seconds": time.perf_counter() - start}


def _scaled(block: Any) -> Any:
    """Bring signals to a size at which squares of microvolts in volts do not vanish."""
    block = block.astype(np.float64) - block.mean(2, keepdims=True)
    size = np.sqrt(np.square(block).mean((1, 2), keepdims=True))
    return block / np.where(size > 0, size, 1.0)
