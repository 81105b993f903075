"""Probes on trials they have not seen: scores of every recording, and their bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import log_softmax

from autotransfer.data.trials import Index
from autotransfer.leakage.folds import ProbeFold, Units
from autotransfer.leakage.probe import Floats, Part
from autotransfer.leakage.probes import PROBES

REPLICATES = 2000
FLOOR = 1e-3
"""Share of p(s | y) in every prediction: no single trial can then spoil the mean."""


@dataclass(frozen=True)
class UnitScores:
    """Sums over the trials of each unit (recording or block).

    Parameters
    ----------
    sums : array of shape (n_units, n_columns)
        Weighted sums of losses and hits. Columns 0 and 1 are the loss and the hits without a
        probe; then come those of each probe, and those of the probe chosen in each fold.
    weights : array of shape (n_units,)
        Sums of the weights.
    owner : array of int of shape (n_units,)
        Subject of each unit.
    chosen : tuple of str
        The probe chosen in each fold.
    """

    sums: Floats
    weights: Floats
    owner: Index
    chosen: tuple[str, ...]


def score_units(
    latent: Floats, label: Floats, units: Units, names: Sequence[str], rng: np.random.Generator
) -> UnitScores:
    """Train and test the probes in every fold.

    Parameters
    ----------
    latent : array of shape (n, K)
        Latents of the trials of `units`, in that order.
    label : array of shape (n, n_classes)
        Their one-hot labels; n_classes is 0 if they are not given.
    units : Units
        Says which trials are tested together.
    names : sequence of str
        Probes to train.
    rng : Generator
        Seeds the probes.

    Returns
    -------
    UnitScores
    """
    n_units = int(units.unit.max()) + 1
    sums, weights = np.zeros((n_units, 2 * len(names) + 4)), np.zeros(n_units)
    chosen = []
    for fold in units.folds():
        scores, best = _test(latent, label, units, fold, names, int(rng.integers(2**32)))
        chosen.append(names[best])
        unit, subject = units.unit[fold.test], units.subject[fold.test]
        # In each fold every subject weighs the same. A probe that has more faith in some names
        # than in others then gains nothing by it, whatever their numbers of trials.
        share = 1.0 / np.bincount(subject)[subject]
        np.add.at(sums, unit, share[:, None] * scores)
        np.add.at(weights, unit, share)
    owner = np.zeros(n_units, np.intp)
    owner[units.unit] = units.subject
    return UnitScores(sums, weights, owner, tuple(chosen))


def _test(
    latent: Floats, label: Floats, units: Units, fold: ProbeFold, names: Sequence[str], seed: int
) -> tuple[Floats, int]:
    """Columns of `UnitScores` for the test trials of a fold, and the number of the best probe."""
    training = np.sort(np.concatenate([fold.train, fold.inner]))
    z = standardise(latent, training)
    n_subjects = len(units.ids)
    uniform = np.full((len(z), n_subjects), -np.log(n_subjects))

    def part(trials: Index, counted: Index) -> Part:
        prior = label_prior(units.subject[counted], label[counted], n_subjects)
        each = label[trials] @ prior if label.shape[1] else uniform[trials]
        return Part(z[trials], units.subject[trials], label[trials], each)

    train, inner = part(fold.train, fold.train), part(fold.inner, fold.train)
    both, test = part(training, training), part(fold.test, training)
    log_p, losses = [test.prior], []
    for name in names:
        fitted = PROBES[name](train, inner, both, seed)
        mixed = np.logaddexp(
            np.log1p(-FLOOR) + fitted.log_posterior(test), np.log(FLOOR) + test.prior
        )
        log_p.append(mixed)
        losses.append(fitted.inner_loss)
    best = int(np.argmin(losses))
    log_p.append(log_p[1 + best])
    row = np.arange(len(test.subject))
    columns = [
        column for p in log_p for column in (-p[row, test.subject], p.argmax(1) == test.subject)
    ]
    return np.stack(columns, axis=1).astype(float), best


def standardise(latent: Floats, training: Index) -> Floats:
    """Scale latents by mean and standard deviation of the training trials, to within 10 of these.

    A latent that is constant there becomes 0: a probe can know nothing about it. Without the limit
    a test trial far from all of these would get scores that no calibration has seen.
    """
    mean, deviation = latent[training].mean(0), latent[training].std(0)
    # Rounding leaves a constant with a deviation, of a size that float32 latents have.
    flat = deviation <= 1e-6 * np.abs(latent[training]).max(0)
    return np.where(flat, 0.0, (latent - mean) / np.where(flat, 1.0, deviation)).clip(-10, 10)


def label_prior(subject: Index, label: Floats, n_subjects: int) -> Floats:
    """Count log p(s | y), of shape (n_classes, M), with all subjects equally likely beforehand.

    ``p(s | y) = p(y | s) / sum_t p(y | t)``, where the shares of labels p(y | s) are those counted
    (with half a trial more of each), drawn towards the mean of all subjects by ``min(1, d / X2)``:
    X2 is the chi-square statistic of equal shares and d its degrees of freedom.

    Notes
    -----
    Without the draw, equal shares would do harm: where each subject has as many trials of each
    label, one that is frequent in the training part is rare in the test part, and the label alone
    would do worse than chance.

    Examples
    --------
    >>> label = np.eye(2)[[0, 0, 0, 0, 1, 1, 1, 1]]
    >>> np.exp(label_prior(np.repeat([0, 1], 4), label, 2)).round(2).tolist()
    [[0.84, 0.16], [0.16, 0.84]]
    >>> np.exp(label_prior(np.tile([0, 1], 4), label, 2)).round(2).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    counts = label.T @ np.eye(n_subjects)[subject] + 0.5
    shares = counts / counts.sum(0)
    mean = shares.mean(1, keepdims=True)
    chi_square = (counts.sum(0) * (shares - mean) ** 2 / mean).sum()
    freedom = (n_subjects - 1) * (len(counts) - 1)
    draw = freedom / max(chi_square, freedom, 1e-12)
    log_prior: Floats = log_softmax(np.log(draw * mean + (1 - draw) * shares), axis=1)
    return log_prior


