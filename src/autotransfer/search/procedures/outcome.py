"""What comes of a hands-off run, at its end or on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

from autotransfer.search.levels.cases import N_LABELS
from autotransfer.search.levels.worth import Levels
from autotransfer.search.procedures.answer import Answer
from autotransfer.search.procedures.held_out import HeldOut
from autotransfer.search.procedures.plan import AutoPlan
from autotransfer.search.settings.selection import TrialScores


@dataclass(frozen=True)
class Outcome:
    """What came of a run so far.

    Parameters
    ----------
    answer : Answer
        The choice and its members, with scores.
    tried : tuple of TrialScores
        Everything on record.
    reference : dict of str to float
        Balanced accuracy of each person by the classical pipeline; empty where it failed.
    plan : AutoPlan
        Groups of people.
    rule : str
        By which the choice was made.
    missed : tuple of str
        What was not tried for want of time, in words.
    complete : bool
        Whether the run has come to its end.
    levels : Levels
        What recordings and labels of them were worth to people held out; empty before the end.
    new_person : {"nothing", "recording", "stream", "labels"}
        What will be known of a new person, by which all was chosen.
    n_labels : int
        Labels of each class, at level labels.
    held_out : HeldOut or None
        How the answer predicted people held out; None if predictions are missing.
    """

    answer: Answer
    tried: tuple[TrialScores, ...]
    reference: dict[str, float]
    plan: AutoPlan
    rule: str
    missed: tuple[str, ...]
    complete: bool
    levels: Levels = field(default_factory=Levels)
    new_person: str = "nothing"
    n_labels: int = N_LABELS
    held_out: HeldOut | None = None
