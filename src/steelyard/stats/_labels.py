"""A judge compared with people's labels: how far the two agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np
import numpy.typing as npt

from steelyard.stats._estimate import Estimate, normal_quantile, t_quantile
from steelyard.stats._sample import unit_codes


def cohen_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    sessions: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Agreement between two raters beyond chance, in -1..1 (Cohen 1960).

    The interval uses the large-sample variance (Fleiss, Cohen & Everitt, Psychological Bulletin 72, 1969,
    eq. 13) on Fisher's scale, artanh(kappa), which keeps it inside the range and wide enough for few pairs.
    With sessions it grows by as much as sums over sessions vary more than their turns by themselves
    (linearised: Sarndal, Swensson & Wretman 1992, chapter 5), and the quantile is Student's.

    Args:
        first: The first rater's answers.
        second: The other's, in the order of the first.
        sessions: The session of each pair; None or empty for a pair of its own.
        level: Nominal coverage.

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
    # What a pair in each cell of the table adds to kappa, to first order.
    pulls = np.eye(len(names)) - seen - (1 - kappa) * (columns[:, None] + rows[None, :] - 2 * chance)
    error = math.sqrt(float((share * pulls**2).sum()) / count) / (1 - chance)
    cells = [(names[one], names[other]) for one, other in zip(first, second, strict=True)]
    grown, quantile = _of_sessions(np.array([pulls[cell] for cell in cells]), sessions, level)
    low, high = _fisher(kappa, error * math.sqrt(grown), quantile, count / grown)
    return Estimate(
        value=kappa,
        low=low,
        high=high,
        n=count,
        effective_n=count / grown,
        level=level,
    )


def _fisher(kappa: float, error: float, quantile: float, count: float) -> tuple[float, float]:
    """The interval on the scale of artanh; at the ends of the range, one pair of doubt."""
    centre = min(max(kappa, -1 + 1 / (count + 1)), 1 - 1 / (count + 1))
    error = max(error, math.sqrt(1 - centre * centre) / (count + 1))
    half = quantile * error / (1 - centre * centre)
    return min(math.tanh(math.atanh(centre) - half), kappa), max(math.tanh(math.atanh(centre) + half), kappa)


def _of_sessions(
    pulls: npt.NDArray[np.float64], sessions: Sequence[Hashable] | None, level: float
) -> tuple[float, float]:
    """By how much sessions make a variance grow, at least 1, and the quantile that goes with it."""
    if sessions is None:
        return 1.0, normal_quantile((1 + level) / 2)
    _, codes = np.unique(unit_codes(sessions), return_inverse=True)
    sums, alone = np.bincount(codes, pulls), float(pulls @ pulls)
    freedom = max(len(sums) - 1, 1)
    grown = float(sums @ sums) / alone * len(sums) / freedom if alone > 0 else len(pulls) / len(sums)
    return max(grown, 1.0), t_quantile((1 + level) / 2, freedom)


def auroc(
    values: Sequence[float],
    good: Sequence[bool],
    *,
    sessions: Sequence[Hashable] | None = None,
    level: float = 0.95,
) -> Estimate:
    """The probability that a good turn has a higher value than a bad one, ties counting half.

    The interval inverts Hanley & McNeil's variance (Radiology 143, 1982), taken at each end of the interval
    and not at the estimate (Newcombe, Statistics in Medicine 25, 2006, method 5): it holds at 0 and 1. With
    sessions it grows by as much as sums of placements over sessions vary more than placements by themselves
    (Obuchowski, Biometrics 53, 1997), and the quantile is Student's.

    Args:
        values: The judge's values.
        good: What people say of each.
        sessions: The session of each turn; None or empty for a turn of its own.
        level: Nominal coverage.

    Raises:
        ValueError: If there is no good or no bad turn.
    """
    data, truth = np.asarray(values, float), np.asarray(good, bool)
    positive, negative = int(truth.sum()), int((~truth).sum())
    if not positive or not negative:
        raise ValueError("auroc needs at least one good and one bad turn")
    # Of each turn, the share of the other kind that it is on the right side of.
    placed = np.empty(len(data))
    ranks = _ranks(data)
    placed[truth] = (ranks[truth] - _ranks(data[truth])) / negative
    placed[~truth] = 1 - (ranks[~truth] - _ranks(data[~truth])) / positive
    area = float(placed[truth].mean())
    pulls = (placed - area) / np.where(truth, positive, negative)
    grown, quantile = _of_sessions(pulls, sessions, level)

    def outside(theta: float) -> bool:
        spread = _area_variance(theta, positive, negative) * grown
        return abs(area - theta) > quantile * math.sqrt(spread)

    return Estimate(
        value=area,
        low=_edge(outside, area, 0.0),
        high=_edge(outside, area, 1.0),
        n=len(data),
        effective_n=min(positive, negative) / grown,
        level=level,
    )


def _ranks(data: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """From 1 on; ties share their mean."""
    _, inverse, counts = np.unique(data, return_inverse=True, return_counts=True)
    ranks: npt.NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks


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
