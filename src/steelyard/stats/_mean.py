"""The mean of a sample whose members were picked with unequal, known probabilities, and its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from steelyard.stats._quantiles import normal_quantile, t_quantile

_Array = npt.NDArray[np.float64]

FEW = 30
"""Below so many turns a figure is shown with a warning."""

_UNSEEN = -math.log(0.025)
"""Draws expected of a kind of turn of which, with 97.5 % probability, at least one would have been seen."""
_FAR = 5.0
"""How many times the smallest probability seen may be the floor before a kind of turn counts as unseen."""
_UNSEEN_ENDS = 0.4
"""How many zeros or ones of typical weight may be missing by chance.

Chosen by simulation, not derived; tests/stats/test_mean.py measures what it covers. Without it, 200 turns
with one failure in 33 cover .85 where suspicious turns are picked ten times as often, and with it .95.
"""
_PRIOR = 4.0
_LEAST_PRIOR = 0.1
_SHOWN = 20.0
"""So many turns speak for values that vary as zeros and ones do, if all seen are 0 or 1, or at most 20 are.

Found by simulation (tests/stats/test_mean.py): with 1 in place of 4, intervals of rates near 1 cover .83 to
.90 where bad turns are picked more often. Values between 0 and 1 vary less; but a few turns near .9 do not
show that none of the others is near .2: five to ten cover .57 to .80 without this where one in seven is. What
has not been seen counts for less from 20 turns on, as 1 / n^2; smooth scores would else be covered .999.
"""
_TINY = 10.0
"""Below so many turns Wilson's interval of a rate near 0 or 1 covers .86, and is widened by Student's t."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A figure with its interval and what it rests on."""

    value: float
    """The estimate."""
    low: float
    """Lower end of the interval."""
    high: float
    """Upper end."""
    n: int
    """How many turns it rests on."""
    effective_n: float
    """As many equally weighted turns would tell as much (Kish 1965): never more than `n`."""
    level: float = 0.95
    """Nominal coverage of the interval."""

    @property
    def few(self) -> bool:
        """Whether it rests on fewer than 30 turns."""
        return self.n < FEW

    @property
    def margin(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


@dataclass(slots=True)
class Moments:
    """Running sums over values in 0..1, each weighted by 1 / its inclusion probability."""

    n: int = 0
    ends: int = 0
    weight: float = 0.0
    value: float = 0.0
    square: float = 0.0
    square_value: float = 0.0
    square_value_value: float = 0.0
    fourth: float = 0.0
    least: float = 1.0

    def add(self, value: float, inclusion: float = 1.0) -> None:
        """Take a value into account."""
        weight = 1 / inclusion
        self.n += 1
        self.ends += value <= 0 or value >= 1
        self.weight += weight
        self.value += weight * value
        self.square += weight * weight
        self.square_value += weight * weight * value
        self.square_value_value += weight * weight * value * value
        self.fourth += weight**4
        self.least = min(self.least, inclusion)

    def add_all(self, values: _Array, inclusion: _Array) -> None:
        """Take many values into account at once."""
        if not len(values):
            return
        weights = 1 / inclusion
        squares = weights * weights
        self.n += len(values)
        self.ends += int(np.count_nonzero((values <= 0) | (values >= 1)))
        self.weight += float(weights.sum())
        self.value += float(weights @ values)
        self.square += float(squares.sum())
        self.square_value += float(squares @ values)
        self.square_value_value += float(squares @ (values * values))
        self.fourth += float(squares @ squares)
        self.least = min(self.least, float(inclusion.min()))

    def merge(self, other: Moments) -> None:
        """Take the values of other sums into account."""
        self.n += other.n
        self.ends += other.ends
        self.weight += other.weight
        self.value += other.value
        self.square += other.square
        self.square_value += other.square_value
        self.square_value_value += other.square_value_value
        self.fourth += other.fourth
        self.least = min(self.least, other.least)

    @property
    def mean(self) -> float | None:
        """The Hajek mean; None of nothing."""
        return self.value / self.weight if self.n else None

    @property
    def effective_n(self) -> float:
        """Kish's effective sample size (Survey Sampling, 1965): (sum w)^2 / sum w^2."""
        return self.weight * self.weight / self.square if self.n else 0.0

    def estimate(
        self, *, level: float = 0.95, floor: float | None = None, prior: float | None = None
    ) -> Estimate | None:
        """The Hajek mean with its interval; None of nothing. See `weighted_mean`.

        `prior` is how many turns speak for values that vary as zeros and ones do, where not the default.
        """
        if not self.n:
            return None
        mean = min(max(self.value / self.weight, 0.0), 1.0)
        low, high = self._interval(mean, level, prior)
        if floor is not None and self.least > _FAR * floor:
            low, high = _with_unseen(low, high, self.weight, _UNSEEN / floor)
        return Estimate(value=mean, low=low, high=high, n=self.n, effective_n=self.effective_n, level=level)

    def _interval(self, mean: float, level: float, prior: float | None) -> tuple[float, float]:
        ends = self.ends / self.n
        size = self.effective_n
        # Unequal weights widen the interval by themselves.
        unseen = min(_SHOWN / self.n, 1.0) ** 2 * size / self.n if prior is None else prior / _PRIOR
        trials = size / self._variance_ratio(mean, max(_PRIOR * max(ends, unseen), _LEAST_PRIOR))
        # Of equally weighted zeros and ones the variance is known with the mean; the more the values or the
        # weights vary, the more of it is estimated, and the fewer degrees of freedom the quantile has.
        estimated = max(1 - ends * (size / self.n) ** 2, min(2 - size / (_TINY / 2), 1.0))
        tail = (1 + level) / 2
        # A few heavy weights make the variance less certain than the mean: Satterthwaite's degrees,
        # (sum w^2)^2 / sum w^4, are too few, Kish's too many; in simulation their geometric mean covers best.
        freedom = max(math.sqrt(max(size - 1, 1.0) * self.square**2 / self.fourth), 1.0)
        freedom = freedom / estimated if estimated > 1e-6 else math.inf
        return wilson(mean, trials, t_quantile(tail, freedom) if freedom < 1e6 else normal_quantile(tail))

    def _variance_ratio(self, mean: float, prior: float) -> float:
        """How the values vary beside zeros and ones of the same mean; `prior` turns speak for as much."""
        largest = mean * (1 - mean)
        if largest < 1e-12:
            return 1.0
        spread = self.square_value_value - 2 * mean * self.square_value + mean * mean * self.square
        spread = max(spread, 0.0) / largest
        typical = (self.square / self.weight) ** 2
        shrunk = (spread + prior * typical) / (self.square + prior * typical)
        # The rarer a kind of turn, the more a single one that is missing matters; never more than if all
        # values were zeros and ones of any weight.
        unseen = _UNSEEN_ENDS * self.ends / self.n * typical / largest
        return max(shrunk, min((spread + unseen) / self.square, 1.0))


def wilson(mean: float, trials: float, quantile: float) -> tuple[float, float]:
    """Wilson's score interval (JASA 22, 1927) for a rate seen in so many trials, whole or not."""
    squared = quantile * quantile
    scale = 1 + squared / trials
    centre = (mean + squared / (2 * trials)) / scale
    half = quantile / scale * math.sqrt(mean * (1 - mean) / trials + squared / (4 * trials * trials))
    return max(min(centre - half, mean), 0.0), min(max(centre + half, mean), 1.0)


def _with_unseen(low: float, high: float, weight: float, unseen: float) -> tuple[float, float]:
    """The interval if turns of this total weight were missed altogether, and all bad, or all good."""
    return low * weight / (weight + unseen), (high * weight + unseen) / (weight + unseen)


def weighted_mean(
    values: Iterable[float],
    inclusion: Iterable[float] | None = None,
    *,
    level: float = 0.95,
    floor: float | None = None,
) -> Estimate | None:
    """The mean over all turns, estimated from those that were picked, with an interval; None of no values.

    The mean is Hajek's (1971): each value weighs 1 / its inclusion probability. The interval is Wilson's,
    for a sample of the size that would vary as much: Kish's effective size, divided by how the values vary
    beside zeros and ones of the same mean (Korn & Graubard, Survey Methodology 24, 1998, with the linearised
    variance of Sarndal, Swensson & Wretman 1992, chapter 5), by a quantile of Student's t with as many
    degrees of freedom as the variance was estimated with. It holds at 0 and 1, where the normal approximation
    shrinks to a point, and for few values. The variance ratio is shrunk towards 1 by as much as four turns
    would tell, times the share of values that are 0 or 1, or times (20 / n)^2, at most 1, where that is more:
    a few equal values do not show that all are equal.

    As much variance as two fifths of a typical zero or one would add is taken to be missing by chance, up to
    that of zeros and ones: failures that are rare and seldom picked are absent from many samples.

    In simulation (tests/stats/test_mean.py) it covers 93 to 97.6 % on average over shapes from 50 turns on,
    and more of fewer. No interval that is narrower for scores that vary little than for zeros and ones can
    cover every shape: a rare kind of turn may be missing from the sample. Where one turn in twelve scores .2
    and the others .9, 50 turns cover .90. Give `floor` where turns are picked unequally: without it, five
    turns of which only suspicious ones were picked cover .73.

    Args:
        values: Each in 0..1.
        inclusion: The probability with which each was picked, in (0, 1]; 1 for all where None.
        level: Nominal coverage.
        floor: The lowest probability with which any turn could have been picked. Where no turn of this kind
            is in the sample, the interval is widened by what such turns could hide: as many as would have
            stayed unseen with a probability of 2.5 %.

    >>> estimate = weighted_mean([1.0] * 20)
    >>> round(estimate.low, 3), estimate.high
    (0.839, 1.0)
    """
    return moments(values, inclusion).estimate(level=level, floor=floor)


def pass_rate(
    passed: Iterable[bool],
    inclusion: Iterable[float] | None = None,
    *,
    level: float = 0.95,
    floor: float | None = None,
) -> Estimate | None:
    """The share of all turns that pass, from those that were picked, with an interval; see `weighted_mean`.

    With equal probabilities it is Wilson's interval.
    """
    return weighted_mean(map(float, passed), inclusion, level=level, floor=floor)


def moments(values: Iterable[float], inclusion: Iterable[float] | None = None) -> Moments:
    """The sums that an estimate needs."""
    sums = Moments()
    if inclusion is None:
        for value in values:
            sums.add(value)
    else:
        for value, probability in zip(values, inclusion, strict=True):
            sums.add(value, probability)
    return sums


def turns_needed(margin: float, *, mean: float = 0.9, level: float = 0.95, design_effect: float = 1.0) -> int:
    """How many turns to judge for an interval of a given half-width around a rate.

    The smallest n whose Wilson interval has at most this half-width; zeros and ones vary most, so that values
    in between need fewer.

    Args:
        margin: The half-width wanted.
        mean: The rate expected.
        level: Nominal coverage.
        design_effect: n / effective n, above 1 where turns are picked with unequal probabilities.

    >>> turns_needed(0.05, mean=0.9)
    141
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
    low, high = wilson(mean, trials, quantile)
    return (high - low) / 2
