"""Methods of adaptation by name, and which one an amount of trials asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.adaptation.guard import BOUNDS, Guard
from autotransfer.adaptation.head import FIRM, head
from autotransfer.adaptation.information import LEAST_TRIALS, LITTLE, information
from autotransfer.adaptation.ring import ring
from autotransfer.adaptation.statistics import PRIOR, adaptable, statistics
from autotransfer.adaptation.tuning import tuning
from autotransfer.documents import misfit
from autotransfer.errors import SettingError
from autotransfer.registry import lookup

LEVELS = {
    "nothing": "no trial of the new person",
    "recording": "unlabelled trials of the new person, all at once",
    "stream": "unlabelled trials of the new person, one by one, each predicted before it is used",
    "labels": "labelled trials of the new person, and unlabelled ones if there are any",
}
"""What is known of a new person, by one word each."""

FEW, LEAST_FEW = "certainty", 8
"""What may be done with trials that seem to be of few classes, and how many it takes."""

AUTO, NONE = "auto", "none"
"""Names of no method: what there is decides; the network stays as it is."""


@dataclass(frozen=True)
class Adaptation:
    """A method of adaptation.

    Parameters
    ----------
    function : callable
        ``function(fitted, person)`` gives another `Fitted`; see `statistics`.
    level : {"recording", "labels"}
        What it needs of the new person.
    words : str
        What it does, in a line.
    prior : bool
        Whether it takes `prior`, how many trials the statistics of training count for.
    """

    function: Callable[..., Fitted]
    level: str
    words: str
    prior: bool = False


ADAPTATIONS = {
    "statistics": Adaptation(
        statistics, "recording", "batch-norm statistics of the person's trials", prior=True
    ),
    "information": Adaptation(
        information, "recording", "a few steps that make predictions certain and varied"
    ),
    FEW: Adaptation(
        partial(information, diversity=LITTLE),
        "recording",
        "a few steps that make predictions certain: for few classes",
    ),
    "ring": Adaptation(
        ring, "recording", "electrodes of an armband turned to where they tell most", prior=True
    ),
    "head": Adaptation(head, "labels", "the last layer refitted, near the trained one"),
    "firm": Adaptation(
        partial(head, strength=FIRM),
        "labels",
        "the last layer refitted, much nearer to the trained one",
    ),
    "tuning": Adaptation(tuning, "labels", "the whole network trained for a few more steps"),
}
"""Methods of adaptation by name; several in a row are written "statistics+information"."""


FORM = {"recording": str, "labels": str, "guard": BOUNDS}


@dataclass(frozen=True)
class Policy:
    """What "auto" does: by default what the amount asks for, or what people held out gained by.

    By default there is no information maximisation before labels are used: it cost accuracy on one
    data set and was worth little on others (``benchmarks/accuracy/levels.py``).

    Parameters
    ----------
    recording, labels : str
        Methods that may be used at these levels, joined by "+"; "none" is none of them.
    guard : Guard
        Bounds below which trials seem to be of too few classes.
    """

    recording: str = "statistics+information"
    labels: str = "statistics+head"
    guard: Guard = field(default_factory=Guard)

    def to_json(self) -> dict[str, Any]:
        """Give what JSON can hold."""
        return vars(self) | {"guard": self.guard.to_json()}

    @classmethod
    def from_json(cls, given: Any) -> Policy:
        """Read what `to_json` gave; without anything, the default."""
        if given is None:
            return cls()
        wrong = misfit(given, FORM, "adaptation")
        named = {} if wrong else {key: given[key].split("+") for key in ("recording", "labels")}
        for level, names in named.items():
            strange = [name for name in names if name not in (*ADAPTATIONS, NONE)]
            needing = [n for n in names if n in ADAPTATIONS and ADAPTATIONS[n].level == "labels"]
            if strange or (level == "recording" and needing):
                wrong = f"adaptation.{level} is {given[level]!r:.60}"
        if wrong:
            raise SettingError(f"What a model says of its adaptation cannot be used: {wrong}.")
        return cls(given["recording"], given["labels"], Guard.from_json(given["guard"]))


def adapt(fitted: Fitted, person: Person, method: str, prior: int = PRIOR) -> Fitted:
    """Adapt a network to a person by one method, or by several in a row.

    Parameters
    ----------
    fitted : Fitted
        Trained; not changed.
    person : Person
        What there is of them.
    method : str
        What `chosen` gave: names in `ADAPTATIONS` joined by "+", or "none".
    prior : int
        Trials that the statistics of training count for.
    """
    for name in method.split("+") if method != NONE else ():
        one = ADAPTATIONS[name]
        options = {"prior": prior} if one.prior else {}
        fitted = one.function(fitted, person, **options)
    return fitted


def chosen(fitted: Fitted, person: Person, method: str, policy: Policy | None = None) -> str:
    """Say by which methods a person is adapted to.

    "auto" goes by a policy and by the amount of trials, and by nothing without labels where these
    seem to be of too few classes (`autotransfer.adaptation.guard`).
    """
    if method == AUTO:
        return _automatic(fitted, person, policy or Policy())
    names = method.split("+") if isinstance(method, str) else [method]
    otherwise = 'several in a row, such as "statistics+information", or "auto"'
    found = [lookup("method of adaptation", name, ADAPTATIONS, otherwise) for name in names]
    if len(set(names)) < len(names):
        raise SettingError(f"method={method!r} names a method twice. Name each of them once.")
    needing = [n for n, one in zip(names, found, strict=True) if one.level == "labels"]
    if needing and person.labelled is None:
        raise SettingError(
            f"The method {needing[0]!r} needs labels of the new person's trials: adapt(X, y). "
            "Without labels use 'statistics' or 'statistics+information'."
        )
    return method


def _automatic(fitted: Fitted, person: Person, policy: Policy) -> str:
    allowed = policy.recording if person.labelled is None else policy.labels
    names = allowed.split("+") if allowed != NONE else []
    needing = [name for name in names if ADAPTATIONS[name].level == "labels"]
    if len(needing) < len(names):
        if not adaptable(fitted.network):
            return "+".join(needing) or "statistics"  # which says what is missing
        if not policy.guard.passes(fitted.probabilities(person.trials)):
            careful = policy.guard.certainty and not needing and person.n_trials >= LEAST_FEW
            names = [FEW] if careful else needing
        elif person.n_trials < LEAST_TRIALS:
            names = [name for name in names if name != "information"]
    return "+".join(names) or NONE
