"""Methods of adaptation by name, and which one an amount of trials asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from autotransfer.adaptation.covariances import covariances
from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.adaptation.guard import BOUNDS, SPREAD, Guard, variety
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

COVARIANCES = "covariances"
"""What is done with labels if nobody says anything else."""

TUNING, LEAST_LABELS = "tuning", 2
"""What "auto" does only with so many labels of each class: some have to tell when to stop."""

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
    COVARIANCES: Adaptation(
        covariances, "labels", "the last layer refitted, beside the person's own covariances"
    ),
    TUNING: Adaptation(tuning, "labels", "the whole network trained for a few more steps"),
}
"""Methods of adaptation by name; several in a row are written "statistics+information"."""


FORM = {
    "recording": str,
    "labels": str,
    "guard": BOUNDS,
    "stream": (str, ...),
    "all_classes": (str, ...),
}


@dataclass(frozen=True)
class Policy:
    """What "auto" does: by default what the amount asks for, or what people held out gained by.

    By default there is no information maximisation before labels are used: it cost accuracy on one
    data set and was worth little on others (``benchmarks/accuracy/levels.py``).

    Parameters
    ----------
    recording, labels, stream : str
        Methods that may be used at these levels, joined by "+"; "none" is none of them.
    guard : Guard
        Bounds below which trials seem to be of too few classes.
    all_classes : str
        Methods for a recording of which it is known that all classes are in it.
    """

    recording: str = "statistics+information"
    labels: str = f"statistics+{COVARIANCES}"
    guard: Guard = field(default_factory=Guard)
    stream: str = "statistics+information"
    all_classes: str = "statistics+information"

    def to_json(self) -> dict[str, Any]:
        """Give what JSON can hold."""
        return vars(self) | {"guard": self.guard.to_json()}

    @classmethod
    def from_json(cls, given: Any) -> Policy:
        """Read what `to_json` gave; without anything, the default."""
        if given is None:
            return cls()
        wrong = misfit(given, FORM, "adaptation")
        keys = ("recording", "labels", "stream", "all_classes")
        ways = {} if wrong else {key: given[key] for key in keys if key in given}
        for level, way in ways.items():
            names = way.split("+")
            strange = [name for name in names if name not in (*ADAPTATIONS, NONE)]
            needing = [n for n in names if n in ADAPTATIONS and ADAPTATIONS[n].level == "labels"]
            if strange or (level != "labels" and needing):
                wrong = f"adaptation.{level} is {way!r:.60}"
        if wrong:
            raise SettingError(f"What a model says of its adaptation cannot be used: {wrong}.")
        return cls(**ways, guard=Guard.from_json(given["guard"]))


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
    seem to be of too few classes (`autotransfer.adaptation.guard`) and nobody knows that they are
    of all.
    """
    if method == AUTO:
        policy = policy or Policy()
        allowed = allowed_by(policy, person)
        if allowed != NONE and not adaptable(fitted.network):
            return "+".join(_needing_labels(allowed.split("+"))) or "statistics"  # which says why
        return fitting(fitted, person, allowed, policy.guard)
    require_methods(method, labels=person.labelled is not None)
    return method


def allowed_by(policy: Policy, person: Person) -> str:
    """Say what a policy has for what there is of a person."""
    if person.codes is not None:
        fewest = np.unique(person.codes, return_counts=True)[1].min()
        return policy.labels if fewest >= LEAST_LABELS else policy.labels.replace(TUNING, "head")
    return policy.all_classes if person.all_classes else policy.recording


def by_labels_alone(method: str) -> str:
    """Say what is done with labels where the unlabelled trials beside them are not used.

    Examples
    --------
    >>> by_labels_alone("statistics+firm"), by_labels_alone("statistics+covariances")
    ('head', 'covariances')
    """
    last = method.split("+")[-1]
    return last if last in (COVARIANCES, TUNING) else "head"


def require_methods(method: str, labels: bool) -> None:
    """Refuse names of no method, or of one that needs labels where there are none."""
    names = method.split("+") if isinstance(method, str) else [method]
    otherwise = 'several in a row, such as "statistics+information", or "auto"'
    for name in names:
        lookup("method of adaptation", name, ADAPTATIONS, otherwise)
    if len(set(names)) < len(names):
        raise SettingError(f"method={method!r} names a method twice. Name each of them once.")
    needing = _needing_labels(names)
    if needing and not labels:
        raise SettingError(
            f"The method {needing[0]!r} needs labels of the new person's trials: adapt(X, y). "
            "Without labels use 'statistics' or 'statistics+information'."
        )


def _needing_labels(names: Iterable[str]) -> list[str]:
    return [name for name in names if ADAPTATIONS[name].level == "labels"]


def has_all_classes(fitted: Fitted, person: Person) -> bool:
    """Whether it is known that trials are of all classes: it was said, or all have labels."""
    if person.all_classes or person.codes is None or len(person.unlabelled):
        return person.all_classes
    counts = np.bincount(person.codes, minlength=fitted.network.head.out_features)
    return variety(torch.from_numpy(counts / counts.sum())) >= SPREAD


def fitting(fitted: Fitted, person: Person, allowed: str, guard: Guard) -> str:
    """Say which of the methods that are allowed suit the amount of trials and their classes.

    Parameters
    ----------
    fitted : Fitted
        Trained.
    person : Person
        What there is of them.
    allowed : str
        Names joined by "+", or "none".
    guard : Guard
        Says whether trials are of enough classes, where that is not known.
    """
    names = allowed.split("+") if allowed != NONE else []
    needing = _needing_labels(names)
    if len(needing) < len(names):
        known = has_all_classes(fitted, person)
        if not known and not guard.passes(fitted.probabilities(person.trials)):
            careful = guard.certainty and not needing and person.n_trials >= LEAST_FEW
            names = [FEW] if careful else [by_labels_alone(allowed)] if needing else []
        elif person.n_trials < LEAST_TRIALS:
            return without_information(allowed)
    return "+".join(names) or NONE


def without_information(method: str) -> str:
    """Leave out what takes more trials than there are (`LEAST_TRIALS`).

    Examples
    --------
    >>> without_information("statistics+information"), without_information("information")
    ('statistics', 'none')
    """
    return "+".join(name for name in method.split("+") if name != "information") or NONE