def bootstrap(scores: UnitScores, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Mean scores of each subject, and means over subjects when units are drawn again.

    Parameters
    ----------
    scores : UnitScores
        Of n_units units of M subjects.
    rng : Generator
        Draws units of each subject with replacement, one fewer than there are.

    Returns
    -------
    each : array of shape (M, n_columns)
    replicates : array of shape (REPLICATES, n_columns)
    """
    n_subjects = int(scores.owner.max()) + 1
    each = np.empty((n_subjects, scores.sums.shape[1]))
    replicates = np.zeros((REPLICATES, scores.sums.shape[1]))
    for s in range(n_subjects):
        of_subject = scores.owner == s
        sums, weights = scores.sums[of_subject], scores.weights[of_subject]
        n = len(weights)
        each[s] = sums.sum(0) / weights.sum()
        # n draws would have a variance too small by (n - 1) / n, half of it for two recordings.
        times = rng.multinomial(n - 1, np.full(n, 1 / n), size=REPLICATES)
        replicates += (times @ sums) / (times @ weights)[:, None]
    return each, replicates / n_subjects


def reach(units: Units, n_units: int, confidence: float) -> float:
    """Say how many standard deviations of the bootstrap an interval reaches to either side.

    ``t sqrt(1 + mean_s G_s / (G_s - 1))`` for G_s groups of recordings of subject s: the quantile
    t of Student's distribution for as many degrees of freedom as there are units beyond one for
    each subject, and what scores of folds have in common by training on each other's tests [1]_.

    References
    ----------
    .. [1] C. Nadeau, Y. Bengio (2003). Inference for the generalization error. Machine Learning
       52, 239-281. doi:10.1023/A:1024068626366
    """
    quantile = stats.t.ppf((1 + confidence) / 2, n_units - len(units.ids))
    return float(quantile * np.sqrt(1 + (units.n_groups / (units.n_groups - 1)).mean()))
