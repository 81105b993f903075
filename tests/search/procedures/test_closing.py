"""How a run shares out the time that is left at its end."""

from __future__ import annotations

import pytest

from autotransfer.search.procedures.closing import share_out


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
