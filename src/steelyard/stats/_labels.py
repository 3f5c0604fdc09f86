"""A judge compared with people's labels: how far the two agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from steelyard.stats._estimate import Estimate
from steelyard.stats._quantiles import normal_quantile


def cohen_kappa(first: Sequence[Hashable], second: Sequence[Hashable], *, level: float = 0.95) -> Estimate:
    """Agreement between two raters beyond chance, in -1..1 (Cohen 1960).

    The interval uses the large-sample variance (Fleiss, Cohen & Everitt, Psychological Bulletin 72, 1969,
    eq. 13) on Fisher's scale, artanh(kappa), which keeps it inside the range and wide enough for few pairs.

    Raises:
        ValueError: If there are no pairs, or both raters gave one and the same answer throughout.
    """
    names = {name: index for index, name in enumerate(dict.fromkeys([*first, *second]))}
    table = np.zeros((len(names), len(names)))
    for one, other in zip(first, second, strict=True):
        table[names[one], names[other]] += 1
    count = int(table.sum())
    if len(names) < 2:
        raise ValueError("kappa needs pairs, and at least two different answers among them")
    share = table / count
    rows, columns = share.sum(axis=1), share.sum(axis=0)
    seen, chance = float(np.trace(share)), float(rows @ columns)
    kappa = (seen - chance) / (1 - chance)
    diagonal = np.diag(share) * (1 - (rows + columns) * (1 - kappa)) ** 2
    both = share * (columns[:, None] + rows[None, :]) ** 2
    beside = (1 - kappa) ** 2 * (both.sum() - np.trace(both))
    variance = diagonal.sum() + beside - (kappa - chance * (1 - kappa)) ** 2
    error = math.sqrt(max(variance, 0.0) / count) / (1 - chance)
    low, high = _fisher(kappa, error, normal_quantile((1 + level) / 2), count)
    return Estimate(
        value=kappa,
        low=low,
        high=high,
        n=count,
        effective_n=float(count),
        level=level,
    )


def _fisher(kappa: float, error: float, quantile: float, count: int) -> tuple[float, float]:
    """The interval on the scale of artanh; at the ends of the range, one pair of doubt."""
    centre = min(max(kappa, -1 + 1 / (count + 1)), 1 - 1 / (count + 1))
    error = max(error, math.sqrt(1 - centre * centre) / (count + 1))
    half = quantile * error / (1 - centre * centre)
    return min(math.tanh(math.atanh(centre) - half), kappa), max(math.tanh(math.atanh(centre) + half), kappa)


def auroc(values: Sequence[float], good: Sequence[bool], *, level: float = 0.95) -> Estimate:
    """The probability that a good turn has a higher value than a bad one, ties counting half.

    The interval inverts Hanley & McNeil's variance (Radiology 143, 1982), taken at each end of the interval
    and not at the estimate (Newcombe, Statistics in Medicine 25, 2006, method 5): it holds at 0 and 1.

    Raises:
        ValueError: If there is no good or no bad turn.
    """
    data, truth = np.asarray(values, float), np.asarray(good, bool)
    positive, negative = int(truth.sum()), int((~truth).sum())
    if not positive or not negative:
        raise ValueError("auroc needs at least one good and one bad turn")
    _, inverse, counts = np.unique(data, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    area = float((ranks[truth].sum() - positive * (positive + 1) / 2) / (positive * negative))
    quantile = normal_quantile((1 + level) / 2)

    def outside(theta: float) -> bool:
        spread = _area_variance(theta, positive, negative)
        return abs(area - theta) > quantile * math.sqrt(spread)

    return Estimate(
        value=area,
        low=_edge(outside, area, 0.0),
        high=_edge(outside, area, 1.0),
        n=len(data),
        effective_n=float(min(positive, negative)),
        level=level,
    )


def _area_variance(theta: float, positive: int, negative: int) -> float:
    middle = (positive + negative) / 2 - 1
    more = (1 - theta) / (2 - theta) + theta / (1 + theta)
    return theta * (1 - theta) * (1 + middle * more) / (positive * negative)


def _edge(outside: Callable[[float], bool], inside: float, end: float) -> float:
    """Where the interval ends between a value inside it and an end of the range, by bisection."""
    beyond = end
    # 2^-50 is finer than anybody reads an interval.
    for _ in range(50):
        middle = (inside + beyond) / 2
        inside, beyond = (inside, middle) if outside(middle) else (middle, beyond)
    return (inside + beyond) / 2
