"""How far the judge looks where the screen tells little, by what was judged before."""

from __future__ import annotations

import pytest

from steelyard.online.selection._allocation import Allocation


def shares(bad: int, inclusion: float) -> tuple[float, float]:
    """Of a bin with a thousand good turns and some bad ones, and of one whose turns vary by half as much."""
    allocation = Allocation(floor=0.0)
    for said in (0.1, 0.9):
        for _ in range(500):
            allocation.share({"m": said})
    for _ in range(1000):
        allocation.learn("m", 0.1, 1.0, 1.0)
    for _ in range(bad):
        allocation.learn("m", 0.1, 0.0, inclusion)
    for number in range(2000):
        allocation.learn("m", 0.9, 0.25 + 0.5 * (number % 2), 1.0)
    return allocation.share({"m": 0.1}), allocation.share({"m": 0.9})


def test_a_turn_that_was_seldom_picked_speaks_for_all_that_were_not() -> None:
    assert shares(100, 0.1) == pytest.approx(shares(1000, 1.0), rel=0.02)
    # Standard deviations of .5 and .25.
    assert shares(100, 0.1) == pytest.approx((4 / 3, 2 / 3), rel=0.02)
