"""Sessions that are under way while turns come one by one, in bounded memory."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, MutableMapping
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from steelyard.stats._estimate import Estimate, Weighed

_LAGS = 96
_WINDOW = 5.0
"""Correlations are added up over so many times as many turns as their sum says (Sokal's window)."""
_FEWEST = 100
"""Of fewer turns nobody knows how alike they are, and what stands first is taken."""
_BLOCK = 16
_BLOCKS = 24
"""Blocks of 16 turns are compared up to so many apart: 400 turns."""
_BEHIND = 12
"""The last blocks wait: a fall that is under way makes them alike, and would not be told."""
_FEWEST_BLOCKS = 40
_CHANCE = 0.5
"""Standard errors that are taken off what blocks say: of independent turns it is above 1 half of the time."""
_MOST_ALIKE = 12.0
"""No more is taken from neighbours: a deep fall makes them alike too, and would not be told."""
_STEP = 8
"""It is estimated anew every 8 turns."""
_KEPT = 1 - 1 / 256
"""Deviations are from the mean of late, in which an older turn counts less: a new level is no likeness."""
_REMEMBERED = 1 - 1 / 4096
"""What one turn more leaves of the products of earlier ones, so that a change in the past is forgotten."""
_LONG = 1 - 1 / 16_384
"""The same for blocks, which tell less at a time."""
_SMALL = 1e-9  # equal values differ from their mean by rounding alone


@dataclass(slots=True)
class Neighbours:
    """The design effect of turns that follow each other: how much more their mean varies than if independent.

    The larger of two estimates. Sessions that come one after another: 1 + 2 sum of the correlations of turns
    that are j apart, for j up to the first that is `_WINDOW` times the sum so far (Madras & Sokal, Journal of
    Statistical Physics 50, 1988, appendix C). Sessions that come mixed are a little alike at hundreds of
    distances, before which such a window closes: the same of sums of 16 turns, with Bartlett's window (Newey
    & West, Econometrica 55, 1987), less half of its standard error if turns were independent. Sessions whose
    turns come among many hundreds of others are seen in part.
    """

    weight: float = 0.0
    value: float = 0.0
    turns: int = 0
    latest: list[float] = field(default_factory=list)
    """Deviations of the last turns, the latest first."""
    products: list[float] = field(default_factory=lambda: [0.0] * _LAGS)
    """By distance: sums of the products of two deviations."""
    alone: float = 0.0
    """Squared deviations of all turns."""
    long: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """As `weight`, `value` and `alone`, of more turns."""
    block: float = 0.0
    """The sum of deviations of the block under way."""
    blocks: list[float] = field(default_factory=list)
    """Of the last blocks, the latest first."""
    block_products: list[float] = field(default_factory=lambda: [0.0] * (_BLOCKS + 1))
    """By distance, from 0 on: sums of the products of two of these."""
    design_effect: float = 1.75
    """How many times the variance of a mean is what it would be if turns were independent; from 1 on."""

    def add(self, value: float, inclusion: float = 1.0) -> None:
        weight = 1 / inclusion
        self.turns += 1
        self.weight = self.weight * _KEPT + weight
        self.value = self.value * _KEPT + weight * value
        away = weight * (value - self.value / self.weight)
        self.alone = self.alone * _REMEMBERED + away * away
        for place in range(_LAGS):
            other = self.latest[place] if place < len(self.latest) else 0.0
            self.products[place] = self.products[place] * _REMEMBERED + away * other
        self.latest = [away, *self.latest[: _LAGS - 1]]
        self._add_to_block(weight, value)
        if self.turns >= _FEWEST and not self.turns % _STEP:
            self.design_effect = min(max(self._near(), self._far(), 1.0), _MOST_ALIKE)

    def _add_to_block(self, weight: float, value: float) -> None:
        weights, values, alone = self.long
        weights, values = weights * _LONG + weight, values * _LONG + weight * value
        away = weight * (value - values / weights)
        self.long = weights, values, alone * _LONG + away * away
        self.block += away
        if self.turns % _BLOCK:
            return
        self.blocks = [self.block, *self.blocks[: _BEHIND + _BLOCKS]]
        self.block = 0.0
        settled = self.blocks[_BEHIND:]
        for place, other in enumerate(settled):
            self.block_products[place] = self.block_products[place] * _LONG**_BLOCK + settled[0] * other

    def _near(self) -> float:
        if self.alone <= _SMALL:
            return 1.0
        found, lag = 1.0, 0
        while lag < min(self.turns // 3, _LAGS) and lag < _WINDOW * found:
            lag += 1
            found += 2 * self.products[lag - 1] / self.alone * self.turns / (self.turns - lag)
        return found

    def _far(self) -> float:
        settled = self.turns // _BLOCK - _BEHIND
        if settled < _FEWEST_BLOCKS or self.long[2] <= _SMALL:
            return 1.0
        turns, blocks = _counted(self.turns), _counted(settled * _BLOCK) / _counted(_BLOCK)
        lags = min(settled // 3, _BLOCKS)
        window = [1 - lag / (lags + 1) for lag in range(1, lags + 1)]
        apart = zip(window, self.block_products[1:], strict=False)
        found = self.block_products[0] + 2 * sum(share * product for share, product in apart)
        chance = math.sqrt((2 + 4 * sum(share * share for share in window)) / blocks)
        return found / blocks / (_BLOCK * self.long[2] / turns) - _CHANCE * chance


def _counted(turns: int) -> float:
    """How many of so many turns count, the older the less."""
    return float(1 - _LONG**turns) / (1 - _LONG)


_Array = npt.NDArray[np.float64]


@dataclass(slots=True)
class Moments:
    """Running sums over values in 0..1, each weighted by 1 / its inclusion probability."""

    n: int = 0
    ends: int = 0
    weight: float = 0.0
    value: float = 0.0
    value_value: float = 0.0
    value_value_value: float = 0.0
    square: float = 0.0
    square_value: float = 0.0
    square_value_value: float = 0.0
    fourth: float = 0.0
    least: float = 1.0

    def add(self, value: float, inclusion: float = 1.0) -> None:
        weight = 1 / inclusion
        self.n += 1
        self.ends += value <= 0 or value >= 1
        self.weight += weight
        self.value += weight * value
        self.value_value += weight * value * value
        self.value_value_value += weight * value * value * value
        self.square += weight * weight
        self.square_value += weight * weight * value
        self.square_value_value += weight * weight * value * value
        self.fourth += weight**4
        self.least = min(self.least, inclusion)

    def merge(self, other: Moments) -> None:
        least = min(self.least, other.least)
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.least = least

    @property
    def mean(self) -> float | None:
        return self.value / self.weight if self.n else None

    def estimate(
        self, *, level: float = 0.95, floor: float | None = None, design_effect: float = 1.0
    ) -> Estimate | None:
        """The Hajek mean with its interval; None of nothing. See `weighted_mean`."""
        if not self.n:
            return None
        mean = min(max(self.value / self.weight, 0.0), 1.0)
        squares = self.square_value_value - 2 * mean * self.square_value + mean * mean * self.square
        spread = max(squares, 0.0)
        second = max(self.value_value / self.weight - mean * mean, 0.0)
        third = self.value_value_value / self.weight - mean * (3 * self.value_value / self.weight)
        third += 2 * mean**3
        freedom = max(self.square**2 / self.fourth / design_effect - 1, 0.0)
        return Weighed(
            n=self.n,
            weight=self.weight,
            square=self.square,
            mean=mean,
            spread=spread,
            second=second,
            third=third,
            ends=self.ends / self.n,
            even=self.square * self.n <= self.weight**2 * (1 + 1e-9),
            clustered=spread * design_effect * (freedom + 1) / max(freedom, 1.0),
            freedom=freedom,
            alike=design_effect,
            units=None if design_effect == 1 else round(self.n / design_effect),
            least=self.least,
        ).estimate(level=level, floor=floor)


_T = TypeVar("_T")
LONGEST = 100
"""After so many turns a session counts as another one."""
_MOST = 500
"""Sessions remembered; the one without a turn for the longest time is forgotten first."""


def unit_key(session: Hashable) -> str | None:
    """A short name for a session, however long its id is; None for a turn of its own (None or empty)."""
    if session is None or session == "":
        return None
    return hashlib.blake2b(str(session).encode(errors="surrogatepass"), digest_size=8).hexdigest()


def remember(units: MutableMapping[str, _T], key: str, value: _T) -> None:
    """Put a unit in last place, and forget the first one if there are too many."""
    units.pop(key, None)
    units[key] = value
    if len(units) > _MOST:
        del units[next(iter(units))]


@dataclass(slots=True)
class OpenSums:
    """Running sums over turns that may be of one session, and how alike such turns are.

    A session is taken for another one after a hundred turns, or if it comes back after 500 others.
    """

    turns: Moments = field(default_factory=Moments)
    open: dict[str, tuple[int, float, float]] = field(default_factory=dict)
    """By session: its turns, the sum of their weights 1 / inclusion, and of weight times value."""
    pairs: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Over pairs of turns of one session: sums of w w', of w w' (x + x') / 2 and of w w' x x'."""

    def add(self, value: float, inclusion: float = 1.0, *, session: Hashable = None) -> None:
        self.turns.add(value, inclusion)
        key = unit_key(session)
        if key is None:
            return
        weight = 1 / inclusion
        turns, before, values = self.open.get(key, (0, 0.0, 0.0))
        if turns >= LONGEST:
            turns, before, values = 0, 0.0, 0.0
        weights, mixed, products = self.pairs
        self.pairs = (
            weights + 2 * before * weight,
            mixed + weight * (values + before * value),
            products + 2 * values * weight * value,
        )
        remember(self.open, key, (turns + 1, before + weight, values + weight * value))

    def estimate(self) -> Estimate | None:
        """The mean of all turns with its 95 % interval; None of nothing."""
        return self.turns.estimate(design_effect=self.design_effect)

    @property
    def units(self) -> float:
        """As many sessions of equal weight would tell as much of how sessions differ; 0 of nothing."""
        spread = self.turns.square + self.pairs[0]
        return self.turns.weight**2 / spread if spread else 0.0

    @property
    def design_effect(self) -> float:
        """How many times the variance of the mean is what it would be if turns were independent, at least 1.

        The linearised variance with sessions as units over the one without, times g / (g - 1), g = `units`.
        """
        sums, (weights, mixed, products) = self.turns, self.pairs
        mean = sums.mean
        if mean is None or not weights:
            return 1.0
        spread = sums.square_value_value - 2 * mean * sums.square_value + mean * mean * sums.square
        if spread <= 0:
            return 1.0
        grown = 1 + (products - 2 * mean * mixed + mean * mean * weights) / spread
        return max(grown * self.units / max(self.units - 1, 1.0), 1.0)
