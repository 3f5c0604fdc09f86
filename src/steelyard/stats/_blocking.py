"""How far neighbours resemble each other, while turns come one by one and nobody knows their sessions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

_SIZES = tuple(2**power for power in range(1, 9))
_FEWEST = 4
"""Blocks of a size before it tells anything."""
_SMALL = 1e-9  # equal values differ from their mean by rounding alone
_STEP, _BACK = 8, 16
"""What is known is looked at every 8 turns, and goes by what was known 16 times that ago: see `known`."""
_DOUBT = 0.5
"""As many standard errors are taken off: with more, unknown sessions set off more alarms; with none, falls of
independent turns are told in half as many turns again as an oracle needs (simulated as in
`benchmarks/sessions.py`)."""


@dataclass(slots=True)
class Blocking:
    """The design effect of neighbours: how much more sums of up to 256 of them vary than each by itself.

    Source: Flyvbjerg & Petersen, Journal of Chemical Physics 91, 1989: sums over blocks, of twice the size
    each time, less a part of the standard error of their variance (eq. 28). Sessions whose turns come among
    hundreds of others are not seen.
    """

    weight: float = 0.0
    """Sum of the weights."""
    value: float = 0.0
    """Of weight times value."""
    turns: int = 0
    """How many there were."""
    sums: list[float] = field(default_factory=lambda: [0.0] * len(_SIZES))
    """By size of blocks: the sum of deviations in the open one."""
    squares: list[float] = field(default_factory=lambda: [0.0] * len(_SIZES))
    """Squared sums of the closed ones."""
    alone: float = 0.0
    """Squared deviations of all turns."""
    known: list[float] = field(default_factory=lambda: [1.0])
    """The latest design effects, one in eight turns. A fall looks like a long session that went wrong, so
    what counts was known 128 turns ago, or after a third of all turns."""

    def add(self, value: float, inclusion: float = 1.0) -> None:
        """Take a value into account."""
        weight = 1 / inclusion
        self.turns += 1
        self.weight += weight
        self.value += weight * value
        away = weight * (value - self.value / self.weight)
        self.alone += away * away
        for place, size in enumerate(_SIZES):
            self.sums[place] += away
            if not self.turns % size:
                self.squares[place] += self.sums[place] ** 2
                self.sums[place] = 0.0
        if not self.turns % _STEP:
            self.known = [*self.known, self._now()][-_BACK - 1 :]

    @property
    def design_effect(self) -> float:
        """How many times the variance of a mean is what it would be if turns were independent; from 1 on."""
        return self.known[-1 - min(2 * self.turns // (3 * _STEP), len(self.known) - 1)]

    def _now(self) -> float:
        found = 1.0
        for size, squares in zip(_SIZES, self.squares, strict=True):
            blocks = self.turns // size
            if blocks >= _FEWEST and self.alone > _SMALL:
                closed = self.alone * blocks * size / self.turns
                found = max(found, squares / closed / (1 + _DOUBT * math.sqrt(2 / (blocks - 1))))
        return found
