"""The mean of a sample whose members were picked with unequal, known probabilities, and its interval."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

from steelyard.stats._estimate import Estimate, rate_interval
from steelyard.stats._quantiles import normal_quantile
from steelyard.stats._sample import sample_of


def weighted_mean(
    values: Iterable[float],
    inclusion: Iterable[float] | None = None,
    *,
    sessions: Iterable[Hashable] | None = None,
    level: float = 0.95,
    floor: float | None = None,
) -> Estimate | None:
    """The mean over all turns, estimated from those that were picked, with an interval; None of no values.

    The mean is Hajek's (1971): each value weighs 1 / its inclusion probability. The interval is Wilson's
    for as many zeros and ones as would vary as much (Korn & Graubard, Survey Methodology 24, 1998), so
    that it holds near 0 and 1, with half of the continuity correction (Newcombe, Statistics in Medicine
    17, 1998, method 4) for zeros and ones of equal weight. Its variance is the linearised one (Sarndal,
    Swensson & Wretman 1992, chapter 5), with sessions as the units that vary: turns of a session may
    resemble each other, sessions are independent. It is corrected for few sessions, and the quantile is
    Student's with Satterthwaite's degrees of freedom (Bell & McCaffrey, Survey Methodology 28, 2002),
    fewer if few sessions are far off (Box, Biometrika 40, 1953). One session tells nothing of how much
    sessions differ: turns of a session are taken to be alike by .03 (intraclass correlation) with one
    degree of freedom, which counts for the less, the more sessions there are (Smyth 2004). If values of
    one kind are rare, the interval leans to the longer side by as much as makes it right to the second
    order (Johnson, JASA 73, 1978).

    `benchmarks/sessions.py` measures what it covers; docs/check/measured.md has the table.

    Args:
        values: Each in 0..1.
        inclusion: The probability with which each was picked, in (0, 1]; 1 for all if None.
        sessions: The session of each turn, or its user if users come back: anything that can be a key. A turn
            of its own is None or empty. If None, all turns are taken to be independent.
        level: Nominal coverage.
        floor: The lowest probability with which any turn could have been picked. If no turn of this kind
            is in the sample, the interval is widened by what such turns could hide: as many as would have
            stayed unseen with a probability of 2.5 %.

    Raises:
        ValueError: If the arguments are not of one length.

    >>> estimate = weighted_mean([1.0] * 20)
    >>> round(estimate.low, 3), estimate.high
    (0.839, 1.0)
    >>> round(weighted_mean([1.0] * 20, sessions=["a", "b", "c", "d"] * 5).low, 3)
    0.698
    """
    return sample_of(values, inclusion, sessions).estimate(level=level, floor=floor)


def pass_rate(
    passed: Iterable[bool],
    inclusion: Iterable[float] | None = None,
    *,
    sessions: Iterable[Hashable] | None = None,
    level: float = 0.95,
    floor: float | None = None,
) -> Estimate | None:
    """The share of all turns that pass, from those that were picked, with an interval; see `weighted_mean`.

    With equal probabilities and independent turns it is Wilson's interval, corrected for steps of 1 / n.
    """
    return weighted_mean(map(float, passed), inclusion, sessions=sessions, level=level, floor=floor)


def turns_needed(margin: float, *, mean: float = 0.9, level: float = 0.95, design_effect: float = 1.0) -> int:
    """How many turns to judge for an interval of a given half-width around a rate.

    The smallest n whose interval (`pass_rate`) has at most this half-width; zeros and ones vary most, so that
    values in between need fewer.

    Args:
        margin: The half-width wanted.
        mean: The rate expected.
        level: Nominal coverage.
        design_effect: n / effective n, above 1 where turns are picked with unequal probabilities.

    >>> turns_needed(0.05, mean=0.9)
    151
    """
    quantile = normal_quantile((1 + level) / 2)
    low, high = 1, 2
    while _half(mean, high, quantile) > margin:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _half(mean, middle, quantile) <= margin else (middle + 1, high)
    return math.ceil(low * design_effect)


def _half(mean: float, trials: int, quantile: float) -> float:
    low, high = rate_interval(mean, trials, quantile)
    return (high - low) / 2
