"""The difference between two groups of turns, or between two versions on the same questions; its interval."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from steelyard.stats._estimate import FEW, Estimate, t_quantile, two_sided_p
from steelyard.stats._sample import Sample, sample_of, unit_codes

_Array = npt.NDArray[np.float64]
_STEPS = 1 << 12
"""Sums of unequal changes are counted on a grid of so many steps: fine enough for two digits of a p-value."""
_MOST_COUNTED = 100
"""Of more changes the sum is as good as normal."""
_SAME = 1e-9


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


def sample_difference(one: Sample, other: Sample, *, level: float = 0.95) -> Difference | None:
    """The difference between two samples whose units have the same numbers; see `unpaired_difference`."""
    first, second = one.estimate(level=level), other.estimate(level=level)
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


def paired_difference(
    first: Sequence[float],
    second: Sequence[float],
    *,
    inclusion: Iterable[float] | None = None,
    level: float = 0.95,
) -> Difference | None:
    """The mean of second - first over pairs of the same question; None of no pairs.

    `p_value` is that of `sign_flip_p`, exact whatever the values are. The interval is that of Agresti & Min
    (Statistics in Medicine 24, 2005: half a pair is added to each of the four outcomes of a yes/no question),
    by Student's t. Of graded values as much is added as values repeat: where all differences are distinct, it
    is Student's interval of their mean. What is added counts as the largest change that was seen, and at
    least as 1 / (changes + 1): of pairs that are all alike, nobody knows how large a change may be. Where the
    interval and the test disagree on whether 0 is possible, the end is moved to 0.

    Args:
        first: Values in 0..1.
        second: In the order of the first.
        inclusion: The probability with which each pair was picked; 1 where None.
        level: Nominal coverage; the difference is `clear` where `p_value` is at most 1 - level.

    >>> found = paired_difference([1.0] * 20, [1.0] * 16 + [0.0] * 4)  # McNemar's mid-p of 4 : 0 is 1 / 16
    >>> found.p_value, found.clear, round(found.high, 3)
    (0.0625, False, 0.014)
    """
    one, other = np.asarray(first, float), np.asarray(second, float)
    if len(one) != len(other):
        raise ValueError(f"{len(one)} values cannot be paired with {len(other)}")
    if not len(one):
        return None
    weights = np.ones(len(one)) if inclusion is None else 1 / np.asarray(list(inclusion), float)
    total = float(weights.sum())
    means = float(weights @ one) / total, float(weights @ other) / total
    value, p_value = means[1] - means[0], sign_flip_p((other - one) * weights)
    low, high = _interval(other - one, weights, value, level)
    clear = p_value <= 1 - level
    if value < 0:
        high = min(high, -_SAME) if clear else max(high, 0.0)
    else:
        low = max(low, _SAME) if clear else min(low, 0.0)
    return Difference(
        first=means[0],
        second=means[1],
        value=value,
        low=low,
        high=high,
        n=len(one),
        level=level,
        p_value=p_value,
    )


def _interval(changes: _Array, weights: _Array, value: float, level: float) -> tuple[float, float]:
    size = float(weights.sum()) ** 2 / float(weights @ weights)
    centre, error = _centre_and_error(changes, weights)
    half = t_quantile((1 + level) / 2, max(size - 1, 1.0)) * error
    return max(min(centre - half, value), -1.0), min(max(centre + half, value), 1.0)


def mean_error(changes: _Array, weights: _Array) -> float:
    """The standard error of a weighted mean of changes, as in `paired_difference`."""
    return _centre_and_error(changes, weights)[1]


def _centre_and_error(changes: _Array, weights: _Array) -> tuple[float, float]:
    count = len(changes)
    typical = float(weights @ weights) / float(weights.sum())
    distinct = len(np.unique(np.round(changes, 9)))
    repeated = 1.0 if count < 2 else 1 - (distinct - 1) / (count - 1)
    changed = int(np.count_nonzero(np.abs(changes) > _SAME))
    largest = max(float(np.abs(changes).max()), 1 / (changed + 1))
    total = float(weights.sum()) + 2 * repeated * typical
    centre = float(weights @ changes) / total
    added = repeated * typical**2 * (largest**2 + 2 * centre**2)
    # Of distinct values the mean takes one degree of freedom, as in any variance.
    shrunk = 1.0 if count < 2 else 1 - (1 - repeated) / count
    spread = float((weights * weights) @ (changes - centre) ** 2) / shrunk
    return centre, math.sqrt(spread + added) / total


def sign_flip_p(changes: npt.ArrayLike) -> float:
    """How likely a sum of changes so far from 0 is, if each might as well have had the other sign.

    Fisher's randomization test for pairs (The Design of Experiments, 1935, section 21), two-sided, with half
    of the probability of a sum just as large (mid-p; Lancaster, JASA 56, 1961). Of zeros and ones it is
    McNemar's exact conditional test (Psychometrika 12, 1947) as mid-p (Fagerland, Lydersen & Laake, BMC
    Medical Research Methodology 13, 2013). It holds for any number of pairs.

    >>> sign_flip_p([-1, -1, 0, 0])  # two pairs fell: chance in one case of four
    0.25
    """
    given = np.asarray(changes, float)
    given = given[np.abs(given) > _SAME]
    if not len(given):
        return 1.0
    sizes = np.abs(given)
    if len(given) > _MOST_COUNTED:
        return two_sided_p(float(given.sum()) / math.sqrt(float(given @ given)))
    steps = _whole(sizes)
    reach = int(steps.sum())
    chances = np.zeros(2 * reach + 1)
    chances[reach] = 1.0
    for step in steps[steps > 0].tolist():
        moved = np.zeros_like(chances)
        moved[step:] += chances[:-step] / 2
        moved[:-step] += chances[step:] / 2
        chances = moved
    seen = abs(int(np.sign(given) @ steps))
    tail = float(chances[reach + seen + 1 :].sum()) + float(chances[reach + seen]) / 2
    return min(2 * tail, 1.0)


def _whole(sizes: _Array) -> npt.NDArray[np.intp]:
    """Sizes as whole numbers: shares of claims have a common part, so that equal sums stay equal."""
    for parts in range(1, 13):
        steps = sizes / sizes.min() * parts
        if steps.sum() <= _STEPS and np.abs(steps - np.rint(steps)).max() < 1e-6:
            break
    else:
        steps = sizes / sizes.sum() * _STEPS
    whole: npt.NDArray[np.intp] = np.rint(steps).astype(np.intp)
    return whole


def holm(p_values: Sequence[float], weights: Sequence[float] | None = None) -> list[float]:
    """P-values adjusted for their number: of all that are true, none is at most a with probability 1 - a.

    Holm's step-down method (Scandinavian Journal of Statistics 6, 1979), whatever their dependence. With
    weights, those that weigh more are given a larger share of the error.

    >>> [round(p, 4) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    shares = [1.0] * len(p_values) if weights is None else list(weights)
    left, least = sum(shares), 0.0
    adjusted = [1.0] * len(p_values)
    for place in sorted(range(len(p_values)), key=lambda one: p_values[one] / shares[one]):
        least = max(least, min(p_values[place] * left / shares[place], 1.0))
        adjusted[place] = least
        left -= shares[place]
    return adjusted


def within_kinds(
    before: Sample, after: Sample, kinds: tuple[Sequence[str], Sequence[str]]
) -> Difference | None:
    """The difference if the later turns had the earlier ones' mix of kinds (direct standardisation).

    Each later turn is weighted by how much more frequent its kind was before; kinds that one of the two lacks
    are left out of both (Kitagawa, JASA 50, 1955: what is left of the difference is the mix's). None if they
    have no kind in common.
    """
    earlier, later = (np.array(list(one), dtype=object) for one in kinds)
    both = np.array(sorted(set(earlier.tolist()) & set(later.tolist())), dtype=object)
    in_first, in_second = np.isin(earlier, both), np.isin(later, both)
    one, other = before.part(in_first), after.part(in_second)
    if not len(one):
        return None
    factor = np.ones(len(other))
    for kind in both:
        here = later[in_second] == kind
        share = float(one.weights[earlier[in_first] == kind].sum()) / one.weight
        factor[here] = share * other.weight / float(other.weights[here].sum())
    return sample_difference(one, replace(other, weights=other.weights * factor))
