"""When a mean changed, like days and hours compared with their like, and what a change goes back to."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from steelyard.stats._difference import Difference, sample_difference
from steelyard.stats._estimate import FEW, normal_quantile
from steelyard.stats._fits import widening
from steelyard.stats._sample import Sample, sample_of

_Array = npt.NDArray[np.float64]
_Codes = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]
_DAY = 86400.0
_MOST = 3
"""So many changes are told at most."""
_PLACE = 5.94
"""What the squared statistic of a version may lack, for it to lie in the 90 % confidence set of a change
(Hansen, Econometrica 68, 2000, table 1). With the 95 % set, fewer deploys are named alone (816 in place of
830 of 946 simulated ones), and wrong ones no less often (`tests/months`)."""
_LEAST = 5
"""Turns that a version needs, and those before it."""
_FOLLOWS = 0.8
"""With which probability a turn on the later version must come after one on the earlier, for the later to
have taken its place: fields whose values stand beside each other are not versions."""


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
    sessions_known: bool = True,
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
    the step and the days have in common. Days that differ by more than their turns do widen it further
    (`widening`).

    Args:
        values: In 0..1; or a sample, which has its own probabilities and sessions.
        times: Unix time of each.
        inclusion: The probability with which each was picked; 1 if None.
        sessions: The session of each (see `weighted_mean`); independent turns if None.
        width: Seconds of a piece of time.
        level: Nominal coverage, of the intervals at all borders together.
        sessions_known: If False, turns that come far apart may be alike as well.

    Returns:
        No change if there are too few turns to tell; one that is not clear if nothing clearly changed.
    """
    sample, moments = sample_of(values, inclusion, sessions), np.asarray(times, float)
    if sample.counted.sum() < 2 * FEW:
        return []
    start = math.floor(float(moments.min()) / width) * width
    axis = _axis(sample, ((moments - start) // width).astype(np.int64), start, width, level)
    end = start + len(axis.weights) * width
    return [
        Change(since=start + index * width, until=end if is_drift else None, difference=difference)
        for index, is_drift, difference in _told(axis, sessions_known)
    ]


def _told(axis: _Axis, known: bool) -> list[tuple[int, bool, Difference]]:
    """The clear changes in order of time, by their first piece, or one that is unclear; which are drifts."""
    place, found = np.arange(len(axis.weights))[:, None], _steps(axis, 0, len(axis.weights), _MOST)
    borders = sorted(index for index, difference in found if difference.clear)
    if not borders:
        return [(index, False, difference) for index, difference in found[:1]]
    steps = sorted(found, key=lambda step: step[0])
    drift = _drift(axis if known else replace(axis, level=steps[0][1].level), borders)
    told = (
        [(index, False, difference) for index, difference in steps] if drift is None else [(0, True, drift)]
    )
    model = (place >= borders).astype(float) if drift is None else place / len(place)
    wide = [
        (index, is_drift, _widened(axis, model, difference, known)) for index, is_drift, difference in told
    ]
    return [step for step in wide if step[2].clear] or wide[:1]


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


def _widened(axis: _Axis, steps: _Array, found: Difference, known: bool) -> Difference:
    """A change with its interval as wide as days differ from each other."""
    season = (axis.season[:, None] == np.unique(axis.season[axis.weights > 0])).astype(float)
    means, weights = _means(axis, 0, len(steps)), axis.weights
    wider = widening(season, steps, means, weights, variance=axis.effect, level=found.level, known=known)
    low, high = (found.value - wider * (found.value - end) for end in (found.low, found.high))
    return replace(found, low=max(low, -1.0), high=min(high, 1.0))


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
    roots = np.sqrt(axis.weights)
    fitted = np.linalg.lstsq(columns * roots[:, None], left * roots, rcond=None)[0]
    return float(np.sum((roots * (columns @ fitted)) ** 2))


@dataclass(frozen=True, kw_only=True, slots=True)
class Deploy:
    """A version that came into use, and that a change may go back to."""

    name: str
    """Which component: `version`, `model`, `prompt` ..."""
    value: str
    """Its version since then."""
    before: str
    since: float
    """Unix time of the first turn with it."""


def find_deploys(
    sample: Sample,
    times: _Array,
    versions: Mapping[str, Sequence[str | None]],
    *,
    grown: bool,
) -> list[Deploy]:
    """The versions whose coming into use explains a change as well as the best moment does.

    Turns are split by what version they ran on, not by time, so that a version that came in slowly, or ran
    beside the old one, is told from others. The splits are held against that by the best moment of all: those
    belong to the 90 % confidence set of the change whose likelihood ratio lacks at most 5.94 (Hansen,
    Econometrica 68, 2000, with sessions as the units that vary). Of several, nothing tells which it was; if
    there is none, no version changed then. Fields of which no value takes the place of another are left out.
    """
    if len(sample) < 2 * _LEAST:
        return []
    found = [
        max((split for split in splits if split.grown is grown), key=lambda one: one.gain, default=None)
        for name, column in versions.items()
        if (splits := [_split(sample, later, one) for one, later in _releases(name, column, times)])
    ]
    splits = [one for one in found if one is not None]
    splits += [one for at in _moments(times) if (one := _split(sample, times >= at)).grown is grown]
    if not splits:
        return []
    best = max(splits, key=lambda one: one.gain)
    unit = best.unit(sample)
    return [one.deploy for one in splits if one.deploy is not None and best.gain - one.gain <= _PLACE * unit]


def _moments(times: _Array) -> _Array:
    """Moments to split at: two hundred at most."""
    inner = np.unique(times)[_LEAST : -_LEAST + 1]
    return inner[:: max(len(inner) // 200, 1)]


def _releases(name: str, column: Sequence[str | None], times: _Array) -> list[tuple[Deploy, _Mask]]:
    """Each version but the first, and which turns ran on it or a later one."""
    known = np.array([value or "" for value in column], dtype=object)
    first = {value: float(times[known == value][0]) for value in set(known.tolist()) if value}
    ordered = sorted(first, key=lambda value: (float(np.median(times[known == value])), value))
    found = []
    for place, value in enumerate(ordered[1:], 1):
        later = np.isin(known, np.array(ordered[place:], dtype=object))
        if later.sum() >= _LEAST and (~later).sum() >= _LEAST and _follows(later):
            deploy = Deploy(name=name, value=value, before=ordered[place - 1], since=first[value])
            found.append((deploy, later))
    return found


def _follows(later: _Mask) -> bool:
    """Whether later ones come after the others; turns are in order of time (Mann & Whitney's U)."""
    count = int(later.sum())
    ranks = float(np.flatnonzero(later).sum()) - count * (count - 1) / 2
    return ranks >= _FOLLOWS * count * (len(later) - count)


@dataclass(frozen=True, slots=True)
class _Split:
    later: _Mask
    deploy: Deploy | None
    gain: float
    """The squares that it explains."""
    grown: bool

    def unit(self, sample: Sample) -> float:
        """The variance of a turn around both means, as many times as sessions make of it."""
        one, other = sample.part(~self.later), sample.part(self.later)
        away = sample.values - np.where(self.later, other.mean, one.mean)
        share = np.where(self.later, 1 / other.weight, -1 / one.weight) * sample.weights
        totals = sample.totals(share * away)
        spread = float(sample.weights @ (away * away)) / sample.weight
        # What a difference varies by, beside what it would if a weighted turn varied by 1.
        return max(float(totals @ totals), spread * float(share @ share)) / _size(one, other)


def _split(sample: Sample, later: _Mask, deploy: Deploy | None = None) -> _Split:
    one, other = sample.part(~later), sample.part(later)
    moved = other.mean - one.mean
    return _Split(later, deploy, moved * moved / _size(one, other), moved > 0)


def _size(one: Sample, other: Sample) -> float:
    return 1 / max(one.weight, 1e-9) + 1 / max(other.weight, 1e-9)
