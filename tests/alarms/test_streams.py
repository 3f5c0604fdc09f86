"""What `benchmarks/sessions.py` measures over many streams at once is what alarms do."""

from __future__ import annotations

import numpy as np
import pytest

from alarms.alarm_parts import START, scored
from stats.session_parts import Sampling, Traffic, Turns
from stats.streams import Codes, alarm_places, fall_places, first_told, in_rows
from steelyard.alarms import Alarm
from steelyard.alarms._watch import Watch
from steelyard.stats import FallAlarm


def falling(size: int, sample: Sampling) -> list[tuple[Turns, Codes]]:
    """A fifth of good answers goes wrong after 2,000 turns."""
    draw, found = np.random.default_rng(21), []
    traffic = Traffic(size=size, alike=0.2, sample=sample, interleaved=True, swing=-0.03)
    for _ in range(2):
        turns = traffic.stream(draw, 3_600)
        good = (np.arange(3_600) < 1_500) | (draw.random(3_600) < 0.8)
        places = np.flatnonzero(draw.random(3_600) < turns.inclusion)
        kept = Turns((turns.values * good)[places], turns.inclusion[places], turns.sessions[places])
        found.append((kept, places))
    return found


@pytest.mark.parametrize(
    ("size", "told", "sample"), [(1, True, "halving"), (10, True, "suspicion"), (10, False, "all")]
)
def test_alarms_in_rows_go_off_with_the_turn_that_sets_off_the_class(
    size: int, told: bool, sample: Sampling
) -> None:
    streams, alarm = falling(size, sample), Alarm(metric="faithfulness", below=0.9)
    found = alarm_places(in_rows(streams, told=told), below=0.9, a_day=200, told=told)
    assert found.tolist() == [first_told(alarm, *stream, a_day=200, told=told) for stream in streams]
    assert max(found) > 1_500


def test_bets_in_rows_go_off_with_the_turn_that_sets_off_the_class() -> None:
    streams = falling(10, "suspicion")
    for (turns, places), found in zip(streams, fall_places(in_rows(streams), target=0.9), strict=True):
        bet = FallAlarm(target=0.9, smallest_inclusion=0.1)
        parts = (turns.values, turns.inclusion, turns.sessions)
        told = [bet.add(x, chance, session=one) for x, chance, one in zip(*parts, strict=True)]
        assert found == places[told.index(True)]


def test_a_long_course_is_thinned_and_keeps_its_ends() -> None:
    watch = Watch.start(alarm := Alarm(metric="faithfulness", below=0.5))
    for number in range(1_000):
        watch.take(alarm, scored(number, 1.0))
        assert (watch.course[0][0], watch.course[-1][0]) == (START, START + number)
        assert min(number + 1, 120) <= len(watch.course) <= 240
