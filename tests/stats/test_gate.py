"""The sequential gate: its error rates on a simulated judge that wavers, and what it spends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from steelyard.stats import GateTest, fixed_calls, repeats_order

CASES = 100
NOISE = 0.1
RUNS = 400


def judged(good: int) -> float:
    """The mean that a judge finds who is wrong about every tenth verdict."""
    share = good / CASES
    return share * (1 - NOISE) + (1 - share) * NOISE


def simulate(good: int, *, least: float, seed: int, runs: int = RUNS, passes: int = 5) -> tuple[float, float]:
    """The share of runs that fail, and the mean number of calls."""
    rng = np.random.default_rng(seed)
    truth = np.arange(CASES) < good
    failed = calls = 0
    for run in range(runs):
        test = GateTest(least=least, fall=0.05)
        measure(test, lambda case: float(truth[case] != (rng.random() < NOISE)), seed=run, passes=passes)
        failed += test.decision == "fail"
        calls += test.calls
    return failed / runs, calls / runs


def measure(test: GateTest, score: Callable[[int], float], *, seed: int, passes: int) -> None:
    for case in range(CASES):
        test.add(case, score(case))
    for number in range(1, passes):
        for position, case in enumerate(repeats_order(range(CASES), seed=seed, number=number)):
            if position % 8 == 0 and test.decision is not None:
                return
            test.add(case, score(case))


def test_false_failures_stay_below_five_percent() -> None:
    failed, _ = simulate(90, least=judged(90), seed=1)
    assert failed <= 0.05


def test_a_fall_of_five_points_is_found_with_half_the_calls_of_the_fixed_design() -> None:
    least = judged(90)
    failed, calls = simulate(90, least=least + 0.05, seed=2)
    assert failed >= 0.8
    # The usual test of fixed size: that many verdicts, whose standard deviation is that of a coin.
    spread = math.sqrt(least * (1 - least))
    assert calls <= fixed_calls(spread=spread, fall=0.05, power=failed) / 2


def test_a_healthy_application_costs_little_more_than_one_pass() -> None:
    failed, calls = simulate(96, least=judged(90), seed=3)
    assert failed < 0.01
    assert calls < 1.3 * CASES


def test_scores_that_do_not_waver_are_compared_exactly() -> None:
    for mean, expected in ((0.799, "fail"), (0.8, "pass"), (0.801, "pass")):
        test = GateTest(least=0.8, exact=True)
        for case in range(3):
            test.add(case, mean)
        assert test.decision == expected


def test_a_few_equal_scores_decide_nothing_yet() -> None:
    test = GateTest(least=0.8)
    for case in range(3):
        test.add(case, 0.74)
    assert test.decision is None


def test_nothing_is_decided_of_nothing() -> None:
    test = GateTest(least=0.8)
    assert (test.decision, test.mean, test.evidence, test.interval()) == (None, None, 0.0, None)
    test.add("one", 0.9)
    assert test.decision is None


def test_a_baseline_that_was_measured_roughly_decides_less() -> None:
    sure, unsure = GateTest(least=0.8), GateTest(least=0.8, known_variance=0.01)
    rng = np.random.default_rng(4)
    for case in range(CASES):
        for _ in range(3):
            value = float(rng.random() < 0.7)
            sure.add(case, value)
            unsure.add(case, value)
    assert sure.decision == "fail"
    assert unsure.decision is None


@pytest.mark.parametrize("wrong", [{"fall": 0}, {"false_failures": 0}, {"power": 1.0}])
def test_options_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        GateTest(least=0.8, **wrong)


def test_repeats_come_in_the_same_random_order_again() -> None:
    cases = list("abcdefgh")
    one = repeats_order(cases, seed=1, number=1)
    assert one == repeats_order(cases, seed=1, number=1)
    assert sorted(map(str, one)) == cases
    assert one != repeats_order(cases, seed=1, number=2)
