"""Where the judge looks: more often where the screen has said little, by what the judge said before.

Turns fall into bins by what the screen said of them. From the judge's verdicts so far it is known how much
they vary within each bin, and the best use of a given number of verdicts is to pick from each bin in
proportion to that standard deviation (Neyman, Journal of the Royal Statistical Society 97, 1934). A share
of its own rate is left to every turn, and bins with few verdicts count as varying like all together, so that
a screen that tells nothing, or the wrong thing, costs next to nothing. What a turn's rate is multiplied by
depends on earlier turns alone: it is known before the draw, and is stored on the Score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

_BINS = 8
_PRIOR = 10.0
"""As many verdicts speak for a bin's varying like all together."""
_LEAST = 0.1
"""No turn keeps less than this share of its rate: its weight would be more than ten times the usual."""


def least_share(floor: float) -> float:
    """What no turn's rate is multiplied by less of."""
    return max(floor, _LEAST)


@dataclass(slots=True)
class _Bin:
    """What is known of the turns of which the screen said about the same."""

    seen: float = 0.0
    """Turns that the screen saw; they count one each."""
    weight: float = 0.0
    """Turns of the application that the judged ones stand for."""
    total: float = 0.0
    squares: float = 0.0
    judged: int = 0

    def add(self, value: float, weight: float) -> None:
        self.judged += 1
        self.weight += weight
        self.total += weight * value
        self.squares += weight * value * value

    @property
    def variance(self) -> float:
        if self.weight <= 0:
            return 0.0
        mean = self.total / self.weight
        return max(self.squares / self.weight - mean * mean, 0.0)


@dataclass(slots=True)
class Allocation:
    """What the rates of turns are multiplied by; the mean over turns is 1."""

    floor: float
    """The share of its own rate that every turn keeps."""
    _bins: dict[str, list[_Bin]] = field(default_factory=dict)

    def share(self, said: Mapping[str, float | None]) -> float:
        """What the rate of a turn is multiplied by; counts the turn.

        Args:
            said: By metric, what the screen said, in 0..1; None where it said nothing.
        """
        shares = [self._share(metric, value) for metric, value in said.items() if value is not None]
        return sum(shares) / len(shares) if shares else 1.0

    def learn(self, metric: str, said: float | None, value: float, inclusion: float) -> None:
        """The judge has scored a turn of which the screen said this."""
        if said is not None:
            self._of(metric)[_place(said)].add(min(max(value, 0.0), 1.0), 1 / inclusion)

    def _of(self, metric: str) -> list[_Bin]:
        return self._bins.setdefault(metric, [_Bin() for _ in range(_BINS)])

    def _share(self, metric: str, said: float) -> float:
        bins = self._of(metric)
        mine = bins[_place(said)]
        mine.seen += 1
        pooled = _Bin()
        for one in bins:
            pooled.weight += one.weight
            pooled.total += one.total
            pooled.squares += one.squares
        if pooled.variance <= 0:
            return 1.0
        deviations = [
            math.sqrt((one.judged * one.variance + _PRIOR * pooled.variance) / (one.judged + _PRIOR))
            for one in bins
        ]
        seen = sum(one.seen for one in bins)
        usual = sum(one.seen * deviation for one, deviation in zip(bins, deviations, strict=True)) / seen
        own = deviations[_place(said)] / usual
        return max(self.floor + (1 - self.floor) * own, least_share(self.floor))


def _place(said: float) -> int:
    return min(max(int(said * _BINS), 0), _BINS - 1)
