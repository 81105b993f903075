"""Measures against the paper's algorithms in plain loops (literal.py), in every mode."""

from __future__ import annotations

import numpy as np
import torch
from laws import TABLE, batch, close, over, parts, pull, seeded

# Subjects with many trials, with one, and absent, in either class and in both.
FEW = ((3, 2, 1, 0, 4), (2, 1, 0, 1, 2))


@over(row for row in TABLE if row.plain)
def test_the_penalty_and_its_gradient_are_those_of_the_loops(case):
    censor, data = case.censor(), batch(FEW)
    y = data.y if case.mode == "conditional" else None
    value, slope = pull(censor, data)
    with torch.no_grad():
        pieces = [
            (case.row.plain(part, z.numpy(), data.s, y), z.numpy(), sign)
            for part, z, sign in parts(censor, data.z)
        ]
        close(value, sum(sign * penalty(z) for penalty, z, sign in pieces), 1e-9, 1e-11)
        # Central differences in random directions: the loops are too slow for every entry.
        for seed in range(4):
            expected, start, step = 0.0, 0, 1e-5
            move = np.random.default_rng(seed).normal(size=slope.shape)
            found = (slope.numpy() * move).sum()
            for penalty, z, sign in pieces:
                part = step * move[:, start : start + z.shape[1]]
                expected += sign * (penalty(z + part) - penalty(z - part)) / (2 * step)
                start += z.shape[1]
            close(found, expected, rtol=1e-6, atol=1e-8)


@over(row for row in TABLE if row.plain_slope)
def test_the_gradient_is_that_of_the_loops(case):
    censor, data = case.censor(), batch()
    y = data.y if case.mode == "conditional" else None
    draw = censor.measure.draw(censor.cells(data.s, data.y), seeded(7))
    value, slope = pull(censor, data, seeded(7))
    expected = [
        sign * case.row.plain_slope(part, z.numpy(), data.s, y, draw)
        for part, z, sign in parts(censor, data.z)
    ]
    close(slope, np.concatenate(expected, 1))
    # A surrogate: linear in z, with the estimated scores held.
    close(value, (slope * data.z).sum())
