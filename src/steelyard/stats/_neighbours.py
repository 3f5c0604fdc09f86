"""How far neighbours resemble each other, while turns come one by one and nobody knows their sessions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

_LAGS = 96
_WINDOW = 5.0
"""Correlations are added up over so many times as many turns as their sum says (Sokal's window)."""
_DOUBT = 0.4
"""As many standard errors are taken off: with more, unknown sessions set off more alarms; with none, falls of
independent turns are told later (simulated as in `benchmarks/sessions.py`, as are the other figures here)."""
_FEWEST = 16
_STEP = 8
"""It is estimated anew every 8 turns."""
_KEPT = 1 - 1 / 256
"""Deviations are from the mean of late, in which an older turn counts less: a new level is no likeness."""
_REMEMBERED = 1 - 1 / 1024
"""What one turn more leaves of the products of earlier ones, so that a change in the past is forgotten."""
_SMALL = 1e-9  # equal values differ from their mean by rounding alone


@dataclass(slots=True)
class Neighbours:
    """The design effect of turns that follow each other: how much more their mean varies than if independent.

    1 + 2 sum of the correlations of turns that are j apart, for j up to the first that is `_WINDOW` times the
    sum so far (Madras & Sokal, Journal of Statistical Physics 50, 1988, appendix C), less a part of its
    standard error (their eq. C.19). Whoever bets on a fall goes by what was known before it, since a fall
    makes all turns after it alike. Sessions whose turns come among hundreds of others are not seen.
    """

    weight: float = 0.0
    """Sum of the weights."""
    value: float = 0.0
    """Of weight times value."""
    turns: int = 0
    """How many there were."""
    seen: float = 0.0
    """How many of them count, the older a turn the less."""
    latest: list[float] = field(default_factory=list)
    """Deviations of the last turns, the latest first."""
    products: list[float] = field(default_factory=lambda: [0.0] * _LAGS)
    """By distance: sums of the products of two deviations."""
    alone: float = 0.0
    """Squared deviations of all turns."""
    design_effect: float = 1.0
    """How many times the variance of a mean is what it would be if turns were independent; from 1 on."""

    def add(self, value: float, inclusion: float = 1.0) -> None:
        """Take a value into account."""
        weight = 1 / inclusion
        self.turns += 1
        self.weight = self.weight * _KEPT + weight
        self.value = self.value * _KEPT + weight * value
        away = weight * (value - self.value / self.weight)
        self.seen = self.seen * _REMEMBERED + 1
        self.alone = self.alone * _REMEMBERED + away * away
        for place in range(_LAGS):
            other = self.latest[place] if place < len(self.latest) else 0.0
            self.products[place] = self.products[place] * _REMEMBERED + away * other
        self.latest = [round(away, 6), *self.latest[: _LAGS - 1]]
        if not self.turns % _STEP:
            self.design_effect = self._now()

    def _now(self) -> float:
        if self.turns < _FEWEST or self.alone <= _SMALL:
            return 1.0
        found, lag = 1.0, 0
        while lag < min(self.turns // 3, _LAGS) and (not lag or lag < _WINDOW * found):
            lag += 1
            found += 2 * self.products[lag - 1] / self.alone * self.turns / (self.turns - lag)
        doubt = math.sqrt(2 * (2 * lag + 1) / self.seen)
        return max(found / (1 + _DOUBT * doubt), 1.0)
