"""How to make the same run again, as Python that can be pasted."""

from __future__ import annotations

import inspect
from typing import Any

from autotransfer.report.gather import Record
from autotransfer.search.space import Space
from autotransfer.training import CensoredClassifier

# Options of the classifier that all trials share and that change their results.
_SHARED = (
    "encoder",
    "encoder_options",
    "sfreq",
    "normalise",
    "warmup_epochs",
    "learning_rate",
    "weight_decay",
    "patience",
    "subjects_per_batch",
    "trials_per_subject",
)


def python(record: Record) -> str:
    """Write the call that makes this run.

    Options that have their defaults are left out. Data and labels are the reader's to load: the
    report has their fingerprint, not their place.
    """
    identity = record.identity
    given: dict[str, str] = {}
    if identity["budget"] is not None:
        given["budget"] = f"{identity['budget']:g}"
    given["out"] = repr(record.name)
    classifier = _classifier(record)
    if classifier:
        given["classifier"] = f"at.CensoredClassifier({classifier})"
    if identity["space"] != Space().to_json():
        given["space"] = _space(identity["space"])
    for name, default in (
        ("strategy", "grid"),
        ("n_settings", None),
        ("prune", False),
        ("keep", 3),
        ("n_folds", None),
        ("n_seeds", 1),
    ):
        if identity[name] != default:
            given[name] = repr(identity[name])
    if record.results is not None and record.results["rule"]["name"] != "lower_quartile":
        given["rule"] = repr(record.results["rule"]["name"])
    given["random_state"] = repr(identity["seed"])
    lines = [f"    {name}={value}," for name, value in given.items()]
    return "\n".join(
        [
            "import autotransfer as at",
            *(["from autotransfer.search import Space"] if "space" in given else []),
            "",
            "auto = at.AutoTransfer(",
            *lines,
            ")",
            "auto.fit(data.X, data.y, subject=data.subject)  # the data with the fingerprint above",
            "auto.report()",
        ]
    )


def _classifier(record: Record) -> str:
    defaults = inspect.signature(CensoredClassifier).parameters
    options: dict[str, Any] = {}
    for name in _SHARED:
        value = record.classifier.get(name)
        # An empty dict of options is what None means.
        if value not in (None, {}) and value != defaults[name].default:
            options[name] = value
    if record.identity["max_epochs"] != defaults["max_epochs"].default:
        options["max_epochs"] = record.identity["max_epochs"]
    return ", ".join(f"{name}={value!r}" for name, value in options.items())


def _space(given: dict[str, Any]) -> str:
    measures = given["measures"]
    strengths = {name: one["strengths"] for name, one in measures.items()}
    options = {name: one["options"] for name, one in measures.items() if one["options"] != [{}]}
    parts = [list(measures), given["modes"], strengths, *([options] if options else [])]
    return f"Space({', '.join(map(repr, parts))})"
