"""`leakage`: how much a latent tells about the subject, judged by probes of its own.

A censor's own measure says how well it did what it was told to do. Whether the subject is gone
from the latent is for somebody else to say: probes that are trained afresh on the finished latent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from autotransfer.data.trials import Array
from autotransfer.data.validate import as_count, as_labels, as_seed
from autotransfer.errors import (
    DtypeError,
    EmptyDataError,
    LabelError,
    NonFiniteDataError,
    SettingError,
    ShapeError,
    join_some,
)
from autotransfer.leakage.folds import make_units
from autotransfer.leakage.probe import Floats
from autotransfer.leakage.probes import PROBES
from autotransfer.leakage.result import Estimate, Leakage, ProbeScore
from autotransfer.leakage.scores import bootstrap, reach, score_units


def measure_leakage(
    latent: Any,
    subject: Any,
    *,
    recording: Any = None,
    label: Any = None,
    probes: Sequence[str] = ("linear", "gaussian", "mlp"),
    n_folds: int = 5,
    max_trials_per_subject: int = 500,
    confidence: float = 0.95,
    random_state: int = 0,
) -> Leakage:
    """Measure what a latent gives away about the subject.

    Trains probes that tell the subjects apart, tests them on recordings they were not trained on,
    and turns their cross entropy into a lower bound [1]_ on the information,

        ``I(z; s) >= H(s) - E[-log q(s | z)]``,

    with every subject equally likely, ``H(s) = log M``. With `label`, leakage beyond the label:

        ``I(z; s | y) >= E[-log p(s | y)] - E[-log q(s | z, y)]``,

    where p(s | y) comes from counting the labels of each subject in the training part.

    Parameters
    ----------
    latent : array of shape (n_trials, K)
        Latents z from a trained encoder, of the subjects it was trained on.
    subject : array of shape (n_trials,)
        Subject of each trial.
    recording : array of shape (n_trials,), optional
        Recording (or session, or run) of each trial, within its subject. No recording stands on
        both sides of a fold. Without it, and for a subject with one recording only, blocks of
        successive trials take the place of recordings: rows should then be in order of time, so
        that neighbours in time are on one side, except where two blocks meet.
    label : array of shape (n_trials,), optional
        Task label y of each trial. Give it to judge conditional censoring.
    probes : sequence of {"linear", "gaussian", "mlp"}
        Which probes to train.
    n_folds : int
        Folds, at least 2. Every fold tests every subject.
    max_trials_per_subject : int
        Most trials of a subject to use, drawn evenly from its recordings.
    confidence : float
        Level of the intervals.
    random_state : int
        Seed. The same seed gives the same numbers.

    Returns
    -------
    Leakage
        Accuracy against chance and the bound in nats, for each probe and for the best of them.

    Notes
    -----
    *Choosing the best.* For `Leakage.best`, each fold uses the probe with the lowest loss on its
    inner part: trials of the training side that also set each probe's penalty, scale and stopping
    point. Test trials have no say, so the interval needs no correction for the choice.

    *Why three probes.* On simulated latents (K = 64, 10 subjects of 200 trials) that differ in
    their covariances only, the Gaussian probe found 0.63 nats in a second, gradient-boosted trees
    0.14 in ten, the others none. Where covariances are equal too and only higher moments differ
    (K = 4, 6 subjects of 300 trials), the network found 0.30 nats and the others none. Where means
    differ, the linear probe finds most.

    *Intervals.* A bootstrap over recordings (or blocks) within subjects, of 2,000 replicates, with
    one recording fewer drawn than there are [2]_, widened because folds train on each other's test
    trials [3]_. In simulations of latents that tell nothing, with three or more recordings of each
    subject, 95 % intervals missed chance in 3 to 9 % of cases, and in 12 to 22 % without the
    widening. Intervals are about other recordings of these subjects, not about other subjects.

    *What it takes.* Two recordings or blocks of 2 trials each; subjects with less are left out with
    a warning. With two recordings of each subject the inner part must come from the very recording
    that a probe is trained on: the bound is then lower than with three or more. The bound given
    labels can be too high by up to ``M n_classes / (2 n_trials)`` nats, the error of the counts.

    *What it costs.* On one core about 3 s for 2,000 trials of 10 subjects (K = 64) and 15 s for
    10,000 of 35 (K = 112). Time and memory grow with trials times subjects: of several hundred
    subjects, probe a sample.

    A bound of 0 says that these probes found nothing, not that there is nothing.

    References
    ----------
    .. [1] D. Barber, F. Agakov (2003). The IM algorithm: a variational approach to information
       maximization. Advances in Neural Information Processing Systems 16.
    .. [2] J. N. K. Rao, C. F. J. Wu (1988). Resampling inference with complex survey data. Journal
       of the American Statistical Association 83(401), 231-241.
       doi:10.1080/01621459.1988.10478591
    .. [3] C. Nadeau, Y. Bengio (2003). Inference for the generalization error. Machine Learning
       52, 239-281. doi:10.1023/A:1024068626366

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> subject = np.repeat(["ann", "bob", "cy"], 60)
    >>> clean = rng.normal(size=(180, 4))
    >>> telling = clean + 2 * (subject == "bob")[:, None]
    >>> leakage = measure_leakage(telling, subject, probes=["linear"])
    >>> leakage.best.above_chance.low > 0
    True
    >>> measure_leakage(clean, subject, probes=["linear"]).best.above_chance.low > 0
    False
    """
    z = _as_latent(latent)
    people = _as_column(subject, "subject", len(z))
    sessions = None if recording is None else _as_column(recording, "recording", len(z))
    y = None if label is None else _as_label(label, len(z))
    names = _as_probes(probes)
    if as_count(n_folds, "n_folds") < 2:
        raise SettingError("n_folds must be at least 2: one part to train on, one to test on.")
    if as_count(max_trials_per_subject, "max_trials_per_subject") < 2 * n_folds:
        raise SettingError(
            f"max_trials_per_subject={max_trials_per_subject} is too few for {n_folds} folds: give "
            f"at least {2 * n_folds}."
        )
    if isinstance(confidence, bool) or not isinstance(confidence, float) or not 0 < confidence < 1:
        raise SettingError(f"confidence must be a number between 0 and 1, not {confidence!r}.")
    rng = np.random.default_rng(as_seed(random_state))
    units = make_units(z, people, sessions, n_folds, max_trials_per_subject, rng)
    one_hot = np.zeros((len(units.trials), 0))
    if y is not None:
        classes, codes = np.unique(y[units.trials], return_inverse=True)
        one_hot = np.eye(len(classes))[codes]
    scores = score_units(z[units.trials].astype(np.float64), one_hot, units, names, rng)
    each, resampled = bootstrap(scores, rng)
    mean, wide = each.mean(0), reach(units, len(scores.owner), confidence)

    def estimate(value: float, replicates: Floats) -> Estimate:
        half = wide * float(replicates.std())
        return Estimate(float(value), float(value) - half, float(value) + half)

    def probe_score(number: int) -> ProbeScore:
        loss, hits = 2 * number, 2 * number + 1
        raw = estimate(mean[0] - mean[loss], resampled[:, 0] - resampled[:, loss])
        return ProbeScore(
            accuracy=estimate(mean[hits], resampled[:, hits]).within(0.0, 1.0),
            above_chance=estimate(mean[hits] - mean[1], resampled[:, hits] - resampled[:, 1]),
            bound=raw.within(0.0, math.log(len(each))),
            raw_bound=raw,
            recall=tuple(each[:, hits].tolist()),
        )

    return Leakage(
        probes={name: probe_score(1 + i) for i, name in enumerate(names)},
        best=probe_score(1 + len(names)),
        chosen=scores.chosen,
        chance=float(mean[1]),
        uncertainty=float(mean[0]),
        conditional=y is not None,
        subjects=tuple(units.ids.tolist()),
        left_out=tuple(units.left_out.tolist()),
        n_trials=len(units.trials),
        n_recordings=len(scores.owner),
        n_folds=len(scores.chosen),
        confidence=float(confidence),
    )


def _as_latent(latent: Any) -> Array:
    values = latent.detach().cpu() if hasattr(latent, "detach") else latent
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ShapeError(
            f"latent is not a regular array ({error}). All rows must have the same length."
        ) from None
    if array.dtype.kind not in "fiub":
        raise DtypeError(
            f"latent must hold real numbers, but its dtype is {array.dtype}. Convert it with "
            "latent.astype('float32')."
        )
    if array.ndim != 2:
        raise ShapeError(
            f"latent must have two dimensions, trials x latent dimensions, but has shape "
            f"{array.shape}. Flatten each trial's latent with latent.reshape(len(latent), -1)."
        )
    if array.size == 0:
        raise EmptyDataError(f"latent is empty: shape {array.shape}. Give at least one trial.")
    bad = np.flatnonzero(~np.isfinite(array).all(1))
    if len(bad):
        raise NonFiniteDataError(
            f"latent is NaN or infinite in rows {join_some(bad.tolist())}. Leave these trials out, "
            "or find out why the encoder gives no number for them."
        )
    return array


def _as_column(values: Any, name: str, n_trials: int) -> Array:
    array = as_labels(values, name)
    if len(array) != n_trials:
        raise ShapeError(
            f"{name} has {len(array)} values, but latent has {n_trials} rows. Each row needs one."
        )
    return array


def _as_label(values: Any, n_trials: int) -> Array:
    array = np.asarray(values)
    if array.dtype.kind == "f" and not np.array_equal(array, np.round(array)):
        raise LabelError(
            "label holds NaN or continuous values. Give the class of every trial, or leave out the "
            "trials that have none."
        )
    return _as_column(values, "label", n_trials)


def _as_probes(probes: Any) -> list[str]:
    options = ", ".join(map(repr, PROBES))
    names = [probes] if isinstance(probes, str) else list(probes)
    wrong = [name for name in names if name not in PROBES]
    if wrong or not names or len(set(names)) < len(names):
        raise SettingError(f"probes must be some of {options}, each once, not {probes!r}.")
    return names
