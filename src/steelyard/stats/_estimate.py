"""A figure with its interval, and the interval of a weighted mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

_NORMAL = NormalDist()


def normal_quantile(probability: float) -> float:
    """The value below which a standard normal lies with this probability."""
    return _NORMAL.inv_cdf(probability)


def normal_cdf(value: float) -> float:
    """The probability that a standard normal is at most this."""
    return _NORMAL.cdf(value)


def two_sided_p(z: float) -> float:
    """The probability that a standard normal is at least this far from 0."""
    return math.erfc(abs(z) / math.sqrt(2))


def t_two_sided_p(t: float, freedom: float) -> float:
    """The probability that Student's t is at least this far from 0; to a few percent of itself.

    Source: Wallace, Annals of Mathematical Statistics 30, 1959, as improved by Hill 1970 (eq. 1).
    """
    spread = freedom - 0.5
    if spread <= 0 or not math.isfinite(t):
        return 1.0 if math.isfinite(t) else 0.0
    c = 48 * spread * spread
    z = math.sqrt(spread * math.log1p(t * t / freedom))
    z += (z**3 + 3 * z) / c
    return two_sided_p(z)


def t_quantile(probability: float, freedom: float) -> float:
    """The upper quantile of Student's t; exact to a thousandth from two degrees of freedom on.

    Source: closed forms at 1 and 2 degrees; else Hill, Algorithm 396, Communications of the ACM 13, 1970.
    """
    two_sided = 2 * (1 - probability)
    if freedom > 1e6:
        return normal_quantile(probability)
    if freedom <= 1:
        return 1 / math.tan(two_sided * math.pi / 2)
    if freedom < 2:
        # Hill's series is poor here; 1/freedom runs smoothly between the two closed forms.
        share = (1 / freedom - 0.5) * 2
        ends = math.log(t_quantile(probability, 1.0)), math.log(t_quantile(probability, 2.0))
        return math.exp(share * ends[0] + (1 - share) * ends[1])
    if freedom == 2:
        return math.sqrt(2 / (two_sided * (2 - two_sided)) - 2)
    return _hill(two_sided, freedom)


def _hill(two_sided: float, n: float) -> float:
    a = 1 / (n - 0.5)
    b = 48 / (a * a)
    c = ((20700 * a / b - 98) * a - 16) * a + 96.36
    d = ((94.5 / (b + c) - 3) / b + 1) * math.sqrt(a * math.pi / 2) * n
    y = (d * two_sided) ** (2 / n)
    if y > 0.05 + a:
        x = normal_quantile(two_sided / 2)
        y = x * x
        if n < 5:
            c += 0.3 * (n - 4.5) * (x + 0.6)
        c += (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b
        y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x
        y = math.expm1(a * y * y)
    else:
        y = ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1) * (
            n + 1
        ) / (n + 2) + 1 / y
    return math.sqrt(n * y)


FEW = 30
"""Below so many turns a figure is shown with a warning."""
ICC = 0.03
"""How alike turns of one session are taken to be (intraclass correlation) before any session has told it."""
_PRIOR_FREEDOM = 1.0
"""As many degrees of freedom as speak for `ICC`: two sessions hardly tell how much sessions differ."""
_UNSHOWN = 12.0
"""So few turns near .9 do not show that none of the others is near .2."""
_UNSEEN = -math.log(0.025)
"""Draws expected of a kind of turn of which, with 97.5 % probability, at least one would have been seen."""
_FAR = 5.0
"""How many times the smallest probability seen may be the floor before a kind of turn counts as unseen."""
_STEP = 0.25
"""Half of the continuity correction (Yates 1934; Newcombe, Statistics in Medicine 17, 1998, method 4).

