"""The probes: logistic regression, Gaussian classes, and a small network.

To add one, write a function of the training part, the inner part, both in one and a seed, and give
it a name in `PROBES`.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import log_softmax
from torch import nn
from torch.nn import functional

from autotransfer.leakage.probe import FittedProbe, Floats, Part, Probe, Score, calibrate

# Weak leakage in many latents wants the strong end of both lists, strong leakage the weak end.
PENALTIES = (3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
SHRINKAGES = ((0.9, 1.0), (0.5, 1.0), (0.0, 1.0), (0.8, 0.5), (0.2, 0.5), (0.8, 0.0), (0.2, 0.0))
# A wider network, more dropout or patience, or smaller batches changed the bound by -0.02 to 0.11
# nats on six simulated latents, for up to twice the time.
HIDDEN, DROPOUT, BATCH, EPOCHS, PATIENCE = 64, 0.3, 256, 100, 10


def linear(train: Part, inner: Part, both: Part, seed: int) -> FittedProbe:
    """Multinomial logistic regression, ``f = W z + V y + b``.

    Minimises the balanced cross entropy plus ``penalty / 2 (|W|^2 + |V|^2)``, from a strong
    penalty to weaker ones, as long as the inner loss falls.
    """
    fits: list[tuple[FittedProbe, float]] = []
    start = None
    for penalty in PENALTIES:
        start, score = _fit_linear(train, penalty, start)
        fits.append((calibrate(score, inner), penalty))
        if len(fits) > 1 and fits[-1][0].inner_loss > fits[-2][0].inner_loss:
            break
    best, penalty = min(fits, key=lambda fit: fit[0].inner_loss)
    _, score = _fit_linear(both, penalty, start)
    return FittedProbe(score, best.scale, best.inner_loss)


def _features(part: Part) -> Floats:
    return np.hstack([part.latent, part.label, np.ones((len(part.latent), 1))])


def _fit_linear(part: Part, penalty: float, start: Floats | None) -> tuple[Floats, Score]:
    x, weight, n_subjects = _features(part), part.weight, part.prior.shape[1]
    true = np.arange(len(x)), part.subject
    ridge = np.full((x.shape[1], 1), penalty)
    ridge[-1] = 0  # the intercept is free, as is usual

    def objective(flat: Floats) -> tuple[float, Floats]:
        w = flat.reshape(x.shape[1], n_subjects)
        log_p = log_softmax(part.prior + x @ w, axis=1)
        value = (ridge * w * w).sum() / 2 - weight @ log_p[true]
        error = np.exp(log_p)
        error[true] -= 1
        slope = x.T @ (weight[:, None] * error) + ridge * w
        return float(value), slope.reshape(-1)

    first = np.zeros(x.shape[1] * n_subjects) if start is None else start
    solution = minimize(
        objective, first, jac=True, method="L-BFGS-B", options={"maxiter": 100, "ftol": 1e-7}
    )
    w = solution.x.reshape(x.shape[1], n_subjects)
    return solution.x, lambda other: _features(other) @ w


def gaussian(train: Part, inner: Part, both: Part, seed: int) -> FittedProbe:
    """Gaussian classes, ``f_s = log N(z; mu_sy, C_s)``: sees differences of mean and covariance.

    Regularised discriminant analysis [1]_: the covariance C_s of a subject is drawn towards that
    of all and towards its own diagonal, by shares that the inner part chooses. The mean mu_sy of a
    subject and label is drawn towards the sum of the subject's and the label's effect.

    References
    ----------
    .. [1] J. H. Friedman (1989). Regularized discriminant analysis. Journal of the American
       Statistical Association 84(405), 165-175. doi:10.1080/01621459.1989.10478752
    """
    moments = _moments(train)
    fits = [calibrate(_gaussian_score(*moments, *shares), inner) for shares in SHRINKAGES]
    best = min(range(len(fits)), key=lambda i: fits[i].inner_loss)
    score = _gaussian_score(*_moments(both), *SHRINKAGES[best])
    return FittedProbe(score, fits[best].scale, fits[best].inner_loss)


def _moments(part: Part) -> tuple[Floats, Floats]:
    """Means (M, n_classes or 1, K) and covariances (M, K, K) of subjects."""
    n_subjects = part.prior.shape[1]
    label = part.label if part.label.shape[1] else np.ones((len(part.latent), 1))
    subject = np.eye(n_subjects)[part.subject]
    # Effects of subject and label add up; least squares keeps them apart where they are confounded.
    effects, *_ = np.linalg.lstsq(np.hstack([subject, label]), part.latent, rcond=None)
    means = effects[:n_subjects, None] + effects[None, n_subjects:]
    counts = np.einsum("ns,ny->sy", subject, label)
    residual = part.latent - means[part.subject, label.argmax(1)]
    sums = np.einsum("ns,ny,nk->syk", subject, label, residual, optimize=True)
    # What is peculiar to a cell, as if ten further trials had shown nothing peculiar.
    means += sums / (counts + 10)[..., None]
    residual = part.latent - means[part.subject, label.argmax(1)]
    by_subject = [residual[part.subject == s] for s in range(n_subjects)]
    return means, np.stack([x.T @ x / len(x) for x in by_subject])


def _gaussian_score(means: Floats, covariances: Floats, pooled: float, diagonal: float) -> Score:
    mixed = (1 - pooled) * covariances + pooled * covariances.mean(0)
    variances = np.einsum("skk->sk", mixed)
    mixed = (1 - diagonal) * mixed
    # The floor keeps latents that are constant, or multiples of others, from dividing by 0.
    np.einsum("skk->sk", mixed)[:] += diagonal * variances + 1e-3
    root = np.linalg.cholesky(mixed)
    # Single precision halves the time, nearly all of which goes into the product below.
    whiten, centres = np.linalg.inv(root).astype(np.float32), means.astype(np.float32)
    half_log_det = np.log(np.einsum("skk->sk", root)).sum(1)

    def score(part: Part) -> Floats:
        label = part.label.argmax(1) if part.label.shape[1] else np.zeros(len(part.latent), int)
        latent = part.latent.astype(np.float32)
        scores = np.empty((len(latent), len(means)))
        for s, (mean, turn) in enumerate(zip(centres, whiten, strict=True)):
            white = (latent - mean[label]) @ turn.T
            scores[:, s] = -np.einsum("nk,nk->n", white, white) / 2 - half_log_det[s]
        return scores

    return score


def mlp(train: Part, inner: Part, both: Part, seed: int) -> FittedProbe:
    """Train a network with one hidden layer, early stopped on the inner part.

    Not trained again on both parts: without an inner part it would not know when to stop.
    """
    classes = train.prior.shape[1]
    with torch.random.fork_rng(devices=[]):  # the caller's random stream stays untouched
        torch.manual_seed(seed)
        network = nn.Sequential(
            nn.Linear(_inputs(train).shape[1], HIDDEN),
            nn.ReLU(),
            nn.Dropout(DROPOUT),
            nn.Linear(HIDDEN, classes),
        )
        _train(network, train, inner)
    network.eval()

    def score(part: Part) -> Floats:
        with torch.inference_mode():
            scores: Floats = network(_inputs(part)).double().numpy()
        return scores

    return calibrate(score, inner)


def _inputs(part: Part) -> torch.Tensor:
    return torch.from_numpy(np.hstack([part.latent, part.label])).float()


def _train(network: nn.Module, train: Part, inner: Part) -> None:
    x, prior = _inputs(train), torch.from_numpy(train.prior).float()
    subject = torch.from_numpy(train.subject)
    weight = torch.from_numpy(train.weight * len(train.weight)).float()
    held_out = _inputs(inner)
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-2, fused=True)
    best, best_epoch, best_weights = np.inf, 0, network.state_dict()
    for epoch in range(EPOCHS):
        network.train()
        for batch in torch.split(torch.randperm(len(x)), BATCH):
            logits = prior[batch] + network(x[batch])
            each = functional.cross_entropy(logits, subject[batch], reduction="none")
            optimiser.zero_grad()
            (weight[batch] * each).mean().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        network.eval()
        with torch.inference_mode():
            loss = inner.loss(network(held_out).double().numpy())
        if loss < best:
            best, best_epoch = loss, epoch
            best_weights = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        elif epoch - best_epoch >= PATIENCE:
            break
    network.load_state_dict(best_weights)


PROBES: dict[str, Probe] = {"linear": linear, "gaussian": gaussian, "mlp": mlp}
