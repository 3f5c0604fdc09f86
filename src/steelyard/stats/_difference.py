"""The difference between two groups of turns, paired by question or not, with an interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steelyard.stats._mean import moments
from steelyard.stats._moments import FEW, Estimate, Moments

_PRIOR = 0.25


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """How the mean of a second group differs from that of a first."""

    first: float
    """Mean of the first group."""
    second: float
    """Mean of the second."""
    value: float
    """Second - first."""
    low: float
    """Lower end of the interval of second - first."""
    high: float
    """Upper end."""
    n: int
    """How many pairs, or turns of the smaller group."""
    level: float = 0.95
    """Nominal coverage of the interval."""

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0

    @property
    def few(self) -> bool:
        """Whether it rests on fewer than 30 pairs, or turns of one group."""
        return self.n < FEW


def unpaired_difference(
    first: Sequence[float],
    second: Sequence[float],
    *,
    first_inclusion: Sequence[float] | None = None,
    second_inclusion: Sequence[float] | None = None,
    level: float = 0.95,
) -> Difference | None:
    """The difference between two independent groups; None where one is empty.

    The interval joins those of the two means (`weighted_mean`) by the square-and-add rule (Newcombe,
    Statistics in Medicine 17, 1998, method 10; Zou & Donner, ibid. 27, 2008, eq. 5): it holds at 0 and 1.

    Args:
        first: Values in 0..1.
        second: Those of the other group.
        first_inclusion: The probabilities with which they were picked; 1 where None.
        second_inclusion: Those of the other group.
        level: Nominal coverage.
    """
    return difference_of(moments(first, first_inclusion), moments(second, second_inclusion), level=level)


def difference_of(first: Moments, second: Moments, *, level: float = 0.95) -> Difference | None:
    """The unpaired difference from running sums."""
    one, other = first.estimate(level=level), second.estimate(level=level)
    if one is None or other is None:
        return None
    return _joined(one, other)


def _joined(one: Estimate, other: Estimate) -> Difference:
    value = other.value - one.value
    return Difference(
        first=one.value,
        second=other.value,
        value=value,
        low=max(value - math.hypot(other.value - other.low, one.high - one.value), -1.0),
        high=min(value + math.hypot(other.high - other.value, one.value - one.low), 1.0),
        n=min(one.n, other.n),
        level=one.level,
    )


def paired_difference(
    first: Sequence[float],
    second: Sequence[float],
    *,
    inclusion: Iterable[float] | None = None,
    level: float = 0.95,
) -> Difference | None:
    """The mean of second - first over pairs of the same question; None of no pairs.

    Each difference, moved from -1..1 to 0..1, is treated as `weighted_mean` treats a value, with a quarter of
    a turn's worth of doubt about how much they vary: two pairs that differ alike do not make a clear
    difference.

    Args:
        first: Values in 0..1.
        second: In the order of the first.
        inclusion: The probability with which each pair was picked; 1 where None.
        level: Nominal coverage.
    """
    weights = [1.0] * len(first) if inclusion is None else list(inclusion)
    moved = ((1 + other - one) / 2 for one, other in zip(first, second, strict=True))
    found = moments(moved, weights).estimate(level=level, prior=_PRIOR)
    one, other = moments(first, weights).mean, moments(second, weights).mean
    if found is None or one is None or other is None:
        return None
    return Difference(
        first=one,
        second=other,
        value=other - one,
        low=2 * found.low - 1,
        high=2 * found.high - 1,
        n=found.n,
        level=level,
    )
