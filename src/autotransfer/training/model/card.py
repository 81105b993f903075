"""The model card: what a person should know of a model folder, written beside the weights.

The form is Hugging Face's: a README.md that begins with YAML, so that a model folder can be
uploaded to a model hub as it is. Nothing reads it back. It is not part of the manifest, because
people are meant to write more into it. It says how many people a model was trained on, not who.
"""

from __future__ import annotations

import json
from typing import Any

from autotransfer.adaptation.registry import NONE

CARD = "README.md"

TAGS = ("autotransfer", "biosignals", "subject-transfer")


def model_card(*members: dict[str, Any]) -> str:
    """Write the card of a model: Markdown with a YAML header.

    Parameters
    ----------
    members : dict
        The documents of its folder; of an ensemble, those of each member's folder.
    """
    about = members[0]["provenance"]
    lines = [
        "---",
        "library_name: autotransfer",
        f"tags: {json.dumps(TAGS)}",
        'metrics: ["balanced_accuracy"]',
        "---",
        "",
        "# A classifier of biosignals for people it has never seen",
        "",
        *(f"- {fact}" for fact in model_facts(*members)),
        "",
        "## Use",
        "",
        "```python",
        "import autotransfer as at",
        "",
        'model = at.load_model("this folder")',
        "model.predict(X)  # X: trials x channels x times; no calibration, no subject id",
        "```",
        "",
        "## Limits",
        "",
        *(f"- {limit}" for limit in _limits(*members)),
        "",
        f"Made with autotransfer {about.get('autotransfer', '?')} and torch "
        f"{about.get('torch', '?')}. The folder holds JSON and safetensors: nothing in it "
        "executes.",
        "",
    ]
    return "\n".join(lines)


def model_facts(*members: dict[str, Any]) -> list[str]:
    """Say what a model takes, what it gives and how it was made, a sentence or two each.

    Parameters
    ----------
    members : dict
        As for `model_card`.
    """
    if len(members) == 1:
        return [*_signals(members[0]), *_training(members[0])]
    facts: dict[str, list[str]] = {}  # what is said of several members is said once
    for number, documents in enumerate(members, 1):
        facts.setdefault(" ".join(_training(documents)), []).append(str(number))
    return [
        f"An ensemble of {len(members)} networks: its probabilities are the mean of theirs.",
        *_signals(members[0]),
        *(
            f"Member{'' if len(numbers) == 1 else 's'} {', '.join(numbers)}. {words}"
            for words, numbers in facts.items()
        ),
    ]


def _signals(documents: dict[str, Any]) -> list[str]:
    """Say what goes in and what comes out, in which all members agree."""
    model = documents["model"]
    signals = model.get("signals") or {}
    classes = model.get("class_names") or [str(v) for v in documents["labels"]["values"]]
    rate = signals.get("sfreq") or model["parameters"].get("sfreq")
    channels = signals.get("channels")
    return [
        f"Input: trials of {model['n_channels']} channels x {model['n_times']} time points"
        + (f" at {rate:g} Hz." if rate else "."),
        *([f"Channels: {', '.join(map(_escaped, channels))}."] if channels else []),
        f"Output: one of {len(classes)} classes: {', '.join(map(_escaped, classes))}.",
    ]


def _training(documents: dict[str, Any]) -> list[str]:
    """Say what a network is and on what it was trained."""
    model, about = documents["model"], documents["provenance"]
    options, signals = model["parameters"], model.get("signals") or {}
    unit = f" {signals['unit']}" if signals.get("unit") else ""
    usual = signals.get("amplitude")
    return [
        f"Normalisation: {documents['normalisation']['kind']!r}.",
        f"Encoder: {model['encoder'] or 'one of its own, whose code is not in this folder'}; the "
        f"latent is {model.get('latent') or 'its output'}, {model['n_latent']} numbers.",
        f"Censoring: {_censoring(model)}.",
        *_augmentation(options),
        f"Trained on {_count(about.get('training_subjects', ()), 'subject')} for "
        f"{about.get('epochs', '?')} epochs; "
        f"{_count(about.get('validation_subjects', ()), 'other')} {_part(options)}; "
        f"{about.get('n_trials', '?')} trials in all.",
        *([f"Amplitude of the training signals: {usual:.3g}{unit}."] if usual else []),
        *_adapted(about),
        *_scores(about.get("scores") or {}, options),
    ]


def _censoring(model: dict[str, Any]) -> str:
    options = model["parameters"]
    if model["measure"] is None:
        return "none"
    strength = options.get("strength")
    how = "its default strength" if strength is None else f"strength {strength:g}"
    return f"{model['measure']} {options['mode']}, {how}"


def _augmentation(options: dict[str, Any]) -> list[str]:
    names = options.get("augment")
    return [f"Augmentation of the training trials: {_escaped(names)}."] if names else []


def _part(options: dict[str, Any]) -> str:
    """Say what validation subjects did."""
    return "validated" if options.get("patience") is None else "decided when to stop"


def _adapted(about: dict[str, Any]) -> list[str]:
    if "adapted" not in about:
        return []
    how = about["adapted"]
    trials, labels = _count(range(how["n_trials"]), "trial"), how.get("n_labels", 0)
    known = f"{labels} of them with labels" if labels else "without labels"
    if how.get("method") == NONE:
        return [f"Not adapted to the person of {trials}, which seemed to be of few classes."]
    method = f" ({_escaped(how['method'])})" if how.get("method") else ""
    return [f"Adapted to one person by {trials} of theirs, {known}{method}. Not for anybody else."]


def _scores(scores: dict[str, float], options: dict[str, Any]) -> list[str]:
    value = scores.get("validation_balanced_accuracy")
    if value is None:
        return []
    part = _part(options)
    why = "the stopping point was" if part != "validated" else "settings may have been"
    return [
        f"Balanced accuracy on the subjects that {part}: {value:.3f}. This is not a test: {why} "
        "chosen by it. Test the model on people of your own."
    ]


def _limits(*members: dict[str, Any]) -> list[str]:
    """Say what the model was not made for, as far as that is known of every model."""
    about = [one["provenance"] for one in members]
    people = {who for one in about for who in one.get("training_subjects", ())}
    classes = len(members[0]["labels"]["values"])
    return [
        f"It knows what {_count(people, 'person', 'people')} did in one study. People, electrodes, "
        "amplifiers, filters or tasks of another kind may be far from that: test it there first.",
        f"Every trial gets one of the {classes} classes, whatever is in it: there is no answer for "
        "none of them. Probabilities are not calibrated to new people.",
        "It is for research: nothing here shows that it is fit for medical or other decisions "
        "about people.",
    ]


def _count(people: Any, what: str, several: str = "") -> str:
    return f"{len(people)} {what if len(people) == 1 else several or what + 's'}"


def _escaped(text: str) -> str:
    """Write a label so that Markdown shows it as it is."""
    return f"`{text.replace('`', chr(39))}`"
