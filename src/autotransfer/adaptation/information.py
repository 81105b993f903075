"""Information maximisation: predictions made certain, and as varied as is expected."""

from __future__ import annotations

from copy import deepcopy

import torch

from autotransfer.adaptation.fitted import Fitted, Person
from autotransfer.adaptation.shares import EQUAL, divergence, entropy, expected_shares

STEPS, RATE, BATCH = 40, 1e-3, 64
DIVERSITY = 2.0
"""Weight of the spread over classes. With 1, later trials of people had 0.767 (SSVEP), 0.944 (Myo
EMG), 0.755 (CIIL EMG) and 0.390 (3DC EMG), with 2 0.792, 0.938, 0.810 and 0.405: one seed, 5 to 12
people each."""
LEAST_TRIALS = 32
"""Trials below which it is not worth its risk: too few to tell how often each class comes."""

LITTLE = 0.3
"""Weight of the spread where trials are of few classes: predictions need not be varied then. No
statistics should be taken before, for those of one class are not those of the person."""


def information(
    fitted: Fitted,
    person: Person,
    *,
    steps: int = STEPS,
    learning_rate: float = RATE,
    diversity: float = DIVERSITY,
    equal: float = EQUAL,
) -> Fitted:
    r"""Move the encoder's weights so that predictions are certain and spread as expected.

    With probabilities p_i of trial i, their mean p and estimated class shares q, a few steps of
    Adam lower

        mean_i entropy(p_i) + diversity * KL(p || q).

    The classifier's head stays, and so do the statistics of norms: latents move to where the head
    tells classes apart. The shares q are those expected from the predictions before the first step
    (`expected_shares`).

    Parameters
    ----------
    fitted : Fitted
        Trained; not changed.
    person : Person
        All trials are used, and no label.
    steps : int
        Steps of `BATCH` trials.
    learning_rate : float
        Adam's.
    diversity : float
        Weight of the second term.
    equal : float
        Weight of equal shares beside the estimated ones in q.

    References
    ----------
    Liang, Hu & Feng (2020), Do we really need to access the source data? Source hypothesis transfer
    for unsupervised domain adaptation. ICML 37 (SHOT). Li et al. (2024), T-TIME: test-time
    information maximization ensemble for plug-and-play BCIs. IEEE TBME 71, 423-432.
    """
    shares = expected_shares(fitted.probabilities(person.trials), equal=equal)
    network = deepcopy(fitted.network).eval()
    signals = fitted.signals(person.trials)
    shares = shares.to(signals.device)
    network.head.requires_grad_(False)
    weights = [one for one in network.encoder.parameters() if one.requires_grad]
    optimiser = torch.optim.Adam(weights, lr=learning_rate)
    # Seeded: the same trials give the same model.
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        drawn = torch.randperm(len(signals), generator=generator)[:BATCH]
        probabilities = network(signals[drawn])[1].softmax(1)
        spread = divergence(probabilities.mean(0), shares)
        loss = entropy(probabilities).mean() + diversity * spread
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    optimiser.zero_grad()
    network.head.requires_grad_(True)
    return fitted.with_network(network)
