"""What holds on average over batches or draws: no bias where there is nothing to find."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from laws import EVEN, TABLE, Batch, Case, Row, batch, over, pull, seeded

from autotransfer.estimation.kernels import rbf, square_distances
from autotransfer.estimation.length_scale import median_beta

SMALL = ((3, 2, 1, 4, 0), (2, 5, 2, 0, 3))


def mean_and_error(values) -> tuple[float, float]:
    found = np.asarray(values, dtype=np.float64)
    return found.mean(), found.std(ddof=1) / np.sqrt(len(found))


@cache
def batches_without_dependence(mode: str) -> list[Batch]:
    """Batches in which z does not depend on s; in conditional mode, not given y.

    There z depends on y, and subjects differ in their classes: what has no bias given the class
    would have one without it.
    """
    made = [batch(SMALL, theta=0.0, seed=i) for i in range(500)]
    if mode == "marginal":
        shift = torch.tensor([0.5, -0.5])
        made = [Batch(data.z + shift[data.y][:, None], data.s, data.y) for data in made]
    return made


def values_without_dependence(case: Case) -> list[float]:
    censor, generator = case.censor(), seeded(0)
    return [
        float(censor(data.z, censor.cells(data.s, data.y), generator))
        for data in batches_without_dependence(case.mode)
    ]


@over((row for row in TABLE if row.unbiased), ["marginal", "conditional"])
def test_no_dependence_costs_nothing_on_average(case):
    mean, error = mean_and_error(values_without_dependence(case))
    assert abs(mean) < 4 * error


def test_the_printed_mmd_is_biased_as_computed():
    mean, error = mean_and_error(
        values_without_dependence(Case(Row("mmd", {"literal": True}), "marginal"))
    )
    n = sum(map(sum, SMALL))
    kernels = []  # means over pairs of different rows
    for data in batches_without_dependence("marginal"):
        d2 = square_distances(data.z)
        kernels.append(float((rbf(d2, median_beta(d2)).sum() - n) / (n * (n - 1))))
    assert abs(mean + 2 / n * (1 - np.mean(kernels))) < 4 * error
    assert abs(mean) > 8 * error  # the law above can fail


@pytest.mark.parametrize("mode", ["marginal", "conditional"])
def test_mige_replaces_usable_rows_by_any_of_their_class(mode):
    data, generator = batch(SMALL), seeded(0)
    censor = Case(Row("mige", {"n_min": 3, "n_perm": 400}), mode).censor()
    cells = censor.cells(data.s, data.y)
    usable = cells.count[cells.cell] >= 3
    group = data.y if mode == "conditional" else data.y * 0
    seen = np.zeros((len(data), len(data)))
    for other in censor.measure.draw(cells, generator):
        assert sorted(other) == list(range(len(data)))
        seen[np.arange(len(data)), other] += 1
    may = usable[:, None] & usable & (group[:, None] == group)
    expected = np.where(may, 400 / np.maximum(may.sum(1, keepdims=True), 1), 0.0)
    expected[~usable] = 400 * np.eye(len(data))[~usable]
    assert (np.abs(seen - expected) <= 5 * np.sqrt(expected) * may).all()


@pytest.mark.parametrize("estimator", ["tikhonov", "nu", "stein", "ssge"])
def test_mige_with_shuffled_subjects_pulls_nowhere(estimator):
    """Matched groups cancel the bias of a score estimate; the textbook form compresses z."""
    drifts = {}
    for matched in (True, False):
        row = Row("mige", {"estimator": estimator, "matched": matched})
        censor, drift = Case(row, "marginal").censor(n_latent=16), []
        for seed in range(40):
            data = batch(EVEN, seed=seed, n_latent=16)
            s = np.random.default_rng(seed).permutation(data.s)
            _, slope = pull(censor, Batch(data.z, s, data.y), seeded(seed))
            centred = data.z - data.z.mean(0)
            drift.append(float((slope * centred).sum()))  # along z -> a z
        drifts[matched] = mean_and_error(drift)
    mean, error = drifts[True]
    assert abs(mean) < 4 * error
    textbook, its_error = drifts[False]
    assert abs(textbook) > 8 * its_error
    assert abs(mean) < 0.1 * abs(textbook)


@pytest.mark.parametrize("mode", ["marginal", "conditional"])
@pytest.mark.parametrize("others", [1, 2])
def test_a_few_wrong_labels_stand_for_all(mode, others):
    """BEGAN's losses under drawn wrong labels are unbiased."""
    losses = {}
    data, generator = batch(), seeded(0)
    for count, times in (("all", 1), (others, 400)):
        censor = Case(Row("began", {"others": count}), mode).censor()
        cells, measure = censor.cells(data.s, data.y), censor.measure
        with torch.no_grad():
            drawn = [measure.draw(cells, generator) for _ in range(times)]
            found = [measure.losses(data.z, cells, draw) for draw in drawn]
        losses[count] = np.array(found)
    own, real = losses["all"][0]
    np.testing.assert_allclose(losses[others][:, 0], own, rtol=1e-12)
    mean, error = mean_and_error(losses[others][:, 1])
    assert error > 0
    assert abs(mean - real) < 4 * error


@pytest.mark.parametrize("draws", [40, pytest.param(200, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("mode", ["marginal", "conditional", "complementary"])
@pytest.mark.parametrize("chosen", [{"pairs": "bernoulli", "b": 0.4}, {"pairs": "clique", "d": 3}])
def test_some_pairs_stand_for_all(chosen, mode, draws):
    data, generator = batch(EVEN), seeded(0)
    everything = Case(Row("pairmmd"), mode).censor()
    cells = everything.cells(data.s, data.y)
    censor = Case(Row("pairmmd", chosen), mode).censor()
    mean, error = mean_and_error([censor(data.z, cells, generator) for _ in range(draws)])
    assert error > 0
    assert abs(mean - everything(data.z, cells)) < 4 * error
