"""Means of unequal samples: closed forms, and how often the interval covers the truth."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from steelyard.stats import pass_rate, turns_needed, unpaired_difference, weighted_mean

Array = npt.NDArray[np.float64]
Population = Callable[[np.random.Generator, int], Array]
Design = Callable[[np.random.Generator, Array], Array]


def test_a_mean_weighs_each_value_by_one_over_its_probability() -> None:
    found = weighted_mean([0.0] * 10 + [1.0] * 10, [1.0] * 10 + [0.1] * 10)
    assert found is not None
    assert found.value == pytest.approx(100 / 110)
    assert found.effective_n == pytest.approx(110**2 / (10 + 10 * 100))


def wilson(mean: float, turns: int) -> tuple[float, float]:
    """Wilson 1927, in closed form."""
    z = 1.959964
    centre = (mean + z * z / (2 * turns)) / (1 + z * z / turns)
    half = z / (1 + z * z / turns) * math.sqrt(mean * (1 - mean) / turns + z * z / (4 * turns * turns))
    return centre - half, centre + half


@pytest.mark.parametrize(("passed", "turns"), [(0, 10), (9, 10), (20, 20), (81, 263)])
def test_a_pass_rate_of_equal_turns_is_wilsons_from_half_a_correction_away(passed: int, turns: int) -> None:
    found = pass_rate([True] * passed + [False] * (turns - passed))
    assert found is not None
    step = 1 / (4 * turns) if 0 < passed < turns else 0.0
    low, high = wilson(passed / turns - step, turns)[0], wilson(passed / turns + step, turns)[1]
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)
    if turns == 263:
        # Newcombe 1998 (Stat. in Medicine 17, p. 857): .2553 to .3662, and .2535 to .3682 with all of it.
        assert 0.2535 < found.low < 0.2553 and 0.3662 < found.high < 0.3682


@pytest.mark.parametrize("turns", [20, 50, 100, 200])
def test_no_rate_is_covered_much_less_than_promised(turns: int) -> None:
    """Exactly, by the binomial distribution: Wilson's interval covers .917 at 20 turns and .927 at 100."""
    found = [pass_rate([place < passed for place in range(turns)]) for passed in range(turns + 1)]
    for rate in np.linspace(0.5, 0.97, 95).tolist():
        covered = sum(
            math.comb(turns, passed) * rate**passed * (1 - rate) ** (turns - passed)
            for passed, one in enumerate(found)
            if one is not None and one.low <= rate <= one.high
        )
        assert 0.93 < covered < 0.99


def test_the_difference_of_two_rates_is_between_newcombes_two() -> None:
    """56 of 70 against 48 of 80: Newcombe 1998, .0524 to .3339 without correction, .0428 to .3422 with it."""
    found = unpaired_difference([1.0] * 48 + [0.0] * 32, [1.0] * 56 + [0.0] * 14)
    assert found is not None
    assert 0.0428 < found.low < 0.0524 and 0.3339 < found.high < 0.3422


def test_of_nothing_there_is_no_mean() -> None:
    assert weighted_mean([]) is None
    assert unpaired_difference([], [1.0]) is None


