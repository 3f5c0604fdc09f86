"""Values of turns with their weights and sessions; the mean of such a sample, and its interval."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from steelyard.stats._estimate import ICC, Estimate, Weighed, normal_quantile, rate_interval

_Array = npt.NDArray[np.float64]
_Codes = npt.NDArray[np.int64]
Alike = Literal["sessions", "order", "no"]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Values in 0..1, the probability with which each was picked, and the unit that each is of."""

    values: _Array
    """In 0..1."""
    weights: _Array
    """1 / inclusion probability."""
    units: _Codes | None = None
    """A number for the session or user of each; None where every turn stands for itself."""

    def __len__(self) -> int:
        return len(self.values)

    def part(self, where: npt.NDArray[np.bool_] | npt.NDArray[np.intp]) -> Sample:
        """Some of the turns."""
        units = None if self.units is None else self.units[where]
        return Sample(values=self.values[where], weights=self.weights[where], units=units)

    @property
    def counted(self) -> _Array:
        """1 for each turn that tells something by itself."""
        return np.ones(len(self.values))

    @cached_property
    def weight(self) -> float:
        """How many turns of the application these stand for."""
        return float(self.weights.sum())

    @cached_property
    def mean(self) -> float:
        """The mean of Hajek (1971), between 0 and 1; 0 of nothing."""
        return min(max(float(self.weights @ self.values) / self.weight, 0.0), 1.0) if len(self) else 0.0

    @property
    def least(self) -> float:
        """The smallest inclusion probability; 1 of nothing."""
        return 1 / float(self.weights.max()) if len(self) else 1.0

    def totals(self, deviations: _Array) -> _Array:
        """A sum for each unit."""
        if self.units is None:
            return deviations
        found: _Array = np.bincount(self._codes, deviations).astype(float)
        return found

    @cached_property
    def _codes(self) -> _Codes:
        assert self.units is not None
        return np.unique(self.units, return_inverse=True)[1].reshape(-1)

    def estimate(self, *, level: float = 0.95, floor: float | None = None) -> Estimate | None:
        """The mean with its interval; None of nothing. See `weighted_mean`."""
        return self.weighed.estimate(level=level, floor=floor) if len(self) else None

    @cached_property
    def weighed(self) -> Weighed:
        """The sums that the interval is made from."""
        weights, away = self.weights, self.values - self.mean
        squares = weights * weights
        deviations = weights * away
        units = None if self.units is None else int(self._codes.max()) + 1
        totals = self.totals(deviations)
        even = float(np.ptp(weights)) <= 1e-9 * float(weights.max())
        heavy, expected = self.totals(weights), self.totals(squares)
        # What a unit's squared deviation is in proportion to, if turns of a unit are alike by `ICC`.
        expected = (1 - ICC) * expected + ICC * heavy * heavy
        clustered, freedom = _by_unit(heavy, expected, totals)
        if units is not None and units < len(self):
            freedom /= _heaviness(totals / np.sqrt(expected))
        elif not even:
            freedom = 2 / (1 / freedom + _doubt_of_shape(self) / 2)
        return Weighed(
            n=len(self),
            weight=self.weight,
            square=float(squares.sum()),
            mean=self.mean,
            spread=float(deviations @ deviations),
            second=float(deviations @ away) / self.weight,
            third=float(deviations @ (away * away)) / self.weight,
            ends=float(np.count_nonzero((self.values <= 0) | (self.values >= 1))) / len(self),
            even=even,
            clustered=clustered,
            freedom=freedom,
            alike=float(expected.sum() / squares.sum()),
            units=None if units == len(self) else units,
            least=self.least,
        )


def _by_unit(weights: _Array, expected: _Array, deviations: _Array) -> tuple[float, float]:
    """The sum of the squared deviations of units, and its degrees of freedom.

    Each unit's square is divided by its expectation beside what that would be if the mean were known; the
    degrees of freedom are Satterthwaite's for this sum (Bell & McCaffrey, Survey Methodology 28, 2002;
    Pustejovsky & Tipton, Journal of Business & Economic Statistics 36, 2018, with the diagonal of the
    adjustment matrices).
    """
    share = weights / weights.sum()
    total = float(expected.sum())
    if len(weights) < 2:
        return 0.0, 0.0
    within = expected * (1 - 2 * share) + share * share * total
    scale = expected / np.maximum(within, 1e-12 * expected)
    # The covariance of units g and h is -share_g expected_h - share_h expected_g + share_g share_h total;
    # the sum of its squares over all pairs is one of products of sums.
    one, two, both = (
        float(scale @ product) for product in (share * share, expected * expected, share * expected)
    )
    pairs = 2 * one * two + 2 * both * both + (total * one) ** 2 - 4 * total * one * both
    own = scale * (within - expected)
    pairs += float((scale * within) @ (scale * within) - own @ own)
    return float(scale @ (deviations * deviations)), total * total / pairs


def _heaviness(deviations: _Array) -> float:
    """By how much a few units that are far off lower the degrees of freedom of a variance, at least 1.

    (kurtosis - 1) / 2, which is 1 for normal ones (Box, Biometrika 40, 1953, eq. 7). Deviations are in units
    of what is expected of them: that some weigh more is in Satterthwaite's degrees of freedom already.
    """
    squares = deviations * deviations
    mean = float(squares.mean())
    return max((float((squares * squares).mean()) / mean**2 - 1) / 2, 1.0) if mean > 0 else 1.0


