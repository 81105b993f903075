"""Laws that every measure must obey in every mode; the table of measures is in laws.py."""

from __future__ import annotations

import copy

import numpy as np
import torch
from laws import (
    ANALYTIC,
    EVEN,
    TABLE,
    WITH_CRITIC,
    Batch,
    batch,
    centres,
    close,
    degenerate,
    fix_draw,
    over,
    pull,
    renamed,
    reordered,
    seeded,
    train_critics,
)

from autotransfer.censoring import MEASURES
from autotransfer.encoder.split import split_latent

BOTH = (torch.float64, torch.float32)


def test_every_measure_is_in_the_table():
    assert {row.measure for row in TABLE} == set(MEASURES)
    assert len(set(map(str, TABLE))) == len(TABLE)


@over()
def test_the_encoder_s_step_reaches_the_latent_and_no_critic(case):
    censor, data = case.censor(), batch()
    assert bool(list(censor.parameters())) == bool(censor.n_critic)
    z = data.z.clone().requires_grad_()
    penalty = censor(z, censor.cells(data.s, data.y), seeded(0))
    assert penalty.shape == ()
    assert penalty.dtype == z.dtype
    penalty.backward()
    for half in split_latent(z.grad):
        assert half.abs().max() > 0
    assert all(p.grad is None and p.requires_grad for p in censor.parameters())


@over(WITH_CRITIC)
def test_the_critic_s_step_reaches_all_of_every_critic_and_not_the_latent(case):
    censor, data = case.censor(), batch()
    z = data.z.clone().requires_grad_()
    censor.critic_loss(z.detach(), censor.cells(data.s, data.y), seeded(0)).backward()
    assert z.grad is None
    unmoved = [name for name, p in censor.named_parameters() if not p.grad.abs().max() > 0]
    assert not unmoved


@over(WITH_CRITIC)
def test_critics_say_how_they_stand(case):
    censor, data = case.censor(), batch()
    assert not censor.readings()
    censor.critic_loss(data.z, censor.cells(data.s, data.y), seeded(0))
    found = censor.readings()
    assert found
    assert all(v.shape == () and v.isfinite() and not v.requires_grad for v in found.values())
    of_z2 = [name for name in found if name.startswith("z2_")]
    assert 2 * len(of_z2) == (len(found) if case.mode == "complementary" else 0)


@over()
def test_no_batch_gives_a_number_that_is_not_one(case):
    failed = []
    for dtype in BOTH:
        censor = case.censor(dtype)
        for name, data in degenerate(dtype).items():
            cells = censor.cells(data.s, data.y)
            value, slope = pull(censor, data, seeded(0))
            found = [value, slope]
            if censor.n_critic:
                censor.zero_grad()
                loss = censor.critic_loss(data.z, cells, seeded(0))
                loss.backward()
                found += [loss, *(p.grad for p in censor.parameters() if p.grad is not None)]
            elif cells.count.max(initial=0) < censor.measure.smallest_cell:
                # Nothing to measure: not nearly but exactly nothing to pay.
                found.append(torch.where((value == 0) & (slope == 0).all(), 0.0, torch.nan))
            if not all(v.isfinite().all() for v in found) or slope.dtype != dtype:
                failed.append(f"{name}, {dtype}: {value}")
    assert not failed


@over(row for row in TABLE if not row.pays_alone)
def test_one_subject_alone_costs_nothing_and_teaches_nothing(case):
    censor, data = case.censor(), batch()
    alone = Batch(data.z, data.s * 0 + 2, data.y)
    value, slope = pull(censor, alone, seeded(0))
    close(value, 0)
    close(slope, torch.zeros_like(slope))
    if censor.n_critic:
        before = copy.deepcopy(censor.state_dict())
        loss = censor.critic_loss(alone.z, censor.cells(alone.s, alone.y), seeded(0))
        loss.backward()
        assert loss == 0
        assert not any(p.grad.any() for p in censor.parameters() if p.grad is not None)
        assert all(map(torch.equal, before.values(), censor.state_dict().values()))


