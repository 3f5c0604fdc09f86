"""When a mean changed: steps, drifts, and weeks that repeat themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from stats.session_parts import Traffic
from steelyard.stats import Change, find_changes, find_deploys, find_incidents
from steelyard.stats._sample import sample_of

Array = npt.NDArray[np.float64]
MONDAY = 1_760_313_600.0
DAY = 86400.0


def changes(
    draw: np.random.Generator,
    traffic: Traffic,
    days: int,
    worse: Callable[[Array], Any] = np.zeros_like,
    *,
    told: bool = True,
) -> list[Change]:
    """The clear changes of some days of which a share of the turns goes wrong."""
    turns = traffic.stream(draw, days * traffic.a_day)
    day = np.arange(len(turns.values)) / traffic.a_day
    values = np.where(draw.random(len(day)) < worse(day), 0.0, turns.values)
    picked = draw.random(len(day)) < turns.inclusion
    found = find_changes(
        values[picked],
        (MONDAY + day[picked] * DAY).tolist(),
        inclusion=turns.inclusion[picked],
        sessions=turns.sessions[picked] if told else None,
        sessions_known=told,
    )
    return [change for change in found if change.difference.clear]


@pytest.mark.parametrize(
    "traffic",
    [
        Traffic(),
        Traffic(swing=0.03),
        Traffic(size=4, alike=0.3, swing=0.03),
        Traffic(size=10, alike=0.2, sample="suspicion", swing=0.03),
        Traffic(size=4, alike=0.2, sample="halving"),
    ],
    ids=str,
)
def test_weeks_in_which_nothing_happened_are_seldom_said_to_have_changed(traffic: Traffic) -> None:
    draw = np.random.default_rng(6)
    assert sum(bool(changes(draw, traffic, 14)) for _ in range(60)) <= 8


@pytest.mark.parametrize(("size", "alike"), [(1, 0.0), (3, 0.3), (10, 0.2), (20, 0.3)])
@pytest.mark.parametrize("days", [14, 28])
def test_turns_of_mixed_sessions_that_nobody_names_are_seldom_said_to_have_changed(
    size: int, alike: float, days: int
) -> None:
    draw = np.random.default_rng(12)
    traffic = Traffic(size=size, alike=alike, interleaved=True, swing=0.03)
    assert sum(bool(changes(draw, traffic, days, told=False)) for _ in range(40)) <= 6


@pytest.mark.parametrize("days", [14, 28])
def test_days_that_differ_by_more_than_their_sessions_are_seldom_said_to_have_changed(days: int) -> None:
    draw = np.random.default_rng(15)
    traffic = Traffic(size=3, alike=0.1, days=0.02, swing=0.03, a_day=1_000)
    assert sum(bool(changes(draw, traffic, days)) for _ in range(40)) <= 12


@pytest.mark.parametrize("days", [14, 28])
def test_a_fall_is_told_though_nobody_names_sessions(days: int) -> None:
    draw = np.random.default_rng(13)
    fall = [
        changes(draw, Traffic(swing=0.03), days, lambda day: 0.2 * (day >= days * 2 // 3), told=False)
        for _ in range(20)
    ]
    assert sum(bool(found) and found[0].difference.high < 0 for found in fall) >= 19


def test_two_days_leave_nothing_to_tell_how_alike_turns_are_that_nobody_names() -> None:
    draw = np.random.default_rng(14)
    assert changes(draw, Traffic(), 2, lambda day: 0.5 * (day >= 1))
    assert not changes(draw, Traffic(), 2, lambda day: 0.5 * (day >= 1), told=False)


def test_a_fall_is_told_with_the_day_on_which_it_began() -> None:
    draw = np.random.default_rng(8)
    near = 0
    for _ in range(30):
        (first, *_) = changes(draw, Traffic(swing=0.03), 14, lambda day: 0.12 * (day >= 9))
        assert first.until is None and first.difference.high < 0
        near += abs((first.since - MONDAY) / DAY - 9) <= 1
    assert near >= 26


def test_two_falls_are_told_as_two() -> None:
    draw = np.random.default_rng(9)
    two = 0
    for _ in range(10):
        found = changes(draw, Traffic(), 28, lambda day: 0.12 * (day >= 9) + 0.15 * (day >= 18))
        days = [(change.since - MONDAY) / DAY for change in found]
        two += len(days) == 2 and days == pytest.approx([9, 18], abs=2)
    assert two >= 8


def test_a_slow_fall_is_told_as_a_drift_from_end_to_end() -> None:
    draw = np.random.default_rng(10)
    drifts = 0
    for _ in range(20):
        found = changes(draw, Traffic(), 28, lambda day: 0.15 * day / 28)
        drifts += len(found) == 1 and found[0].until == MONDAY + 28 * DAY
        assert found[0].difference.value < 0
    assert drifts >= 15


def test_of_fewer_than_sixty_turns_no_change_is_told() -> None:
    assert find_changes([1.0] * 59, [MONDAY + number * DAY for number in range(59)]) == []
    assert find_changes([], []) == []


@pytest.mark.parametrize(("grown", "named"), [(False, ["v3"]), (True, ["v2"])])
def test_a_change_goes_back_to_no_version_that_changed_things_the_other_way(
    grown: bool, named: list[str]
) -> None:
    draw = np.random.default_rng(3)
    values = np.concatenate([draw.random(60) / 9 + level for level in (0.1, 0.8, 0.4)])
    versions = {"version": [f"v{1 + number // 60}" for number in range(180)]}
    sample = sample_of(values.tolist(), None, None)
    found = find_deploys(sample, MONDAY + 3_600 * np.arange(180.0), versions, grown=grown)
    assert [one.value for one in found] == named


@pytest.mark.parametrize("hour", [0, 6, 23])
def test_an_incident_begins_with_the_day_on_which_a_slice_fell(hour: int) -> None:
    """Whatever the hour of the first turn: days are those of the calendar."""
    draw = np.random.default_rng(3)
    times = hour * 3600 + np.sort(draw.random(3_000)) * (20 * DAY - hour * 3600)
    slow = draw.random(3_000) < 0.4
    values = (draw.random(3_000) < np.where(slow & (times >= 12 * DAY), 0.4, 0.9)).astype(float)
    names = ["slow" if one else "fast" for one in slow]
    found = find_incidents(sample_of(values), times, {"tier": names})
    assert found and ("tier", "slow") in found[0].names
    assert found[0].since == 12 * DAY
