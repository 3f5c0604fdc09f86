"""When a mean changed: steps and slow drifts, with days of the week and hours of the day compared alike."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from steelyard.stats._difference import Difference, sample_difference
from steelyard.stats._estimate import FEW
from steelyard.stats._quantiles import normal_quantile
from steelyard.stats._sample import Sample, sample_of

_Array = npt.NDArray[np.float64]
_Codes = npt.NDArray[np.int64]
_DAY = 86400.0
_MOST = 3
"""So many changes are told at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A moment at which the mean changed, or a time over which it drifted."""

    since: float
    """Unix time at which what came after begins; of a drift, its beginning."""
    until: float | None
    """Unix time at which a drift ends; None for a step."""
    difference: Difference
    """After - before, like days compared with like; of a drift, its end - its beginning."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """Turns in pieces of time."""

    sample: Sample
    pieces: _Codes
    season: _Codes
    weights: _Array
    sums: _Array
    effect: float
    level: float

    def part(self, first: int, last: int) -> _Axis:
        where = (self.pieces >= first) & (self.pieces < last)
        return replace(self, sample=self.sample.part(where), pieces=self.pieces[where])


def find_changes(
    values: Iterable[float] | Sample,
    times: Sequence[float] | _Array,
    *,
    inclusion: Iterable[float] | None = None,
    sessions: Iterable[Hashable] | None = None,
    width: float = _DAY,
    level: float = 0.95,
) -> list[Change]:
    """When the mean changed, in order of time; the first of them may be unclear (`difference.clear`).

    Every border between two pieces of time is tried that leaves 30 turns on both sides, and the one taken
    that leaves the least squares around the two means (Bai, Journal of Time Series Analysis 15, 1994). Its
    interval holds for all borders together (Bonferroni), with sessions as the units that vary, so that a
    steady stream is said to have changed with a probability of at most 1 - `level`. Further changes are
    looked for on both sides of a clear one. If a straight line explains as much as the steps, it is reported
    as a drift.

    Days of the week are compared with their like if each was seen in two weeks, hours of the day if each was
    seen on two days: their own means are taken out together with the step, which widens its interval by what
    the step and the days have in common.

    Args:
        values: In 0..1; or a sample, which has its own probabilities and sessions.
        times: Unix time of each.
        inclusion: The probability with which each was picked; 1 if None.
        sessions: The session of each (see `weighted_mean`); independent turns if None.
        width: Seconds of a piece of time.
        level: Nominal coverage, of the intervals at all borders together.

    Returns:
        No change if there are too few turns to tell; one that is not clear if nothing clearly changed.
    """
    sample, moments = sample_of(values, inclusion, sessions), np.asarray(times, float)
    if sample.counted.sum() < 2 * FEW:
        return []
    start = math.floor(float(moments.min()) / width) * width
    axis = _axis(sample, ((moments - start) // width).astype(np.int64), start, width, level)
    found = _steps(axis, 0, len(axis.weights), _MOST)
    clear = [step for step in found if step[1].clear]
    if clear and (drift := _drift(axis, [index for index, _ in clear])) is not None:
        return [Change(since=start, until=start + len(axis.weights) * width, difference=drift)]
    told = clear or found[:1]
    return [
        Change(since=start + index * width, until=None, difference=difference)
        for index, difference in sorted(told, key=lambda step: step[0])
    ]


def _axis(sample: Sample, pieces: _Codes, start: float, width: float, level: float) -> _Axis:
    count = int(pieces.max()) + 1
    weighed = sample.weighed
    spread = weighed.spread / weighed.square
    estimate = sample.estimate()
    assert estimate is not None
    return _Axis(
        sample=sample,
        pieces=pieces,
        season=_season(np.bincount(pieces, minlength=count) > 0, start, width),
        weights=np.bincount(pieces, sample.weights, count).astype(float),
        sums=np.bincount(pieces, sample.weights * sample.values, count).astype(float),
        # The variance of a weighted turn, as many times as sessions make of it.
        effect=max(spread, 1e-9) * sample.weight / estimate.effective_n,
        level=level,
    )


def _season(seen: npt.NDArray[np.bool_], start: float, width: float) -> _Codes:
    """Which of the like pieces each is; all alike if none of them come twice."""
    begins = start + np.arange(len(seen)) * width
    day = (begins // _DAY).astype(np.int64) % 7
    hour = (begins % _DAY // 3600).astype(np.int64)
    choices = [] if width > _DAY else [day] if width == _DAY else [day * 24 + hour, hour]
    for codes in choices:
        times = np.bincount(codes[seen], minlength=1)
        if len(seen) > 1 and (times[times > 0] >= 2).all() and times.sum() >= 2 * max((times > 0).sum(), 2):
            return codes
    return np.zeros(len(seen), np.int64)


def _without_season(axis: _Axis, column: _Array, first: int, last: int) -> _Array:
    """A column of pieces less the mean of their like."""
    weights, season = axis.weights[first:last], axis.season[first:last]
    totals = np.bincount(season, weights)
    means = np.bincount(season, weights * column) / np.where(totals > 0, totals, 1.0)
    found: _Array = column - means[season]
    return found


def _means(axis: _Axis, first: int, last: int) -> _Array:
    weights = axis.weights[first:last]
    found: _Array = axis.sums[first:last] / np.where(weights > 0, weights, 1.0)
    return found


def _steps(axis: _Axis, first: int, last: int, most: int) -> list[tuple[int, Difference]]:
    """The clearest step of a part of the time, and those on both sides of it; one that is unclear alone."""
    found = _step(axis, first, last)
    if found is None:
        return []
    index, difference = found
    if not difference.clear or most <= 1:
        return [found]
    further = [
        step
        for start, stop in ((first, index), (index, last))
        for step in _steps(replace(axis, level=(1 + axis.level) / 2), start, stop, most - 1)
        if step[1].clear
    ]
    return [found, *further][:most]


def _step(axis: _Axis, first: int, last: int) -> tuple[int, Difference] | None:
    part = axis.part(first, last)
    seen = np.bincount(part.pieces - first, part.sample.counted, last - first) if len(part.sample) else [0]
    counts = np.cumsum(seen)
    borders = [
        index
        for index in range(1, last - first)
        if counts[index - 1] >= FEW and counts[-1] - counts[index - 1] >= FEW
    ]
    weights, left = axis.weights[first:last], _without_season(axis, _means(axis, first, last), first, last)
    best, gained, moved, common = 0, -1.0, 0.0, 1.0
    for border in borders:
        plain = (np.arange(last - first) >= border).astype(float)
        step = _without_season(axis, plain, first, last)
        size = float(weights @ (step * step))
        whole = float(weights @ (plain - weights @ plain / weights.sum()) ** 2)
        # A step that the days of the week could as well explain tells nothing.
        if size < 0.1 * whole:
            continue
        slope = float(weights @ (step * left)) / size
        if slope * slope * size > gained:
            best, gained, moved, common = border, slope * slope * size, slope, whole / size
    if not best:
        return None
    after = part.pieces >= first + best
    error = (1 - axis.level) / len(borders)
    found = sample_difference(part.sample.part(~after), part.sample.part(after), level=1 - error)
    assert found is not None
    wider = math.sqrt(max(common, 1.0))
    return first + best, replace(
        found,
        value=moved,
        second=min(max(found.first + moved, 0.0), 1.0),
        low=max(moved - wider * (found.value - found.low), -1.0),
        high=min(moved + wider * (found.high - found.value), 1.0),
    )


def _drift(axis: _Axis, borders: Sequence[int]) -> Difference | None:
    """The change from end to end, if a straight line explains the pieces as well as these steps do.

    By Schwarz's criterion (Annals of Statistics 6, 1978): a step has a place and a size, a line a slope.
    """
    count = len(axis.weights)
    left = _without_season(axis, _means(axis, 0, count), 0, count)
    place = np.arange(count)
    steps = [_without_season(axis, (place >= border).astype(float), 0, count) for border in borders]
    line = _without_season(axis, place / max(count - 1, 1), 0, count)
    cost = math.log(max(int((axis.weights > 0).sum()), 2))
    by_steps = _explained(axis, np.column_stack(steps), left) / axis.effect - 2 * len(steps) * cost
    if _explained(axis, line[:, None], left) / axis.effect - cost <= by_steps:
        return None
    slope = float(axis.weights @ (line * left)) / float(axis.weights @ (line * line))
    error = math.sqrt(axis.effect / float(axis.weights @ (line * line)))
    half = normal_quantile((1 + axis.level) / 2) * error
    middle = axis.sample.mean
    if abs(slope) <= half:
        return None
    return Difference(
        first=min(max(middle - slope / 2, 0.0), 1.0),
        second=min(max(middle + slope / 2, 0.0), 1.0),
        value=slope,
        low=max(slope - half, -1.0),
        high=min(slope + half, 1.0),
        n=len(axis.sample),
        level=axis.level,
    )


def _explained(axis: _Axis, columns: npt.NDArray[np.float64], left: _Array) -> float:
    """The squares that columns explain."""
    roots = np.sqrt(axis.weights)
    fitted = np.linalg.lstsq(columns * roots[:, None], left * roots, rcond=None)[0]
    return float(np.sum((roots * (columns @ fitted)) ** 2))
