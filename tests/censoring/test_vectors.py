"""Measures and modes against expected values that were computed outside of this package."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from autotransfer.censoring import make_censor
from autotransfer.censoring.adversary import weighted_mean
from autotransfer.estimation.cells import Cells
from autotransfer.estimation.kernels import rbf, square_distances
from autotransfer.estimation.length_scale import median_beta
from autotransfer.estimation.mmd import block_sums, mmd_weights, pair_weights, usable_pairs
from autotransfer.training.loop import class_weights

FOLDER = Path(__file__).parents[1] / "fixtures" / "vectors"
TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-4}
both = pytest.mark.parametrize("dtype", list(TOLERANCE), ids=["float64", "float32"])


def vectors(name: str) -> dict:
    return json.loads((FOLDER / f"{name}.json").read_text())


def close(found, expected, dtype, floor=1e-10) -> None:
    found = found.detach().numpy() if isinstance(found, torch.Tensor) else found
    floor = floor if dtype == torch.float64 else 2e-6
    np.testing.assert_allclose(found, np.array(expected), rtol=TOLERANCE[dtype], atol=floor)


def latents(name: str, dtype: torch.dtype) -> tuple[dict, torch.Tensor]:
    v = vectors(name)
    return v, torch.tensor(v["Z"], dtype=dtype, requires_grad=True)


def penalty_of(measure: str, mode: str, z, v, draw=None, **options):
    """Penalty and gradient of a censor on a vector's batch."""
    sizes = {"n_latent": z.shape[1], "n_subjects": 3, "n_classes": 2}
    censor = make_censor(measure, mode, **sizes, options=options).to(z.dtype)
    cells = censor.cells(v["s"], v["y"])
    value = censor(z, cells) if draw is None else censor.measure.censor(z, cells, draw)
    (gradient,) = torch.autograd.grad(value, z)
    return value, gradient


@both
def test_mmd_of_every_subject_and_pair(dtype):
    v, z = latents("mmd", dtype)
    d2 = square_distances(z)
    beta = median_beta(d2)
    close((0.5 / beta).sqrt().flatten(), [v["sigma"]], dtype)
    for given, corrected, literal, pairs in (
        (None, "mmd_per_subject", "mmd_per_subject_literal", "pair_matrix"),
        (
            v["y"],
            "conditional_mmd_per_class_subject",
            "conditional_mmd_literal",
            "conditional_pair_matrices",
        ),
    ):
        cells = Cells.of(v["s"], given)
        sums = block_sums(rbf(d2, beta), cells).detach().numpy()
        size = np.bincount(cells.stratum, cells.count)[cells.stratum]
        one = np.eye(len(cells.count))
        close([(mmd_weights(cells, a) * sums).sum() for a in one], np.ravel(v[corrected]), dtype)
        printed = [
            (mmd_weights(cells, a, literal=True) * sums).sum() - 2 / n
            for a, n in zip(one, size, strict=True)
        ]
        close(printed, np.ravel(v[literal]), dtype)
        found = np.zeros((cells.n_strata, 3, 3))
        for g in range(len(one)):
            for h in range(len(one)):
                if g != h and cells.stratum[g] == cells.stratum[h]:
                    pick = np.outer(one[g], one[h]) + np.outer(one[h], one[g])
                    value = (pair_weights(cells, pick) * sums).sum()
                    found[cells.stratum[g], cells.person[g], cells.person[h]] = value
        close(found if given else found[0], v[pairs], dtype)


@both
def test_mmd_penalties(dtype):
    v, z = latents("mmd", dtype)
    expected = {
        ("mmd", "marginal"): (v["marginal_penalty"], v["marginal_grad_sigma_detached"]),
        ("mmd", "conditional"): (v["conditional_penalty"], None),
        ("mmd", "complementary"): (v["complementary"]["penalty"], None),
        ("pairmmd", "marginal"): (v["pair_marginal_penalty"], v["pair_grad_sigma_detached"]),
        ("pairmmd", "conditional"): (v["conditional_pair_penalty"], None),
        ("pairmmd", "complementary"): (v["complementary"]["pair_penalty"], None),
    }
    for (measure, mode), (value, gradient) in expected.items():
        found, slope = penalty_of(measure, mode, z, v, detach_length_scale=True, scales=(1.0,))
        close(found, value, dtype)
        if gradient is not None:
            close(slope, gradient, dtype)
    literal = penalty_of("mmd", "marginal", z, v, literal=True, scales=(1.0,))[0]
    close(literal, np.mean(v["mmd_per_subject_literal"]), dtype)


@both
def test_mige(dtype):
    v, z = latents("mige", dtype)
    for mode in ("marginal", "conditional", "complementary"):
        found, slope = penalty_of("mige", mode, z, v, matched=False, n_min=2)
        close(found, v[mode]["surrogate"], dtype)
        close(slope, v[mode]["grad_Z"], dtype)
    found, slope = penalty_of("mige", "marginal", z, v, matched=False, n_min=2, calibrate=True)
    close(slope, v["marginal_calibrated"]["grad_Z"], dtype)
    matched = v["marginal_size_matched"]
    found, slope = penalty_of(
        "mige", "marginal", z, v, draw=[np.array(matched["permutation"])], n_min=2
    )
    close(found, matched["surrogate"], dtype)
    close(slope, matched["grad_Z"], dtype)


