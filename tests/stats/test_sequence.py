"""Looking again and again: the confidence sequence and the alarm keep their word."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.stats import ConfidenceSequence, FallAlarm, ewma


def healthy(streams: int, scores: int) -> tuple[int, int]:
    """How many streams of mean .9 left the sequence, and how many set off the alarm, at any moment."""
    draw = np.random.default_rng(5)
    left = false = 0
    for _ in range(streams):
        sequence, alarm = ConfidenceSequence(), FallAlarm(target=0.9)
        for value in (draw.random(scores) < 0.9).astype(float).tolist():
            low, high = sequence.add(value)
            alarm.add(value)
        left += not low <= 0.9 <= high  # bounds never widen, so that the last look tells of all
        false += alarm.raised_at is not None
    return left, false


def test_healthy_streams_are_left_alone() -> None:
    left, false = healthy(100, 1_000)
    assert left <= 5
    assert false <= 9  # 99 % of a binomial with 100 streams at 5 %


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_thousand_healthy_streams_of_two_thousand_scores() -> None:
    left, false = healthy(1_000, 2_000)
    assert left <= 50
    assert false <= 50


@pytest.mark.parametrize("before", [0, 500])
def test_a_fall_is_found_within_250_scores_in_the_median(before: int) -> None:
    draw = np.random.default_rng(before)
    delays = []
    for _ in range(60):
        alarm = FallAlarm(target=0.9)
        for value in (draw.random(before) < 0.9).tolist():
            alarm.add(float(value))
        while not alarm.add(float(draw.random() < 0.8)):
            pass
        delays.append(alarm.n - before)
    assert np.median(delays) <= 250


def test_an_unequal_sample_keeps_the_sequence_and_the_alarm_honest() -> None:
    """Bad turns are picked six times as often: their naive mean is .8, the truth .9."""
    draw = np.random.default_rng(7)
    left = false = 0
    for _ in range(40):
        values = (draw.random(6_000) < 0.9).astype(float)
        inclusion = np.where(draw.random(6_000) < np.where(values < 0.5, 0.6, 0.05), 1.0, 0.2)
        picked = draw.random(6_000) < inclusion
        sequence = ConfidenceSequence(smallest_inclusion=0.2)
        alarm = FallAlarm(target=0.9, smallest_inclusion=0.2)
        for value, probability in zip(values[picked].tolist(), inclusion[picked].tolist(), strict=True):
            low, high = sequence.add(value, probability)
            alarm.add(value, probability)
        left += not low <= 0.9 <= high
        false += alarm.raised_at is not None
        assert high - low < 0.15
    assert left <= 2
    assert false <= 4


def test_bounds_never_widen_and_close_in() -> None:
    sequence = ConfidenceSequence()
    bounds = [sequence.add(value) for value in [0.7, 0.9] * 400]
    lows, highs = zip(*bounds, strict=True)
    assert list(lows) == sorted(lows) and list(highs) == sorted(highs, reverse=True)
    assert lows[-1] < sequence.mean < highs[-1]
    assert highs[-1] - lows[-1] < 0.1


def test_a_probability_below_the_smallest_is_refused() -> None:
    with pytest.raises(ValueError, match="below the smallest"):
        ConfidenceSequence(smallest_inclusion=0.1).add(1.0, 0.05)
    with pytest.raises(ValueError, match="below the smallest"):
        FallAlarm(target=0.9, smallest_inclusion=0.1).add(1.0, 0.05)


def test_a_moving_average_forgets_by_half_and_weighs_by_inclusion() -> None:
    assert ewma([0.0, 1.0], half_life=1).tolist() == pytest.approx([0.0, 1 / 1.5])
    assert ewma([0.0, 1.0], [1.0, 0.5], half_life=1).tolist() == pytest.approx([0.0, 2 / 2.5])
