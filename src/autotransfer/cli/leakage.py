"""`autotransfer leakage`: what a model's latents give away about the person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotransfer.cli.options import Data, Json, Model, load_model
from autotransfer.cli.output import print_json, print_table, say, tell, working

if TYPE_CHECKING:
    from autotransfer.leakage import Leakage


def leak(
    source: Model,
    data: Data,
    given_label: Annotated[
        bool,
        typer.Option("--given-label", help="Leakage beyond the label: for the mode conditional."),
    ] = False,
    probes: Annotated[
        list[str] | None,
        typer.Option(help="linear, gaussian or mlp. May be repeated; all by default."),
    ] = None,
    n_folds: Annotated[int, typer.Option(help="Folds of the probes.")] = 5,
    max_trials_per_subject: Annotated[
        int, typer.Option(help="Most trials of a subject to use.")
    ] = 500,
    confidence: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    random_state: Annotated[int, typer.Option(help="Seed of the probes.")] = 0,
    as_json: Json = False,
) -> None:
    """Measure how well fresh probes tell people apart by a model's latents.

    Give the data that the model was trained on: whom it has learnt to forget.
    In the mode complementary, both halves of the latent are measured too.

    [bold]Examples[/bold]

      autotransfer leakage runs/gestures gestures.npz
      autotransfer leakage gestures.model gestures.npz --given-label --json
    """
    with working("loading"):
        import torch

        from autotransfer.data import load
        from autotransfer.encoder.split import split_latent
        from autotransfer.leakage import measure_leakage

        model, loaded = load_model(source), load(data)
    options: dict[str, Any] = {
        "recording": loaded.session if loaded.recording is None else loaded.recording,
        "label": loaded.y if given_label else None,
        "n_folds": n_folds,
        "max_trials_per_subject": max_trials_per_subject,
        "confidence": confidence,
        "random_state": random_state,
    }
    if probes:
        options["probes"] = probes
    with working("probing the latents"):
        parts = {"z": model.transform(loaded.X)}
        if model.mode == "complementary" and model.measure is not None:
            z1, z2 = split_latent(torch.from_numpy(parts["z"]))
            parts |= {"z1": z1.numpy(), "z2": z2.numpy()}
        found = {
            name: measure_leakage(latent, loaded.subject, **options)
            for name, latent in parts.items()
        }
    if as_json:
        print_json({name: one.to_dict() for name, one in found.items()})
        return
    trained: Any = model.provenance_["training_subjects"]
    strange = [one for one in loaded.subject_ids.tolist() if str(one) not in trained]
    if strange:
        say(f"{len(strange)} of {len(loaded.subject_ids)} subjects were not trained on.")
    print_leakage(found)


def print_leakage(found: dict[str, Leakage]) -> None:
    """Print what parts of a latent give away."""
    rows = []
    for part, one in found.items():
        for probe, score in [*one.probes.items(), ("best", one.best)]:
            rows.append(
                {
                    "latent": part,
                    "probe": probe,
                    "accuracy": str(score.accuracy),
                    "chance": one.chance,
                    "nats, at least": str(score.bound),
                }
            )
    first = next(iter(found.values()))
    beyond = " beyond the label" if first.conditional else ""
    print_table(rows, f"What the latent tells about {len(first.subjects)} subjects{beyond}")
    tell(f"Intervals: {first.confidence:.0%}. All there is to know: {first.uncertainty:.3f} nats.")