@over()
def test_the_order_of_rows_does_not_matter(case):
    censor, data = case.censor(), batch()
    draw = censor.measure.draw(censor.cells(data.s, data.y), seeded(3))
    fix_draw(censor, draw)
    value, slope = pull(censor, data)
    order = np.random.default_rng(0).permutation(len(data))
    fix_draw(censor, reordered(draw, order))
    again, moved = pull(censor, Batch(data.z[order], data.s[order], data.y[order]))
    close(again, value)
    close(moved, slope[order])


@over(ANALYTIC)
def test_names_of_subjects_do_not_matter(case):
    censor, data = case.censor(), batch()
    draw = censor.measure.draw(censor.cells(data.s, data.y), seeded(3))
    fix_draw(censor, draw)
    value, slope = pull(censor, data)
    new = np.array([3, 0, 4, 1, 2])
    fix_draw(censor, renamed(draw, new))
    again, same = pull(censor, Batch(data.z, new[data.s], data.y))
    close(again, value)
    close(same, slope)


LESSONS = [batch(EVEN, seed=i, n_latent=6, dtype=torch.float32) for i in range(100, 116)]


@over(row for row in TABLE if row.sees)
def test_more_dependence_costs_more(case):
    censor = case.censor(torch.float32, n_latent=6)
    if censor.n_critic:
        train_critics(censor, LESSONS, 40)
    slopes = []
    for seed in range(3):
        data = batch(EVEN, seed=seed, n_latent=6, dtype=torch.float32)
        _, slope = pull(censor, data, seeded(seed))
        # z = noise + theta * centre of the subject: the derivative in theta, of either half.
        by_half = split_latent(slope * centres(6)[data.s])
        slopes.append(torch.stack([half.sum() for half in by_half]))
    first, second = torch.stack(slopes).mean(0).tolist()
    if case.mode == "complementary":
        assert first > 0 > second
    else:
        assert first + second > 0


@over()
def test_a_censor_goes_on_from_its_state(case):
    censor, data = case.censor(), batch()
    cells = censor.cells(data.s, data.y)
    if censor.n_critic:
        train_critics(censor, [data], 3)
    other = case.censor(seed=1)
    other.load_state_dict(censor.state_dict())
    for one in (censor, other):
        one.found = list(pull(one, data, seeded(0)))
        if one.n_critic:
            one.found.append(one.critic_loss(data.z, cells, seeded(1)))
    assert all(map(torch.equal, censor.found, other.found))
    # A critic's loss may have moved what is not a parameter, such as k.
    assert all(map(torch.equal, censor.state_dict().values(), other.state_dict().values()))


@over()
def test_chance_is_in_the_hands_of_who_asks(case):
    def everything(generator):
        censor = copy.deepcopy(made)
        found = [*pull(censor, data, generator)]
        if censor.n_critic:
            found.append(censor.critic_loss(data.z, censor.cells(data.s, data.y), generator))
        return found

    made, data = case.censor(), batch()
    torch.manual_seed(11)
    first = everything(None)
    torch.manual_seed(11)
    assert all(map(torch.equal, first, everything(None)))
    before = torch.get_rng_state()
    assert all(map(torch.equal, first, everything(seeded(11))))
    assert torch.equal(before, torch.get_rng_state())


@over()
def test_single_precision_is_enough(case):
    censor, data = case.censor(), batch()
    value, slope = pull(censor, data, seeded(0))
    single = Batch(data.z.float(), data.s, data.y)
    again, same = pull(censor.float(), single, seeded(0))
    close(again, value, rtol=1e-4, atol=1e-4)
    assert (same - slope).norm() <= 1e-4 * slope.norm()


@over(row for row in TABLE if row.scale_free)
def test_scaling_the_latent_changes_nothing(case):
    censor, data = case.censor(), batch()
    value, slope = pull(censor, data, seeded(0))
    # Standardised columns have a floor below their variance.
    floor = 1e-5 if censor.n_critic else 1e-10
    for half in split_latent(data.z * slope) if case.mode == "complementary" else [data.z * slope]:
        assert abs(half.sum()) <= floor * half.abs().sum()
    for factor in (1e-2, 30.0) if not censor.n_critic else (0.5, 30.0):
        again, moved = pull(censor, Batch(data.z * factor, data.s, data.y), seeded(0))
        close(again, value, rtol=floor, atol=floor)
        close(moved * factor, slope, rtol=floor * 10, atol=floor * 10)
