"""Differences, slices and clusters."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.session_parts import Traffic, adjusted_rand
from steelyard.scores import Evaluation, Score
from steelyard.stats import (
    OpenSums,
    Summarizer,
    cluster,
    find_slices,
    holm,
    name_clusters,
    paired_difference,
    pass_rate,
    unpaired_difference,
    weighted_mean,
)


def test_what_has_no_partner_is_not_paired() -> None:
    with pytest.raises(ValueError, match="1 values cannot be paired with 2"):
        paired_difference([1.0], [1.0, 0.5])


def test_two_pairs_that_differ_alike_are_not_clear() -> None:
    found = paired_difference([1.0, 1.0], [0.5, 0.5])
    assert found is not None
    assert found.value == -0.5
    assert not found.clear


def test_many_pairs_that_differ_are_clear() -> None:
    found = paired_difference([0.9] * 20 + [1.0] * 20, [0.5] * 20 + [0.8] * 20)
    assert found is not None
    assert found.clear and found.high < 0


def test_two_of_fifty_that_fell_may_be_chance() -> None:
    """McNemar's exact test of 2 : 0, as mid-p, gives .25; of 6 : 0 it gives 2^-6."""
    for fallen, p_value in ((2, 0.25), (6, 2**-6)):
        found = paired_difference([1.0] * 50, [0.0] * fallen + [1.0] * (50 - fallen))
        assert found is not None and found.p_value == pytest.approx(p_value)
        assert found.clear == (found.high < 0) == (fallen == 6)


def test_small_graded_noise_has_a_narrow_interval_and_no_change_at_all_a_wide_one() -> None:
    draw = np.random.default_rng(3)
    first = draw.uniform(0.3, 0.7, 20)
    noisy = paired_difference(first.tolist(), (first + draw.normal(0, 0.02, 20)).tolist())
    alike = paired_difference(first.tolist(), first.tolist())
    assert noisy is not None and alike is not None
    assert noisy.high - noisy.low < 1.5 * 2 * 1.96 * 0.02 / math.sqrt(20)
    assert alike.p_value == 1 and alike.high > 0.05, "20 cases do not show that one in 20 never falls"


@given(
    changes=st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.25, 1.0]), min_size=1, max_size=10),
    chances=st.lists(st.sampled_from([0.1, 0.5, 1.0]), min_size=10, max_size=10),
)
def test_the_p_value_counts_all_signs_and_the_interval_agrees(
    changes: list[float], chances: list[float]
) -> None:
    inclusion = chances[: len(changes)]
    weighted = np.array(changes) / inclusion
    sums = np.array([0.0])
    for one in weighted:
        sums = np.concatenate([sums + one, sums - one])
    seen = abs(weighted.sum())
    above, equal = np.mean(sums > seen + 1e-9), np.mean(np.abs(sums - seen) <= 1e-9)
    first = [0.5 - one / 2 for one in changes]
    found = paired_difference(first, [1 - one for one in first], inclusion=inclusion)
    assert found is not None and found.low <= found.value <= found.high
    assert found.p_value == pytest.approx(2 * above + equal, abs=0.02)
    assert found.clear == (found.low > 0 or found.high < 0)


