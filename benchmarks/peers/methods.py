"""The methods by name: how each is fitted, what of the new person it uses, what is tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.peers import align, subject_loop
from benchmarks.peers.coral import CORAL
from benchmarks.peers.known import Array, Known, Model
from benchmarks.peers.objectives import IRM, GroupDRO, VREx

NOTHING = "nothing"
UNLABELLED = "unlabelled data of the new person"

New = list[Array] | None
Setting = dict[str, Any]


@dataclass(frozen=True)
class Method:
    """A method.

    Parameters
    ----------
    fit : callable
        (known, unlabelled trials of the new people or None, **setting) -> `Model`.
    settings : tuple of dict
        What is tried: the default first. The one with the best validation scores is taken.
    uses : str
        What it uses of the new person.
    needs_new : bool
        Whether it must have the new person's trials to be fitted, not only to predict them.
    random : bool
        Whether seeds differ.
    package : str
        What must be installed for it, beside what AutoTransfer needs; "" for nothing.
    """

    fit: Callable[..., Model]
    settings: tuple[Setting, ...] = ({},)
    uses: str = NOTHING
    needs_new: bool = False
    random: bool = True
    package: str = ""

    @property
    def installed(self) -> bool:
        """Whether its package is there."""
        return not self.package or find_spec(self.package) is not None


def of(name: str, *values: Any) -> tuple[Setting, ...]:
    """Write settings that differ in one option."""
    return tuple({name: value} for value in values)


def erm(known: Known, new: New) -> Model:
    """Fit the uncensored baseline."""
    clf = known.classifier()
    model: Model = clf.fit(known.data.X, known.data.y, subject=known.data.subject).predict
    return model


def batch_norm(known: Known, new: New) -> Model:
    """Fit the uncensored baseline; predict with the statistics of each person."""
    clf = known.classifier()
    clf.fit(known.data.X, known.data.y, subject=known.data.subject)
    return lambda X: clf.adapt(X, method="statistics", prior=0).predict(X)


def euclidean(known: Known, new: New, *, normalise: str) -> Model:
    """Fit the uncensored baseline on aligned signals, which may be normalised once more."""
    more = {} if normalise == "as chosen" else {"normalise": normalise}
    clf = known.classifier(**more)
    return after(clf, known, align.euclidean_alignment)


def own_scale(known: Known, new: New) -> Model:
    """Fit the uncensored baseline on signals scaled by each person's own amplitudes."""
    return after(known.classifier(), known, align.own_scale)


def after(clf: Any, known: Known, way: Callable[[Array], Array]) -> Model:
    """Fit on signals that every person's own signals have changed; predict after the same."""
    clf.fit(align.by_subject(known.data, way), known.data.y, subject=known.data.subject)

    def predict(X: Array) -> Array:
        predicted: Array = clf.predict(way(X))
        return predicted

    return predict


def random_gains(known: Known, new: New, *, spread: float) -> Model:
    """Fit the uncensored baseline on trials whose channels have random gains."""
    data, clf = known.data, known.classifier()
    X = np.asarray(data.trials[:], np.float32)
    train = ~np.isin(data.subject, known.validation)
    X[train] = align.random_gains(X[train], spread, known.seed)
    model: Model = clf.fit(X, data.y, subject=data.subject).predict
    return model


def coral(known: Known, new: New, *, strength: float) -> Model:
    """Fit with the CORAL penalty."""
    clf = known.classifier(CORAL, strength=strength)
    model: Model = clf.fit(known.data.X, known.data.y, subject=known.data.subject).predict
    return model


def by_objective(known: Known, new: New, *, make: Callable[..., Any], **setting: Any) -> Model:
    """Fit by an objective over subjects."""

    def objective(n_subjects: int) -> Any:
        return make(n_subjects, **setting) if make is GroupDRO else make(**setting)

    data = known.data
    clf = subject_loop.fit(known.classifier(), data.X, data.y, data.subject, objective)
    model: Model = clf.predict
    return model


def riemann(known: Known, new: New, **setting: Any) -> Model:
    """Fit pyRiemann's pipeline."""
    from benchmarks.peers.riemann import fit  # only this method needs pyRiemann

    return fit(known, new, **setting)


def skada(known: Known, new: New, **setting: Any) -> Model:
    """Fit one of skada's deep methods."""
    from benchmarks.peers.skada_deep import fit  # only these methods need skada

    return fit(known, new, **setting)


def braindecode(known: Known, new: New, **setting: Any) -> Model:
    """Fit braindecode's EEGNet in skorch."""
    from benchmarks.peers.braindecode_net import fit  # only these methods need braindecode

    return fit(known, new, **setting)


C = of("C", 1.0, 0.1, 10.0)
AFTER = of("normalise", "none", "as chosen")

METHODS: dict[str, Method] = {
    "erm": Method(erm),
    "coral": Method(coral, of("strength", 1.0, 0.1, 10.0)),
    "irm": Method(partial(by_objective, make=IRM), of("strength", 100.0, 10.0, 1.0)),
    "vrex": Method(partial(by_objective, make=VREx), of("strength", 10.0, 1.0, 100.0)),
    "groupdro": Method(partial(by_objective, make=GroupDRO), of("step", 0.01, 0.001, 0.1)),
    "random-gains": Method(random_gains, of("spread", 0.3, 0.1, 1.0)),
    "riemann": Method(partial(riemann, recentre=False), C, random=False, package="pyriemann"),
    "riemann-recentred": Method(
        partial(riemann, recentre=True), C, uses=UNLABELLED, random=False, package="pyriemann"
    ),
    "euclidean-alignment": Method(euclidean, AFTER, uses=UNLABELLED),
    "batch-norm": Method(batch_norm, uses=UNLABELLED),
    "own-scale": Method(own_scale, uses=UNLABELLED),
    "braindecode": Method(partial(braindecode, split="trials"), package="braindecode"),
    "braindecode-people": Method(partial(braindecode, split="people"), package="braindecode"),
    "braindecode-aligned": Method(
        partial(braindecode, aligned=True), uses=UNLABELLED, package="braindecode"
    ),
}
for _name, _regs in {
    "DeepCoral": (1.0, 0.1, 10.0),
    "DANN": (1.0, 0.1, 0.01),
    "CDAN": (1.0, 0.1, 0.01),
}.items():
    _fit, _settings = partial(skada, method=_name), of("reg", *_regs)
    METHODS[f"skada-{_name.lower()}"] = Method(
        _fit, _settings, UNLABELLED, needs_new=True, package="skada"
    )
    METHODS[f"skada-{_name.lower()}-stand-in"] = Method(_fit, _settings, package="skada")
