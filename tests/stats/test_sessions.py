"""Turns of a session resemble each other: intervals, differences and slices count sessions."""

from __future__ import annotations

import json

import numpy as np
import pytest

from stats.session_parts import Traffic
from steelyard.scores import Evaluation, Score
from steelyard.stats import OpenSums, Summarizer, find_slices, unpaired_difference, weighted_mean


@pytest.mark.parametrize(
    "traffic",
    [
        Traffic(size=3, alike=0.3),
        Traffic(size=10, alike=0.2),
        Traffic(size=10, alike=0.2, sample="fifth"),
        Traffic(size=10, alike=0.2, sample="suspicion"),
        Traffic(size=10, alike=0.2, sample="halving"),
        Traffic(size=20, alike=0.3, interleaved=True),
        Traffic(size=20, alike=0.0),
    ],
    ids=str,
)
def test_intervals_of_turns_in_sessions_cover_the_truth(traffic: Traffic) -> None:
    draw = np.random.default_rng(3)
    covered = 0
    for _ in range(300):
        turns = traffic.judged(draw, 200)
        found = weighted_mean(turns.values, turns.inclusion, sessions=turns.sessions)
        assert found is not None
        covered += found.low <= traffic.mean <= found.high
    assert covered / 300 >= 0.91  # three standard errors below .95


def test_a_session_for_each_turn_is_as_good_as_none() -> None:
    values = [1.0, 0.0, 1.0, 0.5, 0.8, 1.0, 1.0]
    apart = weighted_mean(values)
    assert apart is not None
    for sessions in (range(7), [None, "", *range(5)]):
        found = weighted_mean(values, sessions=sessions)
        assert found is not None and found.units is None
        assert (found.low, found.high) == pytest.approx((apart.low, apart.high))


def test_one_session_for_all_turns_says_that_little_is_known() -> None:
    values = ([1.0] * 9 + [0.0]) * 20
    apart, one = weighted_mean(values), weighted_mean(values, sessions=["x" * 1_000_000] * 200)
    assert apart is not None and one is not None
    assert one.units == 1
    assert one.effective_n < 40
    assert one.margin > 4 * apart.margin


def test_many_turns_of_few_sessions_are_worth_few_independent_ones() -> None:
    values = [1.0] * 60 + [0.0] * 20 + [1.0] * 20
    found = weighted_mean(values, sessions=[number // 10 for number in range(100)])
    assert found is not None
    assert found.units == 10
    assert found.effective_n == pytest.approx(10, abs=3)


def test_lists_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="same length"):
        weighted_mean([1.0, 0.0], sessions=["a"])


def test_a_session_in_both_groups_makes_their_difference_more_certain() -> None:
    draw = np.random.default_rng(4)
    level = draw.random(40)
    first, second = (np.clip(level + draw.normal(0, 0.02, 40), 0, 1).repeat(5).tolist() for _ in "12")
    names = np.arange(40).repeat(5).tolist()
    both = unpaired_difference(first, second, first_sessions=names, second_sessions=names)
    others = [f"other {name}" for name in names]
    apart = unpaired_difference(first, second, first_sessions=names, second_sessions=others)
    assert both is not None and apart is not None
    assert both.high - both.low < 0.3 * (apart.high - apart.low)


def test_slices_by_what_is_the_same_in_a_session_are_seldom_found_by_chance() -> None:
    draw = np.random.default_rng(5)
    traffic = Traffic(size=10, alike=0.2)
    false = blind = 0
    for _ in range(60):
        turns = traffic.judged(draw, 1_500)
        of_session = draw.integers(0, 4, (4, turns.sessions.max() + 1))
        columns = {f"field {n}": [str(v) for v in of_session[n, turns.sessions]] for n in range(4)}
        values, sessions = turns.values.tolist(), turns.sessions.tolist()
        false += bool(find_slices(values, columns, sessions=sessions))
        blind += bool(find_slices(values, columns))
    assert false <= 8
    assert blind >= 20


def test_running_sums_find_the_same_design_effect_as_all_turns_at_once() -> None:
    draw = np.random.default_rng(6)
    for traffic in (Traffic(size=5, alike=0.3, interleaved=True), Traffic(size=5, alike=0.3, sample="fifth")):
        turns = traffic.judged(draw, 2_000)
        sums = OpenSums()
        for value, inclusion, session in zip(turns.values, turns.inclusion, turns.sessions, strict=True):
            sums.add(float(value), float(inclusion), session=int(session))
        whole = weighted_mean(turns.values, turns.inclusion, sessions=turns.sessions)
        found = sums.estimate()
        assert whole is not None and found is not None
        assert sums.design_effect > 1.1
        assert (found.low, found.high) == pytest.approx((whole.low, whole.high), abs=0.003)
        assert OpenSums.resumed(json.loads(json.dumps(sums.state()))).design_effect == pytest.approx(
            sums.design_effect, rel=1e-4
        )


def test_a_summary_counts_turns_of_a_session_together() -> None:
    turns = [
        Evaluation(
            record_id=str(number),
            scores=(Score(metric="m", status="scored", value=float(number // 10 % 4 > 0)),),
            session=f"s{number // 10}",
        )
        for number in range(200)
    ]
    (together,) = Summarizer().add_all(turns).metrics()
    (apart,) = Summarizer().add_all(one.replace(session=None) for one in turns).metrics()
    assert together.estimate is not None and apart.estimate is not None
    assert together.estimate.margin > 2 * apart.estimate.margin
