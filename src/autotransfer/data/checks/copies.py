"""The same samples under two subjects: whole trials, or windows cut from one recording.

Folds keep subjects apart, so a recording that stands under two subject ids is in training and in
test at once, and the accuracy on "new" people is that of known ones. Copies are found exactly and
in one pass: every stretch of 16 samples is hashed, every trial leaves the hashes of its first and
last stretch, and every stretch of every trial is looked up among those. If B starts inside A,
then B's head lies in A and A's tail lies in B, so whichever comes second in the pass finds the
other. What the hashes propose is then compared sample by sample.

Time is O(trials x channels x times), memory O(trials + block).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from autotransfer.data.checks.findings import Finding, error, warning
from autotransfer.data.checks.hashes import Hashes, information, odd_numbers, sample_hashes
from autotransfer.data.dataset import SubjectDataset
from autotransfer.data.trials import Float32, Index
from autotransfer.errors import join_some

Pairs = list[tuple[int, int]]

STRETCH = 16
"""Number of samples hashed together; shorter overlaps are not looked for."""

EVIDENCE_BITS = 64.0
"""Information that equal stretches must hold to be a copy: silent ones agree by chance."""

RUN_LIMIT = 32
PAIR_LIMIT = 20_000  # more pairs than this say nothing new, and each costs a comparison


class CopyWatch:
    """Watch for trials that share samples with a trial of another subject, or are equal.

    Overlapping windows of one subject are normal and not reported; equal trials of one subject
    are a warning.

    Notes
    -----
    At most 20,000 proposed pairs are compared, so that signals which agree everywhere (one pure
    wave for all people) do not take hours to report.
    """

    def __init__(self, data: SubjectDataset) -> None:
        self.data = data
        n, n_channels, n_times = data.trials.shape
        rng = np.random.default_rng(20)
        self.by_channel = odd_numbers(rng, n_channels)
        self.by_time = odd_numbers(rng, n_times)
        self.by_doubling = odd_numbers(rng, min(STRETCH, n_times).bit_length() - 1)
        self.whole = np.zeros(n, np.uint64)
        bits = max(10, int(16 * n).bit_length())  # two ends per trial, an eighth of the marks set
        self.shift = np.uint64(64 - bits)
        self.marks = np.zeros(2**bits, np.bool_)
        self.levels: list[tuple[Hashes, Index]] = []  # sorted hashes; (trial, position) of each
        self.pairs: list[Index] = []
        self.n_pairs = 0

    def look(self, start: int, block: Float32) -> None:
        """See the trials from number `start` on."""
        samples = sample_hashes(block, self.by_channel)
        changes = samples[:, 1:] != samples[:, :-1]
        moving = np.flatnonzero(changes.any(axis=1))  # a constant trial is flat, not a copy
        if len(moving) == 0:
            return
        samples, changes = samples[moving], changes[moving]
        self.whole[moving + start] = np.maximum((samples * self.by_time).sum(axis=1), 1)
        stretches, width = samples, 1
        for factor in self.by_doubling:
            stretches = stretches[:, :-width] + stretches[:, width:] * factor
            width *= 2
        # Ends: the first and last stretch in which something happens, so that the zeros of a
        # padded trial neither hide a copy nor make one.
        last = samples.shape[1] - width
        head = np.minimum(changes.argmax(axis=1), last)
        tail = np.maximum(samples.shape[1] - changes[:, ::-1].argmax(axis=1) - width, 0)
        row = np.tile(np.arange(len(moving)), 2)
        position = np.concatenate([head, tail])
        ends = stretches[row, position]
        self._remember(ends, np.stack([moving[row] + start, position], axis=1))
        row, position = np.nonzero(self.marks[stretches >> self.shift])
        self._look_up(stretches[row, position], moving[row] + start, position)

    def _remember(self, ends: Hashes, where: Index) -> None:
        """Add ends, in sorted levels that at least halve in size: O(log n) levels to look up."""
        self.marks[ends >> self.shift] = True
        while self.levels and len(self.levels[-1][0]) < 2 * len(ends):
            hashes, places = self.levels.pop()
            ends, where = np.concatenate([hashes, ends]), np.concatenate([places, where])
        order = np.argsort(ends, kind="stable")
        self.levels.append((ends[order], where[order]))

    def _look_up(self, hashes: Hashes, trial: Index, position: Index) -> None:
        """Note the ends of other subjects' trials that have these hashes."""
        subject = self.data.subject_code
        for level, where in self.levels:
            first = np.searchsorted(level, hashes, side="left")
            hits = np.flatnonzero(level[np.minimum(first, len(level) - 1)] == hashes)
            run = np.searchsorted(level, hashes[hits], side="right") - first[hits]
            run = np.minimum(run, RUN_LIMIT)
            rows = np.repeat(hits, run)
            step = np.arange(len(rows)) - np.repeat(np.cumsum(run) - run, run)
            other, other_position = where[first[rows] + step].T
            differ = (subject[trial[rows]] != subject[other]) & (position[rows] != other_position)
            if differ.any() and self.n_pairs < PAIR_LIMIT:
                delay = position[rows] - other_position
                self.pairs.append(np.stack([trial[rows], other, delay], axis=1)[differ])
                self.n_pairs += int(differ.sum())

    def findings(self) -> Iterator[Finding]:
        """Say which trials of which subjects are copies."""
        across, within = self._copies()
        subject, names = self.data.subject_code, self.data.subject_names
        for code, pairs in _grouped(within, subject):
            yield warning(
                "copy-within-subject",
                f"Subject {names[code[0]]} has the same trial more than once: trials "
                f"{_listed(pairs)} are equal. Keep one of each.",
                **self._where(pairs),
            )
        advice = (
            "The recording stands under two subjects, so a model would be tested on what it was "
            "trained on. Take one of them out, or give both the same subject id."
        )
        for name, what, copies in (
            ("copy-across-subjects", "share trials, equal sample for sample", across),
            ("overlap-across-subjects", "have windows that share samples", self._overlaps()),
        ):
            for code, pairs in _grouped(copies, subject):
                text = f"{names[code[0]]} and {names[code[1]]} {what}: trials {_listed(pairs)}"
                yield error(name, f"Subjects {text}. {advice}", **self._where(pairs))

    def _copies(self) -> tuple[Pairs, Pairs]:
        """Equal trials as (first, other) numbers: of two subjects, and of one."""
        order = np.argsort(self.whole, kind="stable")
        order = order[self.whole[order] > 0]
        values = self.whole[order]
        same = np.flatnonzero(values[1:] == values[:-1]) + 1
        first = order[np.searchsorted(values, values[same])]
        pairs = np.stack([first, order[same], np.zeros_like(same)], axis=1)[:PAIR_LIMIT]
        across, within = Pairs(), Pairs()
        for a, b in self._verified(pairs):
            two_subjects = self.data.subject_code[a] != self.data.subject_code[b]
            (across if two_subjects else within).append((a, b))
        return across, within

    def _overlaps(self) -> Pairs:
        """Pairs of trials of two subjects that share samples at a delay."""
        if not self.pairs:
            return []
        pairs = np.concatenate(self.pairs)
        swapped = pairs[:, 0] > pairs[:, 1]
        pairs[swapped] = pairs[swapped] * [1, 1, -1]
        pairs[swapped, :2] = pairs[swapped, 1::-1]
        return sorted(set(self._verified(np.unique(pairs, axis=0)[:PAIR_LIMIT])))

    def _verified(self, pairs: Index) -> Iterator[tuple[int, int]]:
        """Pass on the pairs (a, b, delay) in which sample t + delay of a is sample t of b."""
        X = self.data.trials
        step = max(1, 2**22 // (4 * X.shape[1] * X.shape[2]))
        for at in range(0, len(pairs), step):
            part = pairs[at : at + step]
            signals = zip(X[part[:, 0]], X[part[:, 1]], strict=True)
            for (a, b, delay), (x, z) in zip(part.tolist(), signals, strict=True):
                x, z = x[:, max(delay, 0) :], z[:, max(-delay, 0) :]
                length = min(x.shape[1], z.shape[1])
                x, z = x[:, :length], z[:, :length]
                # Bytes, not values: NaN is equal to itself here.
                if x.tobytes() == z.tobytes() and information(x) >= EVIDENCE_BITS:
                    yield a, b

    def _where(self, pairs: Pairs) -> dict[str, tuple[object, ...]]:
        trials = np.unique(np.array(pairs))
        subjects = np.unique(self.data.subject_code[trials])
        return {
            "subjects": tuple(self.data.subject_ids[subjects].tolist()),
            "trials": tuple(trials.tolist()),
        }


def _grouped(pairs: Pairs, subject: Index) -> Iterator[tuple[list[int], Pairs]]:
    """Group pairs of trials by the subjects they are of."""
    groups: dict[tuple[int, ...], Pairs] = {}
    for a, b in pairs:
        groups.setdefault(tuple(sorted((int(subject[a]), int(subject[b])))), []).append((a, b))
    for codes, members in sorted(groups.items()):
        yield list(codes), sorted(members)


def _listed(pairs: Pairs) -> str:
    return join_some([f"{a} and {b}" for a, b in pairs])
