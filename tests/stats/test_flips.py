from __future__ import annotations

import random

import pytest

from steelyard.stats import FlipAlarm


def found_after(
    rate: float, *, after: float | None = None, at: int = 0, seed: int = 0, most: int = 1000
) -> int:
    """After how many answers the alarm went off; 0 if not at all."""
    drawn = random.Random(seed)
    alarm = FlipAlarm()
    for place in range(at + most):
        now = rate if after is None or place < at else after
        if alarm.add(drawn.random() >= now):
            return place + 1
    return 0


def test_one_flipped_verdict_in_ten_is_found_within_a_hundred() -> None:
    found = [found_after(0.0, after=0.1, at=200, seed=seed, most=100) for seed in range(500)]
    assert all(place == 0 or place > 200 for place in found), "nothing went wrong before"
    assert sum(place > 0 for place in found) / len(found) >= 0.95


@pytest.mark.parametrize("wrong", [0.0, 0.005])
def test_a_judge_that_stays_the_same_seldom_raises_the_alarm(wrong: float) -> None:
    raised = sum(found_after(wrong, seed=seed) > 0 for seed in range(300))
    assert raised / 300 <= 0.05


def test_a_judge_that_always_errs_is_found_at_once() -> None:
    assert 0 < found_after(1.0) <= 6


def test_the_alarm_stays_on() -> None:
    alarm = FlipAlarm()
    while not alarm.add(False):
        pass
    assert alarm.add(True) and alarm.raised_at == alarm.n - 1


@pytest.mark.parametrize("wrong", [{"tolerated": 0.0}, {"tolerated": 0.3}, {"alpha": 1.0}, {"horizon": 0}])
def test_numbers_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="out of range"):
        FlipAlarm(**wrong)  # type: ignore[arg-type]
