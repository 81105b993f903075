"""
A censor inside a plain PyTorch loop
====================================

A censor is an ``nn.Module``. In each step its critics (if it has any) learn from the detached
latents, and its penalty is added to the task loss. Nothing else in your loop changes.
"""

from __future__ import annotations

import torch
from torch import nn

import autotransfer as at
from autotransfer.censoring import critic_optimisers, make_censor


def train(measure: str | None, epochs: int = 30) -> float:
    torch.manual_seed(0)
    data = at.make_leak(n_subjects=6, n_trials=200, random_state=0)
    x = torch.from_numpy(data.X[:]).flatten(1)
    y, s = torch.from_numpy(data.y_code), torch.from_numpy(data.subject_code)
    encoder = nn.Sequential(nn.Linear(12, 64), nn.ELU(), nn.Linear(64, 8))
    classifier = nn.Linear(8, 2)
    parameters = [*encoder.parameters(), *classifier.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=1e-3)

    censor, critics = None, []
    if measure is not None:
        censor = make_censor(measure, "marginal", n_latent=8, n_subjects=6, n_classes=2)
        critics = critic_optimisers(censor, 1e-3 * censor.measure.critic_speed)

    # Batches of subjects x trials: a penalty needs several trials of each subject.
    batches = at.SubjectBatches(data.y, data.subject, subjects_per_batch=6, trials_per_subject=16)
    for epoch in range(epochs):
        for trials in batches.epoch(epoch):
            rows = torch.from_numpy(trials)
            z = encoder(x[rows])
            loss = nn.functional.cross_entropy(classifier(z), y[rows])
            if censor is not None:
                cells = censor.cells(s[rows], y[rows])
                for _ in range(censor.n_critic):
                    critic_loss = censor.critic_loss(z.detach(), cells)
                    for critic in critics:
                        critic.zero_grad()
                    critic_loss.backward()  # type: ignore[no-untyped-call]  # torch's own lack
                    for critic in critics:
                        critic.step()
                strength = censor.measure.strength["marginal"]
                loss = loss + strength * censor(z, cells)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch's own lack
            optimiser.step()

    # More trials of the same people: how well can a fresh probe tell them apart?
    more = at.make_leak(n_subjects=6, n_trials=200, random_state=0, draw=1)
    with torch.no_grad():
        z = encoder(torch.from_numpy(more.X[:]).flatten(1))
        right = (classifier(z).argmax(1).numpy() == more.y_code).mean()
    found = at.measure_leakage(z.numpy(), more.subject, probes=("linear",)).best.accuracy
    print(f"{measure or 'uncensored'}: task {right:.2f}, subject {found} (chance 0.167)")
    return found.value


if __name__ == "__main__":
    uncensored = train(None)
    for name in ("mmd", "adversary"):
        assert train(name) < uncensored - 0.1