def test_sessions_of_one_group_alone_are_allowed_for() -> None:
    one, other = [1.0, 1.0, 0.0, 0.0] * 5, [1.0, 0.0] * 10
    sessions = [number // 2 for number in range(20)]
    plain = unpaired_difference(one, other)
    first = unpaired_difference(one, other, first_sessions=sessions)
    second = unpaired_difference(other, one, second_sessions=sessions)
    assert plain and first and second
    assert first.high - first.low > plain.high - plain.low
    assert (first.low, first.high) == pytest.approx((-second.high, -second.low))


def test_equal_values_do_not_shrink_the_interval_to_a_point() -> None:
    for value in (0.0, 0.85, 1.0):
        found = weighted_mean([value] * 12)
        assert found is not None
        assert found.margin > 0.02


def test_turns_that_could_not_be_seen_widen_the_interval() -> None:
    """Ten suspicious turns picked for certain say little where one in a hundred of the others is picked."""
    blind, told = weighted_mean([0.0] * 10), weighted_mean([0.0] * 10, floor=0.01)
    assert blind is not None and told is not None
    assert blind.high < 0.35
    assert told.high > 0.9


def test_turns_needed_give_the_margin_and_one_fewer_does_not() -> None:
    for mean, margin in [(0.5, 0.1), (0.9, 0.05), (0.97, 0.02)]:
        enough = turns_needed(margin, mean=mean)
        widths = []
        for turns in (enough, enough - 1):
            step = 1 / (4 * turns)
            widths.append((wilson(mean + step, turns)[1] - wilson(mean - step, turns)[0]) / 2)
        assert widths[0] <= margin < widths[1]


def bernoulli(rate: float) -> Population:
    return lambda draw, count: (draw.random(count) < rate).astype(float)


def claims(draw: np.random.Generator, count: int) -> Array:
    """Shares of four claims, mostly all of them."""
    return draw.binomial(4, draw.beta(5, 0.6, count), count) / 4


def suspicious(draw: np.random.Generator, values: Array) -> Array:
    """Low values are mostly noticed and then always picked; else one in ten."""
    noticed = draw.random(len(values)) < np.where(values < 0.5, 0.6, 0.05)
    return np.where(noticed, 1.0, 0.1)


def spread(draw: np.random.Generator, values: Array) -> Array:
    """From .01 to 1, uniform on a logarithmic scale."""
    return np.asarray(10 ** (-2 * draw.random(len(values))))


POPULATIONS: dict[str, Population] = {
    "half": bernoulli(0.5),
    "nine tenths": bernoulli(0.9),
    "rare failures": bernoulli(0.97),
    "claims": claims,
    "smooth": lambda draw, count: draw.beta(8, 2, count),
}


def kinds(share: float) -> Population:
    """Most score about .9, some about .2, and none 0 or 1: few turns may show only one kind."""

    def make(draw: np.random.Generator, count: int) -> Array:
        low = draw.random(count) < share
        return np.clip(draw.normal(np.where(low, 0.2, 0.9), 0.03), 0.001, 0.999)

    return make


two_kinds = kinds(1 / 7)


DESIGNS: dict[str, Design] = {
    "equal": lambda draw, values: np.ones_like(values),
    "suspicious": suspicious,
    "spread": spread,
}


FLOORS = {"equal": None, "suspicious": 0.1, "spread": 0.01}


def coverage(population: Population, design: str, turns: int, rounds: int) -> float:
    draw = np.random.default_rng(turns)
    values, inclusion = np.empty(0), np.empty(0)
    while len(values) < turns * rounds:
        more = population(draw, 200_000)
        probability = DESIGNS[design](draw, more)
        picked = draw.random(len(more)) < probability
        values = np.concatenate([values, more[picked]])
        inclusion = np.concatenate([inclusion, probability[picked]])
    truth = float(population(draw, 2_000_000).mean())
    covered = 0
    for start in range(0, turns * rounds, turns):
        part = slice(start, start + turns)
        found = weighted_mean(values[part].tolist(), inclusion[part].tolist(), floor=FLOORS[design])
        assert found is not None
        covered += found.low <= truth <= found.high
    return covered / rounds


@pytest.mark.parametrize("turns", [20, 100])
@pytest.mark.parametrize("design", DESIGNS)
def test_intervals_cover_the_truth_about_as_often_as_they_say(design: str, turns: int) -> None:
    """The mean over populations: of a rate, any interval's coverage jumps from one n to the next."""
    found = [coverage(make, design, turns, 250) for make in POPULATIONS.values()]
    assert 0.93 <= float(np.mean(found)) <= (1 if turns <= 20 else 0.99)
    assert min(found) > 0.89


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("turns", [5, 10, 20])
def test_a_few_turns_leave_room_for_a_kind_of_turn_that_they_do_not_show(design: str, turns: int) -> None:
    assert coverage(two_kinds, design, turns, 300) >= 0.93


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("turns", [50, 200])
@pytest.mark.parametrize("share", [1 / 7, 1 / 12])
def test_a_lopsided_distribution_does_not_break_the_interval(design: str, turns: int, share: float) -> None:
    """Before the interval allowed for the third moment, it covered .86 to .89 of these."""
    assert coverage(kinds(share), design, turns, 300) >= 0.925


@pytest.mark.parametrize("rate", [0.9, 0.97])
def test_five_turns_do_not_claim_more_than_they_know_of_a_rate(rate: float) -> None:
    assert coverage(bernoulli(rate), "equal", 5, 600) >= 0.95


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("turns", [5, 10, 20, 50, 100, 200])
@pytest.mark.parametrize("design", DESIGNS)
def test_intervals_cover_the_truth_in_many_rounds(design: str, turns: int) -> None:
    found = [coverage(make, design, turns, 2_000) for make in POPULATIONS.values()]
    # A few heavy weights leave few degrees of freedom: Satterthwaite's are on the safe side.
    most = 1.0 if turns <= 20 else 0.99 if design == "spread" else 0.98
    assert 0.93 <= float(np.mean(found)) <= most
    assert min(found) > 0.91


def test_one_kind_of_failure_that_is_rare_and_seldom_picked_does_not_break_the_interval() -> None:
    """One failure in 33; of those that do not look suspicious one in ten is picked."""
    assert coverage(POPULATIONS["rare failures"], "suspicious", 200, 600) > 0.92


def test_turns_without_a_session_are_each_of_their_own_whatever_stands_for_none() -> None:
    values = [float(number // 5 % 3 > 0) for number in range(60)]
    assert weighted_mean(values, sessions=[""] * 60) == weighted_mean(values, sessions=[None] * 60)
