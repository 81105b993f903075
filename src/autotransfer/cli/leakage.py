"""`autotransfer leakage`: what a model's latents give away about the person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotransfer.cli.options import Data, Json, Model, Reading, load_data, load_model
from autotransfer.cli.output import print_json, print_table, say, tell, working

if TYPE_CHECKING:
    from autotransfer.leakage import Leakage

_GIVEN_LABEL = "Measure the leakage beyond the label: for the mode conditional."
_PROBES = "A probe to use: linear, gaussian or mlp. May be repeated; all by default."
_MAX_TRIALS = "Largest number of trials of a subject to use."


def leak(
    source: Model,
    data: Data,
    given_label: Annotated[bool, typer.Option("--given-label", help=_GIVEN_LABEL)] = False,
    probes: Annotated[list[str] | None, typer.Option(help=_PROBES)] = None,
    n_folds: Annotated[int, typer.Option(help="Number of folds of the probes.")] = 5,
    max_trials_per_subject: Annotated[int, typer.Option(help=_MAX_TRIALS)] = 500,
    confidence: Annotated[float, typer.Option(help="Level of the confidence intervals.")] = 0.95,
    random_state: Annotated[int, typer.Option(help="Seed of the probes.")] = 0,
    as_json: Json = False,
    *,
    reading: Reading,
) -> None:
    """Measure how well fresh probes tell people apart by a model's latents.

    Give the data that the model was trained on: whom it has learnt to forget.
    In the mode complementary, both halves of the latent are measured too.

    [bold]Examples[/bold]

      autotransfer leakage runs/gestures gestures.npz
      autotransfer leakage gestures.model gestures.npz --given-label --json
    """
    with working("loading"):
        import numpy as np
        import torch

        from autotransfer.encoder.split import split_latent
        from autotransfer.leakage import measure_leakage

        model, dataset = load_model(source), load_data(data, reading)
    options: dict[str, Any] = {
        "recording": dataset.session if dataset.recording is None else dataset.recording,
        "label": dataset.y if given_label else None,
        "n_folds": n_folds,
        "max_trials_per_subject": max_trials_per_subject,
        "confidence": confidence,
        "random_state": random_state,
    }
    if probes:
        options["probes"] = probes
    with working("probing the latents"):
        parts = {"z": model.transform(dataset)}
        if all(m.mode == "complementary" and m.measure is not None for m in model.members):
            # Those of an ensemble's members stand side by side.
            ends = np.cumsum([member.network_.n_latent for member in model.members])
            latents = map(torch.from_numpy, np.split(parts["z"], ends[:-1], axis=1))
            halves = zip(*map(split_latent, latents), strict=True)
            parts |= {f"z{i}": torch.cat(half, 1).numpy() for i, half in enumerate(halves, 1)}
        leakages = {
            name: measure_leakage(latent, dataset.subject, **options)
            for name, latent in parts.items()
        }
    if as_json:
        print_json({name: leakage.to_dict() for name, leakage in leakages.items()})
        return
    trained: Any = model.provenance_["training_subjects"]
    new = [subject for subject in dataset.subject_ids.tolist() if str(subject) not in trained]
    if new:
        say(f"{len(new)} of {len(dataset.subject_ids)} subjects were not trained on.")
    print_leakage(leakages)


def print_leakage(leakages: dict[str, Leakage]) -> None:
    """Print what parts of a latent give away."""
    rows = [
        {
            "latent": part,
            "probe": probe,
            "accuracy": str(score.accuracy),
            "chance": leakage.chance,
            "nats, at least": str(score.bound),
        }
        for part, leakage in leakages.items()
        for probe, score in [*leakage.probes.items(), ("best", leakage.best)]
    ]
    first = next(iter(leakages.values()))
    beyond = " beyond the label" if first.conditional else ""
    print_table(rows, f"What the latent tells about {len(first.subjects)} subjects{beyond}")
    tell(f"Intervals: {first.confidence:.0%}. All there is to know: {first.uncertainty:.3f} nats.")