The mean of n zeros and ones moves in steps of 1 / n. Without a correction, coverage falls short for some
rates (to .917 at 20 turns, .927 at 100); all of it covers too much. Half of it comes near mid-p intervals.
"""
_POINT = 1e-12
"""A mean this near 0 or 1 leaves no room for other values."""


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
    """As many independent, equally weighted turns would tell as much: never more than `n`."""
    level: float = 0.95
    """Nominal coverage of the interval."""
    units: int | None = None
    """How many sessions (or users) the turns are of; None where turns were taken to be independent."""

    @property
    def few(self) -> bool:
        """Whether it rests on fewer than 30 turns."""
        return self.n < FEW

    @property
    def margin(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def with_missing(self, share: float) -> tuple[float, float]:
        """The interval of the mean over turns of which this share, 0 to 1, has no value.

        Its ends are those it has if all of these were 0, and if all were 1: nothing is assumed of why they
        have none (Horowitz & Manski, JASA 95, 2000).

        >>> Estimate(value=0.75, low=0.5, high=1.0, n=10, effective_n=10).with_missing(0.5)
        (0.25, 1.0)
        """
        return _with_unseen(self.low, self.high, 1 - share, share)


@dataclass(frozen=True, kw_only=True, slots=True)
class Weighed:
    """What the interval of a weighted mean is made of."""

    n: int
    weight: float
    """Sum of the weights w = 1 / inclusion."""
    square: float
    """Sum of w^2."""
    mean: float
    """Sum of w x / sum of w."""
    spread: float
    """Sum of w^2 (x - mean)^2: the variance of the mean times weight^2, if turns were independent."""
    second: float
    """Weighted mean of (x - mean)^2."""
    third: float
    """Weighted mean of (x - mean)^3."""
    ends: float
    """Share of values that are 0 or 1."""
    even: bool
    """Whether all weights are the same."""
    clustered: float
    """Sum over units of the corrected (sum of w (x - mean))^2: as `spread`, if only units are independent."""
    freedom: float
    """Degrees of freedom of `clustered`."""
    alike: float
    """By how much `spread` would grow if turns of a unit were alike by `ICC`; 1 for units of one turn."""
    units: int | None
    """How many units; None where every turn is one."""
    least: float
    """The smallest inclusion probability among them."""

    def estimate(self, *, level: float = 0.95, floor: float | None = None) -> Estimate:
        variance = self._variance()
        low, high = self._interval(variance, (1 + level) / 2)
        if floor is not None and self.least > _FAR * floor:
            low, high = _with_unseen(low, high, self.weight, _UNSEEN / floor)
        kish = self.weight**2 / self.square
        grown = 1.0 if self.units is None else self.design_effect
        return Estimate(
            value=self.mean, low=low, high=high, n=self.n, effective_n=kish / grown, level=level,
            units=self.units,
        )  # fmt: skip

    def _unseen(self) -> float:
        """What a third of a turn more at 0 and one at 1 (Kerman's neutral prior) would add to `spread`.

        Source: Kerman, Electronic Journal of Statistics 5, 2011.
        As far as turns were seen to be 0 or 1, or so few were seen that one might be; never more than if all
        were. Rare failures that are seldom picked are absent from many samples.
        """
        share = max(self.ends, min(_UNSHOWN / self.n, 1.0) ** 2)
        typical = (self.square / self.weight) ** 2
        more = share * typical * (self.mean**2 + (1 - self.mean) ** 2) / 3
        most = self.mean * (1 - self.mean) * self.square
        return max(min(self.spread + more, most) - self.spread, 0.0)

    def _variance(self) -> float:
        """The variance of the mean times weight^2, from the units and from what is likely before any is seen.

        Their mean, weighted by degrees of freedom (Smyth, Statistical Applications in Genetics and Molecular
        Biology 3, 2004, eq. 4).
        """
        unseen = self._unseen()
        expected = (self.spread + unseen) * self.alike
        clustered = self.clustered + unseen
        freedom = self.freedom
        return (freedom * clustered + _PRIOR_FREEDOM * expected) / (freedom + _PRIOR_FREEDOM)

    @property
    def design_effect(self) -> float:
        """How many times the variance is what it would be if turns were independent, at least 1."""
        alone = self.spread + self._unseen()
        return max(self._variance() / alone if alone > _POINT else self.alike, 1.0)

    def _interval(self, variance: float, tail: float) -> tuple[float, float]:
        largest = self.mean * (1 - self.mean)
        kish = self.weight**2 / self.square
        # The variance of zeros and ones that are alike in weight and independent is known with their mean.
        known = self.units is None and self.even and self.ends == 1
        freedom = math.inf if known and self.n >= 10 else self.freedom + _PRIOR_FREEDOM
        quantile = t_quantile(tail, max(freedom, 1.0)) if freedom < 1e6 else normal_quantile(tail)
        if largest < _POINT:
            return wilson(self.mean, kish / self.alike, quantile)
        if known:
            return rate_interval(self.mean, self.n, quantile)
        ratio = variance / self.weight**2 / largest
        slope = self._slope(ratio, variance, quantile)
        step = self.ends * _STEP / self.n if self.even else 0.0
        low, _ = score_interval(max(self.mean - step, 0.0), quantile, ratio=ratio, slope=slope)
        _, high = score_interval(min(self.mean + step, 1.0), quantile, ratio=ratio, slope=slope)
        return low, high

    def _slope(self, ratio: float, variance: float, quantile: float) -> float:
        """By how much the variance of the mean grows with the mean: third moment / second.

        As much of it as makes the interval right to the second order (Johnson, JASA 73, 1978). Most turns
        near .9 and a few near .2 vary more if the mean is lower, by more than zeros and ones would.
        """
        plain = (1 - 2 * self.mean) * ratio
        largest = self.mean * (1 - self.mean)
        share = max(self.ends, min(_UNSHOWN / self.n, 1.0) ** 2) * self.square / self.weight**2
        second = self.second + share * largest
        third = self.third + share * largest * (1 - 2 * self.mean)
        if second < _POINT or self.spread < _POINT:
            return plain
        found = third / second * (1 + 2 * quantile**2) / (3 * quantile**2)
        # What has been measured lies in -mean..1 - mean.
        found = min(max(found, -self.mean), 1 - self.mean)
        found *= self.square / self.weight**2 * variance / (self.spread + self._unseen())
        return found if abs(found) > abs(plain) else plain


def score_interval(mean: float, quantile: float, *, ratio: float, slope: float) -> tuple[float, float]:
    """Every mean m from which the one seen is at most `quantile` standard errors away.

    The variance of the mean is taken to be `ratio` mean (1 - mean) + `slope` (m - mean) - `ratio`
    (m - mean)^2, which for `slope` = (1 - 2 mean) `ratio` is `ratio` m (1 - m).
    """
    squared = quantile * quantile
    scale = 1 + ratio * squared
    centre = mean + slope * squared / (2 * scale)
    inside = ratio * mean * (1 - mean) / scale + squared * (slope / (2 * scale)) ** 2
    half = quantile * math.sqrt(inside)
    return max(min(centre - half, mean), 0.0), min(max(centre + half, mean), 1.0)


def wilson(mean: float, trials: float, quantile: float) -> tuple[float, float]:
    """Wilson's score interval (JASA 22, 1927) for a rate seen in so many trials, whole or not."""
    return score_interval(mean, quantile, ratio=1 / trials, slope=(1 - 2 * mean) / trials)


def rate_interval(mean: float, trials: int, quantile: float) -> tuple[float, float]:
    """Wilson's interval with half of the continuity correction (see `_STEP`)."""
    if not 0 < mean < 1:
        return wilson(mean, trials, quantile)
    step = _STEP / trials
    low, _ = wilson(max(mean - step, 0.0), trials, quantile)
    _, high = wilson(min(mean + step, 1.0), trials, quantile)
    return low, high


def _with_unseen(low: float, high: float, weight: float, unseen: float) -> tuple[float, float]:
    """The interval if turns of this total weight were missed altogether, and all bad, or all good."""
    return low * weight / (weight + unseen), (high * weight + unseen) / (weight + unseen)
