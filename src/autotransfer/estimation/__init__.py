"""Kernels, length scales and score estimators: tensor functions that know no networks."""

from autotransfer.estimation.kernels import KERNELS, imq, rbf, square_distances
from autotransfer.estimation.length_scale import (
    LENGTH_SCALES,
    LengthScale,
    beta,
    check_length_scale,
    median_beta,
    tsne_beta,
)
from autotransfer.estimation.out_of_sample import score_at
from autotransfer.estimation.scores import SCORES, calibrate, lookup_score, score

__all__ = [
    "KERNELS",
    "LENGTH_SCALES",
    "SCORES",
    "LengthScale",
    "beta",
    "calibrate",
    "check_length_scale",
    "imq",
    "lookup_score",
    "median_beta",
    "rbf",
    "score",
    "score_at",
    "square_distances",
    "tsne_beta",
]
