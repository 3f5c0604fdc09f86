"""How days of the week and hours of the day usually differ, so that like is compared with like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

_HOUR, _DAY, _WEEK = 3600.0, 86400.0, 7 * 86400.0
_SLOTS = 7 + 24
_ENOUGH = 3
"""Weeks after which the difference between days is known."""
_SWING = 0.03
"""So far below the mean a day may be in the first week."""
_BY_CHANCE = 0.8
"""As many standard errors of a day's mean are let through: see `Season.slack`.

Chosen by simulation (`benchmarks/sessions.py`, weeks and delays; 200 turns a day), partly on the seeds of the
tables in docs/check/measured.md: with more, a weekly swing sets off more alarms; with less, falls are
told later.
"""

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

    def add(self, at: float, value: float, inclusion: float, *, variance: float) -> None:
        """Take a value into account.

        Args:
            at: When its turn happened, as Unix time.
            value: In 0..1.
            inclusion: The probability with which it was picked.
            variance: Of one turn, as many times as its session makes of it.
        """
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

    def slack(self, at: float, *, variance: float) -> float:
        """By how much it may be off without a change: days after the first one while weeks are unknown.

        The swing less a part of what chance does to the mean of a day, half of that once a week was seen, a
        third after two: with few turns a day, a swing is too small for a bet to tell within days, and to
        allow for it hides falls.

        Args:
            at: Now, as Unix time.
            variance: Of one turn.
        """
        if self.weeks >= _ENOUGH or self.first is None or at < self.first + _DAY:
            return 0.0
        rows = self.past[:7] + self.now[:7]
        weight = sum(row[0] for row in rows)
        days = 7 * self.weeks + (0.0 if self.begins is None else (at - self.begins) / _DAY)
        if not weight or days < 1:
            return _SWING / (self.weeks + 1)
        chance = variance * sum(row[2] for row in rows) / weight**2 * days
        return max(_SWING - _BY_CHANCE * math.sqrt(chance), 0.0) / (self.weeks + 1)

    def _close(self, variance: float) -> None:
        weight = sum(row[0] for row in self.now[:7])
        mean = sum(row[1] for row in self.now[:7]) / weight
        self.past = [
            (past[0] + now[0], past[1] + now[1] - mean * now[0], past[2] + now[2])
            for past, now in zip(self.past, self.now, strict=True)
        ]
        self.weeks += 1
        self.now = _empty()
        self.course = _shrunk(self.past[:7], variance) + _shrunk(self.past[7:], variance)


def _slots(at: float) -> tuple[int, int]:
    return int(at // _DAY) % 7, 7 + int(at % _DAY // _HOUR)


def _shrunk(rows: Sequence[_Row], variance: float) -> list[float]:
    """The deviations of some slots, as far as they are more than chance.

    Towards their mean by the positive part of James & Stein (Efron & Morris, JASA 68, 1973, eq. 7.1).
    """
    seen = [row for row in rows if row[0] > 0]
    total = sum(row[0] for row in seen)
    if len(seen) < 4:
        return [0.0] * len(rows)
    middle = sum(row[1] for row in seen) / total
    away = [row[1] / row[0] - middle if row[0] > 0 else 0.0 for row in rows]
    chance = [max(variance * row[2] / row[0] ** 2, 1e-12) if row[0] > 0 else 1.0 for row in rows]
    ratio = sum(one * one / error for one, error in zip(away, chance, strict=True))
    kept = max(1 - (len(seen) - 3) / ratio, 0.0) if ratio > 0 else 0.0
    return [kept * one for one in away]