def test_holms_p_values() -> None:
    """Holm 1979: the smallest times their number, the next times one less; never below the one before."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.02, 0.02], [4, 1]) == pytest.approx([0.025, 0.025])
    assert holm([]) == []


@pytest.mark.parametrize("pairs", [2, 5, 10, 40])
def test_equal_variants_are_seldom_told_apart(pairs: int) -> None:
    draw = np.random.default_rng(pairs)
    clear = 0
    for _ in range(400):
        first, second = draw.random(pairs).tolist(), draw.random(pairs).tolist()
        for found in (paired_difference(first, second), unpaired_difference(first, second)):
            assert found is not None
            clear += found.clear
    assert clear / 800 <= 0.07


def test_the_slice_that_is_worse_is_found_and_few_others() -> None:
    draw = np.random.default_rng(1)
    found = false = 0
    for _ in range(60):
        model = draw.integers(0, 8, 800)
        route = draw.integers(0, 4, 800)
        slices = find_slices(
            (draw.random(800) < np.where(model == 3, 0.7, 0.9)).astype(float).tolist(),
            {"model": [f"m{number}" for number in model], "route": [f"/{number}" for number in route]},
        )
        found += any(one.name == "model" and one.value == "m3" for one in slices)
        false += sum(one.name == "route" for one in slices)
    assert found >= 45
    assert false <= 6


def test_in_equal_traffic_no_slice_stands_out() -> None:
    draw = np.random.default_rng(2)
    false = 0
    for _ in range(100):
        names = [f"t{number}" for number in draw.integers(0, 8, 400)]
        false += bool(find_slices((draw.random(400) < 0.95).astype(float).tolist(), {"tag": names}))
    assert false <= 12


def test_slices_are_weighed_by_inclusion() -> None:
    """Within the slice the bad turns were all picked and one in twenty of the good ones: it is not worse."""
    inclusion = [1.0] * 40 + [0.05] * 40 + [1.0] * 400
    values = [0.0] * 40 + [1.0] * 40 + [0.0] * 20 + [1.0] * 380
    names = ["odd"] * 80 + ["even"] * 400
    assert find_slices(values, {"tag": names})
    assert not find_slices(values, {"tag": names}, inclusion=inclusion)


def test_seeded_clusters_are_found_again_whatever_the_order() -> None:
    draw = np.random.default_rng(3)
    centres = draw.normal(size=(5, 32))
    truth = draw.integers(0, 5, 240)
    vectors = centres[truth] + draw.normal(size=(240, 32))
    labels = cluster(vectors)
    assert adjusted_rand(labels.tolist(), truth.tolist()) >= 0.7
    order = draw.permutation(240)
    assert (cluster(vectors[order]) == labels[order]).all()
    sizes = np.bincount(labels)
    assert sizes.tolist() == sorted(sizes.tolist(), reverse=True)


def test_few_or_equal_vectors_are_one_cluster() -> None:
    assert cluster(np.zeros((0, 4))).tolist() == []
    assert cluster(np.ones((6, 4))).tolist() == [0] * 6


def test_clusters_are_named_by_words_of_their_own() -> None:
    texts = [
        "How do I reset my password?",
        "password reset fails",
        "Where is my parcel?",
        "my parcel is late",
    ]
    assert name_clusters(texts, [0, 0, 1, 1]) == ["password, reset, fails", "parcel, late, where"]


def test_agreement_of_clusterings() -> None:
    """The example of Hubert & Arabie's index for (0, 0, 1, 1) and (0, 0, 1, 2): 4 / 7."""
    assert adjusted_rand([0, 0, 1, 1], [0, 0, 1, 2]) == pytest.approx(4 / 7)
    assert adjusted_rand([0, 1, 0, 1], [0, 0, 1, 1]) < 0.1


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


@pytest.mark.parametrize("alike", ["", "session", "user"])
def test_a_summary_says_what_is_said_of_all_turns_at_once(alike: str) -> None:
    """With the sessions and the probabilities of its turns, of values and of those that pass.

    Where users are known turns go by them, however many sessions each has.
    """
    draw = Random(4)
    values = [0.25 + 0.75 * (number // 10 % 4 > 0) for number in range(1_200)]
    inclusion = [draw.choice([0.2, 0.5]) if value < 1 else 1.0 for value in values]
    units = [f"{number // 10}" if alike else None for number in range(1_200)]
    passed = [value > 0.5 for value in values]
    turns: list[Evaluation] = []
    for value, chance, unit in zip(values, inclusion, units, strict=True):
        score = Score(metric="m", status="scored", value=value, passed=value > 0.5)
        score = replace(score, inclusion_probability=chance)
        turn = Evaluation(record_id=str(len(turns)), scores=(score,), session=str(len(turns)))
        turns.append(replace(turn, session=unit) if alike != "user" else replace(turn, user=unit))
    (found,) = Summarizer().add_all(turns).metrics()
    at_once = weighted_mean(values, inclusion, sessions=units if alike else None)
    of_passed = pass_rate(passed, inclusion, sessions=units if alike else None)
    assert (found.scored, found.passed, found.below) == (1_200, sum(passed), 1_200 - sum(passed))
    for one, other in ((found.estimate, at_once), (found.pass_rate, of_passed)):
        assert one is not None and other is not None
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), abs=0.01)


@pytest.mark.parametrize("direction", ["higher", "lower"])
def test_the_worst_turns_of_a_summary_are_worst_as_their_metric_counts(
    direction: Literal["higher", "lower"],
) -> None:
    scores = [Score(metric="m", status="scored", value=n / 9, direction=direction) for n in (4, 9, 0, 7, 2)]
    turns = [Evaluation(record_id=f"r{n}", scores=(score,)) for n, score in enumerate(scores)]
    (found,) = Summarizer(worst=2).add_all(turns).metrics()
    assert [name for name, _ in found.worst] == (["r2", "r4"] if direction == "higher" else ["r1", "r3"])
