"""Running sums over a sample whose members were picked with unequal, known probabilities; its interval."""

from __future__ import annotations

import math
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
_LEAST_PRIOR = 0.1  # so that scores without any spread still have an interval
_SHOWN = 12.0
"""So many turns speak for values that vary as zeros and ones do, if all seen are 0 or 1, or at most 12 are.

Found by simulation (tests/stats/test_mean.py): with 1 in place of 4, intervals of rates near 1 cover .83 to
.90 where bad turns are picked more often. Values between 0 and 1 vary less; but a few turns near .9 do not
show that none of the others is near .2: five to ten cover .57 to .80 without this where one in seven is. What
has not been seen counts for less from 12 turns on, as 1 / n^2; smooth scores would else be covered .999.
"""
_POINT = 1e-12
"""A mean this near 0 or 1 leaves no room for other values."""
_TINY = 10.0
"""Below so many turns Wilson's interval of a rate near 0 or 1 covers .86, and is widened by Student's t."""
_KISH = 2 / 3
"""Of two counts of degrees of freedom, one too many and one too few: the exponent of the first in their mean.

Found by simulation; at 1/2, 50 turns with probabilities from .01 to 1 cover .978 on average, and here .974.
"""


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
    value_value: float = 0.0
    value_value_value: float = 0.0
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
        self.value_value += weight * value * value
        self.value_value_value += weight * value * value * value
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
        weighted = weights * values
        self.n += len(values)
        self.ends += int(np.count_nonzero((values <= 0) | (values >= 1)))
        self.weight += float(weights.sum())
        self.value += float(weighted.sum())
        self.value_value += float(weighted @ values)
        self.value_value_value += float(weighted @ (values * values))
        self.square += float(squares.sum())
        self.square_value += float(squares @ values)
        self.square_value_value += float(squares @ (values * values))
        self.fourth += float(squares @ squares)
        self.least = min(self.least, float(inclusion.min()))

    def merge(self, other: Moments) -> None:
        """Take the values of other sums into account."""
        least = min(self.least, other.least)
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.least = least

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
        doubt = max(_PRIOR * max(ends, unseen), _LEAST_PRIOR)
        # Of equally weighted zeros and ones the variance is known with the mean; the more the values or the
        # weights vary, the more of it is estimated, and the fewer degrees of freedom the quantile has.
        estimated = max(1 - ends * (size / self.n) ** 2, min(2 - size / (_TINY / 2), 1.0))
        tail = (1 + level) / 2
        # A few heavy weights make the variance less certain than the mean: Satterthwaite's degrees,
        # (sum w^2)^2 / sum w^4, are too few, Kish's too many; in simulation a mean of the two covers best.
        freedom = max(size - 1, 1.0) ** _KISH * (self.square**2 / self.fourth) ** (1 - _KISH)
        freedom = max(freedom, 1.0) / estimated if estimated > 1e-6 else math.inf
        quantile = t_quantile(tail, freedom) if freedom < 1e6 else normal_quantile(tail)
        ratio = self._variance_ratio(mean, doubt)
        # Of differences, nothing says that those unseen would be as large as can be.
        slope = self._slope(mean, doubt, ratio, quantile, unseen=1.0 if prior is None else 0.0)
        return score_interval(
            mean, size, quantile, variance=mean * (1 - mean) * ratio, slope=slope, bend=ratio
        )

    def _variance_ratio(self, mean: float, doubt: float) -> float:
        """How the values vary beside zeros and ones of the same mean; `doubt` turns speak for as much."""
        largest = mean * (1 - mean)
        if largest < _POINT:
            return 1.0
        spread = self.square_value_value - 2 * mean * self.square_value + mean * mean * self.square
        spread = max(spread, 0.0) / largest
        typical = (self.square / self.weight) ** 2
        shrunk = (spread + doubt * typical) / (self.square + doubt * typical)
        # The rarer a kind of turn, the more a single one that is missing matters; never more than if all
        # values were zeros and ones of any weight.
        unseen = _UNSEEN_ENDS * self.ends / self.n * typical / largest
        return max(shrunk, min((spread + unseen) / self.square, 1.0))

    def _slope(self, mean: float, doubt: float, ratio: float, quantile: float, *, unseen: float) -> float:
        """By how much the variance grows with the mean: third moment / variance, if only two values occur.

        Most turns near .9 and a few near .2 vary more if the mean is lower, and by more than zeros and ones
        of the same variance would.
        """
        plain = (1 - 2 * mean) * ratio
        largest = mean * (1 - mean)
        if largest < _POINT:
            return plain
        second = self.value_value / self.weight - mean * mean
        third = self.value_value_value / self.weight - mean * (3 * self.value_value / self.weight)
        third += 2 * mean**3
        share = doubt * self.square / self.weight**2
        found = (third + unseen * share * largest * (1 - 2 * mean)) / (max(second, 0.0) + share * largest)
        # As much of it as makes the interval right to the second order (Johnson, JASA 73, 1978; Cai, Journal
        # of Statistical Planning and Inference 131, 2005); what has been measured lies in -mean..1 - mean.
        found *= (1 + 2 * quantile**2) / (3 * quantile**2)
        found = min(max(found, -mean), 1 - mean)
        return found if abs(found) > abs(plain) else plain


def score_interval(
    mean: float, trials: float, quantile: float, *, variance: float, slope: float, bend: float
) -> tuple[float, float]:
    """Every mean m from which the one seen is at most `quantile` standard errors away.

    The variance of a value is taken to be `variance` + `slope` (m - mean) - `bend` (m - mean)^2. Zeros and
    ones have (1 - 2 mean) as their slope and a bend of 1, which gives Wilson's interval.
    """
    squared = quantile * quantile / trials
    scale = 1 + bend * squared
    centre = mean + slope * squared / (2 * scale)
    half = math.sqrt(squared * (variance / scale + squared * (slope / (2 * scale)) ** 2))
    return max(min(centre - half, mean), 0.0), min(max(centre + half, mean), 1.0)


def wilson(mean: float, trials: float, quantile: float) -> tuple[float, float]:
    """Wilson's score interval (JASA 22, 1927) for a rate seen in so many trials, whole or not."""
    return score_interval(mean, trials, quantile, variance=mean * (1 - mean), slope=1 - 2 * mean, bend=1.0)


def _with_unseen(low: float, high: float, weight: float, unseen: float) -> tuple[float, float]:
    """The interval if turns of this total weight were missed altogether, and all bad, or all good."""
    return low * weight / (weight + unseen), (high * weight + unseen) / (weight + unseen)
