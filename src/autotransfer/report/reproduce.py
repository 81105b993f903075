"""How to make the same run again, as Python that can be pasted."""

from __future__ import annotations

import json
from typing import Any

from autotransfer.report.record import Record
from autotransfer.search.settings.space import default_space
from autotransfer.training import CensoredClassifier

# Options of a classifier that change no result of a run, or that the run has in its own words.
_LEFT_OUT = (
    "checkpoint",
    "checkpoint_every",
    "verbose",
    "random_state",
    "validation",
    "max_epochs",
)


def given_options(classifier: CensoredClassifier | None) -> dict[str, Any]:
    """Options of a classifier that somebody set, as JSON can hold them.

    Examples
    --------
    >>> given_options(CensoredClassifier(sfreq=128.0, max_epochs=20))
    {'sfreq': 128.0}
    """
    if classifier is None:
        return {}
    defaults = CensoredClassifier().get_params(deep=False)
    options: dict[str, Any] = {}
    for name, value in classifier.get_params(deep=False).items():
        default = defaults[name]
        if name in _LEFT_OUT or (type(value) is type(default) and value == default):
            continue
        try:
            json.dumps(value)
            options[name] = value
        except (TypeError, ValueError):
            options[name] = {"object": type(value).__name__}  # the reader has to make it again
    return options


def python(record: Record) -> str:
    """Write the call that makes this run.

    Options that have their defaults are left out. Data and labels are the reader's to load: the
    report has their fingerprint, not their place.
    """
    definition = record.definition
    arguments: dict[str, str] = {}
    if definition["budget"] is not None:
        arguments["budget"] = repr(f"{definition['budget']:.15g}s")
    # What somebody asked of a hands-off run; of the paper's all is in the definition.
    asked = dict(record.about.get("asked", {}))
    if not record.auto:
        arguments["procedure"] = repr("paper")
    elif asked.pop("own_recipes", False):
        arguments["recipes"] = "..."  # the reader has to make it again
    arguments |= {name: repr(asked[name]) for name in ("signal", "fixed") if asked.get(name)}
    given = ("new_person", "n_labels")
    arguments |= {name: repr(definition[name]) for name in given if name in definition}
    arguments["out"] = repr(record.place)
    classifier = _classifier(record)
    if classifier:
        arguments["classifier"] = f"at.CensoredClassifier({classifier})"
    usual = default_space("auto" if record.auto else "paper")
    if definition["space"] != usual.to_json():
        arguments["space"] = _space(definition["space"])
    for name, default in (
        ("strategy", "grid"),
        ("n_settings", None),
        ("prune", False),
        ("keep", 3),
        ("n_folds", None),
        ("n_seeds", 1),
        ("search_folds", 1),
    ):
        value = asked.get(name) if record.auto and name == "n_folds" else definition[name]
        if value != default:
            arguments[name] = repr(value)
    rule = "safe" if record.auto else "lower_quartile"
    if record.results is not None and record.results["rule"]["name"] != rule:
        arguments["rule"] = repr(record.results["rule"]["name"])
    arguments["random_state"] = repr(definition["seed"])
    lines = [f"    {name}={value}," for name, value in arguments.items()]
    return "\n".join(
        [
            "import autotransfer as at",
            *(["from autotransfer.search import Space"] if "space" in arguments else []),
            "",
            "auto = at.AutoTransfer(",
            *lines,
            ")",
            "auto.fit(data)  # the SubjectDataset with the fingerprint above",
            "auto.report()",
        ]
    )


def _classifier(record: Record) -> str:
    options = {
        name: "..." if isinstance(value, dict) and "object" in value else repr(value)
        for name, value in record.classifier.items()
    }
    # A hands-off run searches the length of a training, unless somebody set it.
    set_by = record.about.get("asked", {}) if record.auto else record.definition
    if set_by.get("max_epochs") != CensoredClassifier().max_epochs:
        options["max_epochs"] = repr(set_by["max_epochs"])
    return ", ".join(f"{name}={value}" for name, value in options.items())


def _space(space: dict[str, Any]) -> str:
    measures = space["measures"]
    strengths = {name: grid["strengths"] for name, grid in measures.items()}
    options = {name: grid["options"] for name, grid in measures.items() if grid["options"] != [{}]}
    parts = [list(measures), space["modes"], strengths, *([options] if options else [])]
    return f"Space({', '.join(map(repr, parts))})"
