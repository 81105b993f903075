"""Adam by rows: torch's SparseAdam in its numbers, and the same bits after a resume."""

from __future__ import annotations

import pytest
import torch
from laws import close, seeded
from torch import nn

from autotransfer.censoring.row_adam import RowAdam
from autotransfer.training.checkpoint import load_optimiser, optimiser_tensors


def table(n_rows=200, width=3, dtype=torch.float64):
    weight = torch.randn(n_rows, width, generator=seeded(0), dtype=dtype)
    return nn.Embedding(n_rows, width, sparse=True, _weight=weight)


def train(made, optimiser, steps):
    for step in steps:
        rows = torch.randint(0, len(made.weight), (12,), generator=seeded(step))
        rows = torch.cat([rows, rows[:4]])  # some rows twice
        aim = torch.randn(len(rows), made.weight.shape[1], generator=seeded(step + 500))
        made.weight.grad = None
        (made(rows) * aim.to(made.weight)).sum().backward()
        optimiser.step()
    return made.weight.detach()


@pytest.mark.parametrize("options", [{}, {"betas": (0.5, 0.9), "eps": 1e-3}])
def test_its_numbers_are_those_of_sparse_adam(options):
    mine, theirs = table(), table()
    found = train(mine, RowAdam(mine.parameters(), 0.05, **options), range(60))
    sparse = torch.optim.SparseAdam(theirs.parameters(), 0.05, **options)
    close(found, train(theirs, sparse, range(60)), rtol=1e-9, atol=1e-10)
    assert (found != table().weight).any(1).float().mean() > 0.9


def test_a_resumed_run_has_the_same_bits():
    """SparseAdam's has not: its count of steps comes back as a tensor of float32."""
    whole, first, second = (table(dtype=torch.float32) for _ in range(3))
    expected = train(whole, RowAdam(whole.parameters(), 0.05), range(30))
    optimiser = RowAdam(first.parameters(), 0.05)
    train(first, optimiser, range(11))
    second.load_state_dict(first.state_dict())
    resumed = RowAdam(second.parameters(), 0.05)
    load_optimiser(resumed, optimiser_tensors(optimiser))
    assert torch.equal(train(second, resumed, range(11, 30)), expected)


def test_a_table_that_was_not_used_stays():
    used, idle = table(), table()
    optimiser = RowAdam([used.weight, idle.weight], 0.05)
    train(used, optimiser, range(2))
    assert torch.equal(idle.weight, table().weight)
