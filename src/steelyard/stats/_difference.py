"""The difference between two groups of turns, or before and since a moment; its interval."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from steelyard.stats._estimate import FEW, Estimate
from steelyard.stats._sample import Sample, sample_of, unit_codes


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
    p_value: float | None = None
    """Of pairs: how likely a difference this far from 0 is by chance alone."""

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
    first_sessions: Sequence[Hashable] | None = None,
    second_sessions: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Difference | None:
    """The difference between two groups of turns; None if one is empty.

    The interval joins those of the two means (`weighted_mean`) by the square-and-add rule (Newcombe,
    Statistics in Medicine 17, 1998, method 10; Zou & Donner, ibid. 27, 2008, eq. 5): it holds at 0 and 1. A
    session with turns in both groups makes their means alike, which is allowed for (Zou & Donner, eq. 7).

    Args:
        first: Values in 0..1.
        second: Those of the other group.
        first_inclusion: The probabilities with which they were picked; 1 if None.
        second_inclusion: Those of the other group.
        first_sessions: The session of each turn (see `weighted_mean`); independent turns if None.
        second_sessions: Those of the other group; a session may be in both.
        level: Nominal coverage.
    """
    one, other = sample_of(first, first_inclusion), sample_of(second, second_inclusion)
    if first_sessions is not None or second_sessions is not None:
        of_first = [None] * len(one) if first_sessions is None else list(first_sessions)
        of_second = [None] * len(other) if second_sessions is None else list(second_sessions)
        codes = unit_codes([*of_first, *of_second])
        one = Sample(values=one.values, weights=one.weights, units=codes[: len(one)])
        other = Sample(values=other.values, weights=other.weights, units=codes[len(one) :])
    return sample_difference(one, other, level=level)


def sample_difference(
    one: Sample, other: Sample, *, level: float = 0.95, floor: float | None = None
) -> Difference | None:
    """The difference between two samples whose units have the same numbers; see `unpaired_difference`."""
    first, second = one.estimate(level=level, floor=floor), other.estimate(level=level, floor=floor)
    if first is None or second is None:
        return None
    return _joined(first, second, _correlation(one, other))


def _correlation(one: Sample, other: Sample) -> float:
    """How far the two means vary together, by the units that have turns in both."""
    if one.units is None or other.units is None:
        return 0.0
    codes, inverse = np.unique(np.concatenate([one.units, other.units]), return_inverse=True)
    sums = [
        np.bincount(places, part.weights * (part.values - part.mean), len(codes))
        for part, places in ((one, inverse[: len(one)]), (other, inverse[len(one) :]))
    ]
    spread = math.sqrt(float(sums[0] @ sums[0]) * float(sums[1] @ sums[1]))
    return float(sums[0] @ sums[1]) / spread if spread > 0 else 0.0


def _joined(one: Estimate, other: Estimate, correlation: float = 0.0) -> Difference:
    value = other.value - one.value
    below = _added(other.value - other.low, one.high - one.value, correlation)
    above = _added(other.high - other.value, one.value - one.low, correlation)
    return Difference(
        first=one.value,
        second=other.value,
        value=value,
        low=max(value - below, -1.0),
        high=min(value + above, 1.0),
        n=min(one.n, other.n),
        level=one.level,
    )


def _added(one: float, other: float, correlation: float) -> float:
    return math.sqrt(max(one * one + other * other - 2 * correlation * one * other, 0.0))
