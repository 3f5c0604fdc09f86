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
_STEP, _BACK = 8, 16
"""What is known is looked at every 8 turns, and held against what was known 16 times that ago."""
_MOST_GROWN = 4.0
"""By so many times it may have grown since: with more, deep falls are told later; with less, a first long
session that goes wrong sets off more alarms."""
_SMALL = 1e-9  # equal values differ from their mean by rounding alone


@dataclass(slots=True)
class Neighbours:
    """The design effect of turns that follow each other: how much more their mean varies than if independent.

    1 + 2 sum of the correlations of turns that are j apart, for j up to the first that is `_WINDOW` times the
    sum so far (Madras & Sokal, Journal of Statistical Physics 50, 1988, appendix C), less a part of its
    standard error (their eq. C.19). The window keeps a fall out of it: that makes all turns a little alike
    however far apart they are, where turns of a session are alike and close. Sessions whose turns come among
    hundreds of others are not seen.
    """

    weight: float = 0.0
    """Sum of the weights."""
    value: float = 0.0
    """Of weight times value."""
    turns: int = 0
    """How many there were."""
    latest: list[float] = field(default_factory=list)
    """Deviations of the last turns, the latest first."""
    products: list[float] = field(default_factory=lambda: [0.0] * _LAGS)
    """By distance: sums of the products of two deviations."""
    alone: float = 0.0
    """Squared deviations of all turns."""
    known: list[float] = field(default_factory=lambda: [1.0])
    """The latest design effects, one in eight turns."""

    def add(self, value: float, inclusion: float = 1.0) -> None:
        """Take a value into account."""
        weight = 1 / inclusion
        self.turns += 1
        self.weight += weight
        self.value += weight * value
        away = weight * (value - self.value / self.weight)
        self.alone += away * away
        for place, other in enumerate(self.latest):
            self.products[place] += away * other
        self.latest = [round(away, 6), *self.latest[: _LAGS - 1]]
        if not self.turns % _STEP:
            self.known = [*self.known, self._now()][-_BACK - 1 :]

    @property
    def design_effect(self) -> float:
        """How many times the variance of a mean is what it would be if turns were independent; from 1 on.

        A deep fall looks like a long session that went wrong: what was known 128 turns ago, or after a third
        of all turns, bounds what is taken from the latest.
        """
        earlier = self.known[-1 - min(2 * self.turns // (3 * _STEP), len(self.known) - 1)]
        return min(self.known[-1], earlier * _MOST_GROWN)

    def _now(self) -> float:
        if self.turns < _FEWEST or self.alone <= _SMALL:
            return 1.0
        found, lag = 1.0, 0
        while lag < min(self.turns // 3, _LAGS) and (not lag or lag < _WINDOW * found):
            lag += 1
            found += 2 * self.products[lag - 1] / (self.turns - lag) * self.turns / self.alone
        doubt = math.sqrt(2 * (2 * lag + 1) / self.turns)
        return max(found / (1 + _DOUBT * doubt), 1.0)