class Given(nn.Module):
    """Stands where a critic's network stands and returns logits that were given."""

    def __init__(self, logits):
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, _):
        return self.logits


@both
@pytest.mark.parametrize("mode", ["marginal", "conditional", "complementary"])
def test_adversary(dtype, mode):
    v = vectors("adversary")
    censor = make_censor("adversary", mode, n_latent=6, n_subjects=3, n_classes=2).to(dtype)
    parts = [(censor.measure, "logits")]
    if mode == "complementary":
        parts.append((censor.carrier, "logits_half2"))
    for part, name in parts:
        part.body = Given(torch.tensor(v[name], dtype=dtype))
        part.table = nn.Embedding(3, 3, _weight=torch.eye(3, dtype=dtype))
    cells = censor.cells(v["s"], v["y"])
    z = torch.zeros(5, 6, dtype=dtype, requires_grad=True)
    close(censor(z, cells), v[mode]["encoder_penalty"], dtype)
    close(censor.critic_loss(z, cells), v[mode]["aux_loss"], dtype)
    if mode == "conditional":
        rows = [weighted_mean(torch.eye(5, dtype=dtype)[i], cells) for i in range(5)]
        close(torch.stack(rows), v[mode]["weights"], dtype)


class Linear(nn.Module):
    """The vectors' autoencoder: W z, plus a line for the subject where it is told one."""

    def __init__(self, weight, bias):
        super().__init__()
        self.weight, self.bias = nn.Parameter(weight), bias

    def forward(self, u, subject, label, rows=None):
        u = u if rows is None else u[rows]
        made = u @ self.weight.T
        return (u - made - (self.bias[subject] if self.bias is not None else 0)).abs().mean(1)


@both
def test_began(dtype):
    v, z = latents("began", dtype)
    weight = torch.tensor(v["D_weight"], dtype=dtype)
    bias = torch.tensor(v["subject_bias"], dtype=dtype)

    def measure(told, **options):
        censor = make_censor(
            "began", n_latent=4, n_subjects=3, n_classes=2, options=options | {"standardise": False}
        ).to(dtype)
        censor.measure.critic = Linear(weight, bias if told else None)
        return censor.measure

    cells = Cells.of(v["s"])
    default, expected = measure(True, form="ratio", others="all"), v["default_rest_logratio"]
    draw = default.draw(cells)
    own, real = default.losses(z, cells, draw)
    close(torch.stack([own, real]), [expected["Lzs"], expected["Lz"]], dtype)
    close(default.censor(z, cells, draw), expected["encoder_penalty"], dtype)
    close(default.critic_loss(z, cells, draw), expected["aux"], dtype)
    close(default.k, expected["k_next"], dtype)

    printed, expected = measure(False, variant="literal"), v["literal_shared_discriminator"]
    printed.k = torch.tensor(expected["k_prev"], dtype=dtype)  # a float32 0.2 would be off by 3e-9
    own, real = printed.losses(z, cells, None)
    close(torch.stack([own, real]), [expected["Lzs"], expected["Lz"]], dtype)
    close(printed.censor(z, cells, None), expected["enc"], dtype)
    close(printed.critic_loss(z, cells, None), expected["disc"], dtype)
    close(printed.k, expected["k_next"], dtype)

    balanced = v["balanced_identity"]
    own, real = printed.losses(z[balanced["rows"]], Cells.of(balanced["s"]), None)
    close(torch.stack([own, real]), [balanced["Lzs"], balanced["Lz"]], dtype)


def test_pairs_chosen(monkeypatch):
    v = vectors("misc")
    cells = Cells.of(np.repeat(v["bernoulli"]["subjects"], 2))
    upper = np.triu_indices(4, 1)

    def chosen(**options):
        sizes = {"n_latent": 2, "n_subjects": 4, "n_classes": 2}
        measure = make_censor("pairmmd", **sizes, options=options).measure
        drawn = measure.draw(cells)
        assert (usable_pairs(cells, drawn) > 0)[upper].tolist() == drawn[upper].tolist()
        return [list(pair) for pair in zip(*np.nonzero(np.triu(drawn, 1)), strict=True)]

    uniform = torch.tensor(v["bernoulli"]["uniform_draws"], dtype=torch.float64)
    monkeypatch.setattr(torch, "rand", lambda *a, **k: uniform)
    assert chosen(pairs="bernoulli", b=v["bernoulli"]["b"]) == v["bernoulli"]["selected"]
    order = torch.tensor(v["clique"]["permutation"])
    monkeypatch.setattr(torch, "randperm", lambda *a, **k: order)
    assert chosen(pairs="clique", d=v["clique"]["d"]) == v["clique"]["selected"]


def test_class_weights():
    v = vectors("misc")
    counts = v["class_weights"]["counts"]
    found = class_weights(np.repeat(np.arange(3), counts), 3)
    np.testing.assert_allclose(found, v["class_weights"]["weights"], rtol=1e-8)
