"""How a run shares out the time that is left at its end."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from autotransfer.errors import TrialTimeoutError, WorkerDiedError
from autotransfer.search import Ledger
from autotransfer.search.driver import TRIES, Driver, Stop
from autotransfer.search.levels.worth import Levels
from autotransfer.search.procedures.closing import record_extra, share_out
from autotransfer.search.progress import RunProgress


def same(n):
    """Networks of which each takes a minute; the best answer has n of them."""
    return lambda most: [60.0] * min(n, most)


@pytest.mark.parametrize(
    ("left", "networks", "most", "levels", "portraits"),
    [
        (1000, same(1), 5, 940, True),
        (1000, same(4), 5, 880, True),
        # Four take two rounds of two workers. Levels have what is left of them.
        (300, same(4), 5, 180, False),
        (240, same(4), 5, 144, False),
        # No time for two rounds and half of what was kept for levels: two networks, one round.
        (180, same(4), 2, 144, False),
        # A second one takes no time beside the first.
        (130, same(2), 5, 144, False),
        (0, same(4), 2, 144, False),
        # A network of another setting, which takes longer than all that is left.
        (300, lambda most: [60.0, 240.0][:most], 1, 240, False),
    ],
)
def test_networks_leave_levels_their_half(left, networks, most, levels, portraits):
    looking = 80.0
    found = share_out(left, networks, 144.0, looking, workers=2)
    assert found == (most, levels - looking if portraits else levels, portraits)
    assert share_out(left, networks, 144.0, None, workers=2) == (most, levels, False)


def test_with_one_worker_each_takes_its_time():
    assert share_out(300, same(4), 144.0, None, workers=1) == (3, 144, False)
    assert share_out(130, same(2), 144.0, None, workers=1) == (1, 144, False)


def ended(how):
    """Make a future that has ended: with a result, or with an error."""
    future = Future()
    (future.set_exception if isinstance(how, Exception) else future.set_result)(how)
    return future


@pytest.mark.parametrize("error", [WorkerDiedError("killed"), TrialTimeoutError("too long")])
def test_what_died_with_its_worker_is_done_again(error, tmp_path):
    with Ledger(tmp_path / "ledger", "run") as ledger:
        show = RunProgress(False)
        driver = Driver(ledger, lambda: (None, None), "data", show, Stop())
        parts = ("levels", ledger, driver, show)
        what = {"stage": "levels", "definition": {}}
        asked = []

        def again():
            asked.append(1)
            return ended({"cases": []})

        record_extra(ended(error), again, *parts, id="a", **what)
        assert [entry.state for entry in ledger.entries("levels")] == ["done"]
        assert len(asked) == 1
        # Nothing is known of what never ended: it is not on record, and the next call tries it.
        record_extra(ended(error), lambda: asked.append(1) or ended(error), *parts, id="b", **what)
        assert "b" not in ledger.ids("levels")
        assert len(asked) == 1 + TRIES - 1
        # An error of its own would come again.
        record_extra(ended(ValueError("wrong")), again, *parts, id="c", **what)
        assert [entry.state for entry in ledger.entries("levels")] == ["done", "failed"]


def test_groups_that_could_not_be_scored_are_told():
    case = {"level": "nothing", "amount": None, "method": "", "tested": "other"}
    one = {"cases": [case | {"subjects": {"eve": 0.5}}], "guard": {}}
    assert Levels.of([one], 1).not_tried() == []
    lacking = Levels.of([one], 3)
    assert lacking.scores == {}
    assert lacking.not_tried() == ["levels: scoring 2 of the groups failed"]