def _doubt_of_shape(sample: Sample) -> float:
    """The variance of the logarithm of the variance over mean (1 - mean), by what each turn does to it.

    The infinitesimal jackknife (Jaeckel 1972; Efron, The Jackknife, the Bootstrap and Other Resampling
    Plans, 1982, chapter 6). The interval takes mean (1 - mean) at each of its ends, so that only the rest
    can be off: of zeros and ones hardly anything, where Satterthwaite expects normal values. Both count
    half, since turns of rare large weights are often not in the sample.
    """
    mean, share = sample.mean, sample.weights / sample.weight
    deviations = share * (sample.values - mean)
    square = float(deviations @ deviations)
    if square <= 0 or not 0 < mean < 1:
        return 0.0
    moved = (1 - 2 * mean) / (mean * (1 - mean)) + 2 * float(deviations @ share) / square
    found = deviations * deviations / square - 2 * share - moved * deviations
    return float(np.var(found)) * len(found) ** 2 / max(len(found) - 1, 1)


def sample_of(
    values: Iterable[float] | Sample,
    inclusion: Iterable[float] | None = None,
    sessions: Iterable[Hashable] | None = None,
) -> Sample:
    """Values, probabilities and sessions as a sample; a sample as it is.

    Raises:
        ValueError: If they are not of one length, or a probability is not above 0.
    """
    if isinstance(values, Sample):
        return values
    data = np.fromiter(values, float)
    weights = np.ones_like(data) if inclusion is None else 1 / np.fromiter(inclusion, float)
    units = None if sessions is None else unit_codes(sessions)
    if len(weights) != len(data) or (units is not None and len(units) != len(data)):
        raise ValueError("values, inclusion and sessions must be of the same length")
    return Sample(values=data, weights=weights, units=units)


def unit_codes(sessions: Iterable[Hashable]) -> _Codes:
    """A number for each session; one of its own for each turn without one (None or empty)."""
    known: dict[Hashable, int] = {}
    codes = [-1 if one is None or one == "" else known.setdefault(one, len(known)) for one in sessions]
    found = np.array(codes, np.int64)
    alone = found < 0
    found[alone] = len(known) + np.arange(int(alone.sum()))
    return found


def alike_by(
    sessions: Sequence[Hashable],
    values: Iterable[float],
    inclusion: Iterable[float],
    *,
    times: _Array | None = None,
) -> tuple[Alike, Sequence[Hashable] | None]:
    """What turns are alike by, and the unit of each: known sessions, or else blocks of neighbours.

    Blocks tell nothing of sessions whose turns come far apart. Times are given if changes are looked for:
    values then count less the mean of their day, or the fall that is looked for would itself make neighbours
    alike.
    """
    if any(session is not None for session in sessions):
        return "sessions", sessions
    if times is not None:
        given = np.fromiter(values, float)
        _, place = np.unique(times // 86400, return_inverse=True)
        values = given - (np.bincount(place, given) / np.bincount(place))[place]
    blocks = _order_blocks(values, inclusion)
    return ("no", None) if blocks is None else ("order", blocks.tolist())


def _order_blocks(values: Iterable[float], inclusion: Iterable[float]) -> _Codes | None:
    """Blocks of neighbours to take for sessions if nobody knows those; None if neighbours are not alike.

    How alike neighbours are is estimated from the autocorrelations, and the length of a block from that
    (Politis & White, Econometric Reviews 23, 2004, for the circular bootstrap).
    """
    sample = sample_of(values, inclusion)
    count = len(sample)
    away = sample.weights * (sample.values - sample.mean)
    lags = min(int(10 * np.log10(max(count, 10))) + 5, count // 4)
    power = float(away @ away)
    if lags < 5 or power <= 0:
        return None
    # All lags at once, by Wiener and Khinchin; a power of two is transformed fastest.
    spectrum = np.abs(np.fft.rfft(away, 1 << (2 * count).bit_length())) ** 2
    alike = np.fft.irfft(spectrum)[1 : 2 * lags + 1] / power
    bar = 2 * np.sqrt(np.log10(count) / count)
    last = next((lag for lag in range(lags) if (np.abs(alike[lag : lag + 5]) < bar).all()), lags)
    if last == 0:
        return None
    place = np.arange(1, 2 * last + 1)
    # The trapezoidal window of Politis & Romano 1995.
    window = np.clip(2 * (1 - place / (2 * last)), 0, 1) * alike[: 2 * last]
    slope, level = 2 * float(window @ place), 1 + 2 * float(window.sum())
    if slope <= 0 or level <= 1:
        return None
    length = (2 * slope**2 / (4 / 3 * level**2)) ** (1 / 3) * count ** (1 / 3)
    blocks: _Codes = np.arange(count) // max(round(min(length, count / 5)), 2)
    return blocks


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
    fewer if few sessions are far off (Box, Biometrika 40, 1953) and more if values of unequal weight leave
    little doubt of it (Jaeckel 1972). One session tells nothing of how much
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
