"""How days of the week and hours of the day usually differ, so that like is compared with like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

_HOUR, _DAY, _WEEK = 3600.0, 86400.0, 7 * 86400.0
_SLOTS = 7 + 24
_SWING = 0.03
"""So far above or below the mean a day may be before any week was seen."""
_VARIANCE = _SWING**2 / 3
"""Of an even swing."""
_SHARE = 0.45
"""Of e^2 l A: 1/2 for a bet that was open before the day, 1/3 for one of a day from any hour on."""

_Row = tuple[float, float, float]
_EMPTY: _Row = (0.0, 0.0, 0.0)


def _empty() -> list[_Row]:
    return [_EMPTY] * _SLOTS


@dataclass(slots=True)
class Season:
    """The usual course of a week, learnt week by week while nothing has fallen."""

    first: float | None = None
    """When the first turn happened, as Unix time."""
    begins: float | None = None
    """When the week that is being learnt began; None if none is."""
    weeks: int = 0
    """How many were."""
    now: list[_Row] = field(default_factory=_empty)
    """Of that week, by day and by hour: sums of weights, of weight times value, and of squared weights."""
    past: list[_Row] = field(default_factory=_empty)
    """Of earlier weeks, each value less the mean of its week."""
    course: list[float] = field(default_factory=lambda: [0.0] * _SLOTS)
    """By how much each day and each hour is usually above the mean."""
    between: float = _VARIANCE
    """How much days differ, as a variance."""

    def add(self, at: float, value: float, inclusion: float, *, variance: float) -> None:
        """Take a value into account; `variance` is of one turn, as many times as its session makes of it."""
        self.first = at if self.first is None else self.first
        self.begins = at if self.begins is None else self.begins
        if at < self.begins:
            return
        if at >= self.begins + _WEEK:
            self._close(variance)
            self.begins += _WEEK * ((at - self.begins) // _WEEK)
        weight = 1 / inclusion
        for slot in _slots(at):
            weights, values, squares = self.now[slot]
            self.now[slot] = (weights + weight, values + weight * value, squares + weight * weight)

    def forget_week(self) -> None:
        """Leave out the week under way: something fell in it, or recovered."""
        self.begins, self.now = None, _empty()

    def usual(self, at: float) -> float:
        """By how much the mean is usually above what it is on the whole at this time; 0 while unknown."""
        return sum(self.course[slot] for slot in _slots(at))

    def doubt(self, at: float, *, smallest: float, variance: float) -> float:
        """By how much the mean may be below what is usual without a fall, for a bet of 1.

        Nothing on the first day.

        What is taken for usual is off by an error e that all turns of a day share, or all of half a week
        while no week is known. Over turns whose weights smallest / inclusion add up to A, it lets the stake
        of a bet l grow by exp((l e A)^2 / 2) on average if e is normal: as much as l e^2 A / 2 for each turn
        takes back, less for a bet that was opened in the middle of the day. The variance of e is that of
        days, known better by the mean of a day in each week so far.
        """
        rows = self.past[:7] + self.now[:7]
        weight = sum(row[0] for row in rows)
        if not weight or self.first is None or at < self.first + _DAY:
            return 0.0
        days = 7 * self.weeks + (0.0 if self.begins is None else max(at - self.begins, 0.0) / _DAY)
        days = max(days, 1e-9)
        of_a_day = max(variance * sum(row[2] for row in rows) / weight**2 * days, 1e-12)
        shared = 1.0 if self.weeks else min(days, 3.5)
        return _SHARE * smallest * weight / days * shared / (1 / self.between + self.weeks / of_a_day)

    def _close(self, variance: float) -> None:
        weight = sum(row[0] for row in self.now[:7])
        mean = sum(row[1] for row in self.now[:7]) / weight
        self.past = [
            (past[0] + now[0], past[1] + now[1] - mean * now[0], past[2] + now[2])
            for past, now in zip(self.past, self.now, strict=True)
        ]
        self.weeks += 1
        self.now = _empty()
        self.between, days = _shrunk(self.past[:7], variance)
        self.course = days + _shrunk(self.past[7:], variance)[1]


def _slots(at: float) -> tuple[int, int]:
    return int(at // _DAY) % 7, 7 + int(at % _DAY // _HOUR)


def _shrunk(rows: Sequence[_Row], variance: float) -> tuple[float, list[float]]:
    """How much slots differ, as a variance, and by how much each does, as far as that is more than chance.

    Fay & Herriot (JASA 74, 1979, eq. 3.2), where the variance is at least that of an even swing of `_SWING`:
    more if the slots differ by more than twice what chance does.
    """
    seen = [row for row in rows if row[0] > 0]
    total = sum(row[0] for row in seen)
    if len(seen) < 4:
        return _VARIANCE, [0.0] * len(rows)
    middle = sum(row[1] for row in seen) / total
    away = [row[1] / row[0] - middle if row[0] > 0 else 0.0 for row in rows]
    chance = [variance * row[2] / row[0] ** 2 if row[0] > 0 else 0.0 for row in rows]
    squares = sum(one * one for one in away) / (len(seen) - 1)
    between = max(squares - 2 * sum(chance) / len(seen), _VARIANCE)
    return between, [one * between / (between + error) for one, error in zip(away, chance, strict=True)]
