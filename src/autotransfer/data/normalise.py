"""Bring trials to one scale: per channel, per trial, by statistics of all people or of each.

A normaliser is a small pure object: `fit` streams over the training trials (only ``"train"`` and
those of each person's own need it), `transform` makes a new float32 block and treats every trial on
its own, so a trial gives the same bits whatever batch it stands in, and `state` is plain JSON for
the model folder.

Nothing is added to a standard deviation. EEG in volts has a deviation of 1e-6, and the usual
``std + 1e-8`` would already distort it; what is flat is decided relative to the signal instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from autotransfer.data import align
from autotransfer.data.align import Float64
from autotransfer.data.trials import Float32, Index, TrialArray
from autotransfer.data.validate import as_trial_numbers, as_trials, require_finite, require_real
from autotransfer.errors import ChannelMismatchError, SettingError, ShapeError, join_some

NORMALISERS: dict[str, str] = {
    "channel": "z-score of every channel of every trial (for EEG; as in the paper)",
    "trial": "channels centred, one scale per trial (where the pattern over channels matters: EMG)",
    "train": "mean and standard deviation of every channel over the training trials",
    "person": "every channel by the person's own standard deviation",
    "euclidean": "channels whitened by the person's mean covariance (Euclidean alignment)",
    "riemannian": "the same by the geometric mean of the covariances of the person's trials",
    "none": "signals as they are",
}
"""The normalisers by name, with one line on each."""

FIT_CHUNK_BYTES = 8 * 2**20  # small blocks stay near the processor; their float64 copies are cheap

MOST_TURNS = 10**6
"""Places by which a saved normaliser may turn electrodes: more is damage."""

_EPS = float(np.finfo(np.float32).eps)


def lookup_normaliser(kind: str) -> str:
    """Return `kind` if there is such a normaliser; else raise an error that lists them."""
    if not isinstance(kind, str) or kind not in NORMALISERS:
        raise SettingError(
            f"No normaliser {kind!r}. Choose one of: {join_some(list(NORMALISERS))}."
        )
    return kind


class Normaliser:
    r"""Bring trials to one scale.

    With μ and σ the mean and standard deviation of a channel (divisor n, not n - 1):

    - ``"channel"``: (x - μ) / σ, over the times of the trial;
    - ``"trial"``: (x - μ) / r with μ over the times of the trial and r the root mean square of
      all centred channels of the trial, one number, so amplitude ratios of channels survive;
    - ``"train"``: (x - μ) / σ over all training trials and times;
    - ``"person"``, ``"euclidean"``, ``"riemannian"``: W (x - μ) with μ over the times of the trial
      and W = R^(-1/2) of the person's covariance R (`autotransfer.data.align`). People who train
      have their own; for anybody else R is the mean of theirs, until it is `adapted`;
    - ``"none"``: x.

    Parameters
    ----------
    kind : {"channel", "trial", "train", "person", "euclidean", "riemannian", "none"}
        Which normalisation; `NORMALISERS` has a line on each.

    Notes
    -----
    A flat channel becomes zeros. Flat means ``σ <= ε |μ|`` with ε the float32 resolution: all that
    is left after centring such a channel is rounding, and dividing by it would make noise of
    unit size out of nothing.

    Examples
    --------
    >>> x = np.array([[[1.0, 2.0, 3.0], [10.0, 30.0, 50.0]]], dtype=np.float32)
    >>> Normaliser("channel").transform(x).round(2)
    array([[[-1.22,  0.  ,  1.22],
            [-1.22,  0.  ,  1.22]]], dtype=float32)
    >>> Normaliser("trial").transform(x).round(2)
    array([[[-0.09,  0.  ,  0.09],
            [-1.73,  0.  ,  1.73]]], dtype=float32)
    """

    def __init__(self, kind: str = "channel") -> None:
        self.kind = lookup_normaliser(kind)
        self.mean: Float64 | None = None
        self.std: Float64 | None = None
        self.turn = 0
        self.covariance: Float64 | None = None
        self._white: Float32 | None = None
        self._people: dict[Any, Float32] = {}

    @property
    def by_person(self) -> bool:
        """Whether it goes by statistics of each person."""
        return self.kind in align.OWN

    @property
    def amplitude(self) -> Float64 | None:
        """Standard deviation of every channel, (C,), in training; None where it is not kept."""
        if self.covariance is not None:
            return np.sqrt(np.diag(self.covariance))
        return self.std

    def __repr__(self) -> str:
        return f"Normaliser({self.kind!r})"

    def fit(
        self,
        X: TrialArray | npt.NDArray[Any],
        trials: Index | None = None,
        subject: npt.NDArray[Any] | None = None,
    ) -> Normaliser:
        """Learn the statistics of the training trials, for normalisers that have any.

        Parameters
        ----------
        X : TrialArray or array of shape (n_trials, n_channels, n_times)
            Signals.
        trials : array of int, optional
            Numbers of the training trials; all by default.
        subject : array of shape (n_trials,), optional
            The person of each trial, for normalisers that go by person.

        Returns
        -------
        Normaliser
            Itself.
        """
        if self.by_person:
            signals = as_trials(X)
            numbers = np.arange(len(signals)) if trials is None else trials
            self._fit_people(signals, as_trial_numbers(numbers, len(signals)), subject)
        elif self.kind == "train":
            signals = as_trials(X)
            if trials is not None:
                signals = signals.take(as_trial_numbers(trials, len(signals)))
            self.mean, self.std = moments(signals)
            if not np.isfinite(self.std).all():
                _require_all_finite(signals)
        return self

    def _fit_people(self, X: TrialArray, trials: Index, subject: npt.NDArray[Any] | None) -> None:
        if subject is None:
            raise SettingError(
                f"The normaliser {self.kind!r} goes by the person of each trial: hand over subject."
            )
        _require_all_finite(X.take(trials))
        own = {
            person: align.covariance_of(self.kind, X.take(trials[subject[trials] == person]))
            for person in np.unique(subject[trials]).tolist()
        }
        self._people = {person: align.whitening(matrix) for person, matrix in own.items()}
        self._set(align.mean_of(self.kind, list(own.values())))

    def _set(self, covariance: Float64) -> None:
        self.covariance, self._white = covariance, align.whitening(covariance)

    def adapted(self, trials: npt.NDArray[Any], share: float) -> Normaliser:
        """Make the same normaliser for somebody new.

        Parameters
        ----------
        trials : array of shape (n_trials, C, T)
            Of that person.
        share : float
            Weight of the person's own covariance; the rest is that of the training people.
        """
        if not self.by_person:
            return self
        assert self.covariance is not None
        signals = np.roll(trials, self.turn, axis=1) if self.turn else trials
        own = align.covariance_of(self.kind, as_trials(signals))
        return self.with_covariance(align.between(self.kind, self.covariance, own, share))

    def with_covariance(self, covariance: Float64) -> Normaliser:
        """Make the same normaliser with another covariance, (C, C), for those not in training."""
        other = copy(self)
        other._set(covariance)
        return other

    def turned(self, places: int) -> Normaliser:
        """Make the same normaliser for electrodes that stand around an arm, turned by some places.

        Channels are rolled by so many places before anything else is done to them, as
        `numpy.roll` does.
        """
        other = copy(self)
        other.turn = self.turn + places
        return other

    def transform(self, block: npt.NDArray[Any], people: npt.NDArray[Any] | None = None) -> Float32:
        """Normalise a block of trials into a new float32 array.

        Parameters
        ----------
        block : array of shape (n, n_channels, n_times)
            Signals.
        people : array of shape (n,), optional
            The person of each trial: those that `fit` has seen have statistics of their own, where
            the normaliser goes by person. Without it, and for anybody else, those are of all.
        """
        x = np.asarray(block)
        require_real(x)
        if x.ndim != 3:
            raise ShapeError(
                f"A block must have three dimensions, trials x channels x times, not {x.shape}."
            )
        if self.turn:
            x = np.roll(x, self.turn, axis=1)
        # A fresh contiguous copy: it is ours to write to, and sums then run along time in the
        # same order for every trial, whatever the memory layout of the block it came in.
        out = np.array(x, dtype=np.float32, order="C")
        if self.kind == "channel":
            deviation = _centre(out)
            out /= _divisor(deviation)[:, :, None]
        elif self.kind == "trial":
            deviation = _centre(out)
            rms = np.sqrt(np.mean(np.square(deviation), axis=1))
            out /= _divisor(rms)[:, None, None]
        elif self.kind == "train":
            self._standardise(out)
        elif self.by_person:
            self.require_channels(x.shape[1])
            _centre(out)
            out = np.matmul(self._matrices(people), out)
        return out

    def _matrices(self, people: npt.NDArray[Any] | None) -> Float32:
        """Find W of each trial, (n, C, C), or one for all of them."""
        assert self._white is not None
        if people is None:
            return self._white
        return np.stack([self._people.get(who, self._white) for who in people.tolist()])

    def require_channels(self, n_channels: int) -> None:
        """Raise an error unless trials of so many channels can be normalised."""
        if self.kind != "train" and not self.by_person:
            return
        known = self.covariance if self.by_person else self.mean
        if known is None:
            raise SettingError(
                f'The normaliser "{self.kind}" has no statistics yet: call fit with the training '
                "trials."
            )
        if n_channels != len(known):
            raise ChannelMismatchError(
                f"These trials have {n_channels} channels, but the normaliser was fitted on "
                f"{len(known)}. Hand over the channels of the training data, in their order."
            )

    def _standardise(self, out: Float32) -> None:
        """Apply the training statistics in place."""
        self.require_channels(out.shape[1])
        assert self.mean is not None
        assert self.std is not None
        # The mean in two float32 parts, so that a large offset cancels to full precision.
        high = self.mean.astype(np.float32)
        out -= high[:, None]
        out -= (self.mean - high).astype(np.float32)[:, None]
        flat = self.std <= _EPS * np.abs(self.mean)
        out /= _divisor(self.std)[:, None]
        # Flat in training: the encoder never saw this channel move, so it must not see it now.
        out[:, flat] = 0.0

    def state(self) -> dict[str, Any]:
        """Return what defines the normaliser, as plain JSON values (exact: floats as repr)."""
        state: dict[str, Any] = {"kind": self.kind}
        if self.mean is not None and self.std is not None:
            state |= {"mean": self.mean.tolist(), "std": self.std.tolist()}
        if self.covariance is not None:
            state["covariance"] = self.covariance.tolist()
        return state | ({"turn": self.turn} if self.turn else {})

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Normaliser:
        """Make the normaliser that `state` describes."""
        normaliser = cls(str(state.get("kind")))
        turn = state.get("turn", 0)
        if isinstance(turn, bool) or not isinstance(turn, int) or abs(turn) > MOST_TURNS:
            raise SettingError(
                "The saved normaliser is damaged: its turn is a small whole number of electrodes, "
                f"not {str(turn)[:40]!r}. Save or copy the model again."
            )
        normaliser.turn = turn
        if "mean" in state or "std" in state:
            try:
                mean = np.asarray(state["mean"], dtype=np.float64)
                std = np.asarray(state["std"], dtype=np.float64)
            except (KeyError, TypeError, ValueError):
                mean, std = np.zeros(0), np.zeros(0)
            fine = mean.ndim == 1 and mean.shape == std.shape and mean.size > 0
            if not (fine and np.isfinite(mean).all() and ((std >= 0) & (std < np.inf)).all()):
                raise SettingError(
                    "The saved normaliser is damaged: it needs one finite mean and one standard "
                    "deviation for each channel. Fit it again on the training trials."
                )
            normaliser.mean, normaliser.std = mean, std
        if "covariance" in state and normaliser.by_person:
            normaliser._set(_as_covariance(state["covariance"]))
        return normaliser


def moments(X: TrialArray) -> tuple[Float64, Float64]:
    r"""Compute mean and standard deviation of every channel over all trials and times.

    One pass in blocks; block moments (n, μ, M = Σ(x - μ)²) are merged in float64 as

        δ = μ_b - μ_a,  μ = μ_a + δ n_b / n,  M = M_a + M_b + δ² n_a n_b / n,

    which, unlike Σx² - nμ², stays exact when the offset is large (Chan, Golub & LeVeque 1983,
    doi:10.1080/00031305.1983.10483115).

    Parameters
    ----------
    X : TrialArray of shape (n_trials, n_channels, n_times)
        Signals; memory use is one block, whatever their number.

    Returns
    -------
    mean, std : ndarray of shape (n_channels,)
        In float64.

    Examples
    --------
    >>> moments(TrialArray(np.array([[[1.0, 3.0]], [[5.0, 7.0]]])))
    (array([4.]), array([2.23606798]))
    """
    count = 0
    mean, squares = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for _, block in X.chunks(FIT_CHUNK_BYTES):
        x = block.astype(np.float64)
        n = x.shape[0] * x.shape[2]
        block_mean = x.mean(axis=(0, 2))
        x -= block_mean[:, None]
        delta = block_mean - mean
        total = count + n
        mean += delta * (n / total)
        squares += np.einsum("nct,nct->c", x, x) + delta**2 * (count * n / total)
        count = total
    return mean, np.sqrt(squares / max(count, 1))


def _require_all_finite(X: TrialArray) -> None:
    """Raise an error that names trials with values that are not finite, in blocks."""
    for start, block in X.chunks(FIT_CHUNK_BYTES):
        require_finite(block, start)


def _as_covariance(given: Any) -> Float64:
    """Read a covariance (C, C) of a saved normaliser."""
    try:
        matrix = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.zeros(0)
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] > 0
    if not (square and np.isfinite(matrix).all() and (np.linalg.eigvalsh(matrix) > 0).all()):
        raise SettingError(
            "The saved normaliser is damaged: it needs the covariance of all channels, a square of "
            "finite numbers with positive variances. Fit it again on the training trials."
        )
    return matrix


def _centre(x: Float32) -> Float64:
    """Subtract each channel's mean over time, in place; return the deviations, (n, n_channels).

    Channels in which only rounding is left become zeros, with deviation 0.
    """
    mean = x.mean(axis=-1, keepdims=True)
    x -= mean
    # A float32 mean is off by up to ε |μ|; the mean of what is left takes that error away.
    x -= x.mean(axis=-1, keepdims=True)
    n_times = x.shape[-1]
    squares: Float64 = np.einsum("nct,nct->nc", x, x).astype(np.float64)
    deviation: Float64 = np.sqrt(squares / n_times)
    # Squares of values beyond about 1e±19 leave the float32 range: these rows again in float64.
    extreme = ~((deviation > 1e-15) & (deviation < 1e15))
    if extreme.any():
        rows = x[extreme].astype(np.float64)
        deviation[extreme] = np.sqrt(np.einsum("rt,rt->r", rows, rows) / n_times)
    flat = deviation <= _EPS * np.abs(mean[..., 0])
    x[flat] = 0.0
    deviation[flat] = 0.0
    return deviation


def _divisor(scale: Float64) -> Float32:
    """Scales as float32 divisors; 0 (all flat, all zeros already) becomes 1: zeros stay zeros."""
    divisor = scale.astype(np.float32)
    divisor[divisor == 0] = 1.0
    return divisor
