"""What is wrong with signals: values that are not numbers, flat channels, clipping.

Each check is a watcher: `look` sees every block of one streamed pass over the signals, and
`findings` speaks at the end. Memory is O(block + subjects x channels + what was found).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from autotransfer.data.checks.findings import Finding, error, warning
from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.trials import Float32, Index
from autotransfer.errors import join_some

CLIPPED_SHARE = 0.05
"""Share of a trial's samples at the rail from which a channel counts as clipped."""


class RangeWatch:
    """NaN, infinite, flat and clipped channels: all told by the extremes of each trial.

    A channel is flat in a trial when its minimum is its maximum. It is clipped when at least 5 %
    of the samples stand exactly at one value that is also the extreme of all trials of that
    subject and channel (an amplifier's rail does not move) and is taken at least twice as often
    as the next value inside. The last condition tells saturation, which piles all that lies
    beyond onto the rail, from coarse quantisation, where the tail thins out towards the extreme.
    Zero is no rail (rectified signals rest there), nor are the levels of a channel that takes
    fewer than 10 values in a trial (a trigger, a very coarse signal).
    """

    def __init__(self, data: SubjectDataset) -> None:
        self.data = data
        shape = (len(data.subject_ids), data.n_channels)
        self.top = np.full(shape, -np.inf, np.float32)
        self.bottom = np.full(shape, np.inf, np.float32)
        self.nan: list[Index] = []
        self.infinite: list[Index] = []
        self.flat: list[Index] = []
        self.suspects: list[tuple[int, int, np.float32]] = []

    def look(self, start: int, block: Float32) -> None:
        """See the trials from number `start` on."""
        # NaN and infinity survive min and max, so two reductions answer three questions.
        low, high = block.min(axis=-1), block.max(axis=-1)
        finite = np.isfinite(low) & np.isfinite(high)
        if not finite.all():
            trial, channel = np.nonzero(~finite)
            rows = block[trial, channel]
            for places, bad in ((self.nan, np.isnan(rows)), (self.infinite, np.isinf(rows))):
                where = bad.any(axis=-1)
                places.append(np.stack([trial[where] + start, channel[where]], axis=1))
        flat = finite & (low == high)
        if flat.any():
            self.flat.append(np.argwhere(flat) + np.array([start, 0]))
        subject = self.data.subject_code[start : start + len(block)]
        usable = finite & ~flat
        np.maximum.at(self.top, subject, np.where(usable, high, -np.inf))
        np.minimum.at(self.bottom, subject, np.where(usable, low, np.inf))
        for edge, rail in ((high, self.top), (low, self.bottom)):
            # Rails only move outwards: what is inside now is no rail at the end either.
            trial, channel = np.nonzero(usable & (edge == rail[subject]) & (edge != 0))
            piled = _piled(block[trial, channel], edge[trial, channel])
            self.suspects += zip(
                (trial[piled] + start).tolist(),
                channel[piled].tolist(),
                edge[trial[piled], channel[piled]],
                strict=True,
            )

    def findings(self) -> Iterator[Finding]:
        """Say what was found, one finding for each subject."""
        yield from self._non_finite(self.nan, "nan", "NaN values")
        yield from self._non_finite(self.infinite, "infinite", "infinite values")
        yield from self._flat()
        yield from self._clipped()

    def _non_finite(self, places: list[Index], name: str, what: str) -> Iterator[Finding]:
        advice = "Leave these trials out, or interpolate the channels."
        for where, text, pairs in _by_subject(self.data, places):
            yield error(name, f"{where} has {what}: {text}. {advice}", **pairs)

    def _flat(self) -> Iterator[Finding]:
        places = np.concatenate(self.flat) if self.flat else np.zeros((0, 2), np.intp)
        trials, n_flat = np.unique(places[:, 0], return_counts=True)
        flat_trials = trials[n_flat == self.data.n_channels]
        for where, _, pairs in _by_subject(
            self.data, [np.stack([flat_trials, np.zeros_like(flat_trials)], axis=1)]
        ):
            pairs["channels"] = ()
            numbers = _numbered(pairs["trials"])
            yield warning(
                "flat-trial",
                f"{where}: all channels are flat in {numbers}. There is nothing to learn "
                "from these trials; leave them out.",
                **pairs,
            )
        for where, text, pairs in _by_subject(
            self.data, [places[~np.isin(places[:, 0], flat_trials)]]
        ):
            yield warning(
                "flat-channel",
                f"{where} has flat channels: {text}. The electrode was off or the recording was "
                "interrupted; normalised, such a channel is zeros.",
                **pairs,
            )

    def _clipped(self) -> Iterator[Finding]:
        subject = self.data.subject_code
        places = [
            (trial, channel)
            for trial, channel, value in self.suspects
            if value in (self.top[subject[trial], channel], self.bottom[subject[trial], channel])
        ]
        clipped = np.unique(np.array(places, np.intp).reshape(-1, 2), axis=0)
        for where, text, pairs in _by_subject(self.data, [clipped]):
            yield warning(
                "clipped",
                f"{where} has clipped channels ({CLIPPED_SHARE:.0%} or more of a trial at the "
                f"limit of the amplifier): {text}. The peaks are lost; leave these trials out if "
                "amplitude matters.",
                **pairs,
            )


def _piled(rows: Float32, edge: Float32) -> npt.NDArray[np.bool_]:
    """Tell which rows pile up at their extreme value; see `RangeWatch` for the rule."""
    count = np.count_nonzero(rows == edge[:, None], axis=1)
    piled: npt.NDArray[np.bool_] = count >= np.maximum(3, CLIPPED_SHARE * rows.shape[1])
    for i in np.flatnonzero(piled):
        values, counts = np.unique(np.abs(rows[i] - edge[i]), return_counts=True)
        piled[i] = len(values) >= 10 and counts[0] >= 2 * counts[1]
    return piled


def _numbered(trials: Sequence[object]) -> str:
    return f"trial {trials[0]}" if len(trials) == 1 else f"trials {join_some(trials)}"


def _by_subject(
    data: SubjectDataset, places: list[Index]
) -> Iterator[tuple[str, str, dict[str, tuple[object, ...]]]]:
    """Group (trial, channel) pairs by subject: who, in words where, and the numbers."""
    pairs = np.concatenate(places) if places else np.zeros((0, 2), np.intp)
    pairs = pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))]
    codes = data.subject_code[pairs[:, 0]]
    sizes = np.bincount(data.subject_code)
    for code in np.unique(codes):
        own_pairs = pairs[codes == code]
        words = []
        for channel in np.unique(own_pairs[:, 1]):
            trials = own_pairs[own_pairs[:, 1] == channel, 0]
            all_trials = len(trials) == sizes[code]
            which = f"all {sizes[code]} trials" if all_trials else _numbered(trials.tolist())
            words.append(f"{data.channels[channel]} in {which}")
        where = {
            "subjects": (data.subject_ids[code].item(),),
            "channels": tuple(data.channels[c] for c in np.unique(own_pairs[:, 1])),
            "trials": tuple(np.unique(own_pairs[:, 0]).tolist()),
        }
        if len(words) > 8:
            words[8:] = [f"... ({len(words)} channels in all)"]
        yield f"Subject {data.subject_names[code]}", "; ".join(words), where
