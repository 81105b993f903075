"""Critics of many subjects: a batch costs and moves only the lines of its own subjects."""

from __future__ import annotations

import numpy as np
import pytest
from laws import Batch, Case, Row, batch, close, over, pull, seeded, train_critics

from autotransfer.censoring import critic_optimisers
from autotransfer.censoring.critic import SubjectTable
from autotransfer.censoring.row_adam import RowAdam

MANY = 5000


@pytest.mark.parametrize("mode", ["marginal", "conditional", "complementary"])
def test_candidates_of_the_batch_are_all_when_all_are_there(mode):
    data = batch()
    found = []
    for candidates in ("all", "batch", "auto"):
        censor = Case(Row("adversary", {"candidates": candidates}), mode).censor()
        cells = censor.cells(data.s, data.y)
        found.append([*pull(censor, data), censor.critic_loss(data.z, cells).detach()])
    for other in found[1:]:
        for value, expected in zip(other, found[0], strict=True):
            close(value, expected, rtol=1e-12, atol=1e-14)


@over([Row("adversary"), Row("began"), Row("began", {"others": "all"})])
def test_a_step_moves_lines_of_subjects_in_the_batch_alone(case):
    censor = case.censor(n_subjects=MANY)
    few = batch()
    data = Batch(few.z, few.s * 1111, few.y)
    tables = [m for m in censor.modules() if isinstance(m, SubjectTable)]
    before = [table.weight.detach().clone() for table in tables]
    assert tables
    train_critics(censor, [data], 2)
    for table, old in zip(tables, before, strict=True):
        assert table.weight.grad.is_sparse
        assert table.weight.grad.coalesce().values().shape[0] <= len(np.unique(data.s))
        moved = (table.weight != old).any(1).nonzero().flatten()
        assert moved.tolist() == np.unique(data.s).tolist()


@pytest.mark.parametrize("candidates", ["all", "batch"])
def test_either_choice_of_candidates_can_be_trained(candidates):
    """All 5,000 at once have a dense gradient, for which there is another optimiser."""
    censor = Case(Row("adversary", {"candidates": candidates}), "marginal").censor(n_subjects=MANY)
    data = batch()
    first = float(censor.critic_loss(data.z, censor.cells(data.s)).detach())
    train_critics(censor, [data], 20)
    assert float(censor.critic_loss(data.z, censor.cells(data.s)).detach()) < first
    by_row = [isinstance(o, RowAdam) for o in critic_optimisers(censor, 1.0)]
    assert any(by_row) == (candidates == "batch")


def test_the_penalty_of_many_subjects_still_pulls():
    censor = Case(Row("adversary"), "marginal").censor(n_subjects=MANY)
    _, slope = pull(censor, batch(), seeded(0))
    assert slope.abs().max() > 0
