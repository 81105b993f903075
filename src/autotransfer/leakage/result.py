"""What `leakage` returns: numbers with intervals, and a table to read them in."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Estimate:
    """A number and the two ends of its confidence interval.

    Examples
    --------
    >>> print(Estimate(0.5, 0.41, 0.62))
    0.500 [0.410, 0.620]
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def within(self, least: float, most: float) -> Estimate:
        """Cut off what lies beyond the values that are possible."""
        numbers = (self.value, self.low, self.high)
        return Estimate(*(min(max(number, least), most) for number in numbers))


@dataclass(frozen=True)
class ProbeScore:
    """How well a probe tells subjects apart on trials it was not trained on.

    Parameters
    ----------
    accuracy : Estimate
        Balanced accuracy: the mean over subjects of the share recognised.
    above_chance : Estimate
        Accuracy minus chance, with the interval of the difference.
    bound : Estimate
        Lower bound on the information in nats, within 0 and log M, as information is.
    raw_bound : Estimate
        The same as computed; below 0 where the probe does worse than no probe.
    recall : tuple of float
        Share of each subject's trials that was recognised, in the order of `Leakage.subjects`.
    """

    accuracy: Estimate
    above_chance: Estimate
    bound: Estimate
    raw_bound: Estimate
    recall: tuple[float, ...]


@dataclass(frozen=True)
class Leakage:
    """What a latent gives away about the subject; ``print`` shows it as a table.

    Parameters
    ----------
    probes : dict of str to ProbeScore
        Each probe's score.
    best : ProbeScore
        Score when every fold uses the probe that did best on its inner part (see `leakage`).
    chosen : tuple of str
        The probe each fold used for `best`.
    chance : float
        Balanced accuracy without the latent: 1 / M, or, given the label, that of the label alone.
    uncertainty : float
        Nats to be known about the subject without the latent: log M, or, given the label, the
        cross entropy of the label alone.
    conditional : bool
        Whether this is leakage beyond the label.
    subjects, left_out : tuple
        Ids of the M subjects that were told apart, and of those with too few trials.
    n_trials, n_recordings, n_folds : int
        How many trials, recordings (or blocks) and folds were used.
    confidence : float
        Level of the intervals.
    """

    probes: dict[str, ProbeScore]
    best: ProbeScore
    chosen: tuple[str, ...]
    chance: float
    uncertainty: float
    conditional: bool
    subjects: tuple[Any, ...]
    left_out: tuple[Any, ...]
    n_trials: int
    n_recordings: int
    n_folds: int
    confidence: float

    def __str__(self) -> str:
        beyond = " beyond the label" if self.conditional else ""
        rows = [("probe", f"accuracy (chance {self.chance:.3f})", "information, nats, at least")]
        rows += [
            (name, str(score.accuracy), str(score.bound))
            for name, score in [*self.probes.items(), ("best", self.best)]
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(2)]
        table = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows]
        head = (
            f"What the latent tells about the subject{beyond}: {len(self.subjects)} subjects, "
            f"{self.n_trials} trials, {self.n_recordings} recordings or blocks, "
            f"{self.n_folds} folds"
        )
        nats = f"All there is to know: {self.uncertainty:.3f} nats."
        return "\n".join([head, *table, f"Intervals: {self.confidence:.0%}. {nats}"])

    def to_dict(self) -> dict[str, Any]:
        """Give all of it in plain Python types, for JSON."""
        plain = asdict(self)
        # JSON would read tuples back as lists; so they are lists from the start.
        for score in [plain, plain["best"], *plain["probes"].values()]:
            score |= {key: list(v) for key, v in score.items() if isinstance(v, tuple)}
        return plain
