"""The sequential gate: its error rates on a simulated judge that wavers, and what it spends."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from steelyard.errors import ConfigurationError
from steelyard.golden import Gate
from steelyard.stats import GateTest, plan_gate, repeats_order

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
    quantiles = NormalDist().inv_cdf(0.95) + NormalDist().inv_cdf(failed)
    assert calls <= (quantiles / 0.05) ** 2 * least * (1 - least) / 2


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


@pytest.mark.parametrize("apart", [0.0, 0.001])
def test_a_few_equal_scores_decide_nothing_yet(apart: float) -> None:
    test = GateTest(least=0.8)
    for case in range(3):
        test.add(case, 0.74 + case * apart)
    assert test.decision is None


def test_the_error_of_a_weighted_mean_is_that_of_its_few_repeats() -> None:
    test = GateTest(least=0.5, weights={"a": 2.0})
    for case, values in {"a": (0.4, 0.6), "b": (0.4, 0.8), "c": (0.4, 0.4)}.items():
        for value in values:
            test.add(case, value)
    squared_weights = 1 / 4 + 1 / 16 + 1 / 16
    # Of the cases' means .5, .6 and .4 by weight; it counts as twelve repeats beside the three of the cases.
    between = (0.1**2 / 16 + 0.1**2 / 16) / squared_weights * 3 / 2
    # The variance is itself estimated, with five degrees of freedom.
    noise = (0.02 + 0.08 + 12 * between) / (3 + 12) * 5 / (5 - 2)
    assert test.standard_error == pytest.approx((noise * squared_weights / 2) ** 0.5)


def test_a_mean_below_the_bar_by_rounding_alone_passes() -> None:
    values = (0.9, 0.9, 0.9, 0.5, 0.8)
    assert sum(value - 0.8 for value in values) < 0
    test = GateTest(least=0.8, exact=True)
    for case, value in enumerate(values):
        test.add(case, value)
    assert test.decision == "pass"


def test_nothing_is_decided_of_nothing() -> None:
    test = GateTest(least=0.8)
    assert (test.decision, test.mean, test.evidence, test.interval()) == (None, None, 0.0, None)
    test.add("one", 0.9)
    assert test.decision is None


def test_a_baseline_that_was_measured_roughly_decides_less() -> None:
    rng = np.random.default_rng(4)
    earlier = {case: [float(rng.random() < 0.8)] for case in range(CASES)}
    sure, unsure = GateTest(least=0.8), GateTest(earlier=earlier)
    for case in range(CASES):
        for _ in range(3):
            value = float(rng.random() < 0.7)
            sure.add(case, value)
            unsure.add(case, value)
    assert sure.decision == "fail"
    assert unsure.decision is None


@pytest.mark.parametrize(
    "wrong",
    [{"fall": 0}, {"false_failures": 0}, {"false_failures": 0.5}, {"power": 1.0}, {"power": 0.49}],
)
@pytest.mark.parametrize("made", [partial(GateTest, least=0.8), partial(Gate, metric="m")])
def test_options_out_of_range_are_refused(made: Callable[..., object], wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, ConfigurationError), match="must be"):
        made(**wrong)
    made(fall=1e-6, false_failures=0.49, power=0.5)


def test_repeats_come_in_the_same_random_order_again() -> None:
    cases = list("abcdefgh")
    one = repeats_order(cases, seed=1, number=1)
    assert one == repeats_order(cases, seed=1, number=1)
    assert sorted(map(str, one)) == cases
    assert one != repeats_order(cases, seed=1, number=2)


def test_of_paired_zeros_and_ones_the_one_look_is_mcnemars() -> None:
    for fallen, expected in ((4, "fail"), (3, None)):  # one-sided mid-p of 4 : 0 is 1 / 32, of 3 : 0 1 / 16
        test = GateTest(earlier={case: [1.0] for case in range(30)}, once=True)
        for case in range(30):
            test.add(case, float(case >= fallen))
        assert test.decision == expected


def test_too_few_cases_decide_nothing_at_once() -> None:
    for cases, expected in ((4, None), (5, "pass")):
        test = GateTest(earlier={case: [0.8 + case / 1000] for case in range(cases)}, once=True)
        for case in range(cases):
            test.add(case, 0.8)
        assert test.decision == expected
    assert plan_gate(4, noise=0.1, earlier=1).undecided == 1


def test_a_few_heavy_cases_tell_little_of_the_noise() -> None:
    """Of applications that fell by .05, .15 passed when each case counted as one that tells of it."""
    rng, passed = np.random.default_rng(5), 0
    weights = dict.fromkeys((0, 1), 10.0)
    for _ in range(200):
        before, now = rng.normal(0.8, 0.1, (2, 20))
        test = GateTest(
            earlier={case: [value] for case, value in enumerate(before)}, once=True, weights=weights
        )
        for case, value in enumerate(now):
            test.add(case, value - 0.05)
        passed += test.decision == "pass"
    assert passed <= 200 * 0.1


def test_a_case_that_weighs_more_counts_more() -> None:
    test = GateTest(least=0.5, weights={"heavy": 9.0}, exact=True)
    test.add("heavy", 0.4)
    test.add("light", 1.0)
    assert test.mean == pytest.approx(0.46) and test.decision == "fail"


@pytest.mark.parametrize("passes", [1, 5])
def test_a_plan_finds_what_it_says(passes: int) -> None:
    plan = plan_gate(50, noise=0.3, fall=0.1, passes=passes, earlier=passes)
    again = plan_gate(plan.cases_needed or 0, noise=0.3, fall=0.1, passes=passes, earlier=passes)
    assert again.found == pytest.approx(0.9, abs=0.02)
    assert plan.false_failures <= 0.0501 and plan.missed <= 0.1001
    assert plan.finds is not None and plan.finds >= 0.1 >= (again.finds or 1) - 0.002
    assert plan.found + plan.missed + plan.undecided == pytest.approx(1)


@pytest.mark.parametrize("passes", [1, 4])
def test_every_number_of_a_plan_counts(passes: int) -> None:
    usual: dict[str, Any] = {"cases": 50, "noise": 0.3, "fall": 0.1, "earlier": 1, "passes": passes}
    base = plan_gate(**usual)
    for name, easier in {
        "cases": 60,
        "noise": 0.25,
        "fall": 0.12,
        "earlier": 2,
        "false_failures": 0.1,
    }.items():
        assert plan_gate(**{**usual, name: easier}).found > base.found, name
    if passes > 1:  # one look more than one costs evidence
        assert plan_gate(**{**usual, "passes": passes + 2}).found > base.found
    sure = plan_gate(**usual, power=0.95)
    assert sure.missed < base.missed and (sure.cases_needed or 0) > (base.cases_needed or 0)
    known = plan_gate(**{**usual, "earlier": None})
    assert known.found > plan_gate(**{**usual, "earlier": 20}).found


@pytest.mark.parametrize("passes", [1, 4])
def test_without_noise_a_plan_finds_every_fall(passes: int) -> None:
    plan = plan_gate(50, noise=0.0, fall=0.01, passes=passes)
    assert (plan.found, plan.missed, plan.false_failures, plan.undecided_unchanged) == (1, 0, 0, 0)
    assert (plan.finds, plan.cases_needed) == (0.001, GateTest.fewest if passes == 1 else 1)


def test_a_plan_of_impossible_numbers_is_refused() -> None:
    least: dict[str, Any] = {"cases": 1, "noise": 0.0, "fall": 0.001, "passes": 1, "earlier": 1}
    assert plan_gate(**least).undecided == 1
    for name, wrong in {"cases": 0, "noise": -0.01, "fall": 0.0, "passes": 0, "earlier": 0}.items():
        with pytest.raises(ValueError, match=r"must be at least 1.*fall above 0"):
            plan_gate(**{**least, name: wrong})


def test_a_plan_agrees_with_the_gate() -> None:
    rng = np.random.default_rng(8)
    plan = plan_gate(40, noise=0.2, fall=0.1, earlier=1)
    found = 0
    for _ in range(200):
        before, now = 0.7 + rng.normal(0, 0.2, (2, 40))
        test = GateTest(earlier={case: [value] for case, value in enumerate(before)}, fall=0.1, once=True)
        for case, value in enumerate(now):
            test.add(case, value - 0.1)
        found += test.decision == "fail"
    assert found / 200 == pytest.approx(plan.found, abs=0.1)


def test_kept_runs_that_never_wavered_do_not_show_that_nothing_can() -> None:
    """A fall of .05 is one case of 20: it stays unseen in a third of runs, and in 1 of 20 of 60 cases."""
    for cases, decision in ((20, None), (60, "pass")):
        test = GateTest(fall=0.05, earlier={case: [1.0] * 3 for case in range(cases)}, once=True)
        for case in range(cases):
            test.add(case, 1.0)
        assert test.decision == decision


def test_a_fall_would_bring_more_noise_and_is_ruled_out_with_that() -> None:
    """Of 100 cases 33 waver, right four times in five: a fall of .05 would make that more."""
    fixed = {f"fixed {place}": [float(place < 63)] * 5 for place in range(67)}
    wavering = {f"wavers {place}": [1.0, 1.0, 1.0, 1.0, 0.0] for place in range(33)}
    test = GateTest(fall=0.05, earlier={**fixed, **wavering})
    decided = []
    for again in range(3):
        for name, values in fixed.items():
            test.add(name, values[0])
        for place, name in enumerate(wavering):
            test.add(name, float((place + again) % 5 > 0))
        decided.append(test.decision)
    assert decided == [None, None, "pass"]
